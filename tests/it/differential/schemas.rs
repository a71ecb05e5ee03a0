//! Schemas.

use std::sync::Arc;

use serde_json::{Value, json};
use tower_algenta::HiddenFields;

use super::cases;
use crate::{
    model::schema,
    schema_random::{Random, Schemas},
};

const TOOLS: [(&str, bool); 3] = [("execute_decision", false), ("simulate", true), ("query_batch", false)];

#[track_caller]
fn compare(tool: &str, keeps_nested: bool, before: &Value) -> bool {
    let mut shared = Arc::new(before.as_object().unwrap().clone());
    let is_changed = HiddenFields::new().scrub_schema(tool, &mut shared).unwrap();
    let after = Value::Object((*shared).clone());
    if let Err(error) = schema::judge(before, &after, keeps_nested) {
        panic!("{tool}: {error}\n{before}\n{after}");
    }
    is_changed
}

#[test]
fn schemas_become_what_the_model_allows() {
    let mut schemas = Schemas::new(Random::new(0x005e_ed07));
    let mut changed = 0;
    for index in 0..cases() {
        let schema = schemas.root();
        let (tool, keeps_nested) = TOOLS[index % 3];
        changed += usize::from(compare(tool, keeps_nested, &schema));
    }
    assert!(changed * 3 > cases(), "many name a switch: {changed}");
}

/// Answers that are wrong in one way each, for a tool whose nested values are data: the judge has to see it.
#[test]
fn the_judge_of_schemas_sees_what_is_wrong() {
    let properties = json!({"properties": {"a": {"type": "string"}, "force": {"type": "boolean"}}});
    let object = json!({"properties": {"o": {"properties": {"force": {}}, "additionalProperties": false}}});
    let with = |key: &str, value: Value| {
        let mut schema = properties.clone();
        schema[key] = value;
        schema
    };
    let one_of = json!([{"required": ["force"]}, {"required": ["a"]}]);
    let cases = [
        (properties.clone(), properties.clone(), "a switch is still named"),
        (properties.clone(), json!({}), "and not [\"a\"]"),
        (properties.clone(), json!({"properties": {}}), "and not [\"a\"]"),
        (properties.clone(), json!({"properties": {"a": {}}}), "a keyword of another kind"),
        (properties.clone(), json!({"properties": {"a": {"type": "string"}}, "required": ["a"]}), "required is new"),
        (
            with("required", json!(["a", "force"])),
            json!({"properties": {"a": {"type": "string"}}}),
            "[] and not [String(\"a\")]",
        ),
        (
            with("oneOf", one_of.clone()),
            json!({"properties": {"a": {"type": "string"}}, "oneOf": [{}, {"required": ["a"]}]}),
            "it should be weaker",
        ),
        (with("oneOf", one_of), json!({"properties": {"a": {"type": "string"}}}), "its alternatives are gone"),
        (
            with("oneOf", json!([{"required": ["a"]}, {"required": ["b"]}])),
            json!({"properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            "weakened for nothing",
        ),
        (
            with("not", json!({"required": ["force", "a"]})),
            json!({"properties": {"a": {"type": "string"}}, "not": {"required": ["a"]}}),
            "it names a switch",
        ),
        (
            with("not", json!({"required": ["a", "b"]})),
            json!({"properties": {"a": {"type": "string"}}}),
            "it is dropped for nothing",
        ),
        (
            with("additionalProperties", json!(false)),
            json!({"properties": {"a": {"type": "string"}}}),
            "the arguments' own keys are open",
        ),
        (
            object,
            json!({"properties": {"o": {"properties": {}, "additionalProperties": false}}}),
            "it closes what lost a name",
        ),
        (json!({"properties": {"a": {}}}), json!({}), "a schema that spells no switch"),
    ];
    for (before, after, because) in cases {
        let error = schema::judge(&before, &after, true).expect_err("it is wrong");
        assert!(error.contains(because), "{before} and {after}: {error}");
    }
}
