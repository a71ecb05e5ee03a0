//! Calls that are given up, and engines that come and go, over both generations of the protocol.

use std::time::Duration;

use rmcp::object;
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt};
use tower_algenta::{
    BoxError, EngineClient, Error, ExecuteDecision, GovernanceLayer, Profile, StubEngine, ToolRequest, Toolset,
    client::{CallError, CallErrorKind},
    error::UnknownReason,
    stub::Fault,
};

use crate::{real_servers::Generation, wait::eventually};

const HOOK: &str = "https://hooks.example/algenta";
const SOON: Duration = Duration::from_secs(20);

fn execute(id: &str) -> ToolRequest {
    ToolRequest::call("execute_decision", object!({"decision_id": id, "webhook_url": HOOK}))
}

fn tools(client: &EngineClient) -> Toolset {
    Toolset::builder().profile(Profile::Execute).service(client.clone()).build()
}

#[tokio::test]
async fn a_call_that_is_dropped_above_a_buffer_is_cancelled_at_the_engine() {
    for generation in Generation::BOTH {
        let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
        let client = generation.connect(&engine.url()).await;
        let stack = ServiceBuilder::new()
            .buffer(8)
            .layer(GovernanceLayer::new(Profile::Execute))
            .map_err(BoxError::from)
            .service(client);
        let mut call = Box::pin(stack.clone().oneshot(execute("decision-a")));
        assert!(timeout(Duration::from_millis(100), &mut call).await.is_err());
        eventually("the call arrives", || engine.received().len() == 1).await;
        assert_eq!(engine.cancelled(), 0);
        drop(call);
        eventually("the call is cancelled", || engine.cancelled() == 1).await;
        assert_eq!((engine.received().len(), engine.executed("decision-a")), (1, 1), "{generation:?}");
    }
}

#[tokio::test]
async fn a_call_that_a_timeout_gives_up_is_cancelled_at_the_engine() {
    for generation in Generation::BOTH {
        let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
        let client = generation.connect(&engine.url()).await;

        // Below the layers, so that they can say what it means.
        let stack = ServiceBuilder::new()
            .buffer(8)
            .layer(GovernanceLayer::new(Profile::Execute))
            .timeout(Duration::from_millis(100))
            .service(client.clone());
        let error = timeout(SOON, stack.oneshot(execute("decision-a"))).await.unwrap().unwrap_err();
        let Some(Error::OutcomeUnknown(unknown)) = Error::find(&*error) else { panic!("{error:?}") };
        assert_eq!(unknown.reason(), UnknownReason::InnerError);
        eventually("the call is cancelled", || engine.cancelled() == 1).await;

        // Above them, and above the buffer: nobody is left to say it, and the call is cancelled all the same.
        let stack = ServiceBuilder::new()
            .timeout(Duration::from_millis(100))
            .buffer(8)
            .layer(GovernanceLayer::new(Profile::Execute))
            .map_err(BoxError::from)
            .service(client);
        let error = timeout(SOON, stack.oneshot(execute("decision-b"))).await.unwrap().unwrap_err();
        assert!(Error::find(&*error).is_none() && error.is::<tower::timeout::error::Elapsed>(), "{error:?}");
        eventually("the call is cancelled", || engine.cancelled() == 2).await;
        assert_eq!((engine.executed("decision-a"), engine.executed("decision-b")), (1, 1), "{generation:?}");
    }
}

#[tokio::test]
async fn a_restart_between_calls() {
    for generation in Generation::BOTH {
        let engine = StubEngine::start().await.unwrap();
        let port = engine.addr().port();
        let client = generation.connect(&engine.url()).await;
        let tools = tools(&client);
        assert!(tools.execute(ExecuteDecision::new("decision-a", HOOK).unwrap()).await.unwrap().is_delivered());
        engine.shutdown().await;

        // While it is away, nothing leaves.
        let error = tools.execute(ExecuteDecision::new("decision-b", HOOK).unwrap()).await.unwrap_err();
        assert!(error.is_retryable(), "{generation:?}: {error:?}");

        let engine = StubEngine::builder().port(port).start().await.unwrap();
        let outcome = timeout(SOON, tools.execute(ExecuteDecision::new("decision-b", HOOK).unwrap())).await.unwrap();
        match generation {
            Generation::Stateless => {
                assert!(outcome.unwrap().is_delivered());
                assert_eq!(tools.list().await.unwrap().len(), 7);
                assert_eq!(engine.executed("decision-b"), 1);
            }
            // The new engine knows nothing of the session. The client says so, and sends nothing again by itself.
            Generation::Initialize => {
                let error = outcome.unwrap_err();
                assert_eq!((engine.received().len(), engine.executed("decision-b")), (0, 0));
                assert!(matches!(error, Error::OutcomeUnknown(_) | Error::NotSent(_)), "{error:?}");
                let error = tools.list().await.unwrap_err();
                let (Error::Upstream(inner) | Error::NotSent(inner)) = &error else { panic!("{error:?}") };
                let kind = inner.downcast_ref::<CallError>().unwrap().kind();
                assert!(matches!(kind, CallErrorKind::SessionLost | CallErrorKind::Closed), "{kind:?}");
                assert!(error.to_string().contains("connect again"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_restart_during_an_execution() {
    for generation in Generation::BOTH {
        let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
        let port = engine.addr().port();
        let client = generation.connect(&engine.url()).await;
        let pending = tokio::spawn({
            let tools = tools(&client);
            async move { tools.execute(ExecuteDecision::new("decision-a", HOOK).unwrap()).await }
        });
        eventually("the call arrives", || engine.executed("decision-a") == 1).await;
        engine.shutdown().await;
        let engine = StubEngine::builder().port(port).start().await.unwrap();
        let error = timeout(SOON, pending).await.unwrap().unwrap().unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{generation:?}: {error:?}");
        assert!(!error.is_retryable() && error.is_governed_failure());
        // Nor does anybody send it to the new engine, now or a little later.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(engine.received().is_empty(), "{generation:?}");
    }
}
