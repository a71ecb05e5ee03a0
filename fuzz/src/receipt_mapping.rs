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
    execution, model, silence,
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
    } else if model::canonical(tool).ends_with("executedecision") {
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

/// With all knobs tightened, nothing succeeds that didn't before, and only a receipt does.
fn is_stricter(arguments: &JsonObject, answer: &Answer, outcome: &Result<ToolResponse, Error>) {
    let layer = ReceiptMappingLayer::new().strict(true).on_tool_error(OnToolError::Abort);
    let (strict, _) = end(&layer, "execute_decision", arguments, answer);
    match (&strict, outcome) {
        (Ok(ToolResponse::Call(strict)), Ok(ToolResponse::Call(outcome))) => {
            let receipt = strict.receipt().expect("P4: only a receipt succeeds");
            assert!(!receipt.safety_overridden(), "P4: an override that nobody made");
            assert_eq!(Some(receipt), outcome.receipt());
        }
        (Err(error), Ok(_)) => {
            assert!(matches!(error, Error::ExecutionFailed(_)), "{error:?}");
            silence::check(error);
        }
        (Err(error), Err(outcome)) => assert_eq!(error.to_string(), outcome.to_string()),
        (strict, outcome) => panic!("P4: {strict:?}, but {outcome:?}"),
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
