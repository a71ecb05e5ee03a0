//! Callers that leave, at every turn of the runtime from the start of a call to its end.
//!
//! One thread runs it all: the caller, the client's tasks, the engine. After each turn, in which every task that was
//! woken gets its poll, the next run drops the call. So each state that a caller can leave is left once.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use rmcp::{
    ServiceExt as _,
    model::{CallToolResult, ClientConfig, ContentBlock, ListToolsResult},
    object,
    service::{ClientLifecycleMode, serve_client_with_lifecycle},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    time::timeout,
};
use tower::{Layer as _, Service, ServiceBuilder, service_fn};
use tower_algenta::{
    AuditLayer, AuditRecord, BoxError, Endpoint, EngineClient, Error, GovernanceLayer, Profile, StubEngine,
    ToolRequest, ToolResponse, ToolServer, Toolset, audit, client::Connections,
};

use crate::audit::Kept;

use super::{HOOK, Outcome, SOON, decision};

/// More turns than a call takes.
const MANY: usize = 5000;

/// A runtime of one thread that looks at its sockets at every turn.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().event_interval(1).enable_all().build().unwrap();
    runtime.block_on(test);
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Gives the call this many turns, polls it in those for which it was woken, and drops it.
async fn after<T>(turns: usize, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    let woken = Arc::new(Woken(true.into()));
    for _ in 0..turns {
        if woken.0.swap(false, Ordering::SeqCst)
            && let Poll::Ready(answer) = call.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&woken))))
        {
            return Some(answer);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Drops an execution after 0, 1, 2… turns, until one has ended before that. `client` makes the service under test
/// anew, or hands out the one that there is; one request at a time may pass it.
pub(crate) async fn at_every_turn<S>(name: &str, mut client: impl FnMut() -> S, executed: impl Fn(&str) -> usize)
where
    S: Service<ToolRequest, Response = ToolResponse, Error = Error, Future: Send> + Clone + Send + Sync + 'static,
{
    let records = Kept::default();
    let (mut without, mut unheard) = (0, 0);
    for turns in 0..MANY {
        let stack = AuditLayer::new(records.clone()).layer(GovernanceLayer::new(Profile::Execute).layer(client()));
        let tools = Toolset::from_governed_stack(stack);
        let id = format!("decision-{turns}");
        let answer = after(turns, tools.execute(decision(&id))).await;

        let written = records.take();
        // Before its first poll it is nobody's call.
        assert_eq!(written.len(), turns.min(1), "{name}, {turns}: records");
        // The next call passes: whatever the one before held, it has given back.
        let next = timeout(SOON, tools.call("simulate", object!({"scenario": "s"}))).await;
        next.unwrap_or_else(|_| panic!("{name}, {turns}: the next call hangs")).unwrap();
        records.take();
        let ran = executed(&id);
        assert!(ran <= 1, "{name}, {turns}: it ran {ran} times");
        if let Some(answer) = answer {
            assert_eq!((Outcome::of(&answer), ran), (Outcome::Receipt, 1), "{name}, {turns}");
            assert_eq!(written[0].outcome(), audit::Outcome::Allowed, "{name}, {turns}");
            assert!(without > 0 && unheard > 0, "{name}: {without} before it ran, {unheard} after");
            println!("{name}: left at {turns} points, {without} of them before the engine ran, {unheard} after");
            return;
        }
        assert!(written.iter().all(|record| record.outcome() == audit::Outcome::Cancelled), "{name}, {turns}");
        assert!(written.iter().all(AuditRecord::may_have_run), "{name}, {turns}");
        *(if ran == 0 { &mut without } else { &mut unheard }) += 1;
    }
    panic!("{name}: no call ended");
}

#[test]
fn a_caller_over_http() {
    run(async {
        let engine = StubEngine::start().await.unwrap();
        let endpoint = Endpoint::new(engine.url()).unwrap().max_concurrent_requests(1);
        let client = EngineClient::connect(endpoint).await.unwrap();
        at_every_turn("HTTP, without a session", || client.clone(), |id| engine.executed(id)).await;
    });
}

#[test]
fn a_caller_over_http_in_a_session() {
    run(async {
        let engine = StubEngine::start().await.unwrap();
        let config = StreamableHttpClientTransportConfig::with_uri(engine.url())
            .max_concurrent_requests(1)
            .reinit_on_expired_session(false);
        let transport = StreamableHttpClientTransport::from_config(config);
        let service = serve_client_with_lifecycle(ClientConfig::default(), transport, ClientLifecycleMode::Initialize);
        let client = EngineClient::from_service(service.await.unwrap());
        at_every_turn("HTTP, in a session", || client.clone(), |id| engine.executed(id)).await;
    });
}

/// The call makes its connection first, which is the next call's as well.
#[test]
fn a_caller_that_has_to_connect() {
    run(async {
        let engine = StubEngine::start().await.unwrap();
        let endpoint = Endpoint::new(engine.url()).unwrap().max_concurrent_requests(1);
        at_every_turn("HTTP, not yet connected", || Connections::shared(endpoint.clone()), |id| engine.executed(id))
            .await;
    });
}

/// An engine over a pipe that counts what it executes.
fn counting(
    executed: &Arc<Mutex<Vec<String>>>,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + Clone + Send + Sync + 'static
{
    let executed = Arc::clone(executed);
    service_fn(move |request: ToolRequest| {
        let executed = Arc::clone(&executed);
        async move {
            tokio::task::yield_now().await;
            let ToolRequest::Call(call) = &request else { return Ok(ToolResponse::List(ListToolsResult::default())) };
            let arguments = call.params.arguments.clone().unwrap_or_default();
            let id = arguments.get("decision_id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
            executed.lock().unwrap().push(id.clone());
            tokio::task::yield_now().await;
            let receipt = json!({"decision_id": id, "webhook_url": HOOK, "execution_status": "delivered",
                "executed_at": "2026-11-30T00:00:00Z"});
            Ok::<_, BoxError>(CallToolResult::success(vec![ContentBlock::text(receipt.to_string())]).into())
        }
    })
}

#[test]
fn a_caller_over_a_pipe() {
    run(async {
        let executed = Arc::new(Mutex::new(Vec::new()));
        let (near, far) = tokio::io::duplex(64 * 1024);
        let server = ToolServer::new(counting(&executed));
        let server = tokio::spawn(async move { Box::pin(server.serve(far)).await.unwrap().waiting().await.unwrap() });
        let client = EngineClient::serve(near).await.unwrap();
        let ran = |id: &str| executed.lock().unwrap().iter().filter(|executed| *executed == id).count();
        at_every_turn("a pipe", || client.clone(), ran).await;
        client.close().await.unwrap();
        timeout(SOON, server).await.expect("the server ends").unwrap();
    });
}

/// The other side: a client of a `ToolServer` that sends `bytes` bytes of its call, or all, and hangs up after `turns`.
/// The answer, if it came before that, and how often the decision ran.
async fn hangs_up(bytes: Option<usize>, turns: usize) -> (Option<String>, usize) {
    let executed = Arc::new(Mutex::new(Vec::new()));
    let stack = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(counting(&executed));
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = ToolServer::new(stack);
    let server = tokio::spawn(async move { Box::pin(server.serve(far)).await.unwrap().waiting().await.unwrap() });
    let (reader, mut writer) = tokio::io::split(near);
    let mut lines = BufReader::new(reader).lines();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    writer.write_all(format!("{initialize}\n{initialized}\n").as_bytes()).await.unwrap();
    lines.next_line().await.unwrap().expect("it greets");
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "execute_decision",
        "arguments": {"decision_id": "decision-7", "webhook_url": HOOK}}});
    let call = format!("{call}\n");
    writer.write_all(&call.as_bytes()[..bytes.unwrap_or(call.len()).min(call.len())]).await.unwrap();
    let answer = after(turns, lines.next_line()).await;
    drop((lines, writer));
    timeout(SOON, server).await.expect("the server ends with its client").unwrap();
    let ran = executed.lock().unwrap().len();
    assert!(ran <= 1, "{bytes:?}, {turns}: it ran {ran} times");
    (answer.map(|line| line.unwrap().unwrap()), ran)
}

#[test]
fn a_client_of_a_server() {
    run(async {
        // A call that is not all there runs never, the end of its line excepted.
        for bytes in 0..160 {
            assert_eq!(hangs_up(Some(bytes), 20).await, (None, 0), "{bytes}");
        }
        for turns in 0..MANY {
            if let (Some(answer), ran) = hangs_up(None, turns).await {
                assert!(answer.contains("delivered") && ran == 1, "{turns}: {answer}");
                assert!(turns > 4, "{turns}");
                return;
            }
        }
        panic!("no call ended");
    });
}

/// Callers that leave all at once, each at another turn, do not cost the others their answers.
#[test]
fn half_of_the_callers() {
    run(async {
        let engine = StubEngine::start().await.unwrap();
        let client =
            EngineClient::connect(Endpoint::new(engine.url()).unwrap().max_concurrent_requests(4)).await.unwrap();
        let tools = super::executing(&client);
        let answered = AtomicUsize::new(0);
        let calls = (0..64_usize).map(|index| {
            let (tools, answered) = (&tools, &answered);
            async move {
                let id = format!("decision-{index}");
                if index.is_multiple_of(2) {
                    after(index, tools.execute(decision(&id))).await;
                } else {
                    tools.execute(decision(&id)).await.unwrap();
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        timeout(SOON, futures::future::join_all(calls)).await.expect("they end");
        assert_eq!(answered.into_inner(), 32);
        for index in 0..64 {
            let ran = engine.executed(&format!("decision-{index}"));
            assert!(ran <= 1 && (ran == 1 || index % 2 == 0), "{index}: {ran}");
        }
    });
}
