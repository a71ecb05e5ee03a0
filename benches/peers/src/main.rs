//! The same work in this crate and in `tower-mcp`, in one run: `cargo run --release`, in this folder.
//!
//! A call whose arguments are looked at for the operators' switches, where `tower-mcp` has a guard that is a closure over
//! them; and a list of 140 tools of which seven are allowed, where it has a filter. The two don't promise the same: a
//! guard refuses what it was written to see, at the top level, and this crate's layers take out every spelling at any
//! depth, and judge the answer.

use std::{
    convert::Infallible,
    future::ready,
    hint::black_box,
    time::{Duration, Instant},
};

use futures::FutureExt as _;
use rmcp::model::{CallToolResult, ListToolsResult, Tool};
use serde_json::{Value, json};
use tower::{Layer, Service, service_fn};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, GovernanceLayer, NEVER_MODEL_FACING, Profile, ProfileFilterLayer, ToolRequest,
    ToolResponse,
};
use tower_mcp::{
    CapabilityFilter, Filterable as _, GuardLayer, ListToolsParams, McpRequest, McpRouter, RequestContext, RequestId,
    RouterRequest, ToolBuilder, extract::RawArgs,
};

/// Requests that are made before the clock starts.
const BATCH: usize = 500;
const ROUNDS: usize = 400;

fn main() {
    println!("a call of five keys        ns over bare   allocations over bare");
    let bare = measure(&mut service_fn(ours), ours_call);
    row("  ArgumentScrub", &measure(&mut ArgumentScrubLayer::new().layer(service_fn(ours)), ours_call), &bare);
    row(
        "  the four layers",
        &measure(&mut GovernanceLayer::new(Profile::Execute).layer(service_fn(ours)), ours_call),
        &bare,
    );
    let bare = measure(&mut service_fn(theirs), their_call);
    let guard = |request: &tower_mcp::ToolRequest| match request.args.as_object() {
        Some(arguments) if arguments.keys().any(|key| NEVER_MODEL_FACING.contains(&key.as_str())) => {
            Err("an operator's switch".to_owned())
        }
        _ => Ok(()),
    };
    row("  tower-mcp's guard", &measure(&mut GuardLayer::new(guard).layer(service_fn(theirs)), their_call), &bare);

    println!("\na list of 140, seven kept  ns             allocations");
    let tools = tools();
    let engine = service_fn(move |_: ToolRequest| {
        ready(Ok::<_, BoxError>(ToolResponse::List(ListToolsResult::with_all_items(tools.clone()))))
    });
    let none = Measured::default();
    row("  without", &measure(&mut engine.clone(), ToolRequest::list), &none);
    row(
        "  ProfileFilter",
        &measure(&mut ProfileFilterLayer::new(Profile::Execute).layer(engine), ToolRequest::list),
        &none,
    );
    let router = names().fold(McpRouter::new(), |router, name| router.tool(tool(name)));
    router.session().mark_initializing();
    router.session().mark_initialized();
    row("  tower-mcp without", &measure(&mut router.clone(), their_list), &none);
    let filter = CapabilityFilter::new(|_, tool: &tower_mcp::Tool| Profile::Execute.has(tool.name()));
    row("  tower-mcp's filter", &measure(&mut router.tool_filter(filter), their_list), &none);
}

#[derive(Default)]
struct Measured {
    nanos: f64,
    allocations: f64,
}

/// The fastest batch, and what one allocates. Futures that are not ready at once would be a mistake here.
fn measure<R, S>(service: &mut S, make: impl Fn() -> R) -> Measured
where
    S: Service<R, Error: std::fmt::Debug>,
{
    let mut run = |requests: Vec<R>| {
        for request in requests {
            black_box(service.call(request).now_or_never().expect("it is ready").expect("it answers"));
        }
    };
    let batch = || (0..BATCH).map(|_| make()).collect::<Vec<_>>();
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        let requests = batch();
        let begun = Instant::now();
        run(requests);
        fastest = fastest.min(begun.elapsed());
    }
    let requests = batch();
    let counted = allocation_counter::measure(|| run(requests));
    Measured {
        nanos: fastest.as_secs_f64() * 1e9 / BATCH as f64,
        allocations: counted.count_total as f64 / BATCH as f64,
    }
}

fn row(name: &str, measured: &Measured, over: &Measured) {
    println!(
        "{name:26} {:8.0}       {:8.1}",
        measured.nanos - over.nanos,
        (measured.allocations - over.allocations).max(0.0)
    );
}

fn five_keys() -> Value {
    json!({
        "scenario": "expand-to-eu", "horizon": 12, "currency": "EUR", "seed": 7,
        "assumptions": {"growth": [0.1, 0.2], "regions": {"de": {"weight": 0.5}}}
    })
}

fn ours(_: ToolRequest) -> std::future::Ready<Result<ToolResponse, BoxError>> {
    ready(Ok(CallToolResult::success(Vec::new()).into()))
}

fn ours_call() -> ToolRequest {
    ToolRequest::call("simulate", five_keys().as_object().cloned().unwrap_or_default())
}

fn theirs(_: tower_mcp::ToolRequest) -> std::future::Ready<Result<tower_mcp::CallToolResult, Infallible>> {
    ready(Ok(tower_mcp::CallToolResult::text("")))
}

fn their_call() -> tower_mcp::ToolRequest {
    tower_mcp::ToolRequest::new(RequestContext::new(RequestId::Number(1)), five_keys())
}

fn their_list() -> RouterRequest {
    RouterRequest::new(RequestId::Number(1), McpRequest::ListTools(ListToolsParams::default()))
}

/// The contract's, and others.
fn names() -> impl Iterator<Item = String> {
    let others = (0..133).map(|number| format!("other_tool_{number}"));
    Profile::Execute.tools().map(str::to_owned).chain(others)
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"scenario": {"type": "string"}, "horizon": {"type": "integer"}}})
}

fn tools() -> Vec<Tool> {
    let schema = std::sync::Arc::new(schema().as_object().cloned().unwrap_or_default());
    names().map(|name| Tool::new(name, "A tool.", std::sync::Arc::clone(&schema))).collect()
}

fn tool(name: String) -> tower_mcp::Tool {
    ToolBuilder::new(name)
        .description("A tool.")
        .input_schema(schema())
        .extractor_handler((), |RawArgs(_): RawArgs| async { Ok(tower_mcp::CallToolResult::text("")) })
        .build()
}
