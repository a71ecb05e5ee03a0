//! P11: depth, size and time have bounds.

use std::time::{Duration, Instant};

use proptest::{prelude::*, sample::select};
use rmcp::{
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, MetaObject, RequestMetaObject, Tool,
    },
    object,
};
use serde_json::{Value, json};
use tower_algenta::{Error, Profile, ToolRequest, ToolResponse};

use super::{any::plain_key, config};
use crate::{
    checks::{ask, real},
    model,
    support::{empty_result, object},
};

/// `levels` containers around a number.
fn nested(levels: usize, is_array: bool) -> Value {
    // `json!` would copy the value at each level.
    let around = |value| if is_array { Value::from(vec![value]) } else { Value::from_iter([("a", value)]) };
    (0..levels).fold(json!(1), |value, _| around(value))
}

/// Whether a call with these arguments arrives.
fn arrives(tool: &'static str, arguments: &Value) -> bool {
    let call = ToolRequest::call(tool, object(arguments));
    let (outcome, received) = ask(&real, Profile::Full, call, |_: &ToolRequest| Ok(empty_result()));
    assert_eq!(matches!(outcome, Err(Error::InvalidArguments(_))), received.is_empty(), "{outcome:?}");
    !received.is_empty()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p11_depth_is_bounded_at_128(
        tool in select(vec!["execute_decision", "simulate", "query_batch"]),
        key in plain_key(),
        levels in 1..260_usize,
        is_array: bool,
    ) {
        let mut arguments = json!({"decision_id": "d", "webhook_url": "w"});
        prop_assume!(!["decision_id", "webhook_url", "timeout_seconds"].contains(&&*key));
        arguments[key] = nested(levels, is_array);
        prop_assert_eq!(arrives(tool, &arguments), model::arguments::depth(&arguments) <= 128);

        let mut params = CallToolRequestParams::new("simulate").with_arguments(object!({}));
        params.meta = Some(RequestMetaObject(MetaObject(object(&json!({"x": nested(levels, is_array)})))));
        let (_, received) = ask(&real, Profile::Full, params.into(), |_: &ToolRequest| Ok(empty_result()));
        prop_assert_eq!(received.is_empty(), levels + 1 > 128);

        // An answer may be as deep, and no deeper.
        let mut receipt = json!({
            "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"
        });
        receipt["payload_summary"] = nested(levels, is_array);
        let mut result = CallToolResult::success(vec![]);
        result.structured_content = Some(receipt);
        let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
        let (outcome, _) = ask(&real, Profile::Full, call, move |_: &ToolRequest| Ok(result.clone().into()));
        prop_assert_eq!(outcome.is_ok(), levels < 128, "{:?}", outcome.err());

        // A tool whose schema is deeper is not listed; the others are.
        let deep = (1..levels).fold(json!({}), |value, _| Value::from_iter([("items", value)]));
        let tools = vec![
            Tool::new("deep", "", object(&deep)),
            Tool::new("flat", "", object!({"type": "object"})),
        ];
        let list = ListToolsResult::with_all_items(tools);
        let (outcome, _) = ask(&real, Profile::Full, ToolRequest::list(), move |_: &ToolRequest| Ok(list.clone().into()));
        let Ok(ToolResponse::List(list)) = outcome else { panic!("{outcome:?}") };
        prop_assert_eq!(list.tools.len(), if levels > 128 { 1 } else { 2 }, "{}", levels);
    }
}

#[test]
fn p11_a_text_of_more_than_a_mebibyte_is_not_read() {
    let receipt = |padding: usize| {
        json!({
            "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now",
            "payload_summary": "x".repeat(padding)
        })
        .to_string()
    };
    let fits = (1 << 20) - receipt(0).len();
    for (padding, is_read) in [(fits, true), (fits + 1, false)] {
        let result = CallToolResult::success(vec![ContentBlock::text(receipt(padding))]);
        let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
        let (outcome, _) = ask(&real, Profile::Execute, call, move |_: &ToolRequest| Ok(result.clone().into()));
        assert_eq!(outcome.is_ok(), is_read, "{:?}", outcome.err());
        assert!(is_read || matches!(outcome, Err(Error::OutcomeUnknown(_))));
    }
}

#[test]
fn p11_hostile_arguments_are_read_in_linear_time() {
    let names = "\"a\":{".repeat((1 << 20) / 5);
    let quotes = "\"".repeat(1 << 20);
    let escapes = "\"\\u0066".repeat((1 << 20) / 7);
    let switches = format!("[{}", "\"force\" ".repeat((1 << 20) / 8));
    let keys = (0..50_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",");
    for text in [names, quotes, escapes, switches, keys] {
        let began = Instant::now();
        let _ = arrives("query_batch", &json!({"payload": format!("{{{text}")}));
        assert!(began.elapsed() < Duration::from_secs(30), "{} took {:?}", &text[..8], began.elapsed());
    }
    let wide: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("fo rce{n}"), json!([n]))).collect();
    let began = Instant::now();
    assert!(arrives("query_batch", &Value::Object(wide)));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
