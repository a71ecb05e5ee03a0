//! What a client is told when the stack fails.

use rmcp::{
    ErrorData,
    model::{CallToolResponse, CallToolResult, ContentBlock},
};

use crate::{Error, error::links};

/// The form in which a denial, a failed execution and an unknown outcome reach the client of a
/// [`ToolServer`](super::ToolServer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDenial {
    /// A JSON-RPC error: no client takes it for a result.
    #[default]
    Error,
    /// A result with `isError`, for clients that cannot read errors. The model sees it: that the call failed, and by
    /// which gate, without the engine's words. Whether the run ends is then up to the client.
    ToolError,
}

impl OnDenial {
    /// What a client hears of a call that failed.
    pub(super) fn answer(self, error: &Error) -> Result<CallToolResponse, ErrorData> {
        match self {
            Self::ToolError if error.is_governed_failure() => {
                // Not `error`'s own text: a user's error around the typed one may say anything.
                Ok(CallToolResult::error(vec![ContentBlock::text(ErrorData::from(error).message)]).into())
            }
            Self::Error | Self::ToolError => Err(error_data(error)),
        }
    }
}

/// The error as JSON-RPC has it. An engine's own keeps its code, which a client may act on, and loses its words.
pub(super) fn error_data(error: &Error) -> ErrorData {
    let mut told = ErrorData::from(error);
    if let Some(engines) = engines_own(error) {
        told.code = engines.code;
    }
    told
}

/// The JSON-RPC error that the engine answered with, if that is what failed.
pub(super) fn engines_own(error: &Error) -> Option<&ErrorData> {
    match Error::find(error) {
        Some(Error::Upstream(_)) => links(error).find_map(|error| error.downcast_ref()),
        _ => None,
    }
}
