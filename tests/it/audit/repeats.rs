//! What an operator repeats: one record of each attempt, with what was granted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use rmcp::{
    model::{CallToolResult, ContentBlock, Extensions},
    object,
};
use serde_json::{Value, json};
use tokio_test::{assert_pending, task};
use tower::{Service, ServiceBuilder, ServiceExt as _, service_fn};
use tower_algenta::{
    AuditLayer, AuditRecord, AuditSink, BoxError, Denial, Endpoint, Error, ExecuteDecision, GovernanceLayer, Operator,
    Profile, StubEngine, ToolRequest, ToolResponse, Toolset,
    audit::{AuditUnavailable, Caller, OnSinkFailure},
};

use super::{HOOK, Kept};
use crate::support::{Received, recording};

const NAMES: [&str; 2] = ["force", "override_safety"];

fn text(text: &str) -> ToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// A denial of `decision-7` by `gate`.
async fn denial(gate: &str) -> Denial {
    let answer = format!(r#"{{"error":{{"gate":"{gate}"}}}}"#);
    let engine = service_fn(move |_: ToolRequest| std::future::ready(Ok::<_, BoxError>(text(&answer))));
    let tools = Toolset::builder().profile(Profile::Execute).service(engine).build();
    let denied = tools.execute(ExecuteDecision::new("decision-7", HOOK).unwrap()).await.unwrap_err();
    denied.denial().unwrap().clone()
}

/// What a record of a repeat is: these members, and those that all have.
fn of_a_repeat(members: &Value) -> Value {
    let mut record = json!({
        "mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "execute_decision", "algenta.decision.id": "decision-7"
    });
    record.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    record
}

#[tokio::test]
async fn each_repeat_is_recorded_with_what_was_granted() {
    let engine = StubEngine::start().await.unwrap();
    let builder = Toolset::builder().profile(Profile::Execute).endpoint(Endpoint::new(engine.url()).unwrap());
    let (tools, operator) = builder.connect_with_operator().await.unwrap();
    let kept = Kept::default();
    let operator = operator.audit(AuditLayer::new(kept.clone())).caller(Caller::new("alice"));
    let denied = tools.execute(ExecuteDecision::new("decision-two-gates", HOOK).unwrap()).await.unwrap_err();
    assert!(kept.take().is_empty(), "the stack has an audit of its own, or none");

    // The first of two gates, then the second.
    let next = operator.override_denial(denied.denial().unwrap()).await.unwrap_err();
    let record = kept.one();
    assert_eq!(record["algenta.outcome"], "denied");
    assert_eq!(record["algenta.gate"], "confidence");
    assert_eq!(record["algenta.overrides"], json!(["force"]));
    assert_eq!(record["enduser.id"], "alice");

    let receipt = operator.override_denial(next.denial().unwrap()).await.unwrap();
    let [record] = &*kept.take() else { panic!("one record") };
    assert_eq!(record.overrides().collect::<Vec<_>>(), NAMES);
    assert_eq!(record.policy_snapshot_id(), receipt.policy_snapshot_id());
    let mut record: Value = serde_json::to_value(record).unwrap();
    assert!(record["mcp.client.operation.duration"].as_f64().unwrap() > 0.0);
    for times_and_ids in
        ["timestamp", "mcp.client.operation.duration", "algenta.policy_snapshot.id", "algenta.schema_snapshot.id"]
    {
        assert!(record.as_object_mut().unwrap().remove(times_and_ids).is_some(), "{times_and_ids}");
    }
    assert_eq!(
        record,
        json!({
            "mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "execute_decision", "enduser.id": "alice", "algenta.outcome": "allowed",
            "algenta.decision.id": "decision-two-gates", "algenta.execution.status": "delivered",
            "algenta.overrides": ["force", "override_safety"]
        })
    );

    // A denial that is used up, and one that nobody can lift.
    operator.override_denial(next.denial().unwrap()).await.unwrap_err();
    let record = kept.one();
    assert_eq!(record["algenta.outcome"], "invalid");
    assert_eq!(record["algenta.reason"], "this denial was already overridden once");
    assert_eq!(record["algenta.overrides"], json!(NAMES));
    operator.override_denial(&denial("quota").await).await.unwrap_err();
    let record = kept.one();
    assert_eq!(record["algenta.outcome"], "invalid");
    assert_eq!(record.get("algenta.overrides"), None);
    assert_eq!(engine.executed("decision-two-gates"), 1);
}

#[tokio::test]
async fn a_models_call_has_no_overrides_in_its_record() {
    let kept = Kept::default();
    let engine = service_fn(|_: ToolRequest| async { Ok::<_, BoxError>(text("{}")) });
    let stack = ServiceBuilder::new()
        .layer(AuditLayer::new(kept.clone()))
        .layer(GovernanceLayer::new(Profile::Execute))
        .service(engine);
    let arguments = object!({"decision_id": "decision-7", "webhook_url": HOOK, "force": true, "override_safety": true});
    stack.oneshot(ToolRequest::call("execute_decision", arguments)).await.unwrap_err();
    let [record] = &*kept.take() else { panic!("one record") };
    assert_eq!(record.overrides().count(), 0);
    assert_eq!(record.stripped_count(), 2);
}

/// Fails for as long as it is told to, and counts what it was given.
#[derive(Clone, Default)]
struct Failing(Arc<(AtomicBool, AtomicUsize)>);

impl AuditSink for Failing {
    fn record(&self, _: &AuditRecord) {
        self.0.1.fetch_add(1, Ordering::Relaxed);
    }

    fn is_failing(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_repeat_whose_record_would_be_lost_does_not_leave() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(text(r#"{"error":{"gate":"confidence"}}"#)));
    let sink = Failing::default();
    sink.0.0.store(true, Ordering::Relaxed);
    let denial = denial("idempotency").await;

    let operator = Operator::new(engine.clone()).audit(AuditLayer::new(sink.clone()));
    let error = operator.override_denial(&denial).await.unwrap_err();
    let Error::NotSent(because) = &error else { panic!("{error:?}") };
    assert!(because.is::<AuditUnavailable>(), "{error:?}");
    assert_eq!(received.len(), 0);
    assert!(!denial.is_used());
    assert_eq!(sink.0.1.load(Ordering::Relaxed), 1, "the refusal may be what is written first again");

    // It can be had otherwise.
    let audit = AuditLayer::new(sink).on_sink_failure(OnSinkFailure::Continue);
    let error = Operator::new(engine).audit(audit).override_denial(&denial).await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)));
    assert_eq!(received.len(), 1);
}

#[tokio::test]
async fn a_repeat_that_was_not_sent_leaves_the_denial_unused() {
    let kept = Kept::default();
    let denial = denial("idempotency").await;
    let unreachable = service_fn(|_: ToolRequest| async {
        Err::<ToolResponse, _>(BoxError::from(Error::NotSent("connection refused".into())))
    });
    let operator = Operator::new(unreachable).audit(AuditLayer::new(kept.clone()));
    assert!(operator.override_denial(&denial).await.unwrap_err().is_retryable());
    assert!(!denial.is_used());
    assert_eq!(
        kept.one(),
        of_a_repeat(&json!({"algenta.outcome": "failed", "error.type": "not_sent", "algenta.overrides": ["force"]}))
    );

    // What failed otherwise may have run.
    let lost = service_fn(|_: ToolRequest| async { Err::<ToolResponse, BoxError>("connection reset".into()) });
    let operator = Operator::new(lost).audit(AuditLayer::new(kept.clone()));
    assert!(matches!(operator.override_denial(&denial).await.unwrap_err(), Error::OutcomeUnknown(_)));
    assert!(denial.is_used());
    let record = kept.one();
    assert_eq!((&record["algenta.outcome"], &record["algenta.may_have_run"]), (&json!("unknown"), &json!(true)));
}

#[test]
fn a_repeat_that_is_given_up_may_have_run_once_it_was_sent() {
    #[derive(Clone)]
    struct Hanging {
        is_ready: bool,
    }
    impl Service<ToolRequest> for Hanging {
        type Response = ToolResponse;
        type Error = BoxError;
        type Future = std::future::Pending<Result<ToolResponse, BoxError>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            if self.is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
        }
        fn call(&mut self, _: ToolRequest) -> Self::Future {
            std::future::pending()
        }
    }

    let denial = tokio_test::block_on(denial("idempotency"));
    for (is_ready, may_have_run) in [(false, None), (true, Some(&json!(true)))] {
        let kept = Kept::default();
        let operator = Operator::new(Hanging { is_ready }).audit(AuditLayer::new(kept.clone()));
        let mut repeat = task::spawn(operator.override_denial(&denial));
        assert_pending!(repeat.poll());
        assert!(kept.take().is_empty());
        drop(repeat);
        let record = kept.one();
        assert_eq!(record["algenta.outcome"], "cancelled");
        assert_eq!(record.get("algenta.may_have_run"), may_have_run);
        assert_eq!(denial.is_used(), is_ready);
    }
}

#[tokio::test]
async fn who_repeats_is_known_below() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(text("{}")));
    let denial = denial("confidence").await;
    Operator::new(engine).caller(Caller::new("alice")).override_denial(&denial).await.unwrap_err();
    let caller = |extensions: &Extensions| extensions.get::<Caller>().cloned();
    assert_eq!(caller(received.take()[0].extensions()), Some(Caller::new("alice")));
}
