//! Messages off the wire, read as a client and a server read them.

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use tower_algenta::{BoxError, NotAToolResponse, ToolResponse};

/// The request that a message is, if it is one.
pub(crate) fn request(message: &[u8]) -> Option<ClientRequest> {
    match serde_json::from_slice(message) {
        Ok(ClientJsonRpcMessage::Request(message)) => Some(message.request),
        _ => None,
    }
}

/// What an engine answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Response(ToolResponse),
    Failure(ErrorData),
    /// It answers no tool request.
    Unread,
}

impl Answer {
    /// `None`: the message answers nothing.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        match serde_json::from_slice(message) {
            Ok(ServerJsonRpcMessage::Response(message)) => Some(match ToolResponse::try_from(message.result) {
                Ok(response) => Self::Response(response),
                Err(NotAToolResponse { .. }) => Self::Unread,
            }),
            Ok(ServerJsonRpcMessage::Error(message)) => Some(Self::Failure(message.error)),
            _ => None,
        }
    }

    /// What the client of that engine comes to.
    pub(crate) fn give(&self) -> Result<ToolResponse, BoxError> {
        match self {
            Self::Response(response) => Ok(response.clone()),
            Self::Failure(error) => Err(error.clone().into()),
            Self::Unread => Err("the result answers no tool request".into()),
        }
    }
}
