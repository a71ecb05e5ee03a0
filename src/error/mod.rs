//! What can go wrong with a governed call, so typed that a host cannot mistake it for a result.
//!
//! Hosts print errors into tool results. So the `Display`, the `Debug`, the `source()` chain and the
//! [`ErrorData`] of a refusal or a governed failure carry no text of the engine's, no argument value
//! and no name of a hidden field; what the engine wrote, and the error underneath, are behind accessors.

mod chain;
mod failure;
mod refusal;

use std::{error, fmt};

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;

use crate::{Denial, Gate};
pub(crate) use chain::links;

pub use failure::{ExecutionFailed, FailureReason, OutcomeUnknown, Rejected, UnknownReason};
pub use refusal::{InvalidArguments, InvalidReason, ToolNotAllowed, UnexpectedResponse};

/// Any error, as tower's own layers pass it on.
pub type BoxError = Box<dyn error::Error + Send + Sync>;

/// How a governed call failed.
///
/// Layers keep the error type of the service they wrap and only ask that this one converts into it, so `BoxError`, this
/// type and an enum of your own all work. [`Error::find`] finds it again under the wrappers of other layers.
#[non_exhaustive]
pub enum Error {
    /// The tool is outside the profile. The engine was not called.
    ToolNotAllowed(ToolNotAllowed),
    /// The call was refused before the network; the reason says which rule it broke.
    InvalidArguments(InvalidArguments),
    /// A policy gate said no. Nothing was executed.
    Denied(Box<Denial>),
    /// The engine answered an execution with something that is no receipt. It may have run all the same.
    ExecutionFailed(Box<ExecutionFailed>),
    /// The execution may have run. Never repeat it blindly.
    OutcomeUnknown(Box<OutcomeUnknown>),
    /// The engine refused an execution with a 4xx before running it. Only from
    /// [`Toolset::execute`](crate::Toolset::execute): elsewhere it is the ordinary tool error it is.
    Rejected(Box<Rejected>),
    /// The inner service answered a list with a call, or the other way round.
    UnexpectedResponse(UnexpectedResponse),
    /// The request never left: refused connection, DNS, TLS. Safe to repeat.
    NotSent(BoxError),
    /// The inner service failed in another way.
    Upstream(BoxError),
}

impl Error {
    /// Whether this must abort the agent's run: a denial, a failed execution or an unknown outcome.
    #[must_use]
    pub fn is_governed_failure(&self) -> bool {
        matches!(self.typed(), Self::Denied(_) | Self::ExecutionFailed(_) | Self::OutcomeUnknown(_))
    }

    /// Whether repeating the request can't execute anything twice.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.typed(), Self::NotSent(_))
    }

    /// Finds the typed error in a chain of wrappers, `Buffer`'s and any `BoxError` layer's included.
    ///
    /// ```
    /// # use tower_algenta::{BoxError, Error};
    /// let wrapped: BoxError = Box::new(Error::NotSent("connection refused".into()));
    /// assert!(Error::find(&*wrapped).is_some_and(Error::is_retryable));
    /// ```
    #[must_use]
    pub fn find<'a>(error: &'a (dyn error::Error + 'static)) -> Option<&'a Self> {
        let mut upstream = None;
        for error in links(error) {
            match error.downcast_ref::<Self>() {
                // It may hold one that says more.
                Some(wrapper @ Self::Upstream(_)) => upstream = upstream.or(Some(wrapper)),
                Some(typed) => return Some(typed),
                None => {}
            }
        }
        upstream
    }

    /// This error, or the one that says more inside [`Error::Upstream`]: a user's own error type may hold it.
    pub(crate) fn typed(&self) -> &Self {
        match self {
            Self::Upstream(_) => Self::find(self).unwrap_or(self),
            typed => typed,
        }
    }

    /// The denial, if this is one.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        match self.typed() {
            Self::Denied(denial) => Some(denial),
            _ => None,
        }
    }

    /// A word for logs and for the `error.type` of a span.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.typed() {
            Self::ToolNotAllowed(_) => "not_allowed",
            Self::InvalidArguments(_) => "invalid_arguments",
            Self::Denied(_) => "denied",
            Self::ExecutionFailed(_) => "execution_failed",
            Self::OutcomeUnknown(_) => "outcome_unknown",
            Self::Rejected(_) => "rejected",
            Self::UnexpectedResponse(_) => "unexpected_response",
            Self::NotSent(_) => "not_sent",
            Self::Upstream(_) => "upstream",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolNotAllowed(error) => error.fmt(f),
            Self::InvalidArguments(error) => error.fmt(f),
            Self::Denied(denial) => denial.fmt(f),
            Self::ExecutionFailed(error) => error.fmt(f),
            Self::OutcomeUnknown(error) => error.fmt(f),
            Self::Rejected(error) => error.fmt(f),
            Self::UnexpectedResponse(error) => error.fmt(f),
            Self::NotSent(error) => write!(f, "the request was not sent: {error}"),
            Self::Upstream(error) => write!(f, "the inner service failed: {error}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolNotAllowed(error) => error.fmt(f),
            Self::InvalidArguments(error) => error.fmt(f),
            Self::Denied(denial) => denial.fmt(f),
            Self::ExecutionFailed(error) => error.fmt(f),
            Self::OutcomeUnknown(error) => error.fmt(f),
            Self::Rejected(error) => error.fmt(f),
            Self::UnexpectedResponse(error) => error.fmt(f),
            Self::NotSent(error) => f.debug_tuple("NotSent").field(error).finish(),
            Self::Upstream(error) => f.debug_tuple("Upstream").field(error).finish(),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::NotSent(error) | Self::Upstream(error) => Some(&**error),
            // The error under a governed failure can quote the engine, so it is behind an accessor.
            _ => None,
        }
    }
}

impl AsRef<dyn error::Error + Send + Sync> for Error {
    fn as_ref(&self) -> &(dyn error::Error + Send + Sync + 'static) {
        self
    }
}

impl From<BoxError> for Error {
    /// Takes a typed error out of its box; anything else is [`Error::Upstream`].
    fn from(error: BoxError) -> Self {
        error.downcast::<Self>().map_or_else(Self::Upstream, |error| *error)
    }
}

impl From<&Error> for ErrorData {
    /// The JSON-RPC error that a gateway answers with; it says no more than [`Error`]'s `Display`.
    ///
    /// A tool outside the profile reads like one that doesn't exist.
    fn from(error: &Error) -> Self {
        const GOVERNED: ErrorCode = ErrorCode(-32000);
        let error = error.typed();
        match error {
            Error::ToolNotAllowed(_) | Error::InvalidArguments(_) => Self::invalid_params(error.to_string(), None),
            Error::Denied(denial) => Self::new(GOVERNED, denial.to_string(), Some(denial_data(denial.gate()))),
            Error::ExecutionFailed(_) | Error::OutcomeUnknown(_) | Error::Rejected(_) => {
                Self::new(GOVERNED, error.to_string(), Some(json!({"error": {"code": error.kind()}})))
            }
            Error::UnexpectedResponse(_) => Self::internal_error(error.to_string(), None),
            Error::NotSent(_) | Error::Upstream(_) => Self::internal_error("the call of the engine failed", None),
        }
    }
}

/// The code and the gate, if the contract names it: an unknown gate's name is the engine's text.
fn denial_data(gate: &Gate) -> serde_json::Value {
    match gate.known() {
        Some(gate) => json!({"error": {"code": crate::denial::code_of(gate), "gate": gate}}),
        None => json!({"error": {"code": "execution_blocked"}}),
    }
}
