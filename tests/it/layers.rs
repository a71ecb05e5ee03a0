//! Each layer through tower's mock: readiness, refusals, pending answers, clones.

use rmcp::{
    model::{CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult},
    object,
};
use serde_json::{Value, json};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, Error, GovernanceLayer, HiddenFields, Nested, OnHidden, Profile, ProfileFilterLayer,
    ReceiptMappingLayer, SchemaScrubLayer, Stripped, ToolRequest, ToolResponse, WebhookFilterLayer,
    error::InvalidReason,
};
use tower_test::mock::{self, Mock, Spawn};

type Engine = Mock<ToolRequest, ToolResponse>;
type Handle = mock::Handle<ToolRequest, ToolResponse>;

const RECEIPT: &str =
    r#"{"decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"}"#;

fn text_result(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn call() -> ToolRequest {
    ToolRequest::call("simulate", object!({"scenario": "s"}))
}

fn execution() -> ToolRequest {
    ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}))
}

/// What every layer owes to tower, whatever it does otherwise.
fn keeps_the_contract_of_tower<L>(layer: L)
where
    L: Layer<Engine> + Clone,
    L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError> + Clone,
{
    // Readiness is the inner service's, pending and failed alike.
    let (mut service, mut handle): (Spawn<L::Service>, Handle) = mock::spawn_layer(layer.clone());
    handle.allow(0);
    assert_pending!(service.poll_ready());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());

    // A pending answer stays pending, and passes when it comes.
    let mut answer = task::spawn(service.call(call()));
    assert_pending!(answer.poll());
    let mut request = task::spawn(handle.next_request());
    let Some((received, respond)) = tokio_test::assert_ready!(request.poll()) else { panic!("the call never arrived") };
    assert_eq!(received.tool(), Some("simulate"));
    assert_pending!(answer.poll());
    respond.send_response(text_result("42").into());
    assert!(answer.is_woken());
    assert!(matches!(assert_ready_ok!(answer.poll()), ToolResponse::Call(_)));
    drop(request);

    // The mock panics if another instance is called than the one that was polled ready. A clone is polled for itself.
    handle.allow(2);
    assert_ready_ok!(service.poll_ready());
    let mut clone = service.clone();
    drop(service.call(call()));
    assert_ready_ok!(clone.poll_ready());
    drop(clone.call(call()));

    // An error of readiness and an error of a call pass.
    let (mut service, mut handle): (Spawn<L::Service>, Handle) = mock::spawn_layer(layer.clone());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut answer = task::spawn(service.call(call()));
    let mut request = task::spawn(handle.next_request());
    let Some((_, respond)) = tokio_test::assert_ready!(request.poll()) else { panic!("the call never arrived") };
    respond.send_error("the engine is gone");
    assert_eq!(assert_ready_err!(answer.poll()).to_string(), "the engine is gone");
    drop(request);
    handle.send_error("closed");
    assert_eq!(assert_ready_err!(service.poll_ready()).to_string(), "closed");
}

#[test]
fn every_layer_keeps_the_contract_of_tower() {
    keeps_the_contract_of_tower(ProfileFilterLayer::new(Profile::Observe));
    keeps_the_contract_of_tower(ArgumentScrubLayer::new());
    keeps_the_contract_of_tower(SchemaScrubLayer::new());
    keeps_the_contract_of_tower(ReceiptMappingLayer::new());
    keeps_the_contract_of_tower(GovernanceLayer::new(Profile::Observe));
    keeps_the_contract_of_tower(WebhookFilterLayer::new(["hooks.example"]).unwrap());
}

/// Calls a fresh service with `request` and expects the refusal at once, without an inner call.
#[track_caller]
fn refused<L>(layer: L, request: ToolRequest) -> Error
where
    L: Layer<Engine>,
    L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError>,
{
    let (mut service, mut handle): (Spawn<L::Service>, Handle) = mock::spawn_layer(layer);
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut answer = task::spawn(service.call(request));
    let error = assert_ready_err!(answer.poll());
    let mut request = task::spawn(handle.next_request());
    assert_pending!(request.poll(), "the inner service was called");
    error.into()
}

#[test]
fn an_execution_continues_nothing() {
    let call = || {
        CallToolRequestParams::new("execute_decision").with_arguments(object!({"decision_id": "d", "webhook_url": "w"}))
    };
    let answered = || call().with_input_responses([("approve".to_owned(), true.into())].into());
    let resumed = || call().with_request_state("s");
    for params in [answered(), resumed(), answered().with_request_state("s")] {
        for error in [
            refused(ArgumentScrubLayer::new(), params.clone().into()),
            refused(ReceiptMappingLayer::new(), params.into()),
        ] {
            let Error::InvalidArguments(error) = error else { panic!("{error:?}") };
            assert_eq!(error.reason(), InvalidReason::ContinuationRefused);
        }
    }
}

/// An engine may ask, of a tool outside the contract, and the answer is the model's.
#[test]
fn answers_to_an_engines_questions_are_scrubbed() {
    let answers = |answer: Value| {
        let params = CallToolRequestParams::new("rerun");
        ToolRequest::from(params.with_input_responses([("a/b".to_owned(), answer)].into()))
    };
    let dirty = json!({"action": "accept", "content": {"force": true, "n": [{"overrideSafety": 1, "x": 2}]}});
    let sent = |answer| {
        let (mut service, mut handle): (Spawn<_>, Handle) = mock::spawn_layer(ArgumentScrubLayer::new());
        assert_ready_ok!(service.poll_ready());
        let _answer = service.call(answers(answer));
        let mut request = task::spawn(handle.next_request());
        let Some((ToolRequest::Call(call), _)) = tokio_test::assert_ready!(request.poll()) else { panic!("a call") };
        call
    };
    let call = sent(dirty.clone());
    assert_eq!(call.params.input_responses.unwrap()["a/b"], json!({"action": "accept", "content": {"n": [{"x": 2}]}}));
    let stripped = call.extensions.get::<Stripped>().unwrap();
    assert_eq!(
        stripped.pointers().collect::<Vec<_>>(),
        ["/inputResponses/a~1b/content/force", "/inputResponses/a~1b/content/n/0/overrideSafety"]
    );

    let refusing = ArgumentScrubLayer::new().hidden_fields(HiddenFields::new().on_hidden(OnHidden::Refuse));
    let Error::InvalidArguments(error) = refused(refusing, answers(dirty)) else { panic!("refused") };
    assert_eq!(error.reason(), InvalidReason::HiddenField);
    let deep = |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    // In the one that holds all answers.
    assert_eq!(sent(deep(127)).params.input_responses.unwrap()["a/b"], deep(127));
    for levels in [128, 100_000] {
        let error = refused(ArgumentScrubLayer::new(), answers(deep(levels)));
        let Error::InvalidArguments(error) = error else { panic!("{error:?}") };
        assert_eq!(error.reason(), InvalidReason::TooDeep, "{levels}");
    }
}

#[test]
fn a_refusal_never_reaches_the_inner_service() {
    let error = refused(ProfileFilterLayer::new(Profile::Govern), execution());
    assert!(matches!(error, Error::ToolNotAllowed(_)), "{error:?}");

    let fields = tower_algenta::HiddenFields::new().nested(Nested::Refuse);
    let nested = ToolRequest::call("simulate", object!({"scenario": {"force": 9.8}}));
    let error = refused(ArgumentScrubLayer::new().hidden_fields(fields), nested);
    assert!(matches!(error, Error::InvalidArguments(_)), "{error:?}");

    let traversal =
        ToolRequest::call("execute_decision", object!({"decision_id": "../decisions/plan?x=", "webhook_url": "w"}));
    let error = refused(ReceiptMappingLayer::new(), traversal);
    assert!(matches!(error, Error::InvalidArguments(_)), "{error:?}");

    let look_alike = ToolRequest::call("Execute_Decision", object!({"decision_id": "d", "webhook_url": "w"}));
    let error = refused(ReceiptMappingLayer::new(), look_alike);
    assert!(matches!(error, Error::ToolNotAllowed(_)), "{error:?}");
}

/// Answers one execution through the mapping.
#[track_caller]
fn answered(layer: ReceiptMappingLayer, answer: Result<ToolResponse, BoxError>) -> Result<ToolResponse, Error> {
    let (mut service, mut handle): (Spawn<_>, Handle) = mock::spawn_layer(layer);
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut outcome = task::spawn(service.call(execution()));
    assert_pending!(outcome.poll());
    let mut request = task::spawn(handle.next_request());
    let Some((_, respond)) = tokio_test::assert_ready!(request.poll()) else { panic!("the call never arrived") };
    match answer {
        Ok(response) => respond.send_response(response),
        Err(error) => respond.send_error(error),
    }
    match outcome.poll() {
        std::task::Poll::Ready(outcome) => outcome.map_err(Error::from),
        std::task::Poll::Pending => panic!("still pending"),
    }
}

#[test]
fn the_errors_below_the_mapping_keep_their_meaning() {
    // A refusal by a layer below and a request that never left pass unchanged.
    let not_sent = answered(ReceiptMappingLayer::new(), Err(Error::NotSent("refused".into()).into()));
    assert!(matches!(not_sent, Err(error @ Error::NotSent(_)) if error.is_retryable()));
    // Anything else may have run.
    for error in [BoxError::from("boom"), Error::Upstream("reset".into()).into()] {
        let outcome = answered(ReceiptMappingLayer::new(), Err(error)).unwrap_err();
        match outcome {
            Error::OutcomeUnknown(unknown) => assert!(unknown.error().is_some()),
            other => panic!("{other:?}"),
        }
    }
    // So may a call that was answered with a list.
    let list = answered(ReceiptMappingLayer::new(), Ok(ListToolsResult::default().into()));
    assert!(matches!(list, Err(Error::OutcomeUnknown(_))), "{list:?}");
}

#[test]
fn strict_mode_refuses_an_override_that_nobody_made() {
    let overridden = RECEIPT.replace('}', r#", "safety_overridden": true}"#);
    let lenient = answered(ReceiptMappingLayer::new(), Ok(text_result(&overridden).into()));
    assert!(matches!(lenient, Ok(ToolResponse::Call(outcome)) if outcome.receipt().is_some()));
    match answered(ReceiptMappingLayer::new().strict(true), Ok(text_result(&overridden).into())) {
        Err(Error::ExecutionFailed(failure)) => assert!(failure.receipt().is_some(), "it carries the receipt"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tool_error_can_be_made_to_abort() {
    use tower_algenta::receipt_mapping::OnToolError;

    let envelope = r#"{"error": {"code": "not_found", "message": "m", "status_code": 404}}"#;
    let passed = answered(ReceiptMappingLayer::new(), Ok(text_result(envelope).into())).unwrap();
    let ToolResponse::Call(outcome) = passed else { panic!("a list") };
    assert_eq!(outcome.result().unwrap().is_error, Some(true));
    let layer = ReceiptMappingLayer::new().on_tool_error(OnToolError::Abort);
    let aborted = answered(layer, Ok(text_result(envelope).into()));
    assert!(matches!(aborted, Err(Error::ExecutionFailed(_))), "{aborted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_an_execution_and_drops_the_inner_call() {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };
    use tower::{ServiceBuilder, ServiceExt as _, service_fn};

    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    let dropped = Arc::new(AtomicBool::new(false));
    let engine = service_fn({
        let dropped = dropped.clone();
        move |_: ToolRequest| {
            let guard = Dropped(dropped.clone());
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                Err::<ToolResponse, _>(BoxError::from("never"))
            }
        }
    });
    let layer = ReceiptMappingLayer::new().deadline(Duration::from_secs(5));
    let mut answer = Box::pin(ServiceBuilder::new().layer(layer).service(engine).oneshot(execution()));
    let error = Error::from(answer.as_mut().await.unwrap_err());
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    assert!(error.to_string().contains("5s"), "{error}");
    assert!(
        dropped.load(Ordering::Acquire),
        "the inner call is dropped with the deadline, not with the caller's future"
    );
}
