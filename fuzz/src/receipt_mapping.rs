//! P4 through `ReceiptMapping`: an execution ends in its receipt, a denial or a failure.

use rmcp::{
    model::{CallToolResult, ContentBlock, JsonObject},
    object,
};
use serde_json::Value;
use tower::Layer as _;
use tower_algenta::{Error, Profile, ReceiptMappingLayer, ToolRequest, ToolResponse, receipt_mapping::OnToolError};

use crate::{
    checks::{Boxed, ask},
    execution,
    model::{
        canonical,
        outcome::{Asked, Call},
    },
    silence,
    wire::Answer,
};

/// Checks a case of `results.json`: a call of `tool` with `arguments`, and the `response` that it gets, as a message or,
/// in `raw_response`, as its text.
#[must_use]
pub fn check(data: &[u8]) -> bool {
    let Ok(input @ Value::Object(_)) = serde_json::from_slice(data) else { return false };
    let response = input["raw_response"].as_str().map_or_else(|| input["response"].to_string(), str::to_owned);
    let Some(answer) = Answer::read(response.as_bytes()) else { return false };
    let tool = input["tool"].as_str().unwrap_or("execute_decision");
    let arguments = input["arguments"]
        .as_object()
        .cloned()
        .unwrap_or_else(|| object!({"decision_id": "dec-1", "webhook_url": "https://hooks.example/x"}));

    let (outcome, calls) = end(&ReceiptMappingLayer::new(), tool, &arguments, &answer);
    if tool == "execute_decision" {
        execution::check(&arguments, &answer, &outcome, calls);
        is_stricter(&arguments, &answer, &outcome);
        if calls == 1 {
            a_quotation_is_no_denial(&arguments);
        }
    } else if canonical(tool).ends_with("executedecision") {
        assert_eq!(calls, 0, "{tool:?} could be taken for an execution");
        silence::check(&outcome.unwrap_err());
    } else {
        assert_eq!(calls, 1, "{tool:?} is no execution");
        execution::check_other(&answer, &outcome);
    }
    lists_pass(&answer);
    true
}

fn end(
    layer: &ReceiptMappingLayer,
    tool: &str,
    arguments: &JsonObject,
    answer: &Answer,
) -> (Result<ToolResponse, Error>, usize) {
    let stack = |_, engine| Boxed::new(layer.layer(engine));
    let call = ToolRequest::call(tool.to_owned(), arguments.clone());
    let given = answer.clone();
    let (outcome, received) = ask(&stack, Profile::Full, call.clone(), move |_: &ToolRequest| given.give());
    if let Some(received) = received.first() {
        assert_eq!(format!("{received:?}"), format!("{call:?}"), "a request passes as it is");
    }
    (outcome, received.len())
}

/// With all knobs tightened, only a receipt without an override succeeds, and the rest is as in the model.
fn is_stricter(arguments: &JsonObject, answer: &Answer, outcome: &Result<ToolResponse, Error>) {
    let layer = ReceiptMappingLayer::new().strict(true).on_tool_error(OnToolError::Abort);
    let (strict, calls) = end(&layer, "execute_decision", arguments, answer);
    if let Ok(strict) = &strict {
        let ToolResponse::Call(strict) = strict else { panic!("P4: a list answered an execution") };
        let Ok(ToolResponse::Call(outcome)) = outcome else { panic!("P4: {outcome:?} without the knobs") };
        let receipt = strict.receipt().expect("P4: only a receipt succeeds");
        assert!(!receipt.safety_overridden(), "P4: an override that nobody made");
        assert_eq!(Some(receipt), outcome.receipt());
    }
    if let Err(error) = &strict {
        silence::check(error);
    }
    let arguments = Value::Object(arguments.clone());
    if let (1, Some(decision_id), Some(webhook_url)) =
        (calls, arguments["decision_id"].as_str(), arguments["webhook_url"].as_str())
    {
        let asked = Asked { decision_id, webhook_url };
        let call = Call { asked, arguments: &arguments, is_strict: true, aborts: true };
        execution::ends_as_in_the_model(call, answer, &strict);
    }
}

/// An engine that fails in another way and quotes the call has denied nothing.
fn a_quotation_is_no_denial(arguments: &JsonObject) {
    for text in execution::quotations(arguments) {
        let answer = Answer::Response(CallToolResult::error(vec![ContentBlock::text(text.clone())]).into());
        let (outcome, _) = end(&ReceiptMappingLayer::new(), "execute_decision", arguments, &answer);
        let is_open = matches!(outcome, Err(Error::OutcomeUnknown(_) | Error::ExecutionFailed(_)));
        assert!(is_open, "{outcome:?} after {text}");
    }
}

fn lists_pass(answer: &Answer) {
    let stack = |_, engine| Boxed::new(ReceiptMappingLayer::new().layer(engine));
    let given = answer.clone();
    let (outcome, _) = ask(&stack, Profile::Full, ToolRequest::list(), move |_: &ToolRequest| given.give());
    match (answer, outcome) {
        (Answer::Response(ToolResponse::List(given)), Ok(ToolResponse::List(passed))) => assert_eq!(passed, *given),
        (Answer::Response(ToolResponse::Call(_)), Err(Error::UnexpectedResponse(_)))
        | (Answer::Failure(_) | Answer::Unread, Err(Error::Upstream(_))) => {}
        (_, outcome) => panic!("a list was answered by {outcome:?}"),
    }
}
