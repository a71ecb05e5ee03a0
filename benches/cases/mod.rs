//! The inputs and the services that all benches share: one module, so that a figure of one can be set beside another's.
#![allow(dead_code, reason = "each bench takes what it needs")]

pub(crate) mod engine;
pub(crate) mod minima;
pub(crate) mod services;

use std::sync::LazyLock;

use rmcp::{
    model::{CallToolResult, JsonObject, ListToolsResult, Tool},
    object,
};
use serde_json::Value;
use tower_algenta::NEVER_MODEL_FACING;

/// How many keys a call has.
pub(crate) const KEYS: [usize; 6] = [0, 5, 24, 50, 500, 5000];

/// Bytes that an answer's texts may have together.
pub(crate) const TEXT_LIMIT: usize = 1 << 20;

/// Whether each case is to run once only: `cargo bench -- --test`.
pub(crate) fn is_test() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// The clean call of the goals: five keys, one of them nested.
pub(crate) fn five_keys() -> JsonObject {
    object!({
        "scenario": "expand-to-eu", "horizon": 12, "currency": "EUR", "seed": 7,
        "assumptions": {"growth": [0.1, 0.2], "regions": {"de": {"weight": 0.5}}}
    })
}

/// The arguments of the execution that the recorded receipt is of.
pub(crate) fn execution() -> JsonObject {
    object!({"decision_id": "dec_1", "webhook_url": "http://127.0.0.1:18802/hook"})
}

/// Arguments of `keys` keys, all of them scalars.
pub(crate) fn flat(keys: usize) -> JsonObject {
    (0..keys).map(|key| (format!("argument_{key}"), key.into())).collect()
}

/// Arguments of `keys` keys; some of the values are nested.
pub(crate) fn arguments(keys: usize) -> JsonObject {
    (0..keys)
        .map(|key| {
            let value = match key % 5 {
                0 => Value::from("a text of some length"),
                1 => Value::from(key),
                2 => serde_json::json!({"weight": 0.5, "region": {"name": "eu"}}),
                3 => serde_json::json!([1, 2, 3]),
                _ => Value::Null,
            };
            (format!("argument_{key}"), value)
        })
        .collect()
}

pub(crate) fn with_switches(mut arguments: JsonObject) -> JsonObject {
    for name in NEVER_MODEL_FACING {
        arguments.insert(name.to_owned(), true.into());
    }
    arguments
}

/// Spellings that some binder takes for a hidden field.
pub(crate) fn aliases() -> JsonObject {
    object!({"Force": true, "overrideSafety": true, "--force": true, "f\u{200b}orce": true, "scenario": "s"})
}

/// The least that a scrub can do: a byte of each key.
pub(crate) fn touch_each_key(arguments: &JsonObject) -> usize {
    arguments.keys().map(|key| usize::from(key.as_bytes()[0])).sum()
}

/// The same in all that is nested.
pub(crate) fn touch_each_key_within(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(touch_each_key_within).sum(),
        Value::Object(members) => touch_all_keys(members),
        _ => 0,
    }
}

pub(crate) fn touch_all_keys(arguments: &JsonObject) -> usize {
    arguments.iter().map(|(key, value)| usize::from(key.as_bytes()[0]) + touch_each_key_within(value)).sum()
}

/// The same in the schemas of a list.
pub(crate) fn touch_all_keys_of(tools: &[Tool]) -> usize {
    tools.iter().map(|tool| touch_all_keys(&tool.input_schema)).sum()
}

/// What a wrapper without ownership does: a copy without the two names at the top level.
pub(crate) fn clone_and_filter(arguments: &JsonObject) -> JsonObject {
    arguments
        .iter()
        .filter(|(key, _)| !NEVER_MODEL_FACING.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The real server's list of 140 tools, as it came.
pub(crate) const TOOLS_LIST: &str = include_str!("../../tests/data/tools_list.json");

pub(crate) fn recorded_list() -> ListToolsResult {
    serde_json::from_str(TOOLS_LIST).expect("a list of tools")
}

/// The tools of the recorded list that name no hidden field, again and again until there are `count`.
pub(crate) fn clean_tools(count: usize) -> Vec<Tool> {
    clean_tools_of(138, count)
}

/// The first `kinds` of them, again and again until there are `count`: tools differ in size, these lists only in length.
pub(crate) fn clean_tools_of(kinds: usize, count: usize) -> Vec<Tool> {
    let tools = recorded_list().tools;
    let clean = tools.iter().filter(|tool| !matches!(&*tool.name, "execute_decision" | "fire_trigger"));
    // Through text, so that each tool has values of its own, as off the wire.
    let written: Vec<_> = clean.take(kinds).map(|tool| serde_json::to_string(tool).expect("a tool")).collect();
    written.iter().cycle().take(count).map(|tool| serde_json::from_str(tool).expect("a tool")).collect()
}

/// Names as a list and calls have them: of the contract, of the real server, malformed, look-alikes.
pub(crate) const NAMES: [&str; 8] = [
    "get_contract",
    "execute_decision",
    "query_batch",
    "list_decision_templates",
    "Execute_Decision",
    "a name",
    "update_execution_policy",
    "recommend",
];

/// The recorded answer to `execute_decision` called `name`.
pub(crate) fn recorded_result(name: &str) -> CallToolResult {
    // Parsed once: what a case frees before it is counted, the allocator sorts while it is.
    static RECORDED: LazyLock<Value> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../../tests/data/execute_results.json")).expect("recorded results")
    });
    let case = RECORDED["cases"].as_array().and_then(|cases| cases.iter().find(|case| case["name"] == name));
    serde_json::from_value(case.expect("a recorded case")["result"].clone()).expect("a result")
}

/// The real server's receipt: indented JSON in one text block.
pub(crate) fn receipt() -> CallToolResult {
    recorded_result("detail/30_execute_ok")
}

/// The real server's denial: the gate is inside a string.
pub(crate) fn denial() -> CallToolResult {
    recorded_result("detail/34_execute_409_confidence")
}

/// The text of a result's first block.
pub(crate) fn text_of(result: &CallToolResult) -> String {
    result.content[0].as_text().expect("a text").text.clone()
}

pub(crate) fn text_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![rmcp::model::ContentBlock::text(text)])
}

/// A receipt of about `bytes` bytes, most of them in one long string.
pub(crate) fn large_receipt(bytes: usize) -> String {
    let mut fields: JsonObject = serde_json::from_str(&text_of(&receipt())).expect("a receipt");
    let size = serde_json::to_string(&fields).expect("JSON").len();
    fields.insert("payload_summary".to_owned(), "x".repeat(bytes.saturating_sub(size + 200)).into());
    serde_json::to_string(&fields).expect("JSON")
}

/// Bytes of prose that stand before a denial: a page of it, and nearly as much as a text may have.
pub(crate) const PREFIXES: [usize; 2] = [1 << 16, TEXT_LIMIT - (1 << 10)];

/// `bytes` bytes without a brace.
pub(crate) fn prose(bytes: usize) -> String {
    repeated("x ", bytes)
}

/// Shapes of text that make a naive search for objects quadratic, or slow: a piece that is repeated.
pub(crate) const HOSTILE: [(&str, &str); 14] = [
    ("braces", "{"),
    ("open_members", "{\"a\":"),
    ("open_lists", "{\"a\":["),
    ("quotes", "\""),
    ("open_keys", "{\""),
    ("open_strings", "{\"a\":\"{"),
    ("lists", "[{"),
    ("escapes", "{\\"),
    ("broken_escapes", "{\"\\u00"),
    ("empty_objects", "{}"),
    ("spaces", "{ "),
    ("lines", "{\n"),
    ("small_objects", "{\"a\":1}"),
    ("trailing_commas", "{\"a\":1,}"),
];

/// `piece` again and again, to `bytes`.
pub(crate) fn repeated(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes / piece.len())
}
