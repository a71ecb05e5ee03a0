//! What receipts, denials, failures and refusals tell whoever asks them, and what they print.

mod receipts;

use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CallToolResult, ClientRequest, ContentBlock, ErrorCode, JsonObject, ListToolsResult,
        ServerResult,
    },
    object,
};
use serde_json::{Value, json};
use tower::{Layer as _, Service as _, ServiceExt as _};
use tower_algenta::{
    BoxError, CallOutcome, Error, ExecuteDecision, ExecutionBlocked, GovernanceLayer, NotADenial, Profile,
    ReceiptMappingLayer, ToolRequest, ToolResponse, Toolset,
    error::{FailureReason, InvalidReason, UnknownReason},
};

use crate::support::{Received, object, recording};

fn receipt() -> Value {
    json!({
        "decision_id": "d", "webhook_url": "w", "execution_status": "failed", "executed_at": "2026-11-30T00:00:00Z",
        "response_code": 502, "policy_snapshot_id": "p", "schema_snapshot_id": "s", "manifest_version": "3.1",
        "payload_summary": {"bytes": 7}, "safety_overridden": false, "region": "eu"
    })
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// How an execution ends that the engine answers with `answer`.
async fn execution(answer: impl Fn() -> ToolResponse + Clone + Send + Sync + 'static) -> Result<CallOutcome, Error> {
    let engine = recording(&Received::default(), move |_: &ToolRequest| Ok(answer()));
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
    match ReceiptMappingLayer::new().layer(engine).oneshot(call).await? {
        ToolResponse::Call(outcome) => Ok(outcome),
        ToolResponse::List(_) => panic!("a call answers a call"),
    }
}

#[test]
fn a_denial_tells_what_the_engine_wrote_and_prints_the_gate_alone() {
    let body =
        json!({"code": "execution_blocked_quota", "gate": "quota", "message": "m", "override_hint": "h", "x": 1});
    let blocked = ExecutionBlocked::from_value(&body).unwrap();
    assert_eq!(blocked.code(), "execution_blocked_quota");
    assert_eq!(blocked.untrusted_message(), Some("m"));
    assert_eq!(blocked.untrusted_override_hint(), Some("h"));
    assert_eq!(*blocked.untrusted_body(), object(&body));
    assert_eq!(blocked.deserialize::<Value>().unwrap(), body);
    assert_eq!(format!("{blocked:?}"), "ExecutionBlocked { gate: unknown, .. }");

    let bare = ExecutionBlocked::from_value(&json!({"gate": "risk_floor"})).unwrap();
    assert_eq!(bare.code(), "execution_blocked_risk_floor");
    assert_eq!((bare.untrusted_message(), bare.untrusted_override_hint()), (None, None));
    assert_eq!(format!("{bare:?}"), "ExecutionBlocked { gate: risk_floor, .. }");
}

#[test]
fn what_is_no_denial_says_why() {
    let why = |value: Value| ExecutionBlocked::from_value(&value).unwrap_err();
    assert_eq!(why(json!({"code": "not_found"})), NotADenial::Absent);
    assert_eq!(why(json!({"code": "execution_blocked_quota", "gate": "confidence"})), NotADenial::Ambiguous);
    assert_eq!(NotADenial::Absent.to_string(), "no denial");
    assert_eq!(NotADenial::Ambiguous.to_string(), "a denial that is not clear");
    assert_eq!(NotADenial::Unreadable.to_string(), "too large or too deep to read");
}

/// Why an execution failed that the engine answers with `answer`.
async fn reason(answer: impl Into<ToolResponse>) -> Option<FailureReason> {
    let answer = answer.into();
    match execution(move || answer.clone()).await {
        Err(Error::ExecutionFailed(failed)) => Some(failed.reason()),
        _ => None,
    }
}

/// An answer as a client reads it.
fn answer(wire: Value) -> ToolResponse {
    let result: ServerResult = serde_json::from_value(wire).expect("rmcp knows it");
    ToolResponse::try_from(result).expect("it answers a call")
}

#[tokio::test]
async fn an_answer_of_another_kind_is_named_so() {
    let asked = json!({"resultType": "input_required", "inputRequests": {}});
    let task = json!({
        "resultType": "task", "taskId": "t", "status": "working", "createdAt": "2026-11-30T00:00:00Z",
        "lastUpdatedAt": "2026-11-30T00:00:00Z", "ttlMs": 1000
    });
    for (wire, expected) in [(asked, FailureReason::InputRequired), (task, FailureReason::TaskHandle)] {
        let ToolResponse::Call(outcome) = answer(wire.clone()) else { panic!("{wire} is no list") };
        assert!(outcome.result().is_none() && outcome.into_result().is_none(), "{wire}");
        assert_eq!(reason(answer(wire)).await, Some(expected));
    }
}

#[tokio::test]
async fn an_answer_that_contradicts_itself_is_named_so() {
    let mut is_error = text(receipt().to_string());
    is_error.is_error = Some(true);
    assert_eq!(reason(is_error).await, Some(FailureReason::Contradiction));

    let mut other = receipt();
    other["executed_at"] = json!("later");
    let mut differing = text(receipt().to_string());
    differing.structured_content = Some(other);
    assert_eq!(reason(differing).await, Some(FailureReason::Contradiction));

    let denial = json!({"error": {"gate": "confidence"}});
    let mut denied = text(receipt().to_string());
    denied.structured_content = Some(denial);
    assert_eq!(reason(denied).await, Some(FailureReason::Contradiction));

    let mut elsewhere = receipt();
    elsewhere["webhook_url"] = json!("elsewhere");
    assert_eq!(reason(text(elsewhere.to_string())).await, Some(FailureReason::WrongCall));
}

#[tokio::test]
async fn every_error_has_its_json_rpc_form() {
    let denied = |gate: &'static str| async move {
        execution(move || text(json!({"error": {"gate": gate, "message": "secret"}}).to_string()).into())
            .await
            .expect_err("a denial")
    };
    for (gate, printed, data) in [
        (
            "idempotency",
            "execution blocked by the idempotency gate",
            json!({"error": {"code": "execution_blocked_idempotency", "gate": "idempotency"}}),
        ),
        (
            "confidence",
            "execution blocked by the confidence gate",
            json!({"error": {"code": "execution_blocked_confidence", "gate": "confidence"}}),
        ),
        (
            "risk_floor",
            "execution blocked by the risk_floor gate",
            json!({"error": {"code": "execution_blocked_risk_floor", "gate": "risk_floor"}}),
        ),
        (
            "secret",
            "execution blocked by a gate that the contract does not name",
            json!({"error": {"code": "execution_blocked"}}),
        ),
    ] {
        let error = denied(gate).await;
        assert_eq!(error.to_string(), printed);
        let shown = if gate == "secret" { "unknown" } else { gate };
        assert_eq!(format!("{error:?}"), format!("Denial {{ gate: {shown}, .. }}"));
        let rpc = ErrorData::from(&error);
        assert_eq!((rpc.code.0, &*rpc.message, rpc.data), (-32000, printed, Some(data)));
    }

    let failed = execution(|| text("secret").into()).await.expect_err("no receipt");
    let rpc = ErrorData::from(&failed);
    assert_eq!((rpc.code.0, rpc.data), (-32000, Some(json!({"error": {"code": "execution_failed"}}))));
    assert_eq!(rpc.message, "the execution has no valid outcome: the answer holds no complete receipt");

    let rpc = ErrorData::from(&Error::Upstream("secret".into()));
    assert_eq!((rpc.code, &*rpc.message, rpc.data), (ErrorCode::INTERNAL_ERROR, "the call of the engine failed", None));
}

#[tokio::test]
async fn what_was_granted_is_not_granted_again() {
    let received = Received::default();
    let engine =
        recording(&received, |_: &ToolRequest| Ok(text(json!({"error": {"gate": "idempotency"}}).to_string()).into()));
    let (tools, operator) = Toolset::builder().profile(Profile::Execute).service(engine).build_with_operator();
    assert_eq!(format!("{operator:?}"), "Operator { .. }");
    let denied = |error: Error| match error {
        Error::Denied(denial) => denial,
        other => panic!("{other:?}"),
    };
    let first = denied(tools.execute(ExecuteDecision::new("d", "w").unwrap()).await.unwrap_err());
    let second = denied(operator.override_denial(&first).await.unwrap_err());
    assert_eq!(received.len(), 2);
    let Error::InvalidArguments(refused) = operator.override_denial(&second).await.unwrap_err() else {
        panic!("the engine has had its override")
    };
    assert_eq!(refused.reason(), InvalidReason::NoOverride);
    assert_eq!(received.len(), 2, "and is not asked again");
}

#[tokio::test]
async fn a_failed_execution_keeps_the_answer_behind_an_accessor() {
    let Err(Error::ExecutionFailed(failed)) = execution(|| text("secret").into()).await else { panic!("no receipt") };
    assert_eq!(failed.reason(), FailureReason::NoReceipt);
    assert!(matches!(failed.response(), Some(CallToolResponse::Complete(result)) if *result == text("secret")));
    assert_eq!(failed.receipt(), None);
    assert_eq!(format!("{failed:?}"), "ExecutionFailed { reason: NoReceipt, .. }");
}

#[tokio::test]
async fn an_unknown_outcome_keeps_the_answer_behind_an_accessor() {
    let answer = || CallToolResult::error(vec![ContentBlock::text("secret")]);
    let Err(Error::OutcomeUnknown(unknown)) = execution(move || answer().into()).await else { panic!("no status") };
    assert_eq!(unknown.reason(), UnknownReason::ToolError);
    assert!(matches!(unknown.response(), Some(CallToolResponse::Complete(result)) if *result == answer()));
    assert!(unknown.error().is_none());
    assert_eq!(format!("{unknown:?}"), "OutcomeUnknown { reason: ToolError, .. }");
}

#[tokio::test]
async fn a_list_in_answer_to_a_call_is_no_outcome() {
    let Err(Error::OutcomeUnknown(unknown)) = execution(|| ListToolsResult::default().into()).await else {
        panic!("a list answers no call")
    };
    assert_eq!(unknown.reason(), UnknownReason::UnexpectedResponse);
    assert!(unknown.response().is_none());

    let engine = recording(&Received::default(), |_: &ToolRequest| Ok(ListToolsResult::default().into()));
    let tools = Toolset::builder().service(engine).build();
    let error = tools.call("simulate", JsonObject::new()).await.unwrap_err();
    assert!(matches!(error, Error::UnexpectedResponse(_)), "{error:?}");
    assert_eq!(error.to_string(), "the inner service answered a call with something else");
}

#[tokio::test]
async fn a_rejection_tells_the_status_and_keeps_the_result() {
    let answer = || {
        let body = json!({"error": {"code": "not_found", "message": "secret", "status_code": 404}});
        CallToolResult::error(vec![ContentBlock::text(body.to_string())])
    };
    let engine = recording(&Received::default(), move |_: &ToolRequest| Ok(answer().into()));
    let tools = Toolset::builder().profile(Profile::Execute).service(engine).build();
    let Err(Error::Rejected(rejected)) = tools.execute(ExecuteDecision::new("d", "w").unwrap()).await else {
        panic!("a 404 is a rejection")
    };
    assert_eq!(rejected.status(), 404);
    assert_eq!(*rejected.result(), answer());
    assert_eq!(rejected.to_string(), "the engine refused the call before running it (status 404)");
    assert_eq!(format!("{rejected:?}"), "Rejected { status: 404, .. }");
}

#[tokio::test]
async fn a_refused_tool_is_named_unless_its_name_is_a_hidden_field() {
    let tools = Toolset::builder().service(recording(&Received::default(), |_| panic!("never called"))).build();
    for (asked, named) in [
        ("delete_all", Some("delete_all")),
        ("a\u{1b}[31m", Some("a\\u{1b}[31m")),
        ("set_Force", None),
        ("override-safety", None),
    ] {
        let Err(Error::ToolNotAllowed(refused)) = tools.call(asked, JsonObject::new()).await else {
            panic!("{asked:?} is outside the profile")
        };
        assert_eq!(refused.tool(), named);
        let printed = named.map_or("unknown tool".to_owned(), |named| format!("unknown tool \"{named}\""));
        assert_eq!(refused.to_string(), printed);
    }
}

#[test]
fn a_message_of_another_kind_is_given_back() {
    let result: ServerResult = serde_json::from_value(json!({})).unwrap();
    let refused = ToolResponse::try_from(result).unwrap_err();
    assert_eq!(refused.to_string(), "the result answers neither a list of tools nor a call of one");
    assert_eq!(format!("{refused:?}"), "NotAToolResponse { .. }");
    assert_eq!(serde_json::to_value(refused.into_result()).unwrap(), json!({}));

    let ping = json!({"method": "ping"});
    let refused = ToolRequest::try_from(serde_json::from_value::<ClientRequest>(ping.clone()).unwrap()).unwrap_err();
    assert!(!refused.is_malformed());
    assert_eq!(refused.to_string(), "the request is neither a list of tools nor a call of one");
    assert_eq!(format!("{refused:?}"), "NotAToolRequest { is_malformed: false, .. }");
    assert_eq!(serde_json::to_value(refused.into_request()).unwrap()["method"], ping["method"]);
}

#[tokio::test]
async fn an_error_prints_its_source_only_where_it_is_not_governed() {
    let failed = |error: Error| (error.to_string(), format!("{error:?}"), std::error::Error::source(&error).is_some());
    let source = || BoxError::from("refused");
    assert_eq!(
        failed(Error::NotSent(source())),
        ("the request was not sent: refused".into(), "NotSent(\"refused\")".into(), true)
    );
    assert_eq!(
        failed(Error::Upstream(source())),
        ("the inner service failed: refused".into(), "Upstream(\"refused\")".into(), true)
    );
    let engine = tower::service_fn(|_: ToolRequest| std::future::ready(Err::<ToolResponse, BoxError>("secret".into())));
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
    let error = Error::from(ReceiptMappingLayer::new().layer(engine).oneshot(call).await.unwrap_err());
    let Error::OutcomeUnknown(unknown) = &error else { panic!("{error:?}") };
    assert_eq!(unknown.error().map(ToString::to_string).as_deref(), Some("secret"));
    assert!(!failed(error).2);
}

#[test]
fn a_governed_future_prints_nothing_of_its_call() {
    let engine = recording(&Received::default(), |_: &ToolRequest| Ok(text("secret").into()));
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
    let future = GovernanceLayer::new(Profile::Execute).layer(engine).call(call);
    assert_eq!(format!("{future:?}"), "ResponseFuture { .. }");
}
