//! What can go wrong between this process and an engine.

use std::{error, fmt, process::ExitStatus, time::Duration};

use super::failure::{Failure, Reason};
use crate::BoxError;

/// No connection to the engine came about. It is inside [`Error::NotSent`](crate::Error::NotSent): no tool was called.
pub struct ConnectError {
    kind: ConnectErrorKind,
    // Without its query. None for a transport of the caller's own.
    url: Option<Box<str>>,
    status: Option<u16>,
    source: Option<BoxError>,
}

/// Why no connection to the engine came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// Nothing listens there, the name is unknown, or the TLS handshake failed.
    Unreachable,
    /// Nothing came of it within [`Endpoint::connect_timeout`](super::Endpoint::connect_timeout), which was this long.
    TimedOut(Duration),
    /// The engine wants a valid token: HTTP 401.
    Unauthorized,
    /// The engine does not let this token in: HTTP 403.
    Forbidden,
    /// What answers there is no MCP server.
    NotMcp,
    /// The URL leads to another one, which is not followed.
    Redirected,
    /// The engine can't serve now: HTTP 429 or 5xx.
    Unavailable,
    /// The engine answered the handshake with a JSON-RPC error, which is the [`source`](error::Error::source).
    Refused,
    /// The engine speaks no protocol version from 2025-03-26 to 2026-07-28.
    ProtocolMismatch,
    /// The connection closed before the handshake was over.
    Closed,
    /// The engine's program could not be started.
    NotStarted,
    /// The engine's process ended before the handshake was over.
    Exited(ExitStatus),
    /// The HTTP client could not be set up.
    Setup,
    /// An earlier attempt failed, and the next is due after this long.
    Waiting(Duration),
}

impl ConnectError {
    pub(super) const fn new(kind: ConnectErrorKind) -> Self {
        Self { kind, url: None, status: None, source: None }
    }

    pub(super) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(super) fn at(mut self, url: String) -> Self {
        self.url = Some(url.into());
        self
    }

    /// What to look at when the other end said nothing that helps.
    const fn question(&self) -> &'static str {
        match self.url {
            Some(_) => "is its URL an MCP endpoint?",
            None => "does the other end speak MCP, and nothing else?",
        }
    }

    /// Why there is no connection.
    #[must_use]
    pub const fn kind(&self) -> ConnectErrorKind {
        self.kind
    }

    /// The HTTP status of the answer, if it had one that matters.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        self.status
    }
}

impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.reason {
            Reason::NotConnected => ConnectErrorKind::Unreachable,
            Reason::Status(401) => ConnectErrorKind::Unauthorized,
            Reason::Status(403) => ConnectErrorKind::Forbidden,
            Reason::Status(300..=399) => ConnectErrorKind::Redirected,
            Reason::Status(429 | 500..=599) => ConnectErrorKind::Unavailable,
            Reason::Status(_) | Reason::Unreadable => ConnectErrorKind::NotMcp,
            Reason::SessionLost | Reason::Lost => ConnectErrorKind::Closed,
        };
        Self { kind, url: None, status: failure.reason.status(), source: failure.source }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.url {
            Some(url) => write!(f, "the engine at {url} ")?,
            None => f.write_str("the engine ")?,
        }
        match self.kind {
            ConnectErrorKind::Unreachable => {
                f.write_str("cannot be reached")?;
                if let Some(root) = self.source.as_deref().and_then(root) {
                    write!(f, " ({root})")?;
                }
                f.write_str(": is it running there? `ALGENTA_BASE_URL` or `Endpoint::new` says where it is")
            }
            ConnectErrorKind::TimedOut(limit) => {
                write!(f, "did not complete the handshake within {limit:?}: {}", self.question())?;
                f.write_str(" Raise the connect timeout if it is slow")
            }
            ConnectErrorKind::Unauthorized => f.write_str(
                "wants a valid token (HTTP 401): set it with `Endpoint::token`, or in `ALGENTA_API_KEY`, which \
                 `Endpoint::resolve` reads",
            ),
            ConnectErrorKind::Forbidden => f.write_str(
                "does not let this token in (HTTP 403): check what the one from `Endpoint::token`, or from \
                 `ALGENTA_API_KEY`, permits",
            ),
            ConnectErrorKind::NotMcp => {
                f.write_str("does not answer like an MCP server")?;
                if let Some(status) = self.status {
                    write!(f, " (HTTP {status})")?;
                }
                f.write_str(": check the URL, from `ALGENTA_BASE_URL` or `Endpoint::new`; its path is usually /mcp")
            }
            ConnectErrorKind::Redirected => {
                f.write_str("answers with a redirect")?;
                if let Some(status) = self.status {
                    write!(f, " (HTTP {status})")?;
                }
                f.write_str(
                    ", which is not followed: set the URL, `ALGENTA_BASE_URL` or `Endpoint::new`, to where it leads",
                )
            }
            ConnectErrorKind::Unavailable => {
                f.write_str("cannot serve now")?;
                if let Some(status) = self.status {
                    write!(f, " (HTTP {status})")?;
                }
                f.write_str(": look at its log, or try again later")
            }
            ConnectErrorKind::Refused => f.write_str("refused the handshake: look at its log"),
            ConnectErrorKind::ProtocolMismatch => {
                f.write_str("speaks no protocol version from 2025-03-26 to 2026-07-28: upgrade it, or this crate")
            }
            ConnectErrorKind::Closed => {
                write!(f, "closed the connection during the handshake: {}", self.question())
            }
            ConnectErrorKind::NotStarted => {
                f.write_str("could not be started")?;
                if let Some(root) = self.source.as_deref().and_then(root) {
                    write!(f, " ({root})")?;
                }
                f.write_str(": is the command right, and the working folder?")
            }
            ConnectErrorKind::Exited(status) => {
                write!(f, "ended during the handshake ({status}): its standard error may say why")
            }
            ConnectErrorKind::Waiting(left) => {
                write!(
                    f,
                    "could not be connected to, and the next attempt is in {left:?}: the error before this says why"
                )
            }
            ConnectErrorKind::Setup => {
                f.write_str("was not called: the HTTP client could not be set up; check the system's certificates")
            }
        }
    }
}

impl fmt::Debug for ConnectError {
    /// Shows the message, too: it is what a program prints that returns the error from `main`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectError")
            .field("message", &format_args!("{self}"))
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A request to a connected engine failed, other than by the engine's own answer.
///
/// It is inside [`Error::NotSent`](crate::Error::NotSent) if the request never left, else inside
/// [`Error::Upstream`](crate::Error::Upstream).
pub struct CallError {
    kind: CallErrorKind,
    exit: Option<ExitStatus>,
    source: Option<BoxError>,
}

/// How a request to a connected engine failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// No connection could be opened. The request never left.
    Unreachable,
    /// The client is closed. The request never left.
    Closed,
    /// There was no answer within the call timeout, which was this long. The request was cancelled, but may have run.
    TimedOut(Duration),
    /// The engine wants a valid token: HTTP 401.
    Unauthorized,
    /// The engine does not let this token do that: HTTP 403.
    Forbidden,
    /// The answer was this HTTP status.
    Status(u16),
    /// The engine no longer knows the session. It is not renewed by itself, since that would send the request again.
    SessionLost,
    /// The answer does not fit the protocol.
    Unreadable,
    /// The request was cancelled from elsewhere.
    Cancelled,
    /// The connection failed while the request was under way.
    Lost,
    /// Nobody tells this client when the list of tools changes.
    NoListChanges,
}

impl CallError {
    pub(super) const fn new(kind: CallErrorKind) -> Self {
        Self { kind, exit: None, source: None }
    }

    pub(crate) fn no_list_changes() -> crate::Error {
        Self::new(CallErrorKind::NoListChanges).into()
    }

    #[cfg(feature = "child-process")]
    pub(super) const fn with_exit(mut self, exit: Option<ExitStatus>) -> Self {
        self.exit = exit;
        self
    }

    /// How the request failed.
    #[must_use]
    pub const fn kind(&self) -> CallErrorKind {
        self.kind
    }

    /// What the engine's process ended with, if it is a child process that has.
    #[must_use]
    pub const fn exit_status(&self) -> Option<ExitStatus> {
        self.exit
    }

    /// Whether the engine refused the token, or the lack of one.
    #[must_use]
    pub const fn is_auth(&self) -> bool {
        matches!(self.kind, CallErrorKind::Unauthorized | CallErrorKind::Forbidden)
    }

    /// Whether it is certain that the request never left.
    const fn is_not_sent(&self) -> bool {
        matches!(self.kind, CallErrorKind::Unreachable | CallErrorKind::Closed)
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.reason {
            Reason::NotConnected => CallErrorKind::Unreachable,
            Reason::Status(401) => CallErrorKind::Unauthorized,
            Reason::Status(403) => CallErrorKind::Forbidden,
            Reason::Status(status) => CallErrorKind::Status(status),
            Reason::SessionLost => CallErrorKind::SessionLost,
            Reason::Unreadable => CallErrorKind::Unreadable,
            Reason::Lost => CallErrorKind::Lost,
        };
        Self { kind, exit: None, source: failure.source }
    }
}

impl From<CallError> for crate::Error {
    fn from(error: CallError) -> Self {
        if error.is_not_sent() { Self::NotSent(Box::new(error)) } else { Self::Upstream(Box::new(error)) }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CallErrorKind::Unreachable => {
                f.write_str("the engine cannot be reached")?;
                if let Some(root) = self.source.as_deref().and_then(root) {
                    write!(f, " ({root})")?;
                }
                f.write_str(": is it still running?")
            }
            CallErrorKind::Closed => match self.exit {
                Some(status) => write!(f, "the engine's process has ended ({status}): start it again"),
                None => f.write_str("this client is closed: connect again"),
            },
            CallErrorKind::TimedOut(limit) => write!(f, "the engine did not answer within {limit:?}"),
            CallErrorKind::Unauthorized => f.write_str(
                "the engine wants a valid token (HTTP 401): set it with `Endpoint::token`, or in `ALGENTA_API_KEY`",
            ),
            CallErrorKind::Forbidden => {
                f.write_str("the engine does not let this token do that (HTTP 403): check what it permits")
            }
            CallErrorKind::Status(status) => write!(f, "the engine answered with HTTP {status}"),
            CallErrorKind::SessionLost => f.write_str("the engine no longer knows the session: connect again"),
            CallErrorKind::Unreadable => f.write_str("the engine's answer does not fit the protocol"),
            CallErrorKind::Cancelled => f.write_str("the request was cancelled"),
            CallErrorKind::NoListChanges => f.write_str(
                "changes of the list can't be awaited: the engine does not tell of them, or tells another handler",
            ),
            CallErrorKind::Lost => match self.exit {
                Some(status) => write!(f, "the engine's process ended ({status}) before its answer came"),
                None => f.write_str("the connection to the engine was lost before its answer came"),
            },
        }
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallError")
            .field("kind", &self.kind)
            .field("exit", &self.exit)
            .field("source", &self.source)
            .finish()
    }
}

impl error::Error for CallError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The deepest cause, which is the one that says something: "connection refused", not "error sending request".
fn root<'a>(error: &'a (dyn error::Error + Send + Sync + 'static)) -> Option<&'a (dyn error::Error + 'static)> {
    std::iter::successors(Some(error as &'a (dyn error::Error + 'static)), |error| error.source()).last()
}
