//! What a result of `execute_decision` means: the rules in their order, without tower and without a network.

mod echo;
mod object;
mod reading;
mod scan;
mod skip;
mod tape;
mod telling;

use rmcp::model::{CallToolResponse, CallToolResult, ErrorData};
use serde_json::Value;

use crate::{
    ExecuteDecision, ExecutionBlocked, ExecutionReceipt, NotADenial, NotAReceipt,
    error::{FailureReason, UnknownReason},
    json::{self, DEPTH_LIMIT},
};
pub(crate) use echo::Echoes;
pub(crate) use object::{Item, Kept, Object};
use reading::Reading;
pub(crate) use tape::Span;

/// What an answer to `execute_decision` means.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Executed, and this is the receipt of this very call.
    Receipt(ExecutionReceipt),
    /// A gate said no.
    Denied {
        blocked: ExecutionBlocked,
        /// The answer as a whole is an envelope with status 409: then nothing ran, whoever wrote the rest of it.
        is_conflict: bool,
    },
    /// A 4xx tool error with this status: it did not run.
    Rejected(u16),
    /// The answer is no receipt.
    Failed(FailureReason),
    /// It may have run.
    Unknown(UnknownReason),
}

/// Judges the engine's answer to `call`; `echoes` is what it might quote.
pub(crate) fn judge(response: &CallToolResponse, call: &ExecuteDecision, echoes: &Echoes) -> Verdict {
    match response {
        CallToolResponse::Complete(result) => judge_result(result, call, echoes),
        CallToolResponse::InputRequired(_) => Verdict::Failed(FailureReason::InputRequired),
        CallToolResponse::Task(_) => Verdict::Failed(FailureReason::TaskHandle),
        // rmcp's enum is open; a kind that this version doesn't know is no receipt.
        _ => Verdict::Failed(FailureReason::UnknownResult),
    }
}

fn judge_result(result: &CallToolResult, call: &ExecuteDecision, echoes: &Echoes) -> Verdict {
    if !is_within_limits(result) {
        return Verdict::Failed(FailureReason::TooDeep);
    }
    if result.result_type.as_ref().is_some_and(|kind| !kind.is_complete()) {
        return Verdict::Failed(FailureReason::UnknownResult);
    }
    let Ok(mut reading) = Reading::of_result(result, echoes) else {
        return Verdict::Unknown(UnknownReason::Unreadable);
    };
    if let Some(verdict) = judge_denial(&mut reading) {
        return verdict;
    }
    let (has_receipt, has_error) = (reading.has_receipt(), reading.has_error());
    if result.is_error == Some(true) || has_error {
        return match reading.into_copies().into_client_error(result) {
            _ if has_receipt => Verdict::Failed(FailureReason::Contradiction),
            Some(status) => Verdict::Rejected(status),
            None => Verdict::Unknown(UnknownReason::ToolError),
        };
    }
    match reading.into_copies().into_receipt() {
        Ok(receipt) if receipt.decision_id() != call.decision_id() || receipt.webhook_url() != call.webhook_url() => {
            Verdict::Failed(FailureReason::WrongCall)
        }
        Ok(receipt) => Verdict::Receipt(receipt),
        Err(_) if has_receipt => Verdict::Failed(FailureReason::Contradiction),
        Err(_) => Verdict::Failed(FailureReason::NoReceipt),
    }
}

/// What a denial in the answer means, or a conflict without one; `None` if there is neither.
fn judge_denial(reading: &mut Reading<'_>) -> Option<Verdict> {
    Some(match reading.take_denial() {
        Ok(_) if reading.has_receipt() => Verdict::Failed(FailureReason::Contradiction),
        Ok(blocked) => Verdict::Denied { blocked, is_conflict: reading.is_conflict() },
        Err(NotADenial::Ambiguous) => Verdict::Failed(FailureReason::AmbiguousDenial),
        Err(NotADenial::Unreadable) => Verdict::Unknown(UnknownReason::Unreadable),
        Err(NotADenial::Absent) if reading.has_conflict() => Verdict::Failed(FailureReason::UnreadableConflict),
        Err(NotADenial::Absent) => return None,
    })
}

/// Judges a JSON-RPC error that came instead of an answer: a denial, or no proof of anything.
pub(crate) fn judge_error(error: &ErrorData, echoes: &Echoes) -> Verdict {
    let is_shallow = error.data.as_ref().is_none_or(|data| json::is_within(data, DEPTH_LIMIT));
    let reading = is_shallow.then(|| Reading::of_error(error, echoes).ok()).flatten();
    let verdict = reading.and_then(|mut reading| judge_denial(&mut reading));
    verdict.unwrap_or(Verdict::Unknown(UnknownReason::InnerError))
}

pub(crate) fn denial_in_value(value: &Value) -> Result<ExecutionBlocked, NotADenial> {
    if !json::is_within(value, DEPTH_LIMIT) {
        return Err(NotADenial::Unreadable);
    }
    Reading::of_value(value, Echoes::NONE).map_err(|_| NotADenial::Unreadable)?.take_denial()
}

pub(crate) fn denial_in_result(result: &CallToolResult) -> Result<ExecutionBlocked, NotADenial> {
    if !is_within_limits(result) {
        return Err(NotADenial::Unreadable);
    }
    Reading::of_result(result, Echoes::NONE).map_err(|_| NotADenial::Unreadable)?.take_denial()
}

pub(crate) fn receipt_in_result(result: &CallToolResult) -> Result<ExecutionReceipt, NotAReceipt> {
    if !is_within_limits(result) {
        return Err(NotAReceipt::ABSENT);
    }
    let mut reading = Reading::of_result(result, Echoes::NONE).map_err(|_| NotAReceipt::ABSENT)?;
    let is_failure = result.is_error == Some(true) || reading.has_error() || reading.has_conflict();
    if is_failure || reading.take_denial() != Err(NotADenial::Absent) {
        return Err(NotAReceipt::ABSENT);
    }
    reading.into_copies().into_receipt()
}

/// Whether recursion may touch the values in `result`.
fn is_within_limits(result: &CallToolResult) -> bool {
    result.structured_content.as_ref().is_none_or(|value| json::is_within(value, DEPTH_LIMIT))
        && result.meta.as_ref().is_none_or(|meta| json::object_is_within(&meta.0, DEPTH_LIMIT))
}

/// Takes what is too deep out of a result, so that it can be dropped.
pub(crate) fn dismantle(result: &mut CallToolResult) {
    result.structured_content.take().into_iter().for_each(json::dismantle);
    if let Some(meta) = result.meta.take() {
        json::dismantle(Value::Object(meta.0));
    }
}
