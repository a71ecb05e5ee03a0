//! Writes a schema anew, without its hidden names.
//!
//! The rule is that nothing gets tighter: what a schema accepted is, without its hidden fields, accepted by what is
//! written here. The engine validates again, so a looser schema costs nothing and a tighter one would reject good calls.

use std::collections::HashSet;

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{
    super::Scope,
    graph::{Facts, Graph},
    keyword::{Keyword, accepts_all},
    pattern::Spells,
};
use crate::decision::METADATA;

/// The scrubbed schema, and what of the old one it has.
pub(super) struct Rewritten {
    pub(super) schema: JsonObject,
    /// The nodes that were written.
    pub(super) kept: Vec<bool>,
    /// The nodes whose references were written.
    pub(super) references: Vec<usize>,
}

/// Which draft a schema says it follows, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Draft {
    /// 3, 4 or 6: no `if`.
    NoConditions,
    /// 7: like those before it, it ignores what stands beside a `$ref`.
    Seven,
    /// 2019-09, 2020-12, or nothing said.
    Later,
}

impl Draft {
    fn of(root: &JsonObject) -> Self {
        let Some(uri) = root.get("$schema").and_then(Value::as_str) else { return Self::Later };
        if ["draft-03", "draft-04", "draft-05", "draft-06"].iter().any(|draft| uri.contains(draft)) {
            Self::NoConditions
        } else if uri.contains("draft-07") {
            Self::Seven
        } else {
            Self::Later
        }
    }
}

impl Graph<'_> {
    /// Writes the schema without its hidden names.
    pub(super) fn rewrite(&self) -> Rewritten {
        let mut rewriting = Rewriting {
            graph: self,
            draft: Draft::of(self.root),
            kept: vec![false; self.len()],
            references: Vec::new(),
        };
        let schema = rewriting.schema(self.root);
        Rewritten { schema, kept: rewriting.kept, references: rewriting.references }
    }
}

struct Rewriting<'g, 'a> {
    graph: &'g Graph<'a>,
    draft: Draft,
    kept: Vec<bool>,
    references: Vec<usize>,
}

impl Rewriting<'_, '_> {
    fn hides(&self, name: &str) -> bool {
        self.graph.fields.hides(name)
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(schema) => Value::Object(self.schema(schema)),
            value => value.clone(),
        }
    }

    fn members(&mut self, members: &JsonObject, keep: impl Fn(&str) -> bool) -> Value {
        let kept = members.iter().filter(|(name, _)| keep(name));
        Value::Object(kept.map(|(name, value)| (name.clone(), self.value(value))).collect())
    }

    fn schema(&mut self, schema: &JsonObject) -> JsonObject {
        let facts = self.graph.facts(schema);
        self.kept[facts.id] = true;
        let drops_condition = schema.get("if").is_some_and(|condition| self.graph.shifts(condition));
        let mut written = JsonObject::new();
        let mut alternatives = Vec::new();
        for (key, value) in schema {
            match Keyword::of(key) {
                // What stands beside a reference would come into force only now.
                keyword if facts.is_cut && self.draft != Draft::Later && !is_silent(keyword, key) => {}
                Keyword::OneOf if self.graph.shifts(value) => {
                    let branches = self.value(value);
                    add_alternatives(schema, &mut written, &mut alternatives, branches);
                }
                Keyword::If if drops_condition => {
                    if let (Some(then), Some(otherwise), true) =
                        (schema.get("then"), schema.get("else"), self.draft != Draft::NoConditions)
                    {
                        let branches = Value::Array(vec![self.value(then), self.value(otherwise)]);
                        add_alternatives(schema, &mut written, &mut alternatives, branches);
                    }
                }
                Keyword::ThenElse if drops_condition => {}
                Keyword::Not if self.graph.shifts(value) => {}
                keyword => {
                    if let Some(value) = self.member(schema, facts, keyword, key, value) {
                        written.insert(key.clone(), value);
                    }
                }
            }
        }
        append_to_all_of(&mut written, alternatives);
        written
    }

    /// One member of `schema`, scrubbed; `None` if it goes.
    fn member(
        &mut self,
        schema: &JsonObject,
        facts: Facts,
        keyword: Keyword,
        key: &str,
        value: &Value,
    ) -> Option<Value> {
        let fields = self.graph.fields;
        match (keyword, value) {
            (Keyword::Properties, Value::Object(members)) => Some(self.members(members, |name| !fields.hides(name))),
            (Keyword::PatternProperties, Value::Object(members)) => {
                Some(self.members(members, |pattern| fields.spelled_by(pattern) == Spells::Nothing))
            }
            (Keyword::Definitions, Value::Object(members)) => Some(self.members(members, |_| true)),
            (
                Keyword::DependentSchemas | Keyword::Dependencies | Keyword::DependentRequired,
                Value::Object(members),
            ) => self.dependencies(members),
            (Keyword::Names, value) => self.names(value),
            (Keyword::PropertyNames, value) => self.property_names(facts, value),
            (Keyword::Pattern, Value::String(pattern)) if facts.reach.is_name() && self.graph.spells(pattern) => None,
            (Keyword::AdditionalProperties, value) if !accepts_all(value) && self.opens(schema, facts) => None,
            (Keyword::Unevaluated, value) if facts.forgets && !accepts_all(value) => None,
            (Keyword::MaxContains, _) if schema.get("contains").is_some_and(|part| self.graph.shifts(part)) => None,
            (Keyword::MinProperties, value) if facts.reach.loses_keys() => self.min_properties(schema, value),
            (Keyword::UniqueItems, _) if self.graph.loosens_unique(schema, facts.reach) => None,
            (Keyword::Const, value) => {
                let is_gone =
                    facts.reach.is_name() && fields.is_hidden_name(value) || !self.is_scrubbed_alike(facts, value);
                (!is_gone).then(|| fields.without_hidden(value))
            }
            (Keyword::Enum, Value::Array(values)) => self.enumeration(facts, values),
            (Keyword::Enum | Keyword::Shown, value) => Some(fields.without_hidden(value)),
            (Keyword::Discriminator, value) => {
                let is_gone = value.get("propertyName").is_some_and(|name| fields.is_hidden_name(name));
                (!is_gone).then(|| value.clone())
            }
            (Keyword::Prose, Value::String(text)) => match fields.redact(text) {
                None => Some(value.clone()),
                Some(text) => (!text.trim().is_empty()).then_some(Value::String(text)),
            },
            (Keyword::Reference, Value::String(_)) => {
                if facts.is_cut {
                    return None;
                }
                self.references.push(facts.id);
                Some(value.clone())
            }
            (Keyword::Other, _) if self.hides(key) => None,
            (_, value) => Some(self.value(value)),
        }
    }

    /// `dependentRequired`, `dependentSchemas` or `dependencies`; `None` if nothing is left.
    fn dependencies(&mut self, members: &JsonObject) -> Option<Value> {
        let mut written = JsonObject::new();
        for (name, value) in members {
            if self.hides(name) {
                continue;
            }
            let value = match value {
                Value::Object(schema) => Some(Value::Object(self.schema(schema))),
                value => self.names(value),
            };
            if let Some(value) = value {
                written.insert(name.clone(), value);
            }
        }
        (!written.is_empty() || members.is_empty()).then_some(Value::Object(written))
    }

    /// A list of property names; `None` if only hidden ones stood there, since draft 4 forbids an empty list.
    fn names(&mut self, value: &Value) -> Option<Value> {
        match value {
            Value::Array(names) => {
                let kept: Vec<_> =
                    names.iter().filter(|name| !self.graph.fields.is_hidden_name(name)).cloned().collect();
                (!kept.is_empty() || names.is_empty())
                    .then(|| kept.iter().map(|name| self.graph.fields.without_hidden(name)).collect())
            }
            name if self.graph.fields.is_hidden_name(name) => None,
            value => Some(self.graph.fields.without_hidden(value)),
        }
    }

    fn property_names(&mut self, facts: Facts, value: &Value) -> Option<Value> {
        // A key that stays in the call must not be held against a list that it has left.
        if facts.reach.keeps_keys() && self.graph.shifts(value) {
            return None;
        }
        let written = self.value(value);
        let is_emptied = written.as_object().is_some_and(JsonObject::is_empty) && written != *value;
        (!is_emptied).then_some(written)
    }

    /// Whether a key that no longer has a schema of its own may be left in the call.
    fn opens(&self, schema: &JsonObject, facts: Facts) -> bool {
        let keeps = facts.reach.keeps_keys();
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        keeps && properties.is_some_and(|members| members.keys().any(|name| self.hides(name)))
            || patterns.is_some_and(|members| {
                members.keys().any(|pattern| match self.graph.fields.spelled_by(pattern) {
                    Spells::Nothing => false,
                    Spells::Only => keeps,
                    Spells::AmongOthers => true,
                })
            })
    }

    /// The call has lost at the most the hidden keys that the schema lets in; without a bound on these, none is left.
    fn min_properties(&self, schema: &JsonObject, value: &Value) -> Option<Value> {
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").and_then(Value::as_object).is_none_or(JsonObject::is_empty);
        let Some(min) = as_count(value) else { return Some(value.clone()) };
        if !is_closed {
            return None;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let hidden = properties.map_or(0, |members| members.keys().filter(|name| self.hides(name)).count());
        if hidden == 0 {
            return Some(value.clone());
        }
        let left = min.saturating_sub(hidden as u64);
        (left > 0).then(|| left.into())
    }

    fn enumeration(&mut self, facts: Facts, values: &[Value]) -> Option<Value> {
        let fields = self.graph.fields;
        if !values.iter().all(|value| self.is_scrubbed_alike(facts, value)) {
            return None;
        }
        if facts.reach.is_name() && values.iter().any(|value| fields.is_hidden_name(value)) {
            // Where the same list also says which values are good, those must not become fewer.
            if !facts.reach.is_only_name() {
                return None;
            }
            let kept: Vec<_> = values.iter().filter(|value| !fields.is_hidden_name(value)).cloned().collect();
            return (!kept.is_empty()).then_some(Value::Array(kept));
        }
        if !values.iter().any(|value| fields.holds_hidden(value)) {
            return Some(Value::Array(values.to_vec()));
        }
        // Draft 4 wants them to differ.
        let mut seen: HashSet<String> =
            values.iter().filter(|value| !fields.holds_hidden(value)).map(Value::to_string).collect();
        let scrubbed = values.iter().filter_map(|value| {
            let is_untouched = !fields.holds_hidden(value);
            let value = fields.without_hidden(value);
            (is_untouched || seen.insert(value.to_string())).then_some(value)
        });
        Some(scrubbed.collect())
    }

    /// Whether the argument scrub takes the same hidden keys from a value equal to `value` as are taken from it here.
    fn is_scrubbed_alike(&self, facts: Facts, value: &Value) -> bool {
        let fields = self.graph.fields;
        let stays = |value: &Value| fields.holds_hidden(value);
        if facts.reach.keeps_keys() && stays(value) {
            return false;
        }
        let (true, Value::Object(members)) = (facts.reach.is_root(), value) else { return true };
        members.iter().filter(|(name, _)| !self.hides(name)).all(|(name, value)| match self.graph.scope {
            Scope::Everywhere => true,
            Scope::ExceptMetadata => name != METADATA || !stays(value),
            Scope::TopLevel => !stays(value),
        })
    }
}

/// Whether a keyword asserts nothing, so that it may stay where a reference beside it went.
fn is_silent(keyword: Keyword, key: &str) -> bool {
    match keyword {
        Keyword::Definitions | Keyword::Shown | Keyword::Prose | Keyword::Reference => true,
        Keyword::Other => key.starts_with('$') || key.starts_with("x-"),
        _ => false,
    }
}

/// Puts `branches` where one of them must hold: into `anyOf` or, if that is taken, `later` into an `allOf`.
fn add_alternatives(schema: &JsonObject, written: &mut JsonObject, later: &mut Vec<Value>, branches: Value) {
    if schema.contains_key("anyOf") || written.contains_key("anyOf") {
        later.push(Value::Object(JsonObject::from_iter([("anyOf".to_owned(), branches)])));
    } else {
        written.insert("anyOf".to_owned(), branches);
    }
}

fn append_to_all_of(written: &mut JsonObject, alternatives: Vec<Value>) {
    if alternatives.is_empty() {
        return;
    }
    match written.get_mut("allOf") {
        Some(Value::Array(branches)) => branches.extend(alternatives),
        // No list, so no schema that anyone could validate with; what it leaves out is safe to leave out.
        Some(_) => {}
        None => {
            written.insert("allOf".to_owned(), Value::Array(alternatives));
        }
    }
}

/// A count, also one that is written `2.0`.
fn as_count(value: &Value) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and a count is small")]
    value.as_u64().or_else(|| value.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64))
}
