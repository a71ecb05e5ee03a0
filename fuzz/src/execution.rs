//! P4, P5, P7 and P8: how a call ends, whatever the engine answered.

use rmcp::model::{CallToolResponse, CallToolResult, ErrorData, JsonObject, ResultType};
use serde_json::Value;
use tower_algenta::{CallOutcome, Error, ExecutionBlocked, ExecutionReceipt, ToolResponse};

use crate::{
    checks::outcomes::class,
    model::outcome::{Asked, Call, Class, of_result_to, of_rpc_error_to, well_formed},
    silence,
    wire::Answer,
};

/// Checks how an `execute_decision` with `arguments` ended, which called the engine so many times.
pub(crate) fn check(arguments: &JsonObject, answer: &Answer, outcome: &Result<ToolResponse, Error>, calls: usize) {
    assert!(calls <= 1, "P7: {calls} calls");
    if let Err(error) = outcome {
        silence::check(error);
        assert!(!error.is_retryable(), "P7: {error:?}");
    }
    if calls == 0 {
        assert!(matches!(outcome, Err(Error::InvalidArguments(_))), "{outcome:?} of {arguments:?}");
        return;
    }
    let arguments = Value::Object(arguments.clone());
    assert!(well_formed(&arguments), "the engine received {arguments}");
    let asked = Asked {
        decision_id: arguments["decision_id"].as_str().unwrap(),
        webhook_url: arguments["webhook_url"].as_str().unwrap(),
    };
    match outcome {
        Ok(ToolResponse::Call(outcome)) => completed(asked, outcome, answer),
        Ok(ToolResponse::List(_)) => panic!("P4: a list answered an execution"),
        Err(Error::Denied(denial)) => {
            let decision = denial.decision();
            assert_eq!((decision.decision_id(), decision.webhook_url()), (asked.decision_id, asked.webhook_url));
        }
        Err(error) => assert!(error.is_governed_failure(), "P4: {error:?} after {answer:?}"),
    }
    let call = Call { arguments: &arguments, ..Call::new(asked) };
    ends_as_in_the_model(call, answer, outcome);
}

fn completed(asked: Asked<'_>, outcome: &CallOutcome, answer: &Answer) {
    let result = outcome.result().expect("P4: neither a task nor a request for input completes");
    let Answer::Response(ToolResponse::Call(given)) = answer else { panic!("P4: {result:?} from nowhere") };
    let given = given.result().expect("P4: a result");
    if let Some(receipt) = outcome.receipt() {
        assert_eq!(receipt.decision_id(), asked.decision_id, "P4");
        assert_eq!(receipt.webhook_url(), asked.webhook_url, "P4");
        assert_ne!(result.is_error, Some(true), "P4");
        assert_eq!(result, given, "the result passes unchanged");
        assert_eq!(ExecutionReceipt::from_result(given).as_ref(), Ok(receipt));
        assert!(ExecutionBlocked::from_result(given).is_err(), "P4: a denial beside a receipt");
        return;
    }
    assert_eq!(result.is_error, Some(true), "P4: no receipt and no error");
    let mut expected = given.clone();
    expected.is_error = Some(true);
    assert_eq!(*result, expected, "nothing else is changed");
    let [block] = &*result.content else { panic!("P4: {:?}", result.content) };
    let envelope: Value = serde_json::from_str(block.as_text().expect("P4: a text").text.trim()).expect("P4: JSON");
    let status = envelope["error"]["status_code"].as_u64().expect("P4: a status");
    assert!((400..500).contains(&status) && ![408, 409, 425, 499].contains(&status), "P4: {status}");
}

/// What an engine may quote of a call when it fails: the whole, or one argument.
pub(crate) fn quotations(arguments: &JsonObject) -> Vec<String> {
    let arguments_alone = arguments.iter().filter(|(key, _)| *key != "decision_id").map(|(_, value)| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    });
    arguments_alone
        .chain([Value::Object(arguments.clone()).to_string()])
        .map(|quote| format!("Read timed out while delivering {quote}, sorry"))
        .collect()
}

/// P4: a call that the engine received ends as the model says.
pub(crate) fn ends_as_in_the_model(call: Call<'_>, answer: &Answer, outcome: &Result<ToolResponse, Error>) {
    // What quotes an id that holds a brace was not executed; the model leaves that open.
    if call.asked.decision_id.contains('{') {
        return;
    }
    let expected = match answer {
        Answer::Response(ToolResponse::Call(given)) => match given.response() {
            CallToolResponse::Complete(result) if is_complete(result) => {
                of_result_to(call, &serde_json::to_value(result).unwrap())
            }
            _ => vec![Class::Failed],
        },
        Answer::Failure(ErrorData { message, data, .. }) => {
            of_rpc_error_to(call.arguments, message, data.as_ref().unwrap_or(&Value::Null))
        }
        Answer::Response(ToolResponse::List(_)) | Answer::Unread => vec![Class::Unknown],
    };
    let actual = class(outcome);
    // The crate may be more careful than the model where a text has a member twice.
    let is_careful = expected.iter().any(|class| matches!(class, Class::Receipt | Class::ToolError))
        && matches!(actual, Class::Failed | Class::Unknown)
        && has_a_member_twice(answer);
    let is_expected = is_careful || expected.iter().any(|class| class.admits(&actual));
    assert!(is_expected, "P4: {expected:?}, but {actual:?}: {call:?} after {answer:?}");
}

fn is_complete(result: &CallToolResult) -> bool {
    result.result_type.as_ref().is_none_or(ResultType::is_complete)
}

/// Whether a text of the answer, or one in its `result`, has a member twice.
fn has_a_member_twice(answer: &Answer) -> bool {
    let Answer::Response(ToolResponse::Call(call)) = answer else { return false };
    let Some(result) = call.result() else { return false };
    let texts = result.content.iter().filter_map(|block| block.as_text()).map(|block| block.text.as_str());
    let structured = result.structured_content.iter().filter_map(|value| value["result"].as_str());
    texts.chain(structured).any(|text| {
        let Ok(read) = serde_json::from_str::<Value>(text.trim()) else { return false };
        let inner = read["result"].as_str().unwrap_or_default();
        colons(&read.to_string()) < colons(text) || has_fewer_members(inner)
    })
}

fn has_fewer_members(text: &str) -> bool {
    serde_json::from_str::<Value>(text.trim()).is_ok_and(|read| colons(&read.to_string()) < colons(text))
}

/// Of two writings of one document, that with more of them has a member more.
fn colons(text: &str) -> usize {
    text.matches(':').count()
}

/// P8: what another tool answers passes as it is, and so does its failure.
pub(crate) fn check_other(answer: &Answer, outcome: &Result<ToolResponse, Error>) {
    let written = |call: &CallOutcome| match call.response() {
        CallToolResponse::Complete(result) => serde_json::to_value(result).unwrap(),
        other => Value::String(format!("{other:?}")),
    };
    match (answer, outcome) {
        (Answer::Response(ToolResponse::Call(given)), Ok(ToolResponse::Call(passed))) => {
            assert!(passed.receipt().is_none(), "P8");
            assert_eq!(written(passed), written(given), "P8");
        }
        (Answer::Response(ToolResponse::List(_)), Err(error @ Error::UnexpectedResponse(_))) => silence::check(error),
        (Answer::Failure(given), Err(Error::Upstream(error))) => {
            assert_eq!(error.downcast_ref::<ErrorData>(), Some(given), "P8");
        }
        (Answer::Unread, Err(Error::Upstream(_))) => {}
        (answer, outcome) => panic!("P8: {outcome:?} after {answer:?}"),
    }
}
