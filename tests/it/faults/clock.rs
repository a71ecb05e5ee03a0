//! Clocks that jump. All limits are of the monotonic clock, as tokio has it; what the wall says is in the audit's
//! timestamps and nowhere else. A test cannot set the wall clock, so it jumps the other one, for ten years: what is due
//! ends at once, nothing overflows, and what comes after goes on.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ServerCapabilities, ServerConfig},
    object,
    service::RequestContext,
};
use tokio::time::{Instant, advance, sleep, timeout};
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_algenta::{
    AuditLayer, BoxError, EngineClient, Error, Profile, ToolRequest, ToolResponse, Toolset,
    client::{CallErrorKind, ConnectErrorKind, Connections},
    error::UnknownReason,
};

use crate::audit::Kept;

use super::{HOOK, Outcome, cause, decision, executing};

const LIMIT: Duration = Duration::from_secs(60);
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// An engine over a pipe that answers after a time, or, to an execution, never.
#[derive(Clone)]
struct Slow(Duration);

impl ServerHandler for Slow {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if call.name == "execute_decision" {
            pending::<()>().await;
        }
        sleep(self.0).await;
        Ok(CallToolResult::success(vec![]).into())
    }
}

async fn client(slow: Duration) -> EngineClient {
    let (near, far) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { Box::pin(Slow(slow).serve(far)).await.unwrap().waiting().await.unwrap() });
    EngineClient::serve(near).await.unwrap()
}

fn simulate() -> ToolRequest {
    ToolRequest::call("simulate", object!({"scenario": "s"}))
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_due_after_a_jump_and_not_before_its_time() {
    let never = service_fn(|_: ToolRequest| pending::<Result<ToolResponse, BoxError>>());
    let tools = Toolset::builder().profile(Profile::Execute).deadline(LIMIT).service(never).build();
    let call = tokio::spawn(async move { tools.execute(decision("decision-7")).await });
    tokio::task::yield_now().await;
    advance(Duration::from_millis(59_998)).await;
    tokio::task::yield_now().await;
    assert!(!call.is_finished());
    advance(TEN_YEARS).await;
    match call.await.unwrap() {
        Err(Error::OutcomeUnknown(unknown)) => assert_eq!(unknown.reason(), UnknownReason::DeadlineExceeded(LIMIT)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_times_out_after_a_jump_and_the_client_goes_on() {
    let client = client(Duration::from_secs(1)).await.call_timeout(LIMIT);
    for _ in 0..3 {
        let tools = executing(&client);
        let call = tokio::spawn(async move { tools.execute(decision("decision-7")).await });
        sleep(LIMIT / 2).await;
        assert!(!call.is_finished());
        advance(TEN_YEARS).await;
        let result = call.await.unwrap();
        assert_eq!(Outcome::of(&result), Outcome::Unknown);
        assert_eq!(cause(&result.unwrap_err()), CallErrorKind::TimedOut(LIMIT));

        // It answers after a second, of which nothing is owed to the jump.
        let begun = Instant::now();
        client.clone().oneshot(simulate()).await.unwrap();
        assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&begun.elapsed()));
    }
}

#[tokio::test(start_paused = true)]
async fn limits_past_all_times_are_no_limits() {
    let client = client(Duration::from_secs(1)).await.call_timeout(Duration::MAX);
    let tools = Toolset::builder().profile(Profile::Execute).deadline(Duration::MAX).service(client.clone()).build();
    tools.call("simulate", object!({"scenario": "s"})).await.unwrap();
    // Nobody's patience ends here but the test's, ten years on.
    assert!(timeout(TEN_YEARS, tools.execute(decision("decision-7"))).await.is_err());
    client.oneshot(simulate()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_to_connect_is_due_after_a_jump() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let connections = Connections::shared_with(move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { Err(Error::NotSent("nobody there".into())) }
    });
    for round in 1..=40 {
        assert!(connections.clone().oneshot(simulate()).await.unwrap_err().is_retryable());
        assert_eq!(attempts.load(Ordering::SeqCst), round);
        // Not due yet, whatever was ten years ago.
        let error = connections.clone().oneshot(simulate()).await.unwrap_err();
        let Error::NotSent(inner) = &error else { panic!("{error:?}") };
        let kind = inner.downcast_ref::<tower_algenta::client::ConnectError>().expect("a connect error").kind();
        assert!(matches!(kind, ConnectErrorKind::Waiting(left) if left <= Duration::from_secs(10)), "{kind:?}");
        assert_eq!(attempts.load(Ordering::SeqCst), round);
        advance(TEN_YEARS).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_idle_for_ten_years() {
    let connections = Connections::shared_with(|| async { Ok(client(Duration::ZERO).await) });
    for _ in 0..3 {
        connections.clone().oneshot(simulate()).await.unwrap();
        advance(TEN_YEARS).await;
    }
}

/// A timestamp is the wall's, and a duration is not made of two of them.
#[tokio::test]
async fn an_audit_has_the_walls_time_and_the_monotonic_clocks_duration() {
    let records = Kept::default();
    let slow = service_fn(|_: ToolRequest| async {
        sleep(Duration::from_millis(30)).await;
        Ok::<_, BoxError>(CallToolResult::success(vec![]).into())
    });
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "decision-7", "webhook_url": HOOK}));
    let before = SystemTime::now();
    AuditLayer::new(records.clone()).layer(slow).oneshot(call).await.unwrap();
    let record = records.take().pop().unwrap();
    assert!((before..=SystemTime::now()).contains(&record.timestamp()));
    assert!((Duration::from_millis(30)..Duration::from_secs(10)).contains(&record.duration()));
}
