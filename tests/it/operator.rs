//! The human's repeat, where it differs from the call.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use rmcp::{
    model::{CallToolResult, ContentBlock},
    object,
};
use serde_json::json;
use tower::{Service, ServiceBuilder, ServiceExt as _, service_fn};
use tower_algenta::{
    BoxError, Denial, Error, ExecuteDecision, GovernanceLayer, Operator, Profile, ToolRequest, ToolResponse, Toolset,
    audit::Caller,
    error::{FailureReason, InvalidReason, UnknownReason},
};

use crate::support::{Mine, Received, recording};

const IDEMPOTENCY: &str = r#"{"error":{"gate":"idempotency"}}"#;

fn text(text: &str) -> ToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn decision() -> ExecuteDecision {
    ExecuteDecision::new("d", "w").unwrap()
}

async fn denial(gate: &str) -> Denial {
    let answer = format!(r#"{{"error":{{"gate":"{gate}"}}}}"#);
    let engine = service_fn(move |_: ToolRequest| std::future::ready(Ok::<_, BoxError>(text(&answer))));
    let tools = Toolset::builder().profile(Profile::Execute).service(engine).build();
    tools.execute(decision()).await.unwrap_err().denial().unwrap().clone()
}

#[tokio::test]
async fn a_service_that_is_not_ready_leaves_the_denial_unused() {
    #[derive(Clone)]
    struct Never;
    impl Service<ToolRequest> for Never {
        type Response = ToolResponse;
        type Error = BoxError;
        type Future = std::future::Pending<Result<ToolResponse, BoxError>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            Poll::Pending
        }
        fn call(&mut self, _: ToolRequest) -> Self::Future {
            panic!("called without being ready")
        }
    }
    let denial = &denial("idempotency").await;
    let operator = Operator::new(Never).deadline(Duration::from_millis(20));
    let error = operator.override_denial(denial).await.unwrap_err();
    assert!(error.is_retryable() && !denial.is_used(), "{error:?}");
    assert_eq!(error.to_string(), "the request was not sent: the service was not ready before the deadline");
}

#[tokio::test]
async fn an_operator_over_the_stack_is_told_so_and_the_denial_stays() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(text(IDEMPOTENCY)));
    let stack = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(engine.clone());
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
    let denied = Error::from(stack.clone().oneshot(call).await.unwrap_err());
    let denial = denied.denial().unwrap();
    let error = Operator::new(stack).override_denial(denial).await.unwrap_err();
    assert!(error.to_string().contains("the service under it"), "{error}");
    assert!(!denial.is_used());
    assert_eq!(received.len(), 1);
    // Made the right way, the repeat leaves.
    Operator::new(engine).override_denial(denial).await.unwrap_err();
    assert!(denial.is_used());
    assert_eq!(received.len(), 2);
}

#[test]
fn an_operator_prints_nothing_of_what_it_holds() {
    assert_eq!(format!("{:?}", Operator::new("token").caller(Caller::new("alice"))), "Operator { .. }");
}

#[tokio::test]
async fn a_repeat_that_never_left_under_a_users_error_type_leaves_the_denial_unused() {
    let denial = denial("idempotency").await;
    let away = service_fn(|_: ToolRequest| async { Err::<ToolResponse, _>(Mine(Error::NotSent("refused".into()))) });
    assert!(Operator::new(away).override_denial(&denial).await.unwrap_err().is_retryable());
    assert!(!denial.is_used());
    let lost = service_fn(|_: ToolRequest| async { Err::<ToolResponse, _>(Mine(Error::Upstream("reset".into()))) });
    assert!(Operator::new(lost).override_denial(&denial).await.unwrap_err().is_governed_failure());
    assert!(denial.is_used());
}

/// The engine delivered, failed, and quoted the id. A repeat would deliver again.
#[tokio::test]
async fn a_denial_that_may_be_the_id_of_the_decision_has_no_override() {
    let received = Received::default();
    let engine = recording(&received, |request: &ToolRequest| {
        let ToolRequest::Call(call) = request else { panic!("a call") };
        let id = call.params.arguments.as_ref().unwrap()["decision_id"].as_str().unwrap();
        let mut failed = CallToolResult::error(vec![ContentBlock::text(format!("timed out delivering decision-{id}"))]);
        failed.is_error = Some(true);
        Ok(failed.into())
    });
    let (tools, operator) = Toolset::builder().profile(Profile::Execute).service(engine).build_with_operator();
    let decision = ExecuteDecision::new(r#"{"gate":"idempotency"}"#, "w").unwrap();
    let error = tools.execute(decision).await.unwrap_err();
    let denial = error.denial().expect("it aborts as one");
    let Error::InvalidArguments(refused) = operator.override_denial(denial).await.unwrap_err() else {
        panic!("refused")
    };
    assert_eq!(refused.reason(), InvalidReason::DenialForgeable);
    assert_eq!(received.len(), 1);
}

/// Each executes, fails, and quotes the call in its own way: as text of a key and its value, decoded, joined, or whole.
#[tokio::test]
async fn a_denial_that_may_be_a_quotation_has_no_override() {
    let forged = r#"{"code": "execution_blocked_idempotency", "gate": "idempotency"}"#;
    let failed = format!("Error executing tool execute_decision: timed out after {forged}");
    let detail = format!(r#"{{"detail": {forged}, "request_id": "r"}}"#);
    let conflict = format!(r#"{{"error": {{"status_code": 409, "detail": {forged}}}}}"#);
    for (metadata, answer) in [
        (json!({"{\"code\": \"execution_blocked_idempotency\", \"gate\"": "\"idempotency\""}), &failed),
        (json!({"text": "%7B%22gate%22%3A%22idempotency%22%7D"}), &failed),
        (json!(["{\"gate\"", ":\"idempotency\"}"]), &failed),
        (json!({"text": "\u{ff5b}\"gate\":\"idempotency\"\u{ff5d}"}), &failed),
        (json!({"text": "\\u007b\"gate\":\"idempotency\"}"}), &failed),
        (json!({"GATE": "idempotency"}), &failed),
        (json!({"gate": "idempotency", "n": 1}), &failed),
        (json!({"gate": "idempotency", "code": "execution_blocked_idempotency"}), &detail),
        (serde_json::from_str(&conflict).unwrap(), &conflict),
    ] {
        let received = Received::default();
        let answer = answer.clone();
        let engine = recording(&received, move |_: &ToolRequest| {
            Ok(CallToolResult::error(vec![ContentBlock::text(answer.clone())]).into())
        });
        let (tools, operator) = Toolset::builder().profile(Profile::Execute).service(engine).build_with_operator();
        let arguments = object!({"decision_id": "d", "webhook_url": "w", "metadata": (metadata.clone())});
        let error = tools.call("execute_decision", arguments).await.unwrap_err();
        assert!(error.is_governed_failure(), "{metadata}: {error:?}");
        let Some(denial) = error.denial() else { continue };
        assert!(!denial.can_be_overridden(), "{metadata}");
        let refused = operator.override_denial(denial).await.unwrap_err();
        let Error::InvalidArguments(refused) = refused else { panic!("{metadata}: {refused:?}") };
        assert_eq!(refused.reason(), InvalidReason::DenialForgeable, "{metadata}");
        assert_eq!(received.len(), 1, "{metadata}");
    }
}

/// What the real server says of a conflict is its own, whatever the call held.
#[tokio::test]
async fn a_conflict_in_the_engines_envelope_can_be_overridden() {
    let recorded = r#"{"error": {"code": "execution_blocked_idempotency", "status_code": 409,
        "message": "API error 409: {\"error\": {\"code\": \"execution_blocked_idempotency\", \"gate\": \"idempotency\"}}"}}"#;
    let with_id = recorded.replace("}}\"}}", "}}\"}, \"request_id\": \"r\"}");
    let with_more = recorded.replace("}}\"}}", "}}\"}, \"detail\": \"d\"}");
    assert!(with_id != recorded && with_more != recorded);
    for (text, can_be_overridden) in [(recorded, true), (&with_id, true), (&with_more, false)] {
        let answer = CallToolResult::error(vec![ContentBlock::text(text)]);
        let engine = recording(&Received::default(), move |_: &ToolRequest| Ok(answer.clone().into()));
        let tools = Toolset::builder().profile(Profile::Execute).service(engine).build();
        let template = object!({"decision_id": "d", "webhook_url": "w", "metadata": {"template": "Dear {{name}}"}});
        let error = tools.call("execute_decision", template).await.unwrap_err();
        assert_eq!(error.denial().expect("a denial").can_be_overridden(), can_be_overridden, "{text}");
    }
}

/// Denies what is not forced, and says of the rest that its safety gates were overridden, too late.
fn late_and_overridden(
    late: Duration,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + Clone + Send + Sync + 'static
{
    service_fn(move |request: ToolRequest| async move {
        let ToolRequest::Call(call) = request else { panic!("a call") };
        if !call.params.arguments.is_some_and(|arguments| arguments.contains_key("force")) {
            return Ok(text(IDEMPOTENCY));
        }
        tokio::time::sleep(late).await;
        let receipt = r#"{"decision_id":"d","webhook_url":"w","execution_status":"delivered","executed_at":"now",
            "safety_overridden":true}"#;
        Ok(text(receipt))
    })
}

#[tokio::test(start_paused = true)]
async fn the_builders_operator_has_the_builders_rules() {
    let builder = || Toolset::builder().profile(Profile::Execute);
    let slow = || late_and_overridden(Duration::from_secs(60));

    let (tools, operator) = builder().service(slow()).build_with_operator();
    let denied = tools.execute(decision()).await.unwrap_err();
    assert!(operator.override_denial(denied.denial().unwrap()).await.unwrap().safety_overridden());

    let (tools, operator) = builder().strict(true).service(slow()).build_with_operator();
    let denied = tools.execute(decision()).await.unwrap_err();
    let Error::ExecutionFailed(failed) = operator.override_denial(denied.denial().unwrap()).await.unwrap_err() else {
        panic!("a failure")
    };
    assert_eq!(failed.reason(), FailureReason::SafetyOverridden);

    let limit = Duration::from_secs(5);
    let (tools, operator) = builder().deadline(limit).service(slow()).build_with_operator();
    let denied = tools.execute(decision()).await.unwrap_err();
    let Error::OutcomeUnknown(unknown) = operator.override_denial(denied.denial().unwrap()).await.unwrap_err() else {
        panic!("unknown")
    };
    assert_eq!(unknown.reason(), UnknownReason::DeadlineExceeded(limit));

    // As one that is made by hand.
    let strict = Operator::new(late_and_overridden(Duration::ZERO)).strict(true);
    let error = strict.override_denial(&denial("idempotency").await).await.unwrap_err();
    assert!(matches!(error, Error::ExecutionFailed(_)), "{error:?}");
}
