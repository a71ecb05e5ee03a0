//! The attack cases for schemas and tools, and what must hold for every scrubbed schema.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};
use tower_algenta::{HiddenFields, Prose};

use crate::support::{cases, object, text};

/// One tool for each way of looking for nested names in a call.
pub(crate) const TOOLS: [&str; 3] = ["simulate", "execute_decision", "admin_x"];

/// Where what is written here is not what the case shows, and why.
const OTHER_FORMS: [(&str, &[&str], &str); 0] = [];

/// The schema as the call's `tool` is advertised with.
#[track_caller]
pub(crate) fn scrubbed(tool: &str, schema: &Value) -> Value {
    let mut schema = Arc::new(object(schema));
    HiddenFields::new().scrub_schema(tool, &mut schema).expect("the schema can be scrubbed");
    Value::Object(Arc::unwrap_or_clone(schema))
}

/// Whether a hidden name stands where a property is named. A walk of its own, which shares nothing with the crate's.
pub(crate) fn names_guarded_key(schema: &Value) -> bool {
    let fields = HiddenFields::new();
    let is_hidden = |name: &str| fields.hides(name);
    let lists =
        |value: &Value| value.as_array().is_some_and(|names| names.iter().filter_map(Value::as_str).any(is_hidden));
    let Value::Object(members) = schema else {
        return schema.as_array().is_some_and(|items| items.iter().any(names_guarded_key));
    };
    members.iter().any(|(key, value)| match (key.as_str(), value) {
        ("properties" | "dependentSchemas", Value::Object(members)) => {
            members.iter().any(|(name, value)| is_hidden(name) || names_guarded_key(value))
        }
        ("dependencies" | "dependentRequired", Value::Object(members)) => {
            members.iter().any(|(name, value)| is_hidden(name) || lists(value) || names_guarded_key(value))
        }
        ("patternProperties", Value::Object(members)) => {
            members.iter().any(|(pattern, value)| spells(pattern) || names_guarded_key(value))
        }
        ("$defs" | "definitions", Value::Object(members)) => members.values().any(names_guarded_key),
        ("required", value) => lists(value),
        ("propertyNames", value) => restricts_guarded_name(value) || names_guarded_key(value),
        ("const" | "enum" | "default" | "examples", value) => holds_guarded_key(value),
        (_, value) => names_guarded_key(value),
    })
}

fn spells(pattern: &str) -> bool {
    pattern.contains("force") && !pattern.contains("workforce") || pattern.contains("override_safety")
}

fn restricts_guarded_name(schema: &Value) -> bool {
    let fields = HiddenFields::new();
    match schema {
        Value::String(name) => fields.hides(name) || spells(name),
        Value::Array(items) => items.iter().any(restricts_guarded_name),
        Value::Object(members) => members.values().any(restricts_guarded_name),
        _ => false,
    }
}

pub(crate) fn holds_guarded_key(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_guarded_key),
        Value::Object(members) => {
            members.iter().any(|(key, value)| HiddenFields::new().hides(key) || holds_guarded_key(value))
        }
        _ => false,
    }
}

/// The references of `schema` into itself that lead nowhere.
pub(crate) fn dangling(schema: &Value) -> Vec<String> {
    fn references(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(ToOwned::to_owned));
                members.values().for_each(|value| references(value, found));
            }
            _ => {}
        }
    }
    fn has_anchor(schema: &Value, name: &str) -> bool {
        match schema {
            Value::Array(items) => items.iter().any(|item| has_anchor(item, name)),
            Value::Object(members) => {
                members.get("$anchor").is_some_and(|anchor| anchor == name)
                    || members.values().any(|value| has_anchor(value, name))
            }
            _ => false,
        }
    }
    let mut found = Vec::new();
    references(schema, &mut found);
    found.retain(|reference| match reference.strip_prefix('#') {
        Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => schema.pointer(pointer).is_none(),
        Some(anchor) => !has_anchor(schema, anchor),
        None => false,
    });
    found
}

#[track_caller]
fn accepts(schema: &Value, instance: &Value) -> bool {
    jsonschema::validator_for(schema).expect("the schema can be compiled").is_valid(instance)
}

#[test]
fn every_schema_case_holds() {
    let cases = cases(include_str!("../vectors/schemas.json"));
    assert_eq!(cases.len(), 42);
    let mut seen = 0;
    for case in &cases {
        let id = text(case, "id");
        let Some(schema) = case["input"].get("inputSchema").filter(|schema| schema.is_object()) else { continue };
        seen += 1;
        let expected = &case["expected"];
        for tool in TOOLS {
            let scrubbed = scrubbed(tool, schema);
            let is_other = OTHER_FORMS.iter().any(|(other, tools, _)| *other == id && tools.contains(&tool));
            assert_eq!(scrubbed != expected["scrubbed"], is_other, "{id} in {tool}: {scrubbed:#}");
            assert_eq!(names_guarded_key(&scrubbed), expected["names_guarded_key"] == true, "{id} in {tool}");
            assert_eq!(scrubbed == self::scrubbed(tool, &scrubbed), expected["idempotent"] == true, "{id} in {tool}");
            assert_eq!(dangling(&scrubbed).is_empty(), expected["local_refs_resolve"] == true, "{id} in {tool}");
            for instance in expected["accepts"].as_array().into_iter().flatten() {
                assert!(accepts(&scrubbed, instance), "{id} in {tool}: {instance}");
            }
            for instance in expected["rejects"].as_array().into_iter().flatten() {
                assert!(!accepts(&scrubbed, instance), "{id} in {tool}: {instance}");
            }
        }
    }
    assert_eq!(seen, 36, "and six cases of other kinds");
}

#[test]
fn every_tool_case_holds() {
    let mut seen = 0;
    for case in cases(include_str!("../vectors/schemas.json")) {
        let id = text(&case, "id");
        let Some(input) = case["input"].get("tool") else { continue };
        seen += 1;
        let before: Tool = serde_json::from_value(input.clone()).unwrap();
        let mut tool = before.clone();
        let changed = HiddenFields::new().scrub_tool(&before.name, &mut tool).unwrap();
        assert_eq!(changed, tool != before, "{id}");

        let expected = &case["expected"];
        let redacted = &expected["prose"]["redact (recommended default)"];
        match redacted {
            Value::String(text) => assert_eq!(tool.description.as_deref(), Some(text.as_str()), "{id}"),
            Value::Object(places) => {
                for (place, text) in places {
                    let pointer = format!("/{}", place.replace('.', "/"));
                    assert_eq!(Value::Object((*tool.input_schema).clone()).pointer(&pointer), Some(text), "{id}");
                }
            }
            _ => {}
        }
        if let Some(kept) = expected["prose"]["keep"].as_str() {
            let mut tool = before.clone();
            HiddenFields::new().prose(Prose::Keep).scrub_tool(&before.name, &mut tool).unwrap();
            assert_eq!(tool.description.as_deref(), Some(kept), "{id}");
        }
        match &expected["inputSchema"] {
            Value::Null => {}
            schema => assert_eq!(Value::Object((*tool.input_schema).clone()), *schema, "{id}"),
        }
        if expected["outputSchema"] == "unchanged" {
            assert_eq!(tool.output_schema, before.output_schema, "{id}");
        }
        if expected["tool"] == "unchanged" {
            assert_eq!(tool, before, "{id}");
            assert!(Arc::ptr_eq(&tool.input_schema, &before.input_schema), "{id}");
        }
    }
    assert_eq!(seen, 5);
}

/// The case `sch-074`: a schema that only a program can build.
fn deep(levels: usize) -> JsonObject {
    let mut schema = JsonObject::new();
    for _ in 0..levels {
        let properties = JsonObject::from_iter([("n".to_owned(), Value::Object(schema))]);
        schema = JsonObject::from_iter([("properties".to_owned(), Value::Object(properties))]);
    }
    schema
}

#[test]
fn a_schema_deeper_than_the_stack_costs_its_tool_and_nothing_else() {
    use tower::{Layer as _, ServiceExt as _, service_fn};
    use tower_algenta::{BoxError, SchemaScrubLayer, ToolRequest, ToolResponse};

    let run = || {
        let engine = service_fn(|_: ToolRequest| async {
            let tools = vec![
                Tool::new("a", "", deep(100_000)),
                Tool::new("b", "", JsonObject::new()),
                Tool::new("c", "", JsonObject::new()).with_raw_output_schema(Arc::new(deep(100_000))),
            ];
            Ok::<_, BoxError>(ToolResponse::List(rmcp::model::ListToolsResult::with_all_items(tools)))
        });
        let service = SchemaScrubLayer::new().layer(engine);
        let response = futures::executor::block_on(service.oneshot(ToolRequest::list())).unwrap();
        let ToolResponse::List(list) = response else { panic!("a list answers a list") };
        assert_eq!(list.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["b"]);
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(run).unwrap().join().unwrap();
}

#[test]
fn what_nothing_is_known_of_is_not_shown() {
    use rmcp::model::{ListToolsResult, MetaObject};
    use tower::{Layer as _, ServiceExt as _, service_fn};
    use tower_algenta::{BoxError, SchemaScrubLayer, ToolRequest, ToolResponse};

    let list = |request: ToolRequest, meta: fn() -> JsonObject| {
        let engine = service_fn(move |_: ToolRequest| async move {
            let mut list = ListToolsResult::with_all_items(vec![Tool::new("a", "", JsonObject::new())]);
            list.meta = Some(MetaObject(meta()));
            Ok::<_, BoxError>(ToolResponse::List(list))
        });
        match futures::executor::block_on(SchemaScrubLayer::new().layer(engine).oneshot(request)).unwrap() {
            ToolResponse::List(list) => list,
            ToolResponse::Call(_) => panic!("it passes on what it got"),
        }
    };
    let shallow = || JsonObject::from_iter([("a".to_owned(), json!(1))]);
    let usual = list(ToolRequest::list(), shallow);
    assert_eq!((usual.tools.len(), usual.meta), (1, Some(MetaObject(shallow()))));
    // The tools of a page are judged, and so is its `_meta`, where a list was asked for.
    let answer_to_a_call = list(ToolRequest::call("simulate", JsonObject::new()), shallow);
    assert_eq!((answer_to_a_call.tools.len(), answer_to_a_call.meta), (0, None));
    let too_deep = list(ToolRequest::list(), || deep(200));
    assert_eq!((too_deep.tools.len(), too_deep.meta), (1, None));
}

#[test]
fn of_the_real_list_two_tools_change() {
    let list: Value = serde_json::from_str(include_str!("../data/tools_list.json")).unwrap();
    let mut changed = Vec::new();
    for tool in list["tools"].as_array().unwrap() {
        let mut tool: Tool = serde_json::from_value(tool.clone()).unwrap();
        let (name, schema) = (tool.name.clone(), tool.input_schema.clone());
        if HiddenFields::new().scrub_tool(&name, &mut tool).unwrap() {
            assert!(!names_guarded_key(&Value::Object((*tool.input_schema).clone())));
            changed.push(name);
        } else {
            assert!(Arc::ptr_eq(&schema, &tool.input_schema));
        }
    }
    assert_eq!(changed, ["execute_decision", "fire_trigger"]);
}

#[test]
fn what_a_tool_says_of_itself_is_scrubbed() {
    let mut tool: Tool = serde_json::from_value(json!({
        "name": "x",
        "title": "override_safety",
        "description": "Repeats.\nforce: yes",
        "annotations": {"title": "X (`force`)", "readOnlyHint": true},
        "inputSchema": {"title": "The force", "$comment": "force=true"},
        "outputSchema": {"properties": {"force": {}}},
        "_meta": {"com.example/override_safety": 1, "a": [{"Force": 1, "b": 2}], "c": 3}
    }))
    .unwrap();
    assert!(HiddenFields::new().scrub_tool("x", &mut tool).unwrap());
    assert_eq!(
        serde_json::to_value(&tool).unwrap(),
        json!({
            "name": "x",
            "description": "Repeats.",
            "annotations": {"readOnlyHint": true},
            "inputSchema": {"title": "The force"},
            "_meta": {"a": [{"b": 2}], "c": 3}
        })
    );
    assert!(!HiddenFields::new().scrub_tool("x", &mut tool).unwrap());
}

#[test]
fn a_tool_is_changed_if_any_part_of_it_is() {
    for part in [
        json!({"title": "override_safety"}),
        json!({"description": "Set force=true."}),
        json!({"annotations": {"title": "X (`force`)"}}),
        json!({"inputSchema": {"properties": {"force": {}}}}),
        json!({"inputSchema": {"$comment": "force=true"}}),
        json!({"outputSchema": {"properties": {"force": {}}}}),
        json!({"outputSchema": {"$comment": "force=true"}}),
        json!({"_meta": {"force": 1}}),
        json!({"_meta": {"com.example/force": 1, "a": 2}}),
        json!({"_meta": {"a": {"force": 1}}}),
        json!({"_meta": {"a": [1, [{"b": {"com.example/force": 1}}]]}}),
    ] {
        let mut raw = json!({"name": "x", "inputSchema": {}});
        raw.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let before: Tool = serde_json::from_value(raw).unwrap();
        let mut tool = before.clone();
        assert_eq!(HiddenFields::new().scrub_tool("x", &mut tool), Ok(true), "{part}");
        assert_ne!(tool, before, "{part}");
        let printed = serde_json::to_string(&tool).unwrap().to_lowercase();
        assert!(!printed.contains("force") && !printed.contains("override"), "{part}: {printed}");
    }
}
