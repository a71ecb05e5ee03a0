//! Names, values and counts: what stands in a schema and is no schema.

use serde_json::{Value, json};

use super::{EXECUTE, OTHER, SIMULATE, scrub};

#[test]
fn constants_lose_keys_where_the_call_does() {
    let constant = json!({"const": {"a": 1, "force": 2}});
    let nested = json!({"properties": {"x": constant, "y": {"enum": [{"force": 1}, 2]}}});
    assert_eq!(scrub(SIMULATE, constant.clone()), json!({"const": {"a": 1}}));
    assert_eq!(scrub(SIMULATE, nested.clone()), json!({"properties": {"x": {}, "y": {}}}));
    assert_eq!(scrub(EXECUTE, nested), json!({"properties": {"x": {"const": {"a": 1}}, "y": {"enum": [{}, 2]}}}));
    assert_eq!(scrub(SIMULATE, json!({"const": {"a": {"force": 1}}})), json!({}));
    assert_eq!(scrub(OTHER, json!({"enum": [{"force": 1}, {}, {"Force": 1}]})), json!({"enum": [{}]}));
    // In an execution the call loses the keys of all arguments but `metadata`.
    assert_eq!(scrub(EXECUTE, json!({"const": {"x": {"force": 1}}})), json!({"const": {"x": {}}}));
    assert_eq!(scrub(EXECUTE, json!({"const": {"metadata": {"force": 1}}})), json!({}));
    assert_eq!(
        scrub(EXECUTE, json!({"const": {"metadata": {"a": 1}, "force": 1}})),
        json!({"const": {"metadata": {"a": 1}}})
    );
}

#[test]
fn a_value_is_no_name() {
    let schema = json!({
        "properties": {
            "force": {},
            "mode": {"const": "force", "pattern": "^(force|soft)$", "enum": ["force"]},
            "x": {"default": {"required": ["force"], "description": "force=true", "Force": 1}},
            "l": {"contains": {"const": 1}, "maxContains": 2},
            "n": {"not": {"const": "force", "pattern": "^force$"}}
        },
        "propertyNames": {"pattern": "^[a-z]+$"}
    });
    assert_eq!(
        scrub(OTHER, schema),
        json!({
            "properties": {
                "mode": {"const": "force", "pattern": "^(force|soft)$", "enum": ["force"]},
                "x": {"default": {"required": ["force"], "description": "force=true"}},
                "l": {"contains": {"const": 1}, "maxContains": 2},
            "n": {"not": {"const": "force", "pattern": "^force$"}}
            },
            "propertyNames": {"pattern": "^[a-z]+$"}
        })
    );
    // A name that is not hidden is as good as a value.
    let names = json!({"propertyNames": {"not": {"const": "a", "pattern": "^x-"}}});
    let schema = json!({"properties": {"force": {}, "x": names}});
    assert_eq!(scrub(SIMULATE, schema), json!({"properties": {"x": names}}));
}

#[test]
fn a_name_alone_is_found() {
    for schema in [
        json!({"discriminator": {"propertyName": "force"}}),
        json!({"propertyNames": {"pattern": "^(a|force)$"}}),
        json!({"propertyNames": {"const": "force"}}),
        json!({"required": ["force"]}),
        json!({"required": "force"}),
        json!({"$ref": "https://example.com/other.json#/properties/force"}),
        json!({"force": true}),
    ] {
        assert_eq!(scrub(OTHER, schema.clone()), json!({}), "{schema}");
    }
}

#[test]
fn names_as_the_third_draft_wrote_them() {
    let schema = json!({
        "properties": {"force": {}, "a": {"required": true}},
        "dependencies": {"a": "force", "b": "c"}
    });
    assert_eq!(scrub(OTHER, schema), json!({"properties": {"a": {"required": true}}, "dependencies": {"b": "c"}}));
}

#[test]
fn arrays_of_scalars_stay_unique() {
    let unique = |items: Value| json!({"properties": {"force": {}, "l": {"items": items, "uniqueItems": true}}});
    let scalars = scrub(OTHER, unique(json!({"type": ["string", "null"]})));
    assert_eq!(scalars["properties"]["l"]["uniqueItems"], true);
    let objects = unique(json!({"type": "object"}));
    assert_eq!(scrub(OTHER, objects.clone())["properties"]["l"].get("uniqueItems"), None);
    assert_eq!(scrub(SIMULATE, objects)["properties"]["l"]["uniqueItems"], true);
}

#[test]
fn counts_fall_by_what_may_go() {
    let count = |schema: Value| scrub(OTHER, schema).get("minProperties").cloned();
    assert_eq!(
        count(json!({"properties": {"a": {}, "force": {}}, "additionalProperties": false, "minProperties": 2.0})),
        Some(json!(1))
    );
    assert_eq!(count(json!({"properties": {"force": {}}, "additionalProperties": false, "minProperties": 1})), None);
    // An open object may have held every spelling there is.
    assert_eq!(count(json!({"properties": {"a": {}, "force": {}}, "minProperties": 2})), None);
    let contains =
        json!({"properties": {"l": {"contains": {"required": ["force"]}, "minContains": 1, "maxContains": 2}}});
    assert_eq!(scrub(OTHER, contains), json!({"properties": {"l": {"contains": {}, "minContains": 1}}}));
}
