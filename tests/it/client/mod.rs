//! The client: against the stub, against servers written by hand, and without any.

mod calls;
#[cfg(target_os = "linux")]
mod child_process;
mod connecting;
mod connections;
mod endpoint;
mod legacy;
mod list_changes;
mod progress;
mod reconnect;
pub(crate) mod scripted;

use std::{error::Error as StdError, future::poll_fn, time::Duration};

use rmcp::{
    model::{CallToolResult, JsonObject},
    object,
};
use tokio::time::timeout;
use tower::{Service, ServiceExt};
use tower_algenta::{
    BearerToken, Endpoint, EngineClient, Error, ToolRequest, ToolResponse,
    client::{CallError, CallErrorKind, ConnectError, ConnectErrorKind},
};

use crate::{support::everything_printed, wait::eventually};

const TOKEN: &str = "tok-5f3759df";
/// More than any test needs, and less than it takes to lose patience.
const SOON: Duration = Duration::from_secs(10);

fn endpoint(url: impl AsRef<str>) -> Endpoint {
    Endpoint::new(url).unwrap().connect_timeout(Duration::from_secs(5)).call_timeout(Duration::from_secs(5))
}

fn with_token(url: impl AsRef<str>) -> Endpoint {
    endpoint(url).token(BearerToken::new(TOKEN).unwrap())
}

async fn connect(endpoint: Endpoint) -> EngineClient {
    timeout(SOON, EngineClient::connect(endpoint)).await.expect("connecting ends").unwrap()
}

/// The error of connecting, after a look at what it prints.
async fn connect_error(endpoint: Endpoint) -> (ConnectErrorKind, String) {
    let error = timeout(SOON, EngineClient::connect(endpoint)).await.expect("connecting ends").unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let printed = everything_printed(&error);
    assert!(!printed.contains(TOKEN), "{printed}");
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() < 300, "{text}");
    let Error::NotSent(inner) = &error else { panic!("{error:?}") };
    (inner.downcast_ref::<ConnectError>().expect("a connect error").kind(), text)
}

async fn send(client: &EngineClient, request: ToolRequest) -> Result<ToolResponse, Error> {
    timeout(SOON, client.clone().oneshot(request)).await.expect("a request ends")
}

fn simulate() -> ToolRequest {
    ToolRequest::call("simulate", object!({"scenario": "expand-to-eu"}))
}

async fn call(client: &EngineClient, request: ToolRequest) -> Result<CallToolResult, Error> {
    match send(client, request).await? {
        ToolResponse::Call(outcome) => Ok(outcome.result().expect("a complete result").clone()),
        ToolResponse::List(_) => panic!("a list"),
    }
}

async fn list(client: &EngineClient) -> Result<Vec<String>, Error> {
    match send(client, ToolRequest::list()).await? {
        ToolResponse::List(page) => Ok(page.tools.into_iter().map(|tool| tool.name.into_owned()).collect()),
        ToolResponse::Call(_) => panic!("a call"),
    }
}

/// Asserts that the request may have run, and says how it failed.
#[track_caller]
fn upstream(error: &Error) -> CallErrorKind {
    assert!(!error.is_retryable());
    match error {
        Error::Upstream(inner) => inner.downcast_ref::<CallError>().expect("a call error").kind(),
        other => panic!("{other:?}"),
    }
}

/// Asserts that the request never left, and says why.
#[track_caller]
fn not_sent(error: &Error) -> CallErrorKind {
    match error {
        Error::NotSent(inner) => inner.downcast_ref::<CallError>().expect("a call error").kind(),
        other => panic!("{other:?}"),
    }
}

async fn ready(client: &EngineClient) -> Result<(), Error> {
    let mut client = client.clone();
    poll_fn(|cx| client.poll_ready(cx)).await
}

fn find<E: StdError + 'static>(error: &Error) -> Option<&E> {
    let mut next = StdError::source(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn no_arguments() -> JsonObject {
    JsonObject::new()
}
