//! What is answered: MCP to those who are let in, and to everybody how the gateway is.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use http_body_util::{BodyExt, BodyStream, Full, LengthLimitError, Limited, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONNECTION, HeaderMap, HeaderValue, WWW_AUTHENTICATE},
};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
};
use tokio::sync::watch;
use tower::ServiceExt as _;
use tower_algenta::{
    Error, ToolRequest,
    client::{CallError, CallErrorKind, ConnectError, ConnectErrorKind, Connections},
};

use crate::{callers::Callers, http::warn};

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(10);

/// How long the engine may take to show that it is there.
const PROBE: Duration = Duration::from_secs(5);

type Answer = Response<BoxBody<Bytes, Infallible>>;

pub(crate) struct Front<S> {
    pub(crate) mcp: StreamableHttpService<S, LocalSessionManager>,
    pub(crate) callers: Callers,
    pub(crate) connections: Connections,
    pub(crate) draining: Arc<AtomicBool>,
    pub(crate) closes: watch::Receiver<bool>,
    /// What /readyz said last.
    pub(crate) was_ready: AtomicBool,
    pub(crate) max_body: usize,
}

impl<S: ServerHandler> Front<S> {
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let mut answer = match request.uri().path() {
            "/mcp" | "/mcp/" => self.mcp(request).await,
            "/healthz" | "/readyz" if !matches!(*request.method(), Method::GET | Method::HEAD) => {
                plain(StatusCode::METHOD_NOT_ALLOWED, "")
            }
            "/healthz" => plain(StatusCode::OK, "ok\n"),
            "/readyz" => self.ready().await,
            _ => plain(StatusCode::NOT_FOUND, ""),
        };
        // While it drains, an answer is the last one of its connection. On one that is kept until the port closes, a client
        // could send its next call at that very moment, and would not know whether it ran.
        if self.is_draining() {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    /// Lets the caller in, and reads the body within its limits. What the request then does at the engine has limits of
    /// its own, whose errors say whether it may have run; a status would not.
    async fn mcp(&self, request: Request<Incoming>) -> Answer {
        let Some(caller) = self.callers.find(request.headers()) else {
            let mut refusal = plain(StatusCode::UNAUTHORIZED, "a valid bearer token is needed\n");
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return refusal;
        };
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(caller);
        match tokio::time::timeout(BODY, Limited::new(body, self.max_body).collect()).await {
            Ok(Ok(body)) => {
                let is_stream = parts.method == Method::GET && !resumes_a_call(&parts.headers);
                let answer = self.mcp.handle(Request::from_parts(parts, Full::new(body.to_bytes()))).await;
                if is_stream { self.until_it_closes(answer) } else { answer }
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => plain(StatusCode::PAYLOAD_TOO_LARGE, ""),
            Ok(Err(_)) => plain(StatusCode::BAD_REQUEST, ""),
            Err(_) => plain(StatusCode::REQUEST_TIMEOUT, ""),
        }
    }

    /// A session's stream of events has no end of its own, and would hold a drain up.
    fn until_it_closes(&self, answer: Answer) -> Answer {
        let mut closes = self.closes.clone();
        let end = async move { _ = closes.wait_for(|closes| *closes).await };
        answer.map(|body| BodyExt::boxed(StreamBody::new(BodyStream::new(body).take_until(Box::pin(end)))))
    }

    /// Ready is a gateway whose engine answers, be it that it wants a token.
    async fn ready(&self) -> Answer {
        if self.is_draining() {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "draining\n");
        }
        let why = match tokio::time::timeout(PROBE, self.connections.clone().oneshot(ToolRequest::list())).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error).filter(|error| !wants_token(error)).map(|error| error.to_string()),
            Err(_) => Some(format!("the engine did not answer within {PROBE:?}")),
        };
        let is_ready = why.is_none();
        if self.was_ready.swap(is_ready, Ordering::Relaxed) != is_ready {
            // For the operator; whoever asks gets to know no more than that.
            warn(&why.map_or("ready again".to_owned(), |why| format!("not ready: {why}")));
        }
        if is_ready {
            plain(StatusCode::OK, "ready\n")
        } else {
            plain(StatusCode::SERVICE_UNAVAILABLE, "the engine does not answer\n")
        }
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Whether a stream goes on with the answer to a call, and so has an end: rmcp numbers those events with the call's own
/// number behind a slash.
fn resumes_a_call(headers: &HeaderMap) -> bool {
    headers.get("last-event-id").is_some_and(|id| id.as_bytes().contains(&b'/'))
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer
}

fn wants_token(error: &Error) -> bool {
    match error {
        Error::NotSent(error) => error
            .downcast_ref::<ConnectError>()
            .is_some_and(|error| matches!(error.kind(), ConnectErrorKind::Unauthorized | ConnectErrorKind::Forbidden)),
        Error::Upstream(error) => error
            .downcast_ref::<CallError>()
            .is_some_and(|error| matches!(error.kind(), CallErrorKind::Unauthorized | CallErrorKind::Forbidden)),
        _ => false,
    }
}
