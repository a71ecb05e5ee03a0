//! Failures of an execution: the engine was called, and the answer is no receipt.

use std::{error, fmt, time::Duration};

use rmcp::model::{CallToolResponse, CallToolResult};

use super::BoxError;
use crate::ExecutionReceipt;

/// The engine answered an execution with something that is no receipt.
pub struct ExecutionFailed {
    reason: FailureReason,
    response: Option<CallToolResponse>,
    receipt: Option<ExecutionReceipt>,
}

impl ExecutionFailed {
    pub(crate) const fn new(reason: FailureReason) -> Self {
        Self { reason, response: None, receipt: None }
    }

    pub(crate) fn with_response(mut self, response: CallToolResponse) -> Self {
        self.response = Some(response);
        self
    }

    pub(crate) fn with_receipt(mut self, receipt: ExecutionReceipt) -> Self {
        self.receipt = Some(receipt);
        self
    }

    /// What is wrong with the answer.
    #[must_use]
    pub const fn reason(&self) -> FailureReason {
        self.reason
    }

    /// The engine's answer, if it fits the protocol. Untrusted: never show it to a model.
    #[must_use]
    pub const fn response(&self) -> Option<&CallToolResponse> {
        self.response.as_ref()
    }

    /// The receipt that strict mode refused.
    #[must_use]
    pub const fn receipt(&self) -> Option<&ExecutionReceipt> {
        self.receipt.as_ref()
    }
}

impl fmt::Debug for ExecutionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionFailed").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl fmt::Display for ExecutionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the execution has no valid outcome: {}", self.reason)
    }
}

impl error::Error for ExecutionFailed {}

/// What is wrong with an answer to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureReason {
    /// Nothing in it is a complete receipt.
    NoReceipt,
    /// The receipt is for another decision or another webhook.
    WrongCall,
    /// It holds a receipt, and something else that contradicts it.
    Contradiction,
    /// It holds two different denials, or one whose code and gate disagree.
    AmbiguousDenial,
    /// Status 409 without a readable denial.
    UnreadableConflict,
    /// A task handle: the contract has no pending outcome.
    TaskHandle,
    /// A request for input: the contract has no third state.
    InputRequired,
    /// A kind of result that this version doesn't know.
    UnknownResult,
    /// The receipt says that the safety gates were overridden, and nobody did; strict mode only.
    SafetyOverridden,
    /// A 4xx tool error, and [`OnToolError::Abort`](crate::receipt_mapping::OnToolError::Abort) is set.
    ToolError,
    /// The answer nests more than 128 containers.
    TooDeep,
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReceipt => "the answer holds no complete receipt",
            Self::WrongCall => "the receipt is for another call",
            Self::Contradiction => "the answer contradicts itself",
            Self::AmbiguousDenial => "the answer holds a denial that is not clear",
            Self::UnreadableConflict => "the engine reported a conflict without a readable denial",
            Self::TaskHandle => "the engine answered with a task",
            Self::InputRequired => "the engine asked for input",
            Self::UnknownResult => "the kind of result is unknown",
            Self::SafetyOverridden => "the receipt reports an override that nobody made",
            Self::ToolError => "the engine refused the call",
            Self::TooDeep => "the answer nests more than 128 levels",
        })
    }
}

/// The execution may have run.
pub struct OutcomeUnknown {
    reason: UnknownReason,
    response: Option<CallToolResponse>,
    error: Option<BoxError>,
}

impl OutcomeUnknown {
    pub(crate) const fn new(reason: UnknownReason) -> Self {
        Self { reason, response: None, error: None }
    }

    pub(crate) fn with_response(mut self, response: CallToolResponse) -> Self {
        self.response = Some(response);
        self
    }

    pub(crate) fn with_error(mut self, error: BoxError) -> Self {
        self.error = Some(error);
        self
    }

    /// What is known.
    #[must_use]
    pub const fn reason(&self) -> UnknownReason {
        self.reason
    }

    /// The engine's answer, if there was one. Untrusted: never show it to a model.
    #[must_use]
    pub const fn response(&self) -> Option<&CallToolResponse> {
        self.response.as_ref()
    }

    /// The error of the inner service, if there was one. It can quote the engine: never show it to a model.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn error::Error + Send + Sync + 'static)> {
        self.error.as_deref()
    }
}

impl fmt::Debug for OutcomeUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeUnknown").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl fmt::Display for OutcomeUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the execution may have run: {}; check the decision before repeating it", self.reason)
    }
}

impl error::Error for OutcomeUnknown {}

/// What is known of an execution that may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnknownReason {
    /// No answer within this time.
    DeadlineExceeded(Duration),
    /// The inner service failed.
    InnerError,
    /// A tool error that doesn't prove that nothing ran: a 5xx, no status, no JSON.
    ToolError,
    /// The answer holds a text that is longer than 1 MiB, or that costs too much to read.
    Unreadable,
    /// The inner service answered the call with a list.
    UnexpectedResponse,
}

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlineExceeded(limit) => write!(f, "no answer within {limit:?}"),
            Self::InnerError => f.write_str("the call failed on its way"),
            Self::ToolError => f.write_str("the engine reported an error"),
            Self::Unreadable => f.write_str("the answer is too large to read"),
            Self::UnexpectedResponse => f.write_str("the answer belongs to another request"),
        }
    }
}

/// The engine refused an execution with a 4xx before running it.
#[derive(Clone)]
pub struct Rejected {
    status: u16,
    result: CallToolResult,
}

impl Rejected {
    pub(crate) const fn new(status: u16, result: CallToolResult) -> Self {
        Self { status, result }
    }

    /// The HTTP status in the engine's envelope, 400 to 499.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The tool error as the engine wrote it.
    #[must_use]
    pub const fn result(&self) -> &CallToolResult {
        &self.result
    }
}

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").field("status", &self.status).finish_non_exhaustive()
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine refused the call before running it (status {})", self.status)
    }
}

impl error::Error for Rejected {}
