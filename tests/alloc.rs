//! What a governed call allocates, in exact numbers. This binary has an allocator of its own that counts.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use allocation_counter::measure;
use rmcp::{
    model::{CallToolResult, ContentBlock, JsonObject, ListToolsResult},
    object,
};
use tower::{Layer as _, Service, service_fn};
use tower_algenta::{
    ArgumentScrubLayer, AuditLayer, BoxError, ExecutionBlocked, ExecutionReceipt, FlatNamesLayer, GovernanceLayer,
    HiddenFields, Profile, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer, ToolRequest, ToolResponse,
    audit::JsonLines,
};

/// Allocations while `work` runs.
#[track_caller]
fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

/// Drives a future that is ready at once.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("pending"),
    }
}

fn engine(
    answer: fn() -> ToolResponse,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + Clone {
    service_fn(move |_: ToolRequest| std::future::ready(Ok(answer())))
}

fn nothing() -> ToolResponse {
    CallToolResult::success(Vec::new()).into()
}

/// Five keys, one of them nested.
fn clean() -> JsonObject {
    object!({
        "scenario": "expand-to-eu", "horizon": 12, "currency": "EUR", "seed": 7,
        "assumptions": {"growth": [0.1, 0.2], "regions": {"de": {"weight": 0.5}}}
    })
}

/// What the service allocates for one request, its drop included.
fn allocations_of<S>(service: &mut S, request: ToolRequest) -> u64
where
    S: Service<ToolRequest, Response = ToolResponse, Error: std::fmt::Debug>,
{
    allocations(|| {
        ready(service.call(request)).unwrap();
    })
}

#[test]
fn a_clean_call_allocates_nothing() {
    let call = |tool: &'static str| ToolRequest::call(tool, clean());
    assert_eq!(allocations_of(&mut engine(nothing), call("simulate")), 0, "the bare service");
    assert_eq!(
        allocations_of(&mut ProfileFilterLayer::new(Profile::Observe).layer(engine(nothing)), call("simulate")),
        0
    );
    assert_eq!(allocations_of(&mut ArgumentScrubLayer::new().layer(engine(nothing)), call("simulate")), 0);
    assert_eq!(allocations_of(&mut SchemaScrubLayer::new().layer(engine(nothing)), call("simulate")), 0);
    assert_eq!(allocations_of(&mut ReceiptMappingLayer::new().layer(engine(nothing)), call("simulate")), 0);
    for tool in Profile::Govern.tools() {
        let mut stack = GovernanceLayer::new(Profile::Govern).layer(engine(nothing));
        assert_eq!(allocations_of(&mut stack, call(tool)), 0, "{tool}");
    }
    let mut stack = FlatNamesLayer::new().layer(GovernanceLayer::new(Profile::Observe).layer(engine(nothing)));
    assert_eq!(allocations_of(&mut stack, call("algenta_simulate")), 0, "a flat name");
    let owned = ToolRequest::call("algenta_simulate".to_owned(), clean());
    assert_eq!(allocations_of(&mut stack, owned), 0, "a flat name that was read");
    let mut stack = GovernanceLayer::new(Profile::Full).layer(engine(nothing));
    assert_eq!(allocations_of(&mut stack, call("query_batch")), 0, "a tool outside the contract");
}

/// The tool's name; the extensions' map, its table and the value in it; the slot for what is stripped; what watches.
#[test]
fn an_audited_call_allocates_for_its_record() {
    let lines = AuditLayer::new(JsonLines::new(std::io::sink()));
    let mut stack = lines.layer(GovernanceLayer::new(Profile::Observe).layer(engine(nothing)));
    // The first line makes room for the others.
    allocations_of(&mut stack, ToolRequest::call("simulate", clean()));
    assert_eq!(allocations_of(&mut stack, ToolRequest::call("simulate", clean())), 6);
}

#[test]
fn a_clean_scrub_allocates_nothing_at_any_size() {
    let fields = HiddenFields::new();
    for keys in [0, 5, 24, 50, 500, 5000] {
        let mut arguments: JsonObject = (0..keys).map(|key| (format!("key_{key}"), key.into())).collect();
        for tool in ["simulate", "execute_decision", "query_batch"] {
            let counted = allocations(|| assert!(fields.scrub_arguments(tool, &mut arguments).unwrap().is_empty()));
            assert_eq!(counted, 0, "{keys} keys of {tool}");
        }
    }
    let mut text = object!({"payload": r#"{"a": [1, {"b": "c"}], "d": "plain"}"#});
    assert_eq!(
        allocations(|| drop(fields.scrub_arguments("query_batch", &mut text))),
        0,
        "a JSON text without escapes"
    );
}

#[test]
fn stripping_a_field_of_the_contract_allocates_nothing() {
    let fields = HiddenFields::new();
    let mut arguments = clean();
    arguments.insert("force".to_owned(), true.into());
    arguments.insert("override_safety".to_owned(), true.into());
    let counted = allocations(|| assert_eq!(fields.scrub_arguments("simulate", &mut arguments).unwrap().len(), 2));
    assert_eq!(counted, 0);
    assert_eq!(arguments, clean());
}

#[test]
fn a_clean_list_is_scrubbed_without_allocating() {
    fn recorded() -> ListToolsResult {
        let mut list: ListToolsResult = serde_json::from_str(include_str!("data/tools_list.json")).unwrap();
        list.tools.retain(|tool| !matches!(&*tool.name, "execute_decision" | "fire_trigger"));
        list
    }
    let fields = HiddenFields::new();
    let mut list = recorded();
    assert_eq!(list.tools.len(), 138);
    let before: Vec<_> = list.tools.iter().map(|tool| tool.input_schema.clone()).collect();
    let counted = allocations(|| {
        for tool in &mut list.tools {
            let name = tool.name.clone();
            assert!(!fields.scrub_tool(&name, tool).unwrap());
        }
    });
    // The names are copied by this test, one each.
    assert_eq!(counted, 138);
    assert!(list.tools.iter().zip(before).all(|(tool, schema)| std::sync::Arc::ptr_eq(&tool.input_schema, &schema)));
}

#[test]
fn an_answer_that_holds_no_object_is_judged_without_allocating() {
    for text in ["", "Executed.", "\"hello\"", "[1, 2]", "see {it}", "see {\"a\": [{\"b\": x}]}", "an open {{{{"] {
        let result = CallToolResult::success(vec![ContentBlock::text(text)]);
        assert_eq!(allocations(|| assert!(ExecutionBlocked::from_result(&result).is_err())), 0, "{text}");
        assert_eq!(allocations(|| assert!(ExecutionReceipt::from_result(&result).is_err())), 0, "{text}");
    }
}

#[test]
fn an_execution_allocates_what_its_binding_keeps() {
    fn receipt() -> ToolResponse {
        CallToolResult::success(vec![ContentBlock::text(
            r#"{"decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"}"#,
        )])
        .into()
    }
    let call = || ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
    let bare = allocations_of(&mut engine(receipt), call());
    let mut stack = GovernanceLayer::new(Profile::Execute).layer(engine(receipt));
    let governed = allocations_of(&mut stack, call()) - bare;
    assert_eq!(governed, EXECUTION, "binding 3, receipt 2");
}

/// Allocations of an execution over the bare service: the call's id, its URL and a box for them; the receipt's text and its
/// box.
const EXECUTION: u64 = 5;
