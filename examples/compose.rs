//! The layers in somebody else's tower stack: a service and a layer of one's own, and tower's `Buffer` and `Timeout`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use rmcp::{
    model::{CallToolResult, ContentBlock, ListToolsResult, Tool},
    object,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, Error, ExecuteDecision, Profile, ProfileFilterLayer, ReceiptMappingLayer,
    SchemaScrubLayer, ToolRequest, ToolResponse, Toolset,
};

/// A layer of one's own. It needs to know nothing of governance, and sees what the layers above it let through.
#[derive(Clone, Default)]
struct CountLayer(Arc<AtomicUsize>);

#[derive(Clone)]
struct Count<S> {
    inner: S,
    calls: Arc<AtomicUsize>,
}

impl<S> Layer<S> for CountLayer {
    type Service = Count<S>;

    fn layer(&self, inner: S) -> Count<S> {
        Count { inner, calls: Arc::clone(&self.0) }
    }
}

impl<S: Service<ToolRequest>> Service<ToolRequest> for Count<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: ToolRequest) -> S::Future {
        // Two arms, and no third: the compiler checks it.
        match &request {
            ToolRequest::Call(_) => self.calls.fetch_add(1, Ordering::Relaxed),
            ToolRequest::List(_) => 0,
        };
        self.inner.call(request)
    }
}

/// A service of one's own: a registry in memory. `full` tools, and a decision that is always denied.
async fn engine(request: ToolRequest) -> Result<ToolResponse, BoxError> {
    match request {
        ToolRequest::List(_) => {
            let schema = Arc::new(object!({"type": "object", "properties": {"force": {"type": "boolean"}}}));
            let tools = ["simulate", "execute_decision", "delete_everything"]
                .map(|name| Tool::new(name, "A tool.", Arc::clone(&schema)));
            Ok(ListToolsResult::with_all_items(tools.to_vec()).into())
        }
        ToolRequest::Call(call) if call.params.name == "execute_decision" => {
            let denial = r#"{"error":{"code":"execution_blocked_confidence","gate":"confidence"}}"#;
            Ok(CallToolResult::success(vec![ContentBlock::text(denial)]).into())
        }
        ToolRequest::Call(_) => {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(CallToolResult::success(vec![ContentBlock::text("42")]).into())
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let counted = CountLayer::default();
    // Any order gives the same results; this one is `GovernanceLayer`'s, with the custom layer in its midst.
    let stack = ServiceBuilder::new()
        .buffer(64)
        .layer(SchemaScrubLayer::new())
        .layer(ProfileFilterLayer::new(Profile::Execute))
        .layer(counted.clone())
        .layer(ReceiptMappingLayer::new())
        .layer(ArgumentScrubLayer::new())
        .timeout(Duration::from_millis(100))
        .service(service_fn(engine));
    let stack: BoxCloneSyncService<ToolRequest, ToolResponse, BoxError> = BoxCloneSyncService::new(stack);

    let tools = Toolset::from_governed_stack(stack.clone());
    for tool in tools.list().await? {
        println!("{} {}", tool.name, serde_json::to_string(&tool.input_schema)?);
    }

    // The typed error, at the top of a stack whose error is a box that `Buffer` has handled.
    let denied = stack.clone().oneshot(ToolRequest::call(
        "execute_decision",
        object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"}),
    ));
    let error = denied.await.err().ok_or("it was not denied")?;
    match Error::find(&*error) {
        Some(Error::Denied(denial)) => println!("denied by the gate {}", denial.gate()),
        _ => return Err(error),
    }

    let refused = stack.clone().oneshot(ToolRequest::call("delete_everything", object!({})));
    let error = refused.await.err().ok_or("it was not refused")?;
    println!("{}", Error::find(&*error).map_or("untyped", Error::kind));

    // Whose timeout it is stays visible, and `Toolset` types what it is handed.
    let slow = tools.call("simulate", object!({})).await.err().ok_or("it was in time")?;
    println!("{slow}");
    let decision = ExecuteDecision::new("decision-7", "https://hooks.example/x")?;
    println!("{}", tools.execute(decision).await.err().ok_or("it was not denied")?);

    // What the filter refused never came as far as the layer below it.
    println!("{} calls passed the filter", counted.0.load(Ordering::Relaxed));
    Ok(())
}
