//! One call of `execute_decision`, from its admission to its outcome.

use std::{
    borrow::Cow,
    error, fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project::pin_project;
use rmcp::model::{CallToolResponse, ErrorData, JsonObject};
use tokio::time::Sleep;

use crate::{
    BoxError, CallOutcome, Denial, Error, ExecuteDecision, ExecutionBlocked, ExecutionReceipt, ToolResponse,
    denial::Overrides,
    error::{
        ExecutionFailed, FailureReason, InvalidArguments, InvalidReason, OutcomeUnknown, Rejected, UnknownReason, links,
    },
    events, json,
    outcome::{self, Echoes, Verdict},
};

/// What happens to a tool error of `execute_decision` whose 4xx status proves that nothing ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnToolError {
    /// It passes on as the ordinary tool error it is, with `isError` set.
    #[default]
    Pass,
    /// It is [`Error::ExecutionFailed`].
    Abort,
}

/// The settings of the mapping.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) deadline: Option<Duration>,
    pub(crate) on_tool_error: OnToolError,
    pub(crate) strict: bool,
}

impl Rules {
    pub(crate) const fn new() -> Self {
        Self { deadline: None, on_tool_error: OnToolError::Pass, strict: false }
    }
}

/// A call of `execute_decision` that is under way.
#[pin_project]
pub(crate) struct Governed {
    decision: ExecuteDecision,
    wire_name: Cow<'static, str>,
    granted: Overrides,
    echoes: Echoes,
    rules: Rules,
    #[pin]
    deadline: Option<Sleep>,
}

impl Governed {
    pub(crate) fn new(
        decision: ExecuteDecision,
        wire_name: Cow<'static, str>,
        granted: Overrides,
        echoes: Echoes,
        rules: Rules,
    ) -> Self {
        Self { decision, wire_name, granted, echoes, rules, deadline: rules.deadline.map(tokio::time::sleep) }
    }

    /// A model's call with `arguments`, if they are those of an execution.
    pub(crate) fn admit(
        arguments: &JsonObject,
        wire_name: Cow<'static, str>,
        rules: Rules,
    ) -> Result<Self, InvalidArguments> {
        // What follows recurses.
        if !json::object_is_within(arguments, json::DEPTH_LIMIT) {
            return Err(InvalidArguments::new(InvalidReason::TooDeep));
        }
        let decision = ExecuteDecision::from_arguments(arguments)?;
        Ok(Self::new(decision, wire_name, Overrides::NONE, Echoes::of(arguments), rules))
    }

    /// The error of the deadline, once it has passed.
    pub(crate) fn poll_deadline(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Error> {
        let this = self.project();
        match (this.deadline.as_pin_mut(), this.rules.deadline) {
            (Some(sleep), Some(limit)) => {
                sleep.poll(cx).map(|()| unknown(OutcomeUnknown::new(UnknownReason::DeadlineExceeded(limit))))
            }
            _ => Poll::Pending,
        }
    }

    /// What the inner service's answer means for this call.
    pub(crate) fn settle<E>(&self, answer: Result<ToolResponse, E>) -> Result<ToolResponse, E>
    where
        E: From<Error> + Into<BoxError> + AsRef<dyn error::Error + Send + Sync>,
    {
        match answer {
            Ok(ToolResponse::Call(outcome)) => {
                // A layer below has told of what it found.
                let is_told = outcome.receipt().is_some();
                self.settle_response(outcome.into_response(), is_told).map(ToolResponse::Call).map_err(E::from)
            }
            Ok(ToolResponse::List(_)) => Err(unknown(OutcomeUnknown::new(UnknownReason::UnexpectedResponse)).into()),
            Err(error) => Err(self.settle_error(error)),
        }
    }

    /// The receipt that the inner service's answer holds, or why there is none.
    pub(crate) fn execution(&self, answer: Result<ToolResponse, Error>) -> Result<ExecutionReceipt, Error> {
        let outcome = match self.settle(answer)? {
            ToolResponse::Call(outcome) => outcome,
            ToolResponse::List(_) => return Err(unknown(OutcomeUnknown::new(UnknownReason::UnexpectedResponse))),
        };
        let (response, receipt) = outcome.into_parts();
        receipt.ok_or_else(|| match (outcome::judge(&response, &self.decision, &self.echoes), response) {
            (Verdict::Rejected(status), CallToolResponse::Complete(result)) => {
                Error::Rejected(Box::new(Rejected::new(status, result)))
            }
            (_, response) => failed(ExecutionFailed::new(FailureReason::NoReceipt).with_response(response)),
        })
    }

    fn settle_response(&self, mut response: CallToolResponse, is_told: bool) -> Result<CallOutcome, Error> {
        match outcome::judge(&response, &self.decision, &self.echoes) {
            Verdict::Receipt(receipt) if receipt.safety_overridden() && !self.granted.overrides_safety() => {
                if !is_told {
                    events::safety_overridden();
                }
                if self.rules.strict {
                    let failure = ExecutionFailed::new(FailureReason::SafetyOverridden).with_receipt(receipt);
                    return Err(failed(failure.with_response(response)));
                }
                Ok(CallOutcome::executed(response, receipt))
            }
            Verdict::Receipt(receipt) => Ok(CallOutcome::executed(response, receipt)),
            Verdict::Denied { blocked, is_conflict } => Err(self.denied(blocked, is_conflict)),
            Verdict::Rejected(_) => match self.rules.on_tool_error {
                OnToolError::Pass => {
                    if let CallToolResponse::Complete(result) = &mut response {
                        result.is_error = Some(true);
                    }
                    Ok(CallOutcome::new(response))
                }
                OnToolError::Abort => {
                    Err(failed(ExecutionFailed::new(FailureReason::ToolError).with_response(response)))
                }
            },
            Verdict::Failed(reason) => {
                if reason == FailureReason::TooDeep
                    && let CallToolResponse::Complete(result) = &mut response
                {
                    outcome::dismantle(result);
                }
                Err(failed(ExecutionFailed::new(reason).with_response(response)))
            }
            Verdict::Unknown(reason) => Err(unknown(OutcomeUnknown::new(reason).with_response(response))),
        }
    }

    fn denied(&self, blocked: ExecutionBlocked, is_conflict: bool) -> Error {
        let denial = Denial::new(blocked, self.decision.clone(), self.wire_name.clone(), self.granted);
        Error::Denied(Box::new(denial.forgeable(self.echoes.may_forge() && !is_conflict)))
    }

    fn settle_error<E>(&self, error: E) -> E
    where
        E: From<Error> + Into<BoxError> + AsRef<dyn error::Error + Send + Sync>,
    {
        let view: &(dyn error::Error + 'static) = error.as_ref();
        match Error::find(view) {
            Some(Error::UnexpectedResponse(_)) => {
                let failure = OutcomeUnknown::new(UnknownReason::UnexpectedResponse).with_error(error.into());
                return unknown(failure).into();
            }
            // Typed by a layer below: a refusal, an outcome, or a request that never left.
            Some(
                Error::ToolNotAllowed(_)
                | Error::InvalidArguments(_)
                | Error::Denied(_)
                | Error::ExecutionFailed(_)
                | Error::OutcomeUnknown(_)
                | Error::Rejected(_)
                | Error::NotSent(_),
            ) => return error,
            Some(Error::Upstream(_)) | None => {}
        }
        let data = links(view).find_map(|error| error.downcast_ref::<ErrorData>());
        let verdict = data.map(|data| outcome::judge_error(data, &self.echoes));
        match verdict {
            Some(Verdict::Denied { blocked, is_conflict }) => self.denied(blocked, is_conflict).into(),
            Some(Verdict::Failed(reason)) => failed(ExecutionFailed::new(reason)).into(),
            _ => unknown(OutcomeUnknown::new(UnknownReason::InnerError).with_error(error.into())).into(),
        }
    }
}

impl fmt::Debug for Governed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Governed").field("rules", &self.rules).finish_non_exhaustive()
    }
}

fn failed(failure: ExecutionFailed) -> Error {
    Error::ExecutionFailed(Box::new(failure))
}

fn unknown(failure: OutcomeUnknown) -> Error {
    Error::OutcomeUnknown(Box::new(failure))
}
