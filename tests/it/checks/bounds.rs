//! How deep a value may be, and how long it may take to read one.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use futures::executor::block_on;
use rmcp::{
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, MetaObject, RequestMetaObject, Tool,
    },
    object,
};
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;
use tower_algenta::{Error, Profile, ToolRequest, ToolResponse};

use super::{Boxed, Finding, Stack, ask, ensure};
use crate::{
    model::arguments::depth,
    support::{Received, empty_result, object, recording},
};

/// Containers in each other, and no more.
const LEVELS: usize = 128;

/// `levels` containers around a number.
pub(crate) fn nested(levels: usize, is_array: bool) -> Value {
    // `json!` would copy the value at each level.
    let around = |value| if is_array { Value::from(vec![value]) } else { Value::from_iter([("a", value)]) };
    (0..levels).fold(json!(1), |value, _| around(value))
}

fn execution() -> ToolRequest {
    ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}))
}

/// Arguments arrive, unless they are too deep.
pub(crate) fn arguments_are_bounded(stack: Stack<'_>, tool: &'static str, arguments: &Value) -> Finding {
    let call = ToolRequest::call(tool, object(arguments));
    let (outcome, received) = ask(stack, Profile::Full, call, |_: &ToolRequest| Ok(empty_result()));
    let (levels, arrives) = (depth(arguments), !received.is_empty());
    ensure(arrives == (levels <= LEVELS), || format!("{levels} levels of arguments to {tool}: {outcome:?}"))?;
    let is_refused = matches!(outcome, Err(Error::InvalidArguments(_)));
    ensure(is_refused != arrives, || format!("{levels} levels of arguments to {tool}: {outcome:?}"))
}

/// So does `_meta`.
pub(crate) fn meta_is_bounded(stack: Stack<'_>, value: &Value) -> Finding {
    let mut params = CallToolRequestParams::new("simulate").with_arguments(object!({}));
    params.meta = Some(RequestMetaObject(MetaObject(Map::from_iter([("x".to_owned(), value.clone())]))));
    let (outcome, received) = ask(stack, Profile::Full, params.into(), |_: &ToolRequest| Ok(empty_result()));
    let levels = depth(value) + 1;
    ensure(received.is_empty() == (levels > LEVELS), || format!("{levels} levels of `_meta`: {outcome:?}"))
}

/// A receipt that is too deep is none.
pub(crate) fn receipts_are_bounded(stack: Stack<'_>, value: &Value) -> Finding {
    let mut receipt = json!({
        "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"
    });
    receipt["payload_summary"] = value.clone();
    let mut result = CallToolResult::success(vec![]);
    result.structured_content = Some(receipt);
    let (outcome, _) = ask(stack, Profile::Full, execution(), move |_: &ToolRequest| Ok(result.clone().into()));
    let levels = depth(value) + 1;
    ensure(outcome.is_ok() == (levels <= LEVELS), || format!("{levels} levels of a receipt: {:?}", outcome.err()))
}

/// A tool whose schema is too deep is not listed; others are.
pub(crate) fn schemas_are_bounded(stack: Stack<'_>, levels: usize) -> Finding {
    let deep = (1..levels).fold(json!({}), |value, _| Value::from_iter([("items", value)]));
    let tools = vec![Tool::new("deep", "", object(&deep)), Tool::new("flat", "", object!({"type": "object"}))];
    let list = ListToolsResult::with_all_items(tools);
    let (outcome, _) = ask(stack, Profile::Full, ToolRequest::list(), move |_: &ToolRequest| Ok(list.clone().into()));
    let Ok(ToolResponse::List(list)) = outcome else { return Err(format!("no list: {outcome:?}")) };
    let listed: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
    let expected: &[&str] = if levels > LEVELS { &["flat"] } else { &["deep", "flat"] };
    ensure(listed == expected, || format!("{levels} levels of a schema: {listed:?}"))
}

/// All of that, at the bound and away from it.
pub(crate) fn depth_is_bounded(stack: Stack<'_>) -> Finding {
    for levels in [1, 2, 126, 127, 128, 129, 200] {
        for is_array in [false, true] {
            let value = nested(levels, is_array);
            for tool in ["execute_decision", "simulate", "query_batch"] {
                let arguments = json!({"decision_id": "d", "webhook_url": "w", "metadata": value});
                arguments_are_bounded(stack, tool, &arguments)?;
            }
            meta_is_bounded(stack, &value)?;
            receipts_are_bounded(stack, &value)?;
        }
        schemas_are_bounded(stack, levels)?;
    }
    Ok(())
}

/// How a call ends that is answered so, if it ends in time.
fn ends_within(
    limit: Duration,
    stack: Stack<'_>,
    request: ToolRequest,
    answer: ToolResponse,
) -> Result<Result<ToolResponse, Error>, String> {
    let service =
        stack(Profile::Full, Boxed::new(recording(&Received::default(), move |_: &ToolRequest| Ok(answer.clone()))));
    let (ended, outcome) = mpsc::channel();
    thread::spawn(move || {
        let outcome = block_on(service.oneshot(request)).map_err(Error::from);
        // Past its limit nobody listens.
        let _ = ended.send(outcome);
    });
    outcome.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => format!("still reading after {limit:?}"),
        RecvTimeoutError::Disconnected => "it panicked".to_owned(),
    })
}

const SIZE: usize = 1 << 20;

/// Arguments of a mebibyte that are text in which a scan can lose itself, or keys without number, are read in time.
pub(crate) fn hostile_arguments_are_read_within(limit: Duration, stack: Stack<'_>) -> Finding {
    let texts = [
        "\"a\":{".repeat(SIZE / 5),
        "\"".repeat(SIZE),
        "\"\\u0066".repeat(SIZE / 7),
        format!("[{}", "\"force\" ".repeat(SIZE / 8)),
        (0..50_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(","),
    ];
    let wide: Map<String, Value> = (0..50_000).map(|n| (format!("fo rce{n}"), json!([n]))).collect();
    let texts = texts.into_iter().map(|text| (object(&json!({"payload": format!("{{{text}")})), true));
    for (arguments, is_refusable) in texts.chain([(wide, false)]) {
        let begins: String = Value::Object(arguments.clone()).to_string().chars().take(32).collect();
        let call = ToolRequest::call("query_batch", arguments);
        let outcome = ends_within(limit, stack, call, empty_result()).map_err(|found| format!("{found}: {begins}"))?;
        let is_refused = matches!(outcome, Err(Error::InvalidArguments(_)));
        ensure(outcome.is_ok() || is_refusable && is_refused, || format!("{begins} ended in {outcome:?}"))?;
    }
    Ok(())
}

/// Answers of a mebibyte that open objects or texts without end, or an object at every other byte, are read in time.
/// They are no receipts.
pub(crate) fn hostile_answers_are_read_within(limit: Duration, stack: Stack<'_>) -> Finding {
    for piece in ["{", "{\"a\":", "\"", "{}"] {
        let text = piece.repeat(SIZE / piece.len());
        let answer = CallToolResult::success(vec![ContentBlock::text(text)]);
        let outcome =
            ends_within(limit, stack, execution(), answer.into()).map_err(|found| format!("{found}: {piece}"))?;
        let is_failure = matches!(outcome, Err(Error::OutcomeUnknown(_) | Error::ExecutionFailed(_)));
        ensure(is_failure, || format!("{piece} ended in {outcome:?}"))?;
    }
    Ok(())
}
