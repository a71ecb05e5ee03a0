//! The stack inside and outside tower's own layers: the typed error is found again, and one call stays one call.

use std::time::Duration;

use rmcp::{
    model::{CallToolResult, ContentBlock},
    object,
};
use tower::{Layer as _, ServiceBuilder, ServiceExt as _, retry, service_fn, util::BoxCloneSyncService};
use tower_algenta::{
    BoxError, Error, Gate, GovernanceLayer, Profile, ReceiptMappingLayer, ToolRequest, ToolResponse, Toolset,
};

use crate::support::{Received, recording};

const DENIAL: &str = r#"{"error": {"code": "execution_blocked_idempotency", "gate": "idempotency"}}"#;

fn execution() -> ToolRequest {
    ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w", "force": true}))
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a service answers")]
fn denial() -> Result<ToolResponse, BoxError> {
    Ok(CallToolResult::success(vec![ContentBlock::text(DENIAL)]).into())
}

#[track_caller]
fn is_denied(error: &BoxError) {
    let found = Error::find(&**error).unwrap_or_else(|| panic!("no typed error in {error:?}"));
    assert_eq!(found.denial().map(tower_algenta::Denial::gate), Some(&Gate::Idempotency));
}

#[tokio::test]
async fn the_typed_error_survives_every_wrapper() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| denial());
    let stack = ServiceBuilder::new()
        .buffer(8)
        .concurrency_limit(2)
        .load_shed()
        .timeout(Duration::from_secs(5))
        .layer(GovernanceLayer::new(Profile::Execute))
        .timeout(Duration::from_secs(5))
        .concurrency_limit(2)
        .service(engine.clone());
    let boxed: BoxCloneSyncService<_, _, BoxError> = BoxCloneSyncService::new(stack);
    is_denied(&boxed.oneshot(execution()).await.unwrap_err());

    // Between our own layers, too.
    let stack = ServiceBuilder::new()
        .layer(ReceiptMappingLayer::new())
        .buffer(8)
        .timeout(Duration::from_secs(5))
        .layer(ReceiptMappingLayer::new())
        .service(engine);
    is_denied(&stack.oneshot(execution()).await.unwrap_err());
    assert_eq!(received.len(), 2, "one inner call each");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_below_the_mapping_is_an_unknown_outcome() {
    let engine = service_fn(|_: ToolRequest| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        denial()
    });
    let stack = ServiceBuilder::new()
        .layer(GovernanceLayer::new(Profile::Execute))
        .timeout(Duration::from_secs(1))
        .service(engine);
    match Error::from(stack.clone().oneshot(execution()).await.unwrap_err()) {
        Error::OutcomeUnknown(unknown) => assert!(unknown.error().is_some()),
        other => panic!("{other:?}"),
    }
    // For another tool it is the timeout it is.
    let error = stack.oneshot(ToolRequest::call("simulate", object!({}))).await.unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>());
}

/// Repeats whatever says that it may be repeated.
#[derive(Clone)]
struct Retryable(usize);

impl retry::Policy<ToolRequest, ToolResponse, BoxError> for Retryable {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut ToolRequest, result: &mut Result<ToolResponse, BoxError>) -> Option<Self::Future> {
        let error = Error::find(&**result.as_ref().err()?)?;
        self.0 = self.0.checked_sub(1)?;
        error.is_retryable().then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &ToolRequest) -> Option<ToolRequest> {
        Some(request.clone())
    }
}

#[tokio::test]
async fn a_retry_above_the_stack_repeats_only_what_never_left() {
    for (answer, calls) in [
        (denial as fn() -> Result<ToolResponse, BoxError>, 1),
        (|| Err("reset".into()), 1),
        (|| Err(Error::NotSent("refused".into()).into()), 3),
    ] {
        let received = Received::default();
        let engine = recording(&received, move |_: &ToolRequest| answer());
        let stack =
            ServiceBuilder::new().retry(Retryable(2)).layer(GovernanceLayer::new(Profile::Execute)).service(engine);
        stack.oneshot(execution()).await.unwrap_err();
        assert_eq!(received.len(), calls);
    }
}

/// A user's own error type.
#[derive(Debug)]
enum Mine {
    Governed(Error),
    Broken,
}

impl std::fmt::Display for Mine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mine")
    }
}

impl std::error::Error for Mine {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Governed(error) => Some(error),
            Self::Broken => None,
        }
    }
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self::Governed(error)
    }
}

impl AsRef<dyn std::error::Error + Send + Sync> for Mine {
    fn as_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }
}

#[tokio::test]
async fn an_enum_of_ones_own_stays_itself() {
    let engine = service_fn(|request: ToolRequest| async move {
        match request.tool() {
            Some("simulate") => Err(Mine::Broken),
            _ => Ok(ToolResponse::from(CallToolResult::success(vec![ContentBlock::text(DENIAL)]))),
        }
    });
    let stack = GovernanceLayer::new(Profile::Execute).layer(engine);
    let denied = stack.clone().oneshot(execution()).await.unwrap_err();
    assert!(matches!(denied, Mine::Governed(Error::Denied(_))));
    let broken = stack.oneshot(ToolRequest::call("simulate", object!({}))).await.unwrap_err();
    assert!(matches!(broken, Mine::Broken));
}

#[tokio::test]
async fn a_registry_in_memory_needs_no_network() {
    use rmcp::model::{ListToolsResult, Tool};

    let schema = object!({"type": "object", "properties": {"decision_id": {}, "force": {}}});
    let registry = service_fn(move |request: ToolRequest| {
        let schema = schema.clone();
        async move {
            Ok::<_, BoxError>(match request {
                ToolRequest::List(request) => {
                    let is_first = request.params.is_none_or(|params| params.cursor.is_none());
                    let name = if is_first { "simulate" } else { "execute_decision" };
                    let mut page = ListToolsResult::with_all_items(vec![Tool::new(name, "", schema)]);
                    page.next_cursor = is_first.then(|| "2".to_owned());
                    page.into()
                }
                ToolRequest::Call(_) => CallToolResult::success(vec![ContentBlock::text(DENIAL)]).into(),
            })
        }
    });
    let tools = Toolset::builder().profile(Profile::Execute).service(registry).build();
    let listed = tools.list().await.unwrap();
    assert_eq!(listed.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["simulate", "execute_decision"]);
    assert!(listed.iter().all(|tool| !tool.input_schema["properties"].as_object().unwrap().contains_key("force")));

    let decision = tower_algenta::ExecuteDecision::new("d", "w").unwrap();
    assert!(matches!(tools.execute(decision).await, Err(Error::Denied(_))));
    tools.close().await.unwrap();
}
