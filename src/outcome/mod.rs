//! What a result of `execute_decision` means: the rules in their order, without tower and without a network.

mod reading;
mod scan;

use rmcp::model::{CallToolResponse, CallToolResult, ErrorData};
use serde_json::Value;

use crate::{
    ExecuteDecision, ExecutionBlocked, ExecutionReceipt, NotADenial, NotAReceipt,
    error::{FailureReason, UnknownReason},
    json,
};
use reading::Reading;

/// What an answer to `execute_decision` means.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Executed, and this is the receipt of this very call.
    Receipt(ExecutionReceipt),
    /// A gate said no.
    Denied(ExecutionBlocked),
    /// A 4xx tool error with this status: it did not run.
    Rejected(u16),
    /// The answer is no receipt.
    Failed(FailureReason),
    /// It may have run.
    Unknown(UnknownReason),
}

/// Judges the engine's answer to `call`.
pub(crate) fn judge(response: &CallToolResponse, call: &ExecuteDecision) -> Verdict {
    match response {
        CallToolResponse::Complete(result) => judge_result(result, call),
        CallToolResponse::InputRequired(_) => Verdict::Failed(FailureReason::InputRequired),
        CallToolResponse::Task(_) => Verdict::Failed(FailureReason::TaskHandle),
        // rmcp's enum is open; a kind that this version doesn't know is no receipt.
        _ => Verdict::Failed(FailureReason::UnknownResult),
    }
}

fn judge_result(result: &CallToolResult, call: &ExecuteDecision) -> Verdict {
    if result.result_type.as_ref().is_some_and(|kind| !kind.is_complete()) {
        return Verdict::Failed(FailureReason::UnknownResult);
    }
    if !result.structured_content.as_ref().is_none_or(|value| json::is_within(value, json::DEPTH_LIMIT)) {
        return Verdict::Failed(FailureReason::TooDeep);
    }
    let Ok(reading) = Reading::of_result(result) else {
        return Verdict::Unknown(UnknownReason::Unreadable);
    };
    match reading.denial() {
        Err(NotADenial::Absent) => {}
        Err(NotADenial::Ambiguous) => return Verdict::Failed(FailureReason::AmbiguousDenial),
        Err(NotADenial::Unreadable) => return Verdict::Unknown(UnknownReason::Unreadable),
        Ok(_) if reading.has_receipt() => return Verdict::Failed(FailureReason::Contradiction),
        Ok(denial) => return Verdict::Denied(denial),
    }
    if reading.has_conflict() {
        return Verdict::Failed(FailureReason::UnreadableConflict);
    }
    if result.is_error == Some(true) || reading.has_error() {
        return match reading.sole_client_error(result) {
            _ if reading.has_receipt() => Verdict::Failed(FailureReason::Contradiction),
            Some(status) => Verdict::Rejected(status),
            None => Verdict::Unknown(UnknownReason::ToolError),
        };
    }
    let has_receipt = reading.has_receipt();
    match reading.into_receipt(result) {
        Ok(receipt) if receipt.decision_id() != call.decision_id() || receipt.webhook_url() != call.webhook_url() => {
            Verdict::Failed(FailureReason::WrongCall)
        }
        Ok(receipt) => Verdict::Receipt(receipt),
        Err(_) if has_receipt => Verdict::Failed(FailureReason::Contradiction),
        Err(_) => Verdict::Failed(FailureReason::NoReceipt),
    }
}

/// Judges a JSON-RPC error that came instead of an answer: a denial, or no proof of anything.
pub(crate) fn judge_error(error: &ErrorData) -> Verdict {
    if !error.data.as_ref().is_none_or(|data| json::is_within(data, json::DEPTH_LIMIT)) {
        return Verdict::Unknown(UnknownReason::InnerError);
    }
    let Ok(reading) = Reading::of_error(error) else {
        return Verdict::Unknown(UnknownReason::InnerError);
    };
    match reading.denial() {
        Ok(_) if reading.has_receipt() => Verdict::Failed(FailureReason::Contradiction),
        Ok(denial) => Verdict::Denied(denial),
        Err(NotADenial::Absent) if reading.has_conflict() => Verdict::Failed(FailureReason::UnreadableConflict),
        Err(NotADenial::Absent | NotADenial::Unreadable) => Verdict::Unknown(UnknownReason::InnerError),
        Err(NotADenial::Ambiguous) => Verdict::Failed(FailureReason::AmbiguousDenial),
    }
}

pub(crate) fn denial_in_value(value: &Value) -> Result<ExecutionBlocked, NotADenial> {
    if !json::is_within(value, json::DEPTH_LIMIT) {
        return Err(NotADenial::Unreadable);
    }
    Reading::of_value(value).map_err(|_| NotADenial::Unreadable)?.denial()
}

pub(crate) fn denial_in_result(result: &CallToolResult) -> Result<ExecutionBlocked, NotADenial> {
    if !result.structured_content.as_ref().is_none_or(|value| json::is_within(value, json::DEPTH_LIMIT)) {
        return Err(NotADenial::Unreadable);
    }
    Reading::of_result(result).map_err(|_| NotADenial::Unreadable)?.denial()
}

pub(crate) fn receipt_in_result(result: &CallToolResult) -> Result<ExecutionReceipt, NotAReceipt> {
    if !result.structured_content.as_ref().is_none_or(|value| json::is_within(value, json::DEPTH_LIMIT)) {
        return Err(NotAReceipt::ABSENT);
    }
    let reading = Reading::of_result(result).map_err(|_| NotAReceipt::ABSENT)?;
    if result.is_error == Some(true) || reading.has_error() || reading.denial() != Err(NotADenial::Absent) {
        return Err(NotAReceipt::ABSENT);
    }
    reading.into_receipt(result)
}
