//! Removes hidden fields from the schemas, the `_meta` and the prose of a tool.
//!
//! For a schema S and its scrub E(S):
//!
//! - no hidden name stands in E(S) where a property is named;
//! - what S accepted is, after the argument scrub, accepted by E(S). Only a schema that names no hidden field and yet
//!   counts or compares keys can tell such a call from its scrub; it is left as it is, and so is the engine's verdict;
//! - local references that led somewhere still do, or are gone;
//! - E(E(S)) is E(S); a clean S is not touched; a valid S gives a valid E(S).
//!
//! A top-level string that holds JSON text and is rewritten by the argument scrub is taken to be as good as before:
//! `const`, `pattern` and lengths of strings stay.

mod graph;
mod keyword;
mod look;
mod pattern;
mod reach;
mod rewrite;
mod spread;
#[cfg(test)]
mod tests;

use std::{error, fmt, sync::Arc};

use rmcp::model::{JsonObject, MetaObject, Tool};
use serde_json::Value;

use self::{graph::Graph, look::Found};
use super::HiddenFields;
use crate::json::{self, DEPTH_LIMIT};

/// Values that a schema may hold: several hundred times what the largest tool of the real engine has.
const VALUE_LIMIT: usize = 1 << 16;

/// Rounds in which references to what is gone are looked for, each of which may take something away in turn.
const ROUNDS: usize = 8;

impl HiddenFields {
    /// Removes the hidden fields from the input schema of `tool`, a logical name (see
    /// [`ToolNames`](crate::ToolNames)), and weakens what would reject a call without them. Returns whether anything
    /// changed; if not, `schema` is the same `Arc` and nothing was allocated.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tower_algenta::HiddenFields;
    /// # use rmcp::object;
    /// let mut schema = Arc::new(object!({
    ///     "properties": { "decision_id": {}, "force": {} },
    ///     "required": ["decision_id", "force"]
    /// }));
    /// assert!(HiddenFields::new().scrub_schema("execute_decision", &mut schema)?);
    /// assert_eq!(*schema, object!({ "properties": { "decision_id": {} }, "required": ["decision_id"] }));
    /// # Ok::<_, tower_algenta::hidden_fields::SchemaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the schema nests more than 128 containers, holds more than 65,536 values, or has something else than an
    /// object where properties or definitions are named. It is unchanged then, and must not be shown. Dropping one that
    /// is too deep recurses; [`SchemaScrub`](crate::SchemaScrub) takes it apart instead.
    pub fn scrub_schema(&self, tool: &str, schema: &mut Arc<JsonObject>) -> Result<bool, SchemaError> {
        let found = self.look_at_schema(schema)?;
        if found.is_clean() {
            return Ok(false);
        }
        let mut graph = Graph::new(self, self.scope(tool), schema);
        graph.analyse(found.names)?;
        for _ in 0..ROUNDS {
            let rewritten = graph.rewrite();
            let scrubbed = rewritten.schema;
            let cut: Vec<_> = rewritten
                .references
                .into_iter()
                .filter(|&id| found.names && graph.dangles(id, &scrubbed, &rewritten.kept))
                .collect();
            if !cut.is_empty() {
                graph.cut(&cut);
            } else if self.look_at_schema(&scrubbed)? == Found::default() {
                *schema = Arc::new(scrubbed);
                return Ok(true);
            } else {
                break;
            }
        }
        Err(SchemaError { kind: Kind::Tangled })
    }

    /// Removes the hidden fields from everything of `advertised` that a model may read: the input schema, an output
    /// schema that names one (dropped whole), `_meta` (by key, at any depth), and, unless
    /// [`Prose::Keep`](crate::Prose::Keep) is set, titles and descriptions. `tool` is its logical name. Returns whether
    /// anything changed.
    ///
    /// # Errors
    ///
    /// As [`scrub_schema`](Self::scrub_schema), for either schema and for `_meta`. The tool must not be shown then.
    pub fn scrub_tool(&self, tool: &str, advertised: &mut Tool) -> Result<bool, SchemaError> {
        let mut changed = self.scrub_output_schema(tool, &mut advertised.output_schema)?;
        changed |= self.scrub_advertised_meta(&mut advertised.meta)?;
        changed |= self.scrub_schema(tool, &mut advertised.input_schema)?;
        changed |= self.redact_title(&mut advertised.title);
        changed |= self.redact_description(&mut advertised.description);
        if let Some(annotations) = &mut advertised.annotations {
            changed |= self.redact_title(&mut annotations.title);
        }
        Ok(changed)
    }

    fn scrub_output_schema(&self, tool: &str, schema: &mut Option<Arc<JsonObject>>) -> Result<bool, SchemaError> {
        let Some(output) = schema else { return Ok(false) };
        let found = self.look_at_schema(output)?;
        if found.is_clean() {
            return Ok(false);
        }
        if found.names {
            *schema = None;
            return Ok(true);
        }
        // No name is hidden there, so this redacts prose and weakens nothing.
        self.scrub_schema(tool, output)
    }

    /// Removes the hidden fields from a `_meta` that came with a list; what is emptied goes.
    pub(crate) fn scrub_advertised_meta(&self, meta: &mut Option<MetaObject>) -> Result<bool, SchemaError> {
        let Some(MetaObject(members)) = meta else { return Ok(false) };
        if !json::object_is_within(members, DEPTH_LIMIT) {
            return Err(SchemaError { kind: Kind::TooDeep });
        }
        if !members.iter().any(|(key, value)| self.hides_in_meta(key) || self.hides_in_meta_value(value)) {
            return Ok(false);
        }
        self.strip_meta(members);
        if members.is_empty() {
            *meta = None;
        }
        Ok(true)
    }

    fn hides_in_meta_value(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| self.hides_in_meta_value(item)),
            Value::Object(members) => {
                members.iter().any(|(key, value)| self.hides_in_meta(key) || self.hides_in_meta_value(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn strip_meta(&self, members: &mut JsonObject) {
        // Not `remove`: under `preserve_order` it moves the last member.
        members.retain(|key, _| !self.hides_in_meta(key));
        members.values_mut().for_each(|value| self.strip_meta_value(value));
    }

    fn strip_meta_value(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.strip_meta_value(item)),
            Value::Object(members) => self.strip_meta(members),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Drops a tool without recursion, however deep its schemas are.
pub(crate) fn discard_tool(tool: Tool) {
    // A map that someone else holds too is only counted down here.
    let schemas = [Some(tool.input_schema), tool.output_schema].into_iter().flatten().filter_map(Arc::into_inner);
    for members in schemas.chain(tool.meta.map(|meta| meta.0)) {
        json::dismantle(Value::Object(members));
    }
}

/// The schema of a tool can't be scrubbed, so the tool must not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    TooDeep,
    TooLarge,
    Malformed,
    Tangled,
}

impl SchemaError {
    /// Whether the schema is too deep or too large to be looked at.
    #[must_use]
    pub const fn is_limit(&self) -> bool {
        matches!(self.kind, Kind::TooDeep | Kind::TooLarge)
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::TooDeep => write!(f, "the tool's schema nests more than {DEPTH_LIMIT} containers"),
            Kind::TooLarge => write!(f, "the tool's schema holds more than {VALUE_LIMIT} values or references"),
            Kind::Malformed => f.write_str("the tool's schema names properties in a way that can't be read"),
            Kind::Tangled => f.write_str("the references in the tool's schema can't be taken apart"),
        }
    }
}

impl error::Error for SchemaError {}
