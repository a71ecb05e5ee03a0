//! What a scrub must know of a schema before it rewrites it.
//!
//! Every subschema is a node; an edge says what the instance of the one has to do with that of the other. References
//! are edges like others, so cycles need no care. Three things spread along the edges:
//!
//! - *reach*: what the argument scrub does to the objects that a subschema judges;
//! - *shifts*: the scrubbed subschema may accept a scrubbed value though the subschema refused the value. Harmless where
//!   only acceptance counts; `not`, `oneOf`, `if` and `maxContains` count refusals too;
//! - *forgets*: the scrubbed subschema has evaluated less than the subschema had, which `unevaluatedProperties` and
//!   `unevaluatedItems` around it would see.

use std::{borrow::Cow, collections::HashMap};

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{
    super::{HiddenFields, Scope},
    Kind, SchemaError, VALUE_LIMIT,
    keyword::{Keyword, Place, has_scalar_items, resolve},
    pattern::Spells,
    reach::{Edge, Reach},
};
use crate::decision::METADATA;

/// A subschema.
pub(super) struct Node<'a> {
    pub(super) schema: &'a JsonObject,
    pub(super) edges: Vec<(usize, Edge)>,
    pub(super) reach: Reach,
    pub(super) shifts: bool,
    pub(super) forgets: bool,
    /// Its references lead nowhere in the scrubbed schema, and go.
    pub(super) is_cut: bool,
    base: Base,
}

/// Where a subschema's references start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Root,
    /// At a subschema with an `$id` of its own.
    Other,
}

/// A schema, taken apart.
pub(super) struct Graph<'a> {
    pub(super) fields: &'a HiddenFields,
    pub(super) scope: Scope,
    pub(super) root: &'a JsonObject,
    pub(super) nodes: Vec<Node<'a>>,
    index: HashMap<*const JsonObject, usize>,
    anchors: HashMap<&'a str, Vec<usize>>,
    /// Where a `$recursiveRef` may lead: to the root, or to what has a `$recursiveAnchor`.
    recursive: Vec<usize>,
}

impl<'a> Graph<'a> {
    /// Takes `root` apart. Its depth was measured before.
    pub(super) fn new(fields: &'a HiddenFields, scope: Scope, root: &'a JsonObject) -> Self {
        let mut graph = Self {
            fields,
            scope,
            root,
            nodes: Vec::with_capacity(16),
            index: HashMap::with_capacity(16),
            anchors: HashMap::new(),
            recursive: vec![0],
        };
        graph.add(root, Base::Root);
        graph
    }

    fn add(&mut self, schema: &'a JsonObject, base: Base) -> usize {
        let id = self.nodes.len();
        let base = if id != 0 && is_resource(schema) { Base::Other } else { base };
        self.nodes.push(Node {
            schema,
            edges: Vec::new(),
            reach: Reach::NONE,
            shifts: false,
            forgets: false,
            is_cut: false,
            base,
        });
        self.index.insert(std::ptr::from_ref(schema), id);
        for name in anchors(schema) {
            self.anchors.entry(name).or_default().push(id);
        }
        if id != 0 && schema.contains_key("$recursiveAnchor") {
            self.recursive.push(id);
        }
        for (key, value) in schema {
            match Keyword::of(key) {
                Keyword::Properties => self.add_members(id, value, |name| {
                    Some(if name == METADATA { Edge::Metadata } else { Edge::Argument })
                }),
                Keyword::PatternProperties => self.add_members(id, value, |_| Some(Edge::Part)),
                Keyword::Definitions => self.add_members(id, value, |_| None),
                Keyword::DependentSchemas | Keyword::Dependencies | Keyword::DependentRequired => {
                    self.add_members(id, value, |_| Some(Edge::Same));
                }
                Keyword::Branches | Keyword::OneOf | Keyword::Not | Keyword::If | Keyword::ThenElse => {
                    self.add_value(id, value, Some(Edge::Same));
                }
                Keyword::AdditionalProperties | Keyword::Unevaluated | Keyword::Items | Keyword::Contains => {
                    self.add_value(id, value, Some(Edge::Part));
                }
                Keyword::PropertyNames => self.add_value(id, value, Some(Edge::Name)),
                Keyword::ContentSchema => self.add_value(id, value, Some(Edge::Content)),
                Keyword::Const | Keyword::Enum | Keyword::Shown | Keyword::Discriminator => {}
                Keyword::Names
                | Keyword::Pattern
                | Keyword::MaxContains
                | Keyword::MinProperties
                | Keyword::MaxProperties
                | Keyword::UniqueItems
                | Keyword::Prose
                | Keyword::Reference
                | Keyword::Other => self.add_value(id, value, None),
            }
        }
        id
    }

    fn add_members(&mut self, id: usize, members: &'a Value, edge: impl Fn(&str) -> Option<Edge>) {
        match members {
            Value::Object(members) => members.iter().for_each(|(name, value)| self.add_value(id, value, edge(name))),
            value => self.add_value(id, value, None),
        }
    }

    fn add_value(&mut self, id: usize, value: &'a Value, edge: Option<Edge>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add_value(id, item, edge)),
            Value::Object(schema) => {
                let target = self.add(schema, self.nodes[id].base);
                if let Some(edge) = edge {
                    self.nodes[id].edges.push((target, edge));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Follows the references once, then spreads what is known along the edges. `names` says whether a hidden name was
    /// found: if not, nothing in the schema may be weakened.
    pub(super) fn analyse(&mut self, names: bool) -> Result<(), SchemaError> {
        if names {
            let is_open = self.link_references()?;
            self.spread_reach(is_open);
            self.spread_doubts();
        }
        Ok(())
    }

    /// Spreads again after references were cut.
    pub(super) fn cut(&mut self, ids: &[usize]) {
        for &id in ids {
            self.nodes[id].is_cut = true;
        }
        self.spread_doubts();
    }

    /// Adds the edges of references. Returns whether one leads where the analysis can't follow.
    fn link_references(&mut self) -> Result<bool, SchemaError> {
        let mut is_open = false;
        // References by anchor are many to many.
        let mut edges = VALUE_LIMIT;
        for id in 0..self.nodes.len() {
            for (key, reference) in references(self.nodes[id].schema) {
                let is_local = reference.starts_with('#');
                // What goes by way of a hidden property tells its name, even if it leads somewhere.
                if self.fields.hides_on_the_way(reference) || is_local && self.nodes[id].base == Base::Other {
                    self.nodes[id].is_cut = true;
                    continue;
                }
                match self.targets(key, reference) {
                    Some(targets) => {
                        let targets = targets.into_owned();
                        edges = edges.checked_sub(targets.len()).ok_or(SchemaError { kind: Kind::TooLarge })?;
                        self.nodes[id].edges.extend(targets.into_iter().map(|target| (target, Edge::Same)));
                    }
                    None if is_local => self.nodes[id].is_cut = true,
                    // Somebody else may answer it, with anything.
                    None => {
                        self.nodes[id].shifts = true;
                        self.nodes[id].forgets = true;
                        is_open = true;
                    }
                }
            }
        }
        Ok(is_open)
    }

    /// The nodes that `reference` may lead to; `None` if it leads to none, and to no boolean schema either.
    fn targets(&self, key: &str, reference: &str) -> Option<Cow<'_, [usize]>> {
        let fragment = self.fragment(reference)?;
        if key == "$recursiveRef" {
            return Some(Cow::Borrowed(&self.recursive));
        }
        if !(fragment.is_empty() || fragment.starts_with('/')) {
            return self.anchors.get(fragment).map(|ids| Cow::Borrowed(&**ids));
        }
        match resolve(self.root, fragment)? {
            Place::Object(schema) => Some(Cow::Owned(vec![self.id(schema)?])),
            Place::Other(Value::Bool(_)) => Some(Cow::Borrowed(&[])),
            Place::Other(_) => None,
        }
    }

    /// The fragment of a reference into this schema.
    pub(super) fn fragment<'r>(&self, reference: &'r str) -> Option<&'r str> {
        if let Some(fragment) = reference.strip_prefix('#') {
            return Some(fragment);
        }
        let own = self.root.get("$id")?.as_str()?.trim_end_matches('#');
        let fragment = reference.strip_prefix(own).filter(|_| !own.is_empty())?;
        if fragment.is_empty() { Some(fragment) } else { fragment.strip_prefix('#') }
    }

    pub(super) fn spells(&self, pattern: &str) -> bool {
        self.fields.spelled_by(pattern) != Spells::Nothing
    }

    /// Whether elements that differed may be equal once their hidden keys are gone.
    pub(super) fn loosens_unique(&self, schema: &JsonObject, reach: Reach) -> bool {
        reach.below(Edge::Part, self.scope).loses_keys() && !has_scalar_items(schema)
    }

    fn id(&self, schema: &JsonObject) -> Option<usize> {
        self.index.get(&std::ptr::from_ref(schema)).copied()
    }

    /// Whether the scrubbed `schema` may accept what `schema` refused.
    pub(super) fn shifts(&self, schema: &Value) -> bool {
        match schema {
            Value::Array(items) => items.iter().any(|item| self.shifts(item)),
            Value::Object(schema) => self.id(schema).is_some_and(|id| self.nodes[id].shifts),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    /// What is known of the subschema `schema`.
    pub(super) fn facts(&self, schema: &JsonObject) -> Facts {
        self.id(schema).map_or(Facts::default(), |id| {
            let Node { reach, forgets, is_cut, .. } = self.nodes[id];
            Facts { id, reach, forgets, is_cut }
        })
    }

    /// Whether the references of the node `id` lead to nothing in `scrubbed`, which has the places of `kept`.
    pub(super) fn dangles(&self, id: usize, scrubbed: &JsonObject, kept: &[bool]) -> bool {
        references(self.nodes[id].schema).any(|(key, reference)| {
            let Some(fragment) = self.fragment(reference) else { return false };
            if !(fragment.is_empty() || fragment.starts_with('/')) {
                return self.targets(key, reference).is_some_and(|ids| ids.iter().any(|&id| !kept[id]));
            }
            resolve(scrubbed, fragment).is_none()
        })
    }

    pub(super) const fn len(&self) -> usize {
        self.nodes.len()
    }
}

/// What the rewriting asks of a subschema.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) id: usize,
    pub(super) reach: Reach,
    pub(super) forgets: bool,
    pub(super) is_cut: bool,
}

/// The references that stand in `schema` itself.
fn references(schema: &JsonObject) -> impl Iterator<Item = (&str, &str)> {
    ["$ref", "$dynamicRef", "$recursiveRef"]
        .into_iter()
        .filter_map(|key| schema.get(key).and_then(Value::as_str).map(|reference| (key, reference)))
}

/// Whether `schema` is a resource of its own, with its own base for references.
fn is_resource(schema: &JsonObject) -> bool {
    ["$id", "id"].into_iter().any(|key| schema.get(key).and_then(Value::as_str).is_some_and(|id| !id.starts_with('#')))
}

/// The names by which `schema` can be referred to.
fn anchors(schema: &JsonObject) -> impl Iterator<Item = &str> {
    ["$anchor", "$dynamicAnchor", "$id", "id"].into_iter().filter_map(|key| {
        let name = schema.get(key)?.as_str()?;
        // Up to draft 7 an anchor is an `$id` that is a fragment.
        if key.ends_with("id") { name.strip_prefix('#') } else { Some(name) }
    })
}
