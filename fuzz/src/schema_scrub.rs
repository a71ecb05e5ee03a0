//! P3 through `SchemaScrub`: what a list says of a tool.

use std::{borrow::Cow, sync::Arc};

use rmcp::model::{JsonObject, ListToolsResult, MetaObject, Tool};
use serde_json::{Value, json};
use tower::Layer as _;
use tower_algenta::{HiddenFields, Profile, SchemaScrubLayer, ToolRequest, ToolResponse};

use crate::{
    checks::{Boxed, ask},
    judge, model,
    names::{dangling, names_a_switch},
};

/// Checks a case of `schemas.json`: a `tool`, or an `inputSchema`, with `calls` that try it.
#[must_use]
pub fn check(data: &[u8]) -> bool {
    let Ok(input @ Value::Object(_)) = serde_json::from_slice::<Value>(data) else { return false };
    let tool = input.get("tool").cloned().unwrap_or_else(|| {
        let name = input["name"].as_str().unwrap_or("execute_decision");
        json!({"name": name, "inputSchema": input["inputSchema"]})
    });
    let Ok(tool) = serde_json::from_value::<Tool>(tool) else { return false };
    let calls: Vec<JsonObject> =
        input["calls"].as_array().into_iter().flatten().filter_map(Value::as_object).cloned().collect();

    let plain = |name: &'static str| Tool::new(name, "", JsonObject::new());
    let mut upstream = ListToolsResult::with_all_items(vec![plain("before"), tool.clone(), plain("after")]);
    upstream.meta.clone_from(&tool.meta);
    let given = upstream.clone();
    let stack = |_, engine| Boxed::new(SchemaScrubLayer::new().layer(engine));
    let (answer, _) = ask(&stack, Profile::Full, ToolRequest::list(), move |_: &ToolRequest| Ok(given.clone().into()));
    let Ok(ToolResponse::List(mut list)) = answer else { panic!("no list: {answer:?}") };
    assert!(no_switch_in_meta(list.meta.as_ref()), "{:?}", list.meta);
    let (before, after) = (list.tools.remove(0), list.tools.pop());
    assert!(Arc::ptr_eq(&before.input_schema, &upstream.tools[0].input_schema), "(e) of a neighbour");
    assert_eq!((Some(before), after), (Some(plain("before")), Some(plain("after"))), "neighbours stay as they are");
    match list.tools.pop() {
        Some(listed) => holds(&tool.name, &tool, &listed, &calls),
        None => is_refused(&tool.name, &tool),
    }
    assert!(list.tools.is_empty(), "nothing is added");
    true
}

/// A tool goes only if its schema can't be scrubbed, which is no schema without switches.
pub(crate) fn is_refused(logical: &str, tool: &Tool) {
    let error = HiddenFields::new().scrub_tool(logical, &mut tool.clone()).expect_err("a dropped tool is refused");
    let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
    let mut schemas = schemas.into_iter().flatten().map(|schema| Value::Object((**schema).clone()));
    let is_readable = !error.is_limit() && is_surely_clean(tool) && schemas.all(|schema| judge::of(&schema).is_some());
    assert!(!is_readable, "{error}: {tool:?}");
}

/// What has to hold for a tool and for what is listed of it.
pub(crate) fn holds(logical: &str, before: &Tool, after: &Tool, calls: &[JsonObject]) {
    only_loses(before, after);
    let schema = |tool: &Tool| Value::Object((*tool.input_schema).clone());
    let (given, scrubbed) = (schema(before), schema(after));
    assert!(!names_a_switch(&scrubbed), "(a) {given}\n{scrubbed}");
    let output = after.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()));
    assert!(!output.is_some_and(|output| names_a_switch(&output)), "(a) of the output: {after:?}");
    assert!(no_switch_in_meta(after.meta.as_ref()), "{:?}", after.meta);

    if judge::is_valid(&given) && dangling(&given).is_empty() {
        assert!(dangling(&scrubbed).is_empty(), "(c) {given}\n{scrubbed}");
    }

    let mut again = after.clone();
    assert_eq!(HiddenFields::new().scrub_tool(logical, &mut again), Ok(false), "(d) {given}\n{scrubbed}");
    assert_eq!(again, *after, "(d)");

    if is_surely_clean(before) {
        assert_eq!(after, before, "(e)");
    }
    if given == scrubbed {
        assert!(Arc::ptr_eq(&before.input_schema, &after.input_schema), "(e) {given}");
        return;
    }
    let Some(judge) = judge::of(&given) else { return };
    assert!(judge::is_valid(&scrubbed), "(f) {given}\n{scrubbed}");
    let scrubbed_judge =
        jsonschema::validator_for(&scrubbed).unwrap_or_else(|error| panic!("(f) {error}: {given}\n{scrubbed}"));
    // A schema that names no switch may all the same count or compare keys; it is left as it is.
    if !names_a_switch(&given) {
        return;
    }
    let usual = [json!({}), json!({"force": true}), json!({"decision_id": "d", "webhook_url": "w", "Force": 1})];
    for call in usual.iter().filter_map(Value::as_object).chain(calls) {
        // What is valid inside a text, no validator says.
        let has_text = call.values().any(|value| value.as_str().is_some_and(|text| text.contains(['{', '['])));
        let mut forwarded = call.clone();
        if has_text || HiddenFields::new().scrub_arguments(logical, &mut forwarded).is_err() {
            continue;
        }
        if judge.is_valid(&Value::Object(call.clone())) {
            let is_accepted = scrubbed_judge.is_valid(&Value::Object(forwarded.clone()));
            assert!(is_accepted, "(b) {given}\n{scrubbed}\n{call:?}\n{forwarded:?}");
        }
    }
}

/// Schemas, `_meta` and prose are all that changes, and prose only loses.
fn only_loses(before: &Tool, after: &Tool) {
    let text = |text: &Option<Cow<'static, str>>| text.as_deref().unwrap_or_default().to_owned();
    assert!(is_left_of(&text(&after.description), &text(&before.description)), "{after:?}");
    let title = |text: &Option<String>| text.clone().unwrap_or_default();
    assert!(is_left_of(&title(&after.title), &title(&before.title)), "{after:?}");
    let mut rest = before.clone();
    rest.title.clone_from(&after.title);
    rest.description.clone_from(&after.description);
    rest.input_schema.clone_from(&after.input_schema);
    rest.output_schema.clone_from(&after.output_schema);
    rest.meta.clone_from(&after.meta);
    if let (Some(rest), Some(after)) = (&mut rest.annotations, &after.annotations) {
        rest.title.clone_from(&after.title);
    }
    assert_eq!(rest, *after, "the rest of a tool stays");
}

/// Whether `less` is `more` without some of its characters.
fn is_left_of(less: &str, more: &str) -> bool {
    let mut more = more.chars();
    less.chars().all(|char| more.any(|other| other == char))
}

pub(crate) fn no_switch_in_meta(meta: Option<&MetaObject>) -> bool {
    let meta = meta.map(|meta| meta.0.clone()).unwrap_or_default();
    model::arguments::scrubbed_meta(&meta) == meta
}

/// Whether nothing in a tool could be taken for a switch by anybody. Patterns can spell one without its letters.
fn is_surely_clean(tool: &Tool) -> bool {
    fn is_clean(text: &str) -> bool {
        let letters = model::canonical(text);
        !["force", "override", "pattern"].iter().any(|word| letters.contains(word)) && !model::is_private(text)
    }
    fn all_clean(value: &Value) -> bool {
        match value {
            Value::String(text) => is_clean(text),
            Value::Array(items) => items.iter().all(all_clean),
            Value::Object(members) => members.iter().all(|(key, value)| is_clean(key) && all_clean(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }
    all_clean(&serde_json::to_value(tool).unwrap())
}
