//! Reads what rmcp's transports report.
//!
//! What is kept of it can be shown: a body that the engine sent, which may quote anything, and the URL go.

use std::{error, iter};

use rmcp::{
    service::ClientInitializeError,
    transport::{
        DynamicTransportError,
        streamable_http_client::{AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError},
    },
};

use super::{BearerToken, ConnectError, ConnectErrorKind};
use crate::BoxError;

/// What a transport's error says about the request.
pub(super) struct Failure {
    pub(super) reason: Reason,
    pub(super) source: Option<BoxError>,
}

#[derive(Clone, Copy)]
pub(super) enum Reason {
    /// There was no connection to send it by.
    NotConnected,
    /// The answer was this HTTP status.
    Status(u16),
    /// The engine does not know the session.
    SessionLost,
    /// The answer does not fit the protocol.
    Unreadable,
    /// Anything else: it may have arrived.
    Lost,
}

impl Reason {
    pub(super) const fn status(self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self { reason, source: None }
    }
}

impl From<DynamicTransportError> for Failure {
    fn from(error: DynamicTransportError) -> Self {
        match error.error.downcast::<StreamableHttpError<reqwest::Error>>() {
            Ok(error) => (*error).into(),
            Err(error) => Self { reason: reason_in_chain(&*error), source: Some(error) },
        }
    }
}

impl From<StreamableHttpError<reqwest::Error>> for Failure {
    fn from(error: StreamableHttpError<reqwest::Error>) -> Self {
        match error {
            // rmcp's error does not name it as its source, so a walk along the chain would miss it.
            StreamableHttpError::Client(error) => {
                Self { reason: reason_of(&error), source: Some(error.without_url().into()) }
            }
            StreamableHttpError::HttpStatus(error) => Reason::Status(error.status).into(),
            StreamableHttpError::AuthRequired(_) => Reason::Status(401).into(),
            StreamableHttpError::InsufficientScope(_) => Reason::Status(403).into(),
            StreamableHttpError::UnexpectedServerResponse(text) => {
                status_in(&text).map_or(Reason::Unreadable, Reason::Status).into()
            }
            StreamableHttpError::SessionExpired => Reason::SessionLost.into(),
            StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::ResponseBodyTooLarge { .. }
            | StreamableHttpError::MissingSessionIdInResponse
            | StreamableHttpError::Deserialize(_) => Reason::Unreadable.into(),
            _ => Reason::Lost.into(),
        }
    }
}

fn reason_of(error: &reqwest::Error) -> Reason {
    if error.is_connect() || error.is_builder() {
        Reason::NotConnected
    } else {
        error.status().map_or(Reason::Lost, |status| Reason::Status(status.as_u16()))
    }
}

/// The reason in an error of a transport, or an HTTP client, that is not ours.
fn reason_in_chain(error: &(dyn error::Error + 'static)) -> Reason {
    iter::successors(Some(error), |error| error.source())
        .find_map(|error| {
            if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                Some(reason_of(error))
            } else if let Some(error) = error.downcast_ref::<HttpStatusError>() {
                Some(Reason::Status(error.status))
            } else if error.is::<AuthRequiredError>() {
                Some(Reason::Status(401))
            } else if error.is::<InsufficientScopeError>() {
                Some(Reason::Status(403))
            } else {
                None
            }
        })
        .unwrap_or(Reason::Lost)
}

/// The status in rmcp's `HTTP 404 Not Found: <body>`: for these it keeps no number.
fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

impl ConnectError {
    /// What a failed handshake means.
    pub(super) fn from_handshake(error: ClientInitializeError, token: Option<&BearerToken>) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => Failure::from(error).into(),
            // The second attempt is the one that the engine should have understood.
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::from_handshake(*fallback, token),
            ClientInitializeError::JsonRpcError(mut error) => {
                let kind = if error.code == rmcp::model::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION {
                    ConnectErrorKind::ProtocolMismatch
                } else {
                    ConnectErrorKind::Refused
                };
                if let Some(token) = token {
                    token.redact(&mut error);
                }
                Self::new(kind).with_source(error)
            }
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::new(ConnectErrorKind::ProtocolMismatch),
            ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. } => Self::new(ConnectErrorKind::NotMcp),
            _ => Self::new(ConnectErrorKind::Closed),
        }
    }
}
