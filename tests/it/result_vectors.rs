//! The attack cases and the recorded results of `execute_decision`, through `ReceiptMapping`.

use rmcp::{
    ServiceError,
    model::{CallToolResult, ServerJsonRpcMessage, ServerResult},
};
use serde_json::{Value, json};
use tower::{ServiceBuilder, ServiceExt as _};
use tower_algenta::{
    BoxError, CallOutcome, Error, ExecutionBlocked, ExecutionReceipt, ReceiptMappingLayer, ToolRequest, ToolResponse,
};

use crate::support::{Received, cases, everything_printed, object, recording, text};

/// Sends one call through the layer and answers it with what the engine sent; also how often the engine was called.
async fn run(
    tool: &str,
    arguments: &Value,
    answer: impl Fn() -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
) -> (Result<CallOutcome, Error>, usize) {
    let received = Received::default();
    let engine = recording(&received, move |_: &ToolRequest| answer());
    let service = ServiceBuilder::new().layer(ReceiptMappingLayer::new()).service(engine);
    let answer = service.oneshot(ToolRequest::call(tool.to_owned(), object(arguments))).await;
    let outcome = match answer {
        Ok(ToolResponse::Call(outcome)) => Ok(outcome),
        Ok(ToolResponse::List(_)) => panic!("a list answered a call"),
        Err(error) => Err(Error::from(error)),
    };
    (outcome, received.len())
}

/// A message off the wire, read as a client reads it, and the name of what it was read as.
fn decode(message: &str) -> (String, Result<ToolResponse, BoxError>) {
    match serde_json::from_str::<ServerJsonRpcMessage>(message) {
        Err(error) => ("decode error".to_owned(), Err(error.into())),
        Ok(ServerJsonRpcMessage::Error(error)) => ("Error".to_owned(), Err(error.error.into())),
        Ok(ServerJsonRpcMessage::Response(response)) => {
            let debug = format!("{:?}", response.result);
            let kind = debug.split(['(', ' ']).next().unwrap().to_owned();
            let answer = match response.result {
                // What rmcp's client makes of a result with nothing in it.
                ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => Ok(CallToolResult::default().into()),
                result => ToolResponse::try_from(result).map_err(BoxError::from),
            };
            (kind, answer)
        }
        Ok(other) => panic!("not an answer: {other:?}"),
    }
}

#[tokio::test]
async fn every_attack_case_ends_as_it_must() {
    let cases = cases(include_str!("../vectors/results.json"));
    assert_eq!(cases.len(), 64);
    for case in &cases {
        let (id, input, expected) = (text(case, "id"), &case["input"], &case["expected"]);
        let answer = {
            let input = input.clone();
            move || match input["event"].as_str() {
                Some(event) if event.contains("TransportClosed") => Err(ServiceError::TransportClosed.into()),
                Some(event) if event.contains("Timeout") => {
                    Err(ServiceError::Timeout { timeout: std::time::Duration::from_secs(1) }.into())
                }
                Some(event) if event.contains("Cancelled") => Err(ServiceError::Cancelled { reason: None }.into()),
                Some(event) => panic!("unknown event {event}"),
                None => {
                    let raw = input["raw_response"].as_str().map(str::to_owned);
                    decode(&raw.unwrap_or_else(|| input["response"].to_string())).1
                }
            }
        };
        if let Some(kind) = expected["rmcp_decodes_as"].as_str() {
            let raw = input["raw_response"].as_str().map(str::to_owned);
            assert_eq!(decode(&raw.unwrap_or_else(|| input["response"].to_string())).0, kind, "{id}");
        }
        let (outcome, calls) = run(text(input, "tool"), &input["arguments"], answer).await;
        assert_eq!(calls, 1, "{id}: one inner call");
        match (text(expected, "verdict"), &outcome) {
            ("receipt", Ok(outcome)) => {
                let receipt = outcome.receipt().unwrap_or_else(|| panic!("{id}: no receipt"));
                assert_eq!(receipt.decision_id(), "dec-1", "{id}");
                let sent: CallToolResult = serde_json::from_value(input["response"]["result"].clone()).unwrap();
                assert_eq!(outcome.result(), Some(&sent), "{id}: the result passes unchanged");
            }
            ("pass_through", Ok(outcome)) => {
                assert!(outcome.receipt().is_none(), "{id}");
                let sent: CallToolResult = serde_json::from_value(input["response"]["result"].clone()).unwrap();
                assert_eq!(outcome.result(), Some(&sent), "{id}: the result passes unchanged");
            }
            ("denied", Err(Error::Denied(denial))) => {
                assert_eq!(denial.gate().as_str(), text(expected, "gate"), "{id}");
            }
            ("failed", Err(Error::ExecutionFailed(_) | Error::OutcomeUnknown(_))) => {}
            (verdict, outcome) => panic!("{id}: {verdict}, but {outcome:?}"),
        }
        if let Err(error) = &outcome {
            assert!(error.is_governed_failure(), "{id}");
            assert!(!error.is_retryable(), "{id}");
            let printed = everything_printed(error);
            for forbidden in expected["display_must_not_contain"].as_array().into_iter().flatten() {
                assert!(!printed.contains(forbidden.as_str().unwrap()), "{id} shows {forbidden}: {printed}");
            }
        }
    }
}

#[tokio::test]
async fn every_recorded_result_gets_its_class() {
    let cases = cases(include_str!("../data/execute_results.json"));
    assert_eq!(cases.len(), 75);
    let mut seen = std::collections::BTreeMap::new();
    for case in &cases {
        let (name, expected) = (text(case, "name"), &case["expected"]);
        let result: CallToolResult = serde_json::from_value(case["result"].clone()).unwrap();
        let arguments = match case.get("request") {
            Some(request) => request["arguments"].clone(),
            // Two cases were recorded without their request; they are bound to what their receipt says.
            None => json!({"decision_id": "ok", "webhook_url": "https://e/h"}),
        };
        let (outcome, calls) = run("execute_decision", &arguments, {
            let result = result.clone();
            move || Ok(result.clone().into())
        })
        .await;
        let class = text(expected, "class");
        if case.get("refused_before_the_call").is_some() {
            assert_eq!(calls, 0, "{name}");
            assert!(matches!(outcome, Err(Error::InvalidArguments(_))), "{name}: {outcome:?}");
            *seen.entry("refused").or_insert(0) += 1;
            continue;
        }
        assert_eq!(calls, 1, "{name}");
        match (class, &outcome) {
            ("receipt", Ok(outcome)) => {
                let receipt = outcome.receipt().unwrap_or_else(|| panic!("{name}: no receipt"));
                assert_eq!(receipt.status().as_str(), text(expected, "execution_status"), "{name}");
                assert_eq!(outcome.result(), Some(&result), "{name}");
                assert_eq!(ExecutionReceipt::from_result(&result).as_ref(), Ok(receipt), "{name}: the parser agrees");
            }
            ("denied", Err(Error::Denied(denial))) => {
                assert_eq!(denial.gate().as_str(), text(expected, "gate"), "{name}");
                assert_eq!(denial.blocked().code(), text(expected, "code"), "{name}");
                assert_eq!(denial.blocked().untrusted_message(), expected["message"].as_str(), "{name}");
                assert_eq!(denial.blocked().untrusted_override_hint(), expected["override_hint"].as_str(), "{name}");
                assert_eq!(denial.decision().decision_id(), text(&arguments, "decision_id"), "{name}");
                assert_eq!(ExecutionBlocked::from_result(&result).as_ref(), Ok(denial.blocked()), "{name}");
            }
            ("tool_error", Ok(outcome)) => {
                assert!(outcome.receipt().is_none(), "{name}");
                let passed = outcome.result().unwrap();
                assert_eq!(passed.is_error, Some(true), "{name}");
                assert_eq!(passed.content, result.content, "{name}");
            }
            ("failed", Err(Error::ExecutionFailed(_) | Error::OutcomeUnknown(_))) => {
                assert!(ExecutionReceipt::from_result(&result).is_err(), "{name}");
                if expected["status_code"].as_u64().is_some_and(|status| status >= 500) {
                    assert!(matches!(outcome, Err(Error::OutcomeUnknown(_))), "{name}: {outcome:?}");
                }
            }
            (class, outcome) => panic!("{name}: {class}, but {outcome:?}"),
        }
        *seen.entry(class).or_insert(0) += 1;
    }
    let counts: Vec<_> = seen.into_iter().collect();
    assert_eq!(counts, [("denied", 23), ("failed", 19), ("receipt", 15), ("refused", 7), ("tool_error", 11)]);
}
