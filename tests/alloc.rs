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
use serde_json::Value;
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

/// A result of one text.
fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// The real server's receipt, as recorded.
fn recorded_receipt() -> CallToolResult {
    let recorded: Value = serde_json::from_str(include_str!("data/execute_results.json")).unwrap();
    let case =
        recorded["cases"].as_array().unwrap().iter().find(|case| case["name"] == "detail/30_execute_ok").unwrap();
    serde_json::from_value(case["result"].clone()).unwrap()
}

/// The recorded receipt without `field`.
fn receipt_without(field: &str) -> CallToolResult {
    let recorded = recorded_receipt();
    let mut fields: JsonObject = serde_json::from_str(&recorded.content[0].as_text().unwrap().text).unwrap();
    fields.remove(field).unwrap();
    text(serde_json::to_string(&fields).unwrap())
}

/// An engine that gives away what it has.
fn giving(
    answer: &CallToolResult,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + use<> {
    let mut answer = Some(ToolResponse::from(answer.clone()));
    service_fn(move |_: ToolRequest| std::future::ready(answer.take().ok_or_else(|| "it is gone".into())))
}

/// What an execution of `decision_id` allocates that is answered with `answer`, and whether it succeeds.
fn execution_of(decision_id: &str, answer: &CallToolResult) -> (u64, bool) {
    let arguments = object!({"decision_id": decision_id, "webhook_url": "http://127.0.0.1:18802/hook"});
    let request = ToolRequest::call("execute_decision", arguments);
    let mut stack = GovernanceLayer::new(Profile::Execute).layer(giving(answer));
    let mut is_ok = false;
    let counted = allocations(|| is_ok = ready(stack.call(request)).is_ok());
    (counted, is_ok)
}

const RATE_LIMIT: &str = r#"{"error": {"code": "rate_limit_exceeded", "message": "slow down", "status_code": 429}}"#;

#[test]
fn an_object_is_judged_without_allocating() {
    let objects =
        [text("{}"), text(r#"{"a": 1}"#), text(RATE_LIMIT), receipt_without("executed_at"), recorded_receipt()];
    for result in objects {
        assert_eq!(allocations(|| assert!(ExecutionBlocked::from_result(&result).is_err())), 0, "{result:?}");
    }
    for none in ["{}", RATE_LIMIT] {
        let none = text(none);
        assert_eq!(allocations(|| assert!(ExecutionReceipt::from_result(&none).is_err())), 0, "{none:?}");
    }
}

/// An object that is found to be no receipt is parsed after that, to say which field is missing.
#[test]
fn what_is_missing_of_a_receipt_is_named_at_the_cost_of_parsing_it() {
    let other = text(r#"{"a": 1}"#);
    assert_eq!(allocations(|| assert!(ExecutionReceipt::from_result(&other).is_err())), 2);
    for field in ["decision_id", "webhook_url", "execution_status", "executed_at"] {
        let result = receipt_without(field);
        let mut told = None;
        let counted = allocations(|| told = ExecutionReceipt::from_result(&result).unwrap_err().field());
        assert_eq!((counted, told), (18, Some(field)));
    }
}

#[test]
fn a_receipt_allocates_its_text() {
    let recorded = recorded_receipt();
    assert_eq!(allocations(|| assert!(ExecutionReceipt::from_result(&recorded).is_ok())), 1);
    let mut structured = recorded.clone();
    structured.structured_content = serde_json::from_str(&recorded.content[0].as_text().unwrap().text).ok();
    structured.content.clear();
    let clone = allocations(|| drop(structured.structured_content.clone()));
    let read = allocations(|| assert!(ExecutionReceipt::from_result(&structured).is_ok()));
    assert_eq!((read, clone), (20, 20), "the structured content, which it keeps a copy of");
}

/// Three bind the call, and a failure and its box are two. The rest is said beside each.
#[test]
fn an_execution_allocates_by_its_outcome() {
    assert_eq!(execution_of("dec_1", &recorded_receipt()), (3 + 2, true), "a receipt's text and its box");
    assert_eq!(execution_of("dec_9", &recorded_receipt()), (5 + 1, false), "the text of another decision's");
    assert_eq!(execution_of("dec_1", &text("{}")), (5, false), "an empty object");
    assert_eq!(
        execution_of("dec_1", &receipt_without("executed_at")),
        (5 + 18, false),
        "a map, to say what is missing"
    );
    assert_eq!(execution_of("dec_1", &text(RATE_LIMIT)), (3 + 16, true), "nothing ran, which two maps of it prove");
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
