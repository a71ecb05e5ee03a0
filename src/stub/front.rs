//! The HTTP side: who may come in, and what they brought.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE},
};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager};
use serde_json::Value;
use tokio::{net::TcpStream, sync::Notify};

use super::{Fault, engine::Shared, server::Server};

/// Where the MCP endpoint is.
pub(super) const PATH: &str = "/mcp";

/// A way to close the connection that a request came by. In the request's extensions, where the handler finds it.
#[derive(Clone, Debug, Default)]
pub(super) struct Hangup(Arc<Notify>);

impl Hangup {
    pub(super) fn hang_up(&self) {
        self.0.notify_one();
    }
}

/// What stands before rmcp's service: checks path and token, and copies bodies to the record on their way in.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) mcp: StreamableHttpService<Server, LocalSessionManager>,
    pub(super) shared: Arc<Shared>,
}

impl Front {
    /// Serves one connection until the peer closes it, or a fault does.
    pub(super) async fn serve(self, stream: TcpStream) {
        let hangup = Hangup::default();
        let service = hyper::service::service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(hangup.clone());
            let front = self.clone();
            async move { Ok::<_, Infallible>(front.answer(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            // An error here is a peer that went away or sent no HTTP: neither is the engine's failure.
            _ = connection => {}
            () = hangup.0.notified() => {}
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "Not Found");
        }
        if !self.admits(request.headers()) {
            return unauthorized();
        }
        let fault = self.shared.settings.fault;
        if request.method() != Method::POST {
            return distorted(fault, self.mcp.handle(request).await);
        }
        let shared = self.shared;
        let entry = shared.record.open(request.headers().clone());
        let request = request.map(|body| {
            body.map_frame(move |frame| {
                if let Some(data) = frame.data_ref() {
                    shared.record.append(entry, data);
                }
                frame
            })
        });
        if fault != Some(Fault::Unauthorized) {
            return distorted(fault, self.mcp.handle(request).await);
        }
        let (parts, body) = request.into_parts();
        match body.collect().await.map(http_body_util::Collected::to_bytes) {
            Ok(body) if is_call(&body) => unauthorized(),
            Ok(body) => self.mcp.handle(Request::from_parts(parts, Full::new(body))).await,
            Err(_) => refusal(StatusCode::BAD_REQUEST, "Bad Request"),
        }
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.shared.settings.token else { return true };
        headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.split_once(' '))
            .is_some_and(|(scheme, given)| scheme.eq_ignore_ascii_case("bearer") && given == token)
    }
}

/// Whether the body is a `tools/call`.
fn is_call(body: &[u8]) -> bool {
    serde_json::from_slice(body).is_ok_and(|message: Value| message["method"] == "tools/call")
}

/// The response, with every message of its event stream as the fault has it.
fn distorted(
    fault: Option<Fault>,
    response: Response<BoxBody<Bytes, Infallible>>,
) -> Response<BoxBody<Bytes, Infallible>> {
    let Some(fault) = fault.filter(|fault| fault.distorts()) else { return response };
    response.map(|body| {
        // rmcp's server writes an event in one frame.
        body.map_frame(move |frame| frame.map_data(|event| distorted_event(fault, &event))).boxed()
    })
}

fn distorted_event(fault: Fault, event: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(event);
    let lines: String = text.split_inclusive('\n').map(|line| distorted_line(fault, line)).collect();
    lines.into()
}

fn distorted_line(fault: Fault, line: &str) -> Cow<'_, str> {
    match line.strip_prefix("data: ").map(serde_json::from_str) {
        Some(Ok(mut message)) => {
            fault.distort(&mut message);
            format!("data: {message}\n").into()
        }
        _ => line.into(),
    }
}

fn unauthorized() -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = refusal(StatusCode::UNAUTHORIZED, "Unauthorized");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn refusal(status: StatusCode, reason: &'static str) -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(reason.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
