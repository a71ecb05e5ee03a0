//! The two responses that leave a governed stack.

use std::{error, fmt};

use rmcp::model::{CallToolResponse, CallToolResult, ListToolsResult, ServerResult};

use crate::ExecutionReceipt;

/// The answer to a [`ToolRequest`](crate::ToolRequest).
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a custom layer matches two arms and the compiler checks it")]
pub enum ToolResponse {
    /// One page of the list of tools.
    List(ListToolsResult),
    /// How a call ended.
    Call(CallOutcome),
}

/// How a call ended: what the engine answered, and the receipt if the answer is one.
///
/// Only [`ReceiptMapping`](crate::ReceiptMapping) puts a receipt there, after it has checked it against the call.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    response: CallToolResponse,
    // One word for the calls that have no receipt, which are nearly all.
    receipt: Option<Box<ExecutionReceipt>>,
}

impl CallOutcome {
    /// An outcome without a receipt.
    #[must_use]
    pub const fn new(response: CallToolResponse) -> Self {
        Self { response, receipt: None }
    }

    pub(crate) fn executed(response: CallToolResponse, receipt: ExecutionReceipt) -> Self {
        Self { response, receipt: Some(Box::new(receipt)) }
    }

    /// What the engine answered.
    #[must_use]
    pub const fn response(&self) -> &CallToolResponse {
        &self.response
    }

    /// The result of a completed call; `None` for a task handle or a request for input.
    #[must_use]
    pub const fn result(&self) -> Option<&CallToolResult> {
        match &self.response {
            CallToolResponse::Complete(result) => Some(result),
            _ => None,
        }
    }

    /// The receipt of an execution.
    #[must_use]
    pub fn receipt(&self) -> Option<&ExecutionReceipt> {
        self.receipt.as_deref()
    }

    /// Unwraps the answer.
    #[must_use]
    pub fn into_response(self) -> CallToolResponse {
        self.response
    }

    /// Unwraps the result of a completed call; `None` for a task handle or a request for input.
    #[must_use]
    pub fn into_result(self) -> Option<CallToolResult> {
        match self.response {
            CallToolResponse::Complete(result) => Some(result),
            _ => None,
        }
    }

    /// Unwraps the receipt.
    #[must_use]
    pub fn into_receipt(self) -> Option<ExecutionReceipt> {
        self.receipt.map(|receipt| *receipt)
    }

    /// Unwraps both.
    #[must_use]
    pub fn into_parts(self) -> (CallToolResponse, Option<ExecutionReceipt>) {
        (self.response, self.receipt.map(|receipt| *receipt))
    }
}

impl From<CallToolResponse> for CallOutcome {
    fn from(response: CallToolResponse) -> Self {
        Self::new(response)
    }
}

impl From<CallToolResult> for CallOutcome {
    fn from(result: CallToolResult) -> Self {
        Self::new(result.into())
    }
}

impl From<ListToolsResult> for ToolResponse {
    fn from(result: ListToolsResult) -> Self {
        Self::List(result)
    }
}

impl From<CallOutcome> for ToolResponse {
    fn from(outcome: CallOutcome) -> Self {
        Self::Call(outcome)
    }
}

impl From<CallToolResponse> for ToolResponse {
    fn from(response: CallToolResponse) -> Self {
        Self::Call(response.into())
    }
}

impl From<CallToolResult> for ToolResponse {
    fn from(result: CallToolResult) -> Self {
        Self::Call(result.into())
    }
}

impl From<ToolResponse> for ServerResult {
    fn from(response: ToolResponse) -> Self {
        match response {
            ToolResponse::List(result) => Self::ListToolsResult(result),
            ToolResponse::Call(outcome) => outcome.into_response().into(),
        }
    }
}

impl TryFrom<ServerResult> for ToolResponse {
    type Error = NotAToolResponse;

    /// Takes a list of tools and the three answers to a call, and refuses everything else.
    ///
    /// One odd tool turns a list into a `CustomResult`; it is refused, never passed on unread.
    fn try_from(result: ServerResult) -> Result<Self, NotAToolResponse> {
        match result {
            ServerResult::ListToolsResult(result) => Ok(Self::List(result)),
            ServerResult::CallToolResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result).into()),
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result).into()),
            other => Err(NotAToolResponse { result: Box::new(other) }),
        }
    }
}

/// The result answers neither a list of tools nor a call of one.
pub struct NotAToolResponse {
    result: Box<ServerResult>,
}

impl NotAToolResponse {
    /// The result, unchanged. Nothing has governed it.
    #[must_use]
    pub fn into_result(self) -> ServerResult {
        *self.result
    }
}

impl fmt::Debug for NotAToolResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotAToolResponse").finish_non_exhaustive()
    }
}

impl fmt::Display for NotAToolResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the result answers neither a list of tools nor a call of one")
    }
}

impl error::Error for NotAToolResponse {}
