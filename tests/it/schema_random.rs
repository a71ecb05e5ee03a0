//! The properties of the schema scrub, on schemas and calls that nobody thought of.
//!
//! Seeded, so that every run sees the same. `SCHEMA_CASES` sets how many schemas are made.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use tower_algenta::HiddenFields;

use crate::schema_vectors::{TOOLS, dangling, names_guarded_key, scrubbed};

const SCHEMAS: usize = 600;
const CALLS: usize = 24;

const PLAIN: [&str; 3] = ["a", "b", "metadata"];
const HIDDEN: [&str; 4] = ["force", "Force", "override_safety", "overrideSafety"];
const PATTERNS: [&str; 9] =
    ["^force$", "^(force|a)$", "^[Ff]orce$", "force", "^[ab]$", ".*", "^x-", "^(?!force$)", "^[a-z]+$"];

/// Marsaglia's xorshift.
pub(crate) struct Random {
    state: u64,
    /// The constants of the schema, which calls hold too.
    constants: Vec<Value>,
}

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed, constants: Vec::new() }
    }

    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from((self.state >> 16) % end as u64).unwrap()
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn name(&mut self) -> &'static str {
        if self.one_in(3) { self.pick(&HIDDEN) } else { self.pick(&PLAIN) }
    }

    fn names(&mut self) -> Value {
        let mut names: Vec<_> = (0..=self.below(2)).map(|_| self.name()).collect();
        names.sort_unstable();
        names.dedup();
        json!(names)
    }

    fn constant(&mut self) -> Value {
        let value = self.value(2);
        self.constants.push(value.clone());
        value
    }

    fn call(&mut self) -> Value {
        if !self.constants.is_empty() && self.one_in(6) {
            let at = self.below(self.constants.len());
            let constant = self.constants[at].clone();
            if constant.is_object() {
                return constant;
            }
        }
        self.object(3)
    }

    fn value(&mut self, depth: usize) -> Value {
        if !self.constants.is_empty() && self.one_in(6) {
            let at = self.below(self.constants.len());
            return self.constants[at].clone();
        }
        match self.below(if depth == 0 { 5 } else { 10 }) {
            0 => json!(true),
            1 => json!(0),
            2 => json!(1),
            3 => json!("x"),
            4 => json!("force"),
            5 | 6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => self.object(depth),
        }
    }

    fn object(&mut self, depth: usize) -> Value {
        let members = (0..self.below(4)).map(|_| (self.name().to_owned(), self.value(depth.saturating_sub(1))));
        Value::Object(members.collect())
    }
}

/// Where a subschema stands, which says what it may refer to without ever judging the same value again.
#[derive(Clone, Copy)]
enum Place {
    Root,
    Property(&'static str),
    Definition(usize),
    Deep,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Draft {
    Four,
    Seven,
    Latest,
}

pub(crate) struct Schemas {
    random: Random,
    draft: Draft,
}

impl Schemas {
    pub(crate) const fn new(random: Random) -> Self {
        Self { random, draft: Draft::Latest }
    }

    pub(crate) fn root(&mut self) -> Value {
        self.random.constants.clear();
        self.draft = match self.random.below(10) {
            0 => Draft::Four,
            1 | 2 => Draft::Seven,
            _ => Draft::Latest,
        };
        let mut root = self.object_schema(3, Place::Root);
        let mut definitions: Map<_, _> = ["A", "B", "force"]
            .into_iter()
            .enumerate()
            .map(|(index, name)| {
                let mut definition = self.object_schema(2, Place::Definition(index));
                if name == "B" && self.draft == Draft::Latest {
                    definition.insert("$anchor".to_owned(), json!("b"));
                }
                if name == "A" && self.draft == Draft::Latest {
                    definition.insert("$dynamicAnchor".to_owned(), json!("a"));
                }
                (name.to_owned(), Value::Object(definition))
            })
            .collect();
        // Names of properties for some, values for others.
        definitions.insert("N".to_owned(), json!({"enum": ["a", "force", self.random.pick(&["b", "Force"]), 1]}));
        root.insert(self.definitions().to_owned(), Value::Object(definitions));
        match self.draft {
            Draft::Four => root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-04/schema#")),
            Draft::Seven => root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#")),
            Draft::Latest => None,
        };
        Value::Object(root)
    }

    fn definitions(&self) -> &'static str {
        if self.draft == Draft::Latest { "$defs" } else { "definitions" }
    }

    fn schema(&mut self, depth: usize, place: Place) -> Value {
        if self.draft != Draft::Four && self.random.one_in(10) {
            return json!(!self.random.one_in(3));
        }
        Value::Object(self.object_schema(depth, place))
    }

    fn list(&mut self, depth: usize, place: Place) -> Value {
        (0..=self.random.below(2)).map(|_| self.schema(depth, place)).collect()
    }

    /// The place of a property.
    const fn property(place: Place, name: &'static str) -> Place {
        if matches!(place, Place::Root) { Place::Property(name) } else { Place::Deep }
    }

    fn reference(&mut self, place: Place) -> Option<Value> {
        let definitions = self.definitions();
        if self.random.one_in(8) {
            return Some(json!(format!("#/{definitions}/N")));
        }
        let defined = |index: usize| format!("#/{definitions}/{}", ["A", "B", "force"][index]);
        let reference = match place {
            Place::Root => defined(self.random.below(3)),
            Place::Definition(index) if index < 2 => defined(index + 1 + self.random.below(2 - index)),
            Place::Definition(_) => return None,
            Place::Property(name) => match self.random.below(4) {
                0 => {
                    let targets = [&PLAIN[..], &HIDDEN[..]].concat();
                    let rank = |name| targets.iter().position(|target| *target == name);
                    let target = self.random.pick(&targets);
                    if rank(target) <= rank(name) {
                        return None;
                    }
                    format!("#/properties/{target}")
                }
                1 => "#".to_owned(),
                2 if self.draft == Draft::Latest => "#b".to_owned(),
                _ => defined(self.random.below(3)),
            },
            Place::Deep => match self.random.below(3) {
                0 => self
                    .random
                    .pick(&[
                        "#",
                        "#/properties/a",
                        "#/properties/force",
                        "#/allOf/0",
                        "#/oneOf/0",
                        "#/anyOf/0",
                        "#/not",
                        "#/if",
                        "#/then",
                        "#/properties/b/items",
                        "#/dependentSchemas/a",
                        "#/additionalProperties",
                    ])
                    .to_owned(),
                _ => defined(self.random.below(3)),
            },
        };
        Some(json!(reference))
    }

    fn object_schema(&mut self, depth: usize, place: Place) -> JsonObject {
        let mut schema = JsonObject::new();
        if depth == 0 || self.random.one_in(8) {
            let kind = self.random.pick(&["object", "array", "string", "integer", "boolean"]);
            if self.random.one_in(2) && !matches!(place, Place::Root) {
                schema.insert("type".to_owned(), json!(kind));
            }
            if self.random.one_in(2) {
                return schema;
            }
        }
        let below = depth.saturating_sub(1);
        for _ in 0..=self.random.below(4) {
            if let Some((key, value)) = self.keyword(below, depth == 0, place) {
                schema.insert(key.to_owned(), value);
            }
            if schema.contains_key("if") {
                for key in ["then", "else"] {
                    if !schema.contains_key(key) && self.random.one_in(2) {
                        let value = self.schema(below, place);
                        schema.insert(key.to_owned(), value);
                    }
                }
            }
            if schema.contains_key("contains") && self.random.one_in(2) {
                let key = self.random.pick(&["maxContains", "minContains"]);
                let count = self.random.below(3);
                schema.insert(key.to_owned(), json!(count));
            }
        }
        schema
    }

    fn keyword(&mut self, below: usize, is_leaf: bool, place: Place) -> Option<(&'static str, Value)> {
        let latest = self.draft == Draft::Latest;
        let modern = self.draft != Draft::Four;
        Some(match self.random.below(if is_leaf { 12 } else { 42 }) {
            0 => ("required", self.random.names()),
            1 => ("minProperties", json!(self.random.below(3))),
            2 => ("maxProperties", json!(self.random.below(3))),
            3 => ("uniqueItems", json!(true)),
            4 if modern => ("const", self.random.constant()),
            5 => {
                let mut values = vec![self.random.constant(), self.random.constant(), self.random.object(2)];
                values.dedup();
                if (1..values.len()).any(|index| values[..index].contains(&values[index])) {
                    return None;
                }
                ("enum", json!(values))
            }
            6 => ("$ref", self.reference(place)?),
            7 if modern => (
                "propertyNames",
                match self.random.below(6) {
                    0 => json!({"const": self.random.name()}),
                    1 => json!({"pattern": self.random.pick(&PATTERNS)}),
                    2 => json!({"maxLength": 5}),
                    3 => json!({"not": {"enum": self.random.names()}}),
                    4 => json!({"oneOf": [{"const": self.random.name()}, {"const": self.random.name()}]}),
                    _ => json!({"enum": ["a", "b", "metadata", self.random.name()]}),
                },
            ),
            8 if latest => {
                let names = self.random.names();
                ("dependentRequired", json!({self.random.name(): names}))
            }
            8 => {
                let names = self.random.names();
                ("dependencies", json!({self.random.name(): names}))
            }
            9 => ("minItems", json!(self.random.below(2))),
            10 => ("default", self.random.value(2)),
            11 => ("type", json!(self.random.pick(&["object", "array"]))),
            12..=16 => {
                let mut members = JsonObject::new();
                for _ in 0..=self.random.below(3) {
                    let name = self.random.name();
                    let value = self.schema(below, Self::property(place, name));
                    members.insert(name.to_owned(), value);
                }
                ("properties", Value::Object(members))
            }
            17 | 18 => {
                let pattern = self.random.pick(&PATTERNS);
                ("patternProperties", json!({pattern: self.schema(below, Place::Deep)}))
            }
            19 | 20 => ("additionalProperties", json!(false)),
            21 => ("additionalProperties", self.schema(below, Place::Deep)),
            22 if latest => ("unevaluatedProperties", json!(false)),
            23 if latest => ("unevaluatedProperties", self.schema(below, Place::Deep)),
            24 if latest => ("unevaluatedItems", self.schema(below, Place::Deep)),
            25 => ("allOf", self.list(below, place)),
            26 | 27 => ("anyOf", self.list(below, place)),
            28 | 29 => ("oneOf", self.list(below, place)),
            30 | 31 => ("not", self.schema(below, place)),
            32 | 33 => ("if", self.schema(below, place)),
            34 => ("items", self.schema(below, Place::Deep)),
            35 if latest => ("prefixItems", self.list(below, Place::Deep)),
            35 if modern => ("items", json!([self.schema(below, Place::Deep)])),
            36 if modern => ("contains", self.schema(below, Place::Deep)),
            37 if latest => ("dependentSchemas", json!({self.random.name(): self.schema(below, place)})),
            37 => ("dependencies", json!({self.random.name(): self.schema(below, place)})),
            38 => ("examples", json!([self.random.object(2)])),
            39 => ("x-vendor", json!({"schemas": {"A": self.schema(below, Place::Deep)}})),
            40 if latest && matches!(place, Place::Deep) => ("$dynamicRef", json!("#a")),
            41 if latest => ("unevaluatedItems", json!(false)),
            41 => ("additionalItems", json!(false)),
            _ => return None,
        })
    }
}

/// What the argument scrub leaves of a call, in a few lines of its own.
fn stripped(tool: &str, call: &Value) -> Value {
    fn strip(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(strip).collect(),
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .filter(|(key, _)| !is_hidden(key))
                    .map(|(key, value)| (key.clone(), strip(value)))
                    .collect(),
            ),
            value => value.clone(),
        }
    }
    fn is_hidden(key: &str) -> bool {
        HIDDEN.contains(&key)
    }
    let top_level = call.as_object().unwrap().iter().filter(|(key, _)| !is_hidden(key));
    Value::Object(
        top_level
            .map(|(key, value)| {
                let is_kept = tool == "simulate" || tool == "execute_decision" && key == "metadata";
                (key.clone(), if is_kept { value.clone() } else { strip(value) })
            })
            .collect(),
    )
}

#[derive(Debug, Default)]
struct Tally {
    changed: usize,
    accepted: usize,
    refused: usize,
    still_refused: usize,
}

/// Checks all properties of one schema, on `calls`.
fn check(schema: &Value, calls: &[Value], tally: &mut Tally) {
    let Ok(judge) = jsonschema::validator_for(schema) else { return };
    if !jsonschema::meta::is_valid(schema) {
        return;
    }
    let is_dangling = !dangling(schema).is_empty();
    for tool in TOOLS {
        let mut shared = Arc::new(schema.as_object().unwrap().clone());
        let before = shared.clone();
        let changed = HiddenFields::new().scrub_schema(tool, &mut shared).expect("the schema can be scrubbed");
        let scrubbed_schema = Value::Object((*shared).clone());
        assert!(!names_guarded_key(&scrubbed_schema), "(a) {tool}: {schema}\n{scrubbed_schema}");
        assert!(is_dangling || dangling(&scrubbed_schema).is_empty(), "(c) {tool}: {schema}\n{scrubbed_schema}");
        assert_eq!(scrubbed(tool, &scrubbed_schema), scrubbed_schema, "(d) {tool}: {schema}");
        let text = schema.to_string().to_lowercase();
        assert!(!changed || ["force", "override"].iter().any(|word| text.contains(word)), "(e) {tool}: {schema}");
        if !changed {
            assert!(Arc::ptr_eq(&before, &shared), "(e) {tool}: {schema}");
            continue;
        }
        assert_ne!(before, shared);
        tally.changed += 1;
        assert!(jsonschema::meta::is_valid(&scrubbed_schema), "(f) {tool}: {schema}\n{scrubbed_schema}");
        let scrubbed_judge = jsonschema::validator_for(&scrubbed_schema)
            .unwrap_or_else(|error| panic!("(f) {tool}: {error}\n{schema}\n{scrubbed_schema}"));
        for call in calls {
            let stripped = stripped(tool, call);
            let mut forwarded = call.as_object().unwrap().clone();
            HiddenFields::new().scrub_arguments(tool, &mut forwarded).unwrap();
            assert_eq!(Value::Object(forwarded), stripped, "{tool}");
            let verdict = scrubbed_judge.is_valid(&stripped);
            if judge.is_valid(call) {
                tally.accepted += 1;
                assert!(verdict, "(b) {tool}: {schema}\n{scrubbed_schema}\n{call}\n{stripped}");
            } else if *call == stripped {
                tally.refused += 1;
                tally.still_refused += usize::from(!verdict);
            }
        }
    }
}

#[test]
fn p3_no_scrubbed_schema_rejects_a_good_call() {
    let schemas = std::env::var("SCHEMA_CASES").map_or(SCHEMAS, |count| count.parse().unwrap());
    let seed = std::env::var("SCHEMA_SEED").map_or(0x9e37_79b9_7f4a_7c15, |seed| seed.parse().unwrap());
    let mut source = Schemas::new(Random::new(seed));
    let mut tally = Tally::default();
    for _ in 0..schemas {
        let schema = source.root();
        let calls: Vec<_> = (0..CALLS).map(|_| source.random.call()).collect();
        check(&schema, &calls, &mut tally);
    }
    println!("{schemas} schemas: {tally:?}");
    assert!(tally.changed > schemas, "most schemas name a hidden field: {tally:?}");
    assert!(tally.accepted > 2 * schemas && tally.still_refused > schemas, "the cases say something: {tally:?}");
}
