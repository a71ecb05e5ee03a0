//! Where references lead once hidden names are gone.

use serde_json::{Value, json};

use super::{EXECUTE, OTHER, SIMULATE, scrub};

#[test]
fn references_to_what_is_gone_go() {
    for reference in ["#/not", "#/oneOf/0", "#/properties/force/items", "#gone", "#/dependentSchemas/force"] {
        let scrubbed = scrub(
            OTHER,
            json!({
                "properties": {"force": {"$anchor": "gone", "items": {}}, "x": {"$ref": reference, "type": "object"}},
                "not": {"required": ["force"]},
                "oneOf": [{"required": ["force"]}],
                "dependentSchemas": {"force": {}}
            }),
        );
        assert_eq!(scrubbed["properties"], json!({"x": {"type": "object"}}), "{reference}");
    }
    for reference in
        ["#here", "#/$defs/force", "#", "#/%24defs/force", "#/items/$defs/force", "https://example.com/other.json"]
    {
        let scrubbed = scrub(
            OTHER,
            json!({
                "$defs": {"force": {"$anchor": "here"}},
                "items": {"$defs": {"force": {}}},
                "properties": {"force": {}, "x": {"$ref": reference}}
            }),
        );
        assert_eq!(scrubbed["properties"], json!({"x": {"$ref": reference}}));
    }
}

#[test]
fn a_reference_that_leads_nowhere_weakens_nothing() {
    let schema = json!({"properties": {"force": {}, "x": {"$ref": "#/nowhere"}, "y": {"minProperties": 1}}});
    assert_eq!(scrub(SIMULATE, schema), json!({"properties": {"x": {}, "y": {"minProperties": 1}}}));
}

#[test]
fn a_recursive_reference_leads_to_the_root_and_to_recursive_anchors() {
    let schema = |y: Value| json!({"properties": {"force": {}, "y": y}, "allOf": [{"$recursiveRef": "#"}]});
    let scrubbed = |y: Value| scrub(SIMULATE, schema(y))["properties"]["y"].clone();
    assert_eq!(scrubbed(json!({"minProperties": 1})), json!({"minProperties": 1}));
    // Reached from the top level, it judges a call that has lost keys.
    assert_eq!(scrubbed(json!({"$recursiveAnchor": true, "minProperties": 1})), json!({"$recursiveAnchor": true}));
}

#[test]
fn a_reference_by_the_schemas_own_address_leads_into_it() {
    let schema = |id: &str, reference: &str| {
        json!({
            "$id": id,
            "$defs": {"D": {"properties": {"force": {}}, "additionalProperties": false}},
            "properties": {"metadata": {"$ref": reference}, "force": {}}
        })
    };
    let address = "https://example.com/tool.json";
    for id in [address, "https://example.com/tool.json#"] {
        let scrubbed = scrub(EXECUTE, schema(id, "https://example.com/tool.json#/$defs/D"));
        assert_eq!(scrubbed["$defs"]["D"], json!({"properties": {}}), "under `metadata` the call keeps the key");
        let gone = scrub(EXECUTE, schema(id, "https://example.com/tool.json#/$defs/E"));
        assert_eq!(gone["properties"], json!({"metadata": {}}), "it leads nowhere");
    }
    let local = scrub(EXECUTE, schema(address, "#/$defs/D"));
    assert_eq!(local["properties"], json!({"metadata": {"$ref": "#/$defs/D"}}));
    // A schema without an address is no place that `/x#…` could lead to.
    for id in ["", "#"] {
        let scrubbed = scrub(EXECUTE, schema(id, "/x#/$defs/D"));
        assert_eq!(scrubbed["properties"], json!({"metadata": {"$ref": "/x#/$defs/D"}}));
    }
}

#[test]
fn beside_a_reference_that_went_nothing_comes_into_force() {
    let schema = |draft: &str| {
        json!({
            "$schema": draft,
            "properties": {"force": {}, "x": {"$ref": "#/properties/force", "title": "X", "type": "string"}}
        })
    };
    let scrubbed = |draft: &str| scrub(OTHER, schema(draft))["properties"]["x"].clone();
    assert_eq!(scrubbed("http://json-schema.org/draft-07/schema#"), json!({"title": "X"}));
    let beside = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "force": {},
            "x": {"$ref": "#/properties/force", "$id": "#x", "x-order": 1, "default": 2, "format": "date"}
        }
    });
    assert_eq!(scrub(OTHER, beside)["properties"]["x"], json!({"$id": "#x", "x-order": 1, "default": 2}));
    assert_eq!(scrubbed("https://json-schema.org/draft/2020-12/schema"), json!({"title": "X", "type": "string"}));
}

#[test]
fn a_resource_of_its_own_keeps_no_references_of_its_own() {
    let inner =
        json!({"$id": "https://example.com/i", "properties": {"force": {}}, "allOf": [{"$ref": "#/properties/force"}]});
    assert_eq!(
        scrub(OTHER, json!({"$defs": {"I": inner}, "$ref": "https://example.com/i", "uniqueItems": true})),
        json!({
            "$defs": {"I": {"$id": "https://example.com/i", "properties": {}, "allOf": [{}]}},
            "$ref": "https://example.com/i"
        })
    );
    // Its `#/$defs/D` is not the root's.
    let inner = json!({"$id": "https://example.com/i", "$defs": {"D": {}}, "allOf": [{"$ref": "#/$defs/D"}]});
    let schema = json!({"$defs": {"D": {"type": "object"}, "I": inner}, "properties": {"force": {}}});
    assert_eq!(scrub(OTHER, schema)["$defs"]["I"]["allOf"], json!([{}]));
    // Up to draft 7 an `$id` that is a fragment names a place and starts no resource.
    let anchored = json!({
        "definitions": {"A": {"$id": "#a", "items": {"$ref": "#/definitions/B"}}, "B": {}},
        "properties": {"force": {}, "x": {"$ref": "#a"}}
    });
    let scrubbed = scrub(OTHER, anchored.clone());
    assert_eq!(scrubbed["definitions"], anchored["definitions"]);
    assert_eq!(scrubbed["properties"]["x"], anchored["properties"]["x"]);
}

#[test]
fn names_of_properties_are_looked_for_behind_references() {
    let schema = json!({
        "$defs": {"N": {"enum": ["a", "force"]}},
        "properties": {"x": {"propertyNames": {"$ref": "#/$defs/N"}}}
    });
    assert_eq!(scrub(OTHER, schema.clone())["$defs"]["N"], json!({"enum": ["a"]}));
    // There the call keeps the key.
    assert_eq!(scrub(SIMULATE, schema.clone())["properties"]["x"], json!({}));

    let mut as_value = schema;
    as_value["properties"]["mode"] = json!({"$ref": "#/$defs/N"});
    assert_eq!(scrub(OTHER, as_value)["$defs"]["N"], json!({}), "a value that was good stays good");
}
