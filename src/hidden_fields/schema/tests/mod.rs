//! What becomes of each keyword.

mod references;
mod values;

use serde_json::json;

use super::*;

const SIMULATE: &str = "simulate";
const EXECUTE: &str = crate::profile::EXECUTE_DECISION;
const OTHER: &str = "admin_x";

fn arc(schema: Value) -> Arc<JsonObject> {
    let Value::Object(members) = schema else { panic!("an object") };
    Arc::new(members)
}

#[track_caller]
fn scrub(tool: &str, schema: Value) -> Value {
    let fields = HiddenFields::new();
    let mut schema = arc(schema);
    fields.scrub_schema(tool, &mut schema).unwrap();
    let before = schema.clone();
    assert_eq!(fields.scrub_schema(tool, &mut schema), Ok(false), "not stable");
    assert!(Arc::ptr_eq(&before, &schema));
    Value::Object(Arc::unwrap_or_clone(before))
}

#[track_caller]
fn refuses(schema: Value) -> SchemaError {
    HiddenFields::new().scrub_schema(OTHER, &mut arc(schema)).unwrap_err()
}

#[test]
fn a_closed_object_stays_closed_where_the_call_loses_the_key() {
    let inner = json!({"properties": {"a": {}, "force": {}}, "additionalProperties": false});
    let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
    let open = json!({"properties": {"a": {}}});
    for (tool, top, nested, metadata) in
        [(SIMULATE, &closed, &open, &open), (EXECUTE, &closed, &closed, &open), (OTHER, &closed, &closed, &closed)]
    {
        assert_eq!(scrub(tool, inner.clone()), *top);
        assert_eq!(
            scrub(tool, json!({"properties": {"x": inner, "metadata": inner}})),
            json!({"properties": {"x": nested, "metadata": metadata}})
        );
    }
}

#[test]
fn every_keyword_tells_what_the_call_keeps_below_it() {
    let inner = json!({"properties": {"force": {}}, "additionalProperties": false});
    let open = json!({"properties": {}});
    let around = |inner: &Value| {
        [
            json!({"items": inner}),
            json!({"prefixItems": [inner]}),
            json!({"additionalItems": inner}),
            json!({"contains": inner}),
            json!({"allOf": [inner]}),
            json!({"patternProperties": {"^x-": inner}}),
            json!({"additionalProperties": inner}),
            json!({"unevaluatedItems": inner}),
            json!({"dependentSchemas": {"a": inner}}),
        ]
    };
    for (before, after) in around(&inner).into_iter().zip(around(&open)) {
        assert_eq!(scrub(SIMULATE, json!({"properties": {"x": before}})), json!({"properties": {"x": after}}));
    }
    // A server may decode the text or leave it.
    let content = json!({"properties": {"x": {"contentSchema": inner}}});
    assert_eq!(scrub(OTHER, content), json!({"properties": {"x": {"contentSchema": open}}}));
    for accepts in [json!(true), json!({})] {
        let closes_nothing =
            json!({"properties": {"x": {"properties": {"force": {}}, "additionalProperties": accepts}}});
        assert_eq!(scrub(SIMULATE, closes_nothing)["properties"]["x"]["additionalProperties"], accepts);
    }
}

#[test]
fn a_definition_is_judged_by_where_it_is_used() {
    let definition = json!({"properties": {"force": {}}, "additionalProperties": {"type": "string"}});
    let used = |name: &str| {
        scrub(EXECUTE, json!({"$defs": {"D": definition}, "properties": {name: {"$ref": "#/$defs/D"}}}))["$defs"]["D"]
            .clone()
    };
    assert_eq!(used("x"), json!({"properties": {}, "additionalProperties": {"type": "string"}}));
    assert_eq!(used("metadata"), json!({"properties": {}}));
}

#[test]
fn what_is_evaluated_no_more_opens_what_is_around_it() {
    let around = |inner: Value| scrub(OTHER, json!({"allOf": [inner], "unevaluatedProperties": false}));
    assert_eq!(around(json!({"dependentSchemas": {"force": {"properties": {"a": {}}}}})), json!({"allOf": [{}]}));
    assert_eq!(
        around(json!({"if": {"required": ["force"]}, "then": {"properties": {"a": {}}}})),
        json!({"allOf": [{}]})
    );
    assert_eq!(
        around(json!({"patternProperties": {"^(force|a)$": {}}})),
        json!({"allOf": [{"patternProperties": {}}]})
    );
    let schema = json!({
        "properties": {"x": {"allOf": [{"$ref": "#/oneOf/0"}], "unevaluatedProperties": false}},
        "oneOf": [{"required": ["force"], "properties": {"a": {}}}]
    });
    assert_eq!(scrub(OTHER, schema)["properties"]["x"], json!({"allOf": [{}]}));
    assert_eq!(
        around(json!({"properties": {"force": {}}})),
        json!({"allOf": [{"properties": {}}], "unevaluatedProperties": false})
    );
    // Where the call keeps the key, a pattern that let it in had evaluated it; one that spells nothing still does.
    let kept = |patterns: Value| {
        let inner = json!({"allOf": [{"patternProperties": patterns}], "unevaluatedProperties": false});
        scrub(SIMULATE, json!({"properties": {"force": {}, "x": inner}}))["properties"]["x"].clone()
    };
    assert_eq!(kept(json!({"^force$": {}})), json!({"allOf": [{"patternProperties": {}}]}));
    assert_eq!(
        kept(json!({"^x-": {}})),
        json!({"allOf": [{"patternProperties": {"^x-": {}}}], "unevaluatedProperties": false})
    );
    let named = json!({"allOf": [{"properties": {"force": {}}}], "unevaluatedProperties": false});
    assert_eq!(
        scrub(SIMULATE, json!({"properties": {"x": named}})),
        json!({"properties": {"x": {"allOf": [{"properties": {}}]}}})
    );
    // What a member's value has evaluated is its own.
    assert_eq!(
        scrub(SIMULATE, json!({"properties": {"x": {"properties": {"force": {}}}}, "unevaluatedProperties": false})),
        json!({"properties": {"x": {"properties": {}}}, "unevaluatedProperties": false})
    );
}

#[test]
fn only_what_counts_refusals_is_weakened() {
    let schema = json!({
        "properties": {
            "force": {},
            "mode": {"oneOf": [{"const": "a"}, {"const": "b"}], "not": {"const": "c"}},
        },
        "if": {"properties": {"mode": {"const": "a"}}},
        "then": {"required": ["force", "a"]},
        "else": {"required": ["force"]}
    });
    assert_eq!(
        scrub(OTHER, schema),
        json!({
            "properties": {"mode": {"oneOf": [{"const": "a"}, {"const": "b"}], "not": {"const": "c"}}},
            "if": {"properties": {"mode": {"const": "a"}}},
            "then": {"required": ["a"]},
            "else": {}
        })
    );
}

#[test]
fn alternatives_go_beside_an_any_of() {
    let schema = json!({
        "anyOf": [{"minProperties": 1}],
        "oneOf": [{"required": ["force"]}, {"required": ["a"]}],
        "if": {"required": ["force"]},
        "then": {"required": ["b"]},
        "else": {"required": ["c"]}
    });
    let scrubbed = scrub(OTHER, schema);
    assert_eq!(scrubbed["anyOf"], json!([{}]));
    let mut all_of = scrubbed["allOf"].as_array().unwrap().clone();
    all_of.sort_by_key(Value::to_string);
    assert_eq!(
        all_of,
        [json!({"anyOf": [{"required": ["b"]}, {"required": ["c"]}]}), json!({"anyOf": [{}, {"required": ["a"]}]})]
    );
    assert_eq!(scrubbed.as_object().unwrap().len(), 2);

    let without = json!({
        "oneOf": [{"required": ["force"]}, {"required": ["a"]}],
        "if": {"required": ["force"]},
        "then": {"required": ["b"]},
        "else": {"required": ["c"]}
    });
    let scrubbed = scrub(OTHER, without);
    let mut both = vec![scrubbed["anyOf"].clone(), scrubbed["allOf"][0]["anyOf"].clone()];
    both.sort_by_key(Value::to_string);
    assert_eq!(both, [json!([{"required": ["b"]}, {"required": ["c"]}]), json!([{}, {"required": ["a"]}])]);
}

#[test]
fn a_condition_of_a_draft_without_conditions_is_no_demand() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "if": {"required": ["force"]}, "then": {"required": ["a"]}, "else": {"required": ["b"]}
    });
    assert_eq!(scrub(OTHER, schema), json!({"$schema": "http://json-schema.org/draft-04/schema#"}));
}

#[test]
fn what_is_loosened_is_not_negated() {
    for negated in [
        json!({"uniqueItems": true}),
        json!({"propertyNames": {"pattern": "^(a|force)$"}}),
        json!({"const": [{"a": 1}]}),
        json!({"maxProperties": 1}),
        json!({"$ref": "https://example.com/other.json"}),
        json!({"dependentRequired": {"a": ["force"]}}),
        json!({"dependentSchemas": {"force": {"required": ["a"]}}}),
        json!({"dependencies": {"force": ["a"]}}),
        json!({"additionalProperties": false}),
    ] {
        let schema = json!({"properties": {"force": {}, "x": {"not": negated}}});
        assert_eq!(scrub(OTHER, schema), json!({"properties": {"x": {}}}), "{negated}");
    }
    let kept_keys = |negated: &Value| scrub(SIMULATE, json!({"properties": {"force": {}, "x": {"not": negated}}}));
    for negated in
        [json!({"propertyNames": {"pattern": "^(a|force)$"}}), json!({"patternProperties": {"^force": false}})]
    {
        assert_eq!(kept_keys(&negated), json!({"properties": {"x": {}}}), "{negated}");
    }
    // Nothing is loosened where the call keeps its keys, or where there is nothing to loosen.
    for negated in [json!({"patternProperties": {"^x-": false}}), json!({"additionalProperties": false})] {
        assert_eq!(kept_keys(&negated), json!({"properties": {"x": {"not": negated}}}));
    }
    let closes_nothing = json!({"properties": {"x": {"not": {"additionalProperties": true}}}});
    let mut schema = closes_nothing.clone();
    schema["properties"]["force"] = json!({});
    assert_eq!(scrub(OTHER, schema), closes_nothing);
}

#[test]
fn unknown_keywords_are_walked_as_schemas() {
    let schema = json!({
        "force": true,
        "x-ui": {"force": {"widget": "box"}, "a": 1},
        "components": {"schemas": {"A": {"properties": {"force": {}}, "required": ["force"]}}},
        "x-mcp-header": "Force",
        "propertyOrdering": ["force", "a"],
        "ui:order": ["a", "overrideSafety", "*"],
        "markdownDescription": "Set `force` to skip the gate.",
        "discriminator": {"propertyName": "force"},
        "properties": {"a": {"discriminator": {"propertyName": "kind", "mapping": {"force": "#"}}}}
    });
    assert_eq!(
        scrub(OTHER, schema),
        json!({
            "x-ui": {"a": 1},
            "components": {"schemas": {"A": {"properties": {}}}},
            "x-mcp-header": "Force",
            "propertyOrdering": ["a"],
            "ui:order": ["a", "*"],
            "properties": {"a": {"discriminator": {"propertyName": "kind", "mapping": {"force": "#"}}}}
        })
    );
}

#[test]
fn prose_alone_weakens_nothing() {
    let schema =
        json!({"minProperties": 1, "not": {"const": {}}, "description": "Use `force`.", "title": "Use the force"});
    assert_eq!(scrub(OTHER, schema), json!({"minProperties": 1, "not": {"const": {}}, "title": "Use the force"}));
}

#[test]
fn what_stays_keeps_its_order() {
    let before =
        json!({"z": 1, "properties": {"b": {}, "force": {}, "a": {}}, "a": 2, "required": ["b", "force", "a"]});
    let after = scrub(OTHER, before.clone());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&after), keys(&before));
    assert_eq!(keys(&after["properties"]), {
        let mut keys = keys(&before["properties"]);
        keys.retain(|key| key != "force");
        keys
    });
    assert_eq!(after["required"], json!(["b", "a"]));
}

#[test]
fn a_clean_schema_is_not_touched() {
    for schema in [
        json!({}),
        json!({"minProperties": 1, "required": []}),
        json!({"properties": {"required": {"const": "force"}, "mode": {"enum": ["force"]}}, "x": ["force"]}),
        json!({"propertyNames": {"pattern": "^[a-z]+$"}, "patternProperties": {".*": {}}, "$ref": "#/nowhere"}),
        json!({"properties": null, "items": 5, "allOf": {}, "enum": 3, "description": 7, "$ref": [], "required": true}),
        json!({"x-unknown": {"properties": ["force"], "dependencies": "force"}}),
    ] {
        assert_eq!(scrub(OTHER, schema.clone()), schema);
    }
}

#[test]
fn what_cannot_be_looked_at_is_refused() {
    let mut deep = json!({"properties": {"force": {}}});
    for _ in 0..100 {
        deep = json!({"not": [deep]});
    }
    let wide: Vec<_> = (0..=VALUE_LIMIT).collect();
    for (schema, is_limit, message) in [
        (deep, true, "the tool's schema nests more than 128 containers"),
        (json!({"enum": wide}), true, "the tool's schema holds more than 65536 values or references"),
        (json!({"properties": ["force"]}), false, "the tool's schema names properties in a way that can't be read"),
        (json!({"$defs": {"N": {"$ref": "#/$defs/N"}}, "propertyNames": {"$ref": "#/$defs/N"}}), true, "nests"),
    ] {
        let error = refuses(schema);
        assert_eq!(error.is_limit(), is_limit, "{error}");
        let error = error.to_string();
        assert!(error.contains(message), "{error}");
        assert!(!HiddenFields::new().iter().any(|name| error.contains(name)));
    }
}

#[test]
fn a_schema_made_to_be_slow_is_not() {
    let many = |value: fn(usize) -> Value| (0..15_000).map(value).collect::<Value>();
    let started = std::time::Instant::now();
    for schema in [
        json!({"not": many(|_| json!({"$anchor": "a", "$ref": "#a"})), "required": ["force"]}),
        json!({"not": many(|_| json!({"$recursiveAnchor": true, "$recursiveRef": "#"})), "required": ["force"]}),
        json!({"enum": many(|at| json!({"force": at, "a": at}))}),
        json!({"allOf": many(|at| json!({"oneOf": [{"$ref": format!("#/allOf/{}", at + 1)}]})), "required": ["force"]}),
        json!({"description": "force (".repeat(100_000)}),
        json!({"description": "A. `force` b. ".repeat(50_000)}),
        json!({"patternProperties": {"(force|".repeat(50_000): {}}}),
    ] {
        let _ = HiddenFields::new().scrub_schema(OTHER, &mut arc(schema));
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
