//! How a request ended, in one word.

use std::{borrow::Cow, error, fmt};

use rmcp::model::ErrorData;
use serde::Serialize;

use crate::{
    CallOutcome, Error, ExecutionReceipt, ToolResponse,
    error::{FailureReason, links},
};

/// What OpenTelemetry writes for a value that is none of those that are listed.
pub(super) const OTHER: &str = "_OTHER";

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It was answered. A tool error is an answer: `error.type` is then `tool_error`.
    Allowed,
    /// A policy gate said no.
    Denied,
    /// The tool is outside the profile.
    NotAllowed,
    /// It was refused before the network.
    Invalid,
    /// It failed, or an execution was answered with something that is no receipt.
    Failed,
    /// An execution may have run.
    Unknown,
    /// It was given up before the answer came. An execution may have run.
    Cancelled,
}

impl Outcome {
    /// The word in the record.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::NotAllowed => "not_allowed",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What was asked for, as far as it decides what an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    List,
    Call,
    /// A call that acts on the world, or may: a look-alike's, too.
    Execution,
}

/// An outcome, and what is known of it.
#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) outcome: Outcome,
    pub(super) error_type: Option<Cow<'static, str>>,
    pub(super) code: Option<i32>,
    pub(super) reason: Option<String>,
    pub(super) gate: Option<&'static str>,
    /// Whether an execution may have run that has no receipt.
    pub(super) may_have_run: bool,
    pub(super) receipt: Option<&'a ExecutionReceipt>,
}

impl Ended<'_> {
    const fn well() -> Self {
        Self {
            outcome: Outcome::Allowed,
            error_type: None,
            code: None,
            reason: None,
            gate: None,
            may_have_run: false,
            receipt: None,
        }
    }

    fn badly(outcome: Outcome, error_type: impl Into<Cow<'static, str>>) -> Self {
        let may_have_run = matches!(outcome, Outcome::Unknown);
        Self { outcome, error_type: Some(error_type.into()), may_have_run, ..Self::well() }
    }
}

impl Asked {
    /// How the request ended that got `answer`.
    pub(super) fn ended<E>(self, answer: &Result<ToolResponse, E>) -> Ended<'_>
    where
        E: AsRef<dyn error::Error + Send + Sync>,
    {
        match (self, answer) {
            (Self::List, Ok(ToolResponse::List(_))) => Ended::well(),
            (Self::Call | Self::Execution, Ok(ToolResponse::Call(outcome))) => self.answered(outcome),
            (Self::List, Ok(ToolResponse::Call(_))) | (Self::Call | Self::Execution, Ok(ToolResponse::List(_))) => {
                Ended::badly(self.unsure(), "unexpected_response")
            }
            (_, Err(error)) => self.failed(error.as_ref()),
        }
    }

    /// How an operator's repeat ended.
    pub(super) fn executed(outcome: &Result<ExecutionReceipt, Error>) -> Ended<'_> {
        match outcome {
            Ok(receipt) => Ended { receipt: Some(receipt), ..Ended::well() },
            Err(error) => Self::Execution.failed(error),
        }
    }

    fn answered(self, outcome: &CallOutcome) -> Ended<'_> {
        if let Some(receipt) = outcome.receipt() {
            return Ended { receipt: Some(receipt), ..Ended::well() };
        }
        if outcome.result().is_some_and(|result| result.is_error == Some(true)) {
            return Ended::badly(Outcome::Allowed, "tool_error");
        }
        match self {
            // Nothing below has read the answer.
            Self::Execution => Ended::badly(Outcome::Unknown, "no_receipt"),
            Self::List | Self::Call => Ended::well(),
        }
    }

    fn failed(self, error: &(dyn error::Error + 'static)) -> Ended<'static> {
        let typed = Error::find(error);
        let kind = typed.map_or("upstream", Error::kind);
        let because = |outcome, reason: &dyn fmt::Display| Ended {
            reason: Some(reason.to_string()),
            ..Ended::badly(outcome, kind)
        };
        match typed {
            Some(Error::ToolNotAllowed(_)) => Ended::badly(Outcome::NotAllowed, kind),
            Some(Error::InvalidArguments(refusal)) => because(Outcome::Invalid, &refusal.reason()),
            Some(Error::Denied(denial)) => {
                Ended { gate: Some(denial.gate().known().unwrap_or(OTHER)), ..Ended::badly(Outcome::Denied, kind) }
            }
            Some(Error::ExecutionFailed(failure)) => {
                // A 4xx tells that nothing ran; any other answer tells nothing.
                let may_have_run = failure.reason() != FailureReason::ToolError;
                Ended { may_have_run, ..because(Outcome::Failed, &failure.reason()) }
            }
            Some(Error::OutcomeUnknown(unknown)) => because(Outcome::Unknown, &unknown.reason()),
            Some(Error::Rejected(_) | Error::NotSent(_)) => Ended::badly(Outcome::Failed, kind),
            Some(Error::UnexpectedResponse(_)) => Ended::badly(self.unsure(), kind),
            Some(Error::Upstream(_)) | None => match links(error).find_map(|error| error.downcast_ref::<ErrorData>()) {
                Some(data) => Ended { code: Some(data.code.0), ..Ended::badly(self.unsure(), data.code.0.to_string()) },
                None => Ended::badly(self.unsure(), kind),
            },
        }
    }

    /// What a failure means that doesn't say whether anything ran.
    const fn unsure(self) -> Outcome {
        match self {
            Self::Execution => Outcome::Unknown,
            Self::List | Self::Call => Outcome::Failed,
        }
    }
}
