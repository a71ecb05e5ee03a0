//! What can go wrong around a call, and what its caller then hears.
//!
//! An execution ends as a receipt, a denial, a failure or an unknown outcome, or is certain not to have been sent. The
//! engine's own log shows it once at the most, and nothing that may have been sent is called safe to repeat.

mod clock;
mod cut;
pub(crate) mod dropped;
mod frames;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(unix)]
mod killed;
#[cfg(unix)]
mod load;
mod refused;
mod sizes;
mod slow;
mod stub;
mod unreachable;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use tower_algenta::{
    Endpoint, EngineClient, Error, ExecuteDecision, ExecutionReceipt, Profile, Toolset,
    client::{CallError, CallErrorKind},
};

use crate::{
    client::scripted::{Reply, Request, Scripted, Step},
    real_servers::Generation,
    wait::eventually,
};

const HOOK: &str = "https://hooks.example/algenta";
/// Long enough for a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(20);

/// How an execution may end, once it was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Receipt,
    Denied,
    Failed,
    Unknown,
    NotSent,
}

impl Outcome {
    /// The one that this is. What was not sent may be repeated, and nothing else.
    #[track_caller]
    fn of(result: &Result<ExecutionReceipt, Error>) -> Self {
        let outcome = match result {
            Ok(_) => Self::Receipt,
            Err(Error::Denied(_)) => Self::Denied,
            Err(Error::ExecutionFailed(_)) => Self::Failed,
            Err(Error::OutcomeUnknown(_)) => Self::Unknown,
            Err(Error::NotSent(_)) => Self::NotSent,
            Err(other) => panic!("an execution does not end like this: {other:?}"),
        };
        let is_retryable = result.as_ref().is_err_and(Error::is_retryable);
        assert_eq!(is_retryable, outcome == Self::NotSent, "{result:?}");
        outcome
    }
}

/// How the connection failed, under an unknown outcome or by itself.
#[track_caller]
fn cause(error: &Error) -> CallErrorKind {
    let under = match error {
        Error::OutcomeUnknown(unknown) => unknown.error().and_then(|error| error.downcast_ref::<Error>()),
        other => Some(other),
    };
    match under {
        Some(Error::Upstream(inner)) => inner.downcast_ref::<CallError>().map(CallError::kind),
        _ => None,
    }
    .unwrap_or_else(|| panic!("a call error: {error:?}, {under:?}"))
}

fn decision(id: &str) -> ExecuteDecision {
    ExecuteDecision::new(id, HOOK).unwrap()
}

async fn execute(tools: &Toolset, id: &str) -> Result<ExecutionReceipt, Error> {
    timeout(SOON, tools.execute(decision(id))).await.expect("an execution ends")
}

fn executing(client: &EngineClient) -> Toolset {
    Toolset::builder().profile(Profile::Execute).service(client.clone()).build()
}

/// The size of this or another process, in bytes: `VmRSS`, or `VmHWM` for the most it ever had.
#[cfg(target_os = "linux")]
fn memory(process: &str, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// An engine written by hand: a real socket, and every byte of an answer as the test wants it.
struct ByHand {
    server: Scripted,
    client: EngineClient,
    tools: Toolset,
}

impl ByHand {
    /// One that greets in this generation of the protocol. What `answer` leaves out is answered as an engine would.
    async fn start(
        generation: Generation,
        patience: Duration,
        answer: impl Fn(&Request) -> Option<Reply> + Clone + Send + 'static,
    ) -> Self {
        let server = Self::serve(generation, answer).await;
        let endpoint = Endpoint::new(&server.url).unwrap().call_timeout(patience);
        let client = timeout(SOON, EngineClient::connect(endpoint)).await.expect("connecting ends").unwrap();
        let tools = executing(&client);
        Self { server, client, tools }
    }

    async fn serve(
        generation: Generation,
        answer: impl Fn(&Request) -> Option<Reply> + Clone + Send + 'static,
    ) -> Scripted {
        Scripted::start(move |request| answer(request).unwrap_or_else(|| as_an_engine(generation, request))).await
    }

    /// How an execution ended, of which no second copy was sent.
    async fn execute(&self, id: &str) -> Outcome {
        let before = self.calls();
        let result = execute(&self.tools, id).await;
        let outcome = Outcome::of(&result);
        let sent = self.calls() - before;
        assert!(sent <= 1, "{id} was sent {sent} times");
        assert!(sent == 0 || outcome != Outcome::NotSent, "{id} was sent: {result:?}");
        outcome
    }

    /// How many calls arrived.
    fn calls(&self) -> usize {
        self.server.received("tools/call").len()
    }
}

/// The answers of an engine whose every decision can be executed.
fn as_an_engine(generation: Generation, request: &Request) -> Reply {
    match (request.method(), generation) {
        ("server/discover", Generation::Stateless) => request.discovered(),
        ("initialize", Generation::Initialize) => request.initialized("2025-11-25").header("mcp-session-id: session-1"),
        ("tools/list", _) => request.tools(&json!([])),
        ("tools/call", _) => Reply::json(&receipt(request)),
        (method, _) if method.starts_with("notifications/") => Reply::new(202, "text/plain", ""),
        ("", _) => Reply::new(405, "text/plain", ""),
        _ => Reply::new(400, "text/plain", "Bad Request"),
    }
}

/// The JSON-RPC response with the receipt for this call.
fn receipt(request: &Request) -> Value {
    let arguments = &request.body["params"]["arguments"];
    receipt_of(&request.body["id"], arguments["decision_id"].as_str().unwrap_or_default())
}

fn receipt_of(id: &Value, decision: &str) -> Value {
    let receipt = json!({
        "decision_id": decision,
        "webhook_url": HOOK,
        "execution_status": "delivered",
        "response_code": 200,
        "executed_at": "2026-11-30T00:00:00Z",
    });
    answer(id, &receipt)
}

fn denial_of(id: &Value) -> Value {
    let error =
        json!({"code": "execution_blocked_confidence", "gate": "confidence", "message": "m", "override_hint": "h"});
    answer(id, &json!({"error": error}))
}

fn answer(id: &Value, value: &Value) -> Value {
    let content = json!([{"type": "text", "text": value.to_string()}]);
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": content}})
}

/// An event stream that ends after `events`, with its connection.
fn stream(events: impl Into<Vec<u8>>) -> Reply {
    Reply::Steps(vec![Step::Bytes(head("text/event-stream", "")), Step::Bytes(events.into()), Step::Close])
}

/// The head of an answer, whose body lasts as long as the connection unless `more` says otherwise.
fn head(content_type: &str, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{more}\r\n").into()
}
