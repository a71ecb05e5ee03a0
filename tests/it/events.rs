//! What the layers find is told once, in an event that holds no value of an argument's and no word of the engine's.

use std::io;

use futures::executor::block_on;
use rmcp::{
    model::{CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ListToolsResult, Tool},
    object,
};
use serde_json::{Value, json};
use tower::{Layer, Service, ServiceExt as _};
use tower_algenta::{
    ArgumentScrubLayer, AuditLayer, BoxError, Error, ExecuteDecision, FlatNamesLayer, GovernanceLayer, HiddenFields,
    OnHidden, Operator, Profile, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer, ToolRequest, ToolResponse,
    Toolset, audit::JsonLines,
};

use crate::{
    checks::Boxed,
    heard::Heard,
    support::{Received, empty_result, recording},
};

/// What is heard of one request through `layer`, with an engine that gives `answer`.
fn heard<L>(layer: &L, request: ToolRequest, answer: impl Into<ToolResponse>) -> Vec<String>
where
    L: Layer<Boxed>,
    L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError>,
{
    let answer = answer.into();
    let engine = Boxed::new(recording(&Received::default(), move |_: &ToolRequest| Ok(answer.clone())));
    Heard::during(|| drop(block_on(layer.layer(engine).oneshot(request))))
}

const fn governed() -> GovernanceLayer {
    GovernanceLayer::new(Profile::Full)
}

const STRIPPED: &str = "WARN tower_algenta message=hidden fields stripped from a call";

#[test]
fn a_call_that_was_stripped_is_one_event() {
    let mut call = CallToolRequestParams::new("query_batch").with_arguments(object!({
        "Force": "4711", "queries": [{"overrideSafety": "4712", "text": "4713"}], "text": "{\"force\": 4714}"
    }));
    call.meta = Some(serde_json::from_value(json!({"com.example/force": "4715"})).unwrap());
    let request = ToolRequest::from(call);
    let fields =
        r#"fields=4 pointers=["/Force", "/queries/0/overrideSafety", "/text/force", "/_meta/com.example~1force"]"#;
    let expected = [format!("{STRIPPED} tool=query_batch {fields}")];
    assert_eq!(heard(&governed(), request.clone(), empty_result()), expected);
    assert_eq!(heard(&ArgumentScrubLayer::new(), request.clone(), empty_result()), expected);

    // Refused, it was not stripped.
    let refusing = ArgumentScrubLayer::new().hidden_fields(HiddenFields::new().on_hidden(OnHidden::Refuse));
    assert_eq!(heard(&refusing, request, empty_result()), [""; 0]);
    let clean = ToolRequest::call("simulate", object!({"scenario": {"force": 9.8}}));
    assert_eq!(heard(&governed(), clean, empty_result()), [""; 0]);
}

#[test]
fn a_name_is_told_escaped_and_cut() {
    let name = format!("a\u{1b}[31m\n{}", "é".repeat(200));
    let request = ToolRequest::call(name, object!({"force": 1}));
    let told = format!(r"a\u{{1b}}[31m\n{}…", "é".repeat(121));
    let expected = [format!(r#"{STRIPPED} tool={told} fields=1 pointers=["/force"]"#)];
    assert_eq!(heard(&ArgumentScrubLayer::new(), request, empty_result()), expected);
}

fn tool(name: &'static str, schema: JsonObject) -> Tool {
    Tool::new(name, "4711", schema)
}

fn list(names: &[&'static str]) -> ListToolsResult {
    ListToolsResult::with_all_items(names.iter().map(|name| tool(name, JsonObject::new())).collect())
}

#[test]
fn each_tool_that_repeats_a_name_is_an_event() {
    let duplicate = "WARN tower_algenta message=duplicate tool name: the later one is not listed";
    let tools = list(&["simulate", "other", "simulate", "recommend", "other", "simulate"]);
    let events = |names: &[&str]| names.iter().map(|name| format!("{duplicate} tool={name}")).collect::<Vec<_>>();
    let all = events(&["simulate", "other", "simulate"]);
    assert_eq!(heard(&governed(), ToolRequest::list(), tools.clone()), all);
    assert_eq!(heard(&ProfileFilterLayer::new(Profile::Full), ToolRequest::list(), tools.clone()), all);
    // What the profile lacks is not listed anyhow.
    let allowed = events(&["simulate", "simulate"]);
    assert_eq!(heard(&GovernanceLayer::new(Profile::Observe), ToolRequest::list(), tools), allowed);
    assert_eq!(heard(&governed(), ToolRequest::list(), list(&["simulate", "recommend"])), [""; 0]);
}

#[test]
fn each_tool_that_cannot_be_scrubbed_is_an_event() {
    let deep = (0..200).fold(json!({"title": "4712"}), |inner, _| json!({"properties": {"a": inner}}));
    let tools = ListToolsResult::with_all_items(vec![
        tool("deep", object!({"properties": {"a": deep}})),
        tool("simulate", object!({"properties": {"force": {"title": "4713"}}})),
        tool("malformed", object!({"properties": ["4714"]})),
    ]);
    let dropped = "WARN tower_algenta message=a tool was dropped from the list";
    let expected = [
        format!("{dropped} tool=deep error=the tool's schema nests more than 128 containers"),
        format!("{dropped} tool=malformed error=the tool's schema names properties in a way that can't be read"),
    ];
    assert_eq!(heard(&governed(), ToolRequest::list(), tools.clone()), expected);
    assert_eq!(heard(&SchemaScrubLayer::new(), ToolRequest::list(), tools), expected);
}

#[test]
fn each_tool_without_a_flat_name_is_an_event() {
    let event = "WARN tower_algenta \
                 message=a tool has no flat name: it is not listed, and a call of it is refused";
    let tools = list(&["simulate", "Query", "algenta_simulate"]);
    let expected = ["Query", "algenta_simulate"].map(|name| format!("{event} tool={name}"));
    assert_eq!(heard(&FlatNamesLayer::new(), ToolRequest::list(), tools), expected);
}

const OVERRIDDEN: &str = "ERROR tower_algenta message=a receipt reports a safety override that nobody made";

fn receipt(safety_overridden: Option<bool>) -> Value {
    let mut receipt = json!({
        "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "4711"
    });
    if let Some(overridden) = safety_overridden {
        receipt["safety_overridden"] = overridden.into();
    }
    receipt
}

fn said(body: &Value) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(body.to_string())])
}

fn execution() -> ToolRequest {
    ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}))
}

#[test]
fn a_safety_override_that_nobody_made_is_one_event() {
    let layers = [false, true].map(|strict| governed().strict(strict));
    for layer in layers {
        assert_eq!(heard(&layer, execution(), said(&receipt(Some(true)))), [OVERRIDDEN]);
        for honest in [None, Some(false)] {
            assert_eq!(heard(&layer, execution(), said(&receipt(honest))), [""; 0]);
        }
        let other = ToolRequest::call("log_decision", object!({}));
        assert_eq!(heard(&layer, other, said(&receipt(Some(true)))), [""; 0]);
    }
    assert_eq!(heard(&ReceiptMappingLayer::new(), execution(), said(&receipt(Some(true)))), [OVERRIDDEN]);
}

#[test]
fn a_safety_override_that_an_operator_made_is_none() {
    for (gate, expected) in [("confidence", &[][..]), ("risk_floor", &[]), ("idempotency", &[OVERRIDDEN])] {
        let engine = recording(&Received::default(), move |request: &ToolRequest| {
            let ToolRequest::Call(call) = request else { panic!("a call") };
            let is_repeat = call.params.arguments.as_ref().is_some_and(|arguments| arguments.len() > 2);
            let denial = json!({"error": {"code": format!("execution_blocked_{gate}"), "gate": gate}});
            Ok(said(&if is_repeat { receipt(Some(true)) } else { denial }).into())
        });
        let events = Heard::during(|| {
            let error = block_on(governed().layer(engine.clone()).oneshot(execution())).map_err(Error::from);
            let Err(Error::Denied(denial)) = error else { panic!("{gate}: {error:?}") };
            block_on(Operator::new(engine).override_denial(&denial)).unwrap();
        });
        assert_eq!(events, expected, "{gate}");
    }
}

/// A toolset looks at what the stack under it has judged once more, and says nothing twice.
#[test]
fn a_safety_override_under_a_toolset_is_one_event() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(said(&receipt(Some(true))).into()));
    let tools = || Toolset::builder().profile(Profile::Execute).service(engine.clone()).build();
    let decision = ExecuteDecision::new("d", "w").unwrap();
    let called = decision.to_arguments();
    assert_eq!(Heard::during(|| drop(block_on(tools().execute(decision)))), [OVERRIDDEN]);
    assert_eq!(Heard::during(|| drop(block_on(tools().call("execute_decision", called)))), [OVERRIDDEN]);
    // Over a stack of the user's that judges nothing, it is the toolset's to say.
    let ungoverned = Toolset::from_governed_stack(engine);
    let decision = ExecuteDecision::new("d", "w").unwrap();
    assert_eq!(Heard::during(|| drop(block_on(ungoverned.execute(decision)))), [OVERRIDDEN]);
}

/// Has no room for anything.
struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_record_that_is_lost_is_an_event() {
    let layer = AuditLayer::new(JsonLines::new(Full));
    for failures in 1..3 {
        let events = heard(&layer, ToolRequest::call("simulate", object!({"a": "4711"})), empty_result());
        let expected = format!(
            "ERROR tower_algenta message=an audit record was lost error={} failures={failures}",
            io::ErrorKind::StorageFull
        );
        assert_eq!(events, [expected]);
    }
}
