//! The example `agent`: an agent loop that nobody here wrote, on a scripted model, against the stub engine.

use std::{pin::pin, time::Duration};

use futures::StreamExt as _;
use rig_agent::{
    agent::{Agent, AgentBuilder, AgentHook, HookContext, MultiTurnStreamItem, OutcomeAction, OutcomeEvent},
    completion::{AssistantContent, PromptError},
    core::{
        effect::Outcome,
        message::{ToolCall, ToolFunction, ToolName},
        operation::Finish,
        test_utils::{MockCompletionModel, MockStreamEvent, MockTurn},
    },
    tool::{ToolOutput, ToolResult, server::ToolServerHandle},
};
use serde_json::{Value, json};
use tower_algenta::{
    Endpoint, Error, Gate, Profile, StubEngine, Toolset,
    stub::{Fault, Wire},
};

#[path = "../../examples/agent/main.rs"]
#[expect(dead_code, reason = "its `main` is for the program")]
mod program;

use program::adapter::{self, RunError};

const EXECUTE: &str = "execute_decision";

/// How a run is driven.
#[derive(Clone, Copy, Debug)]
enum Medium {
    Awaited,
    Streamed,
}

const MEDIA: [Medium; 2] = [Medium::Awaited, Medium::Streamed];

/// What the model says in one turn.
#[derive(Clone)]
enum Turn {
    Calls(Vec<(&'static str, Value)>),
    Text(&'static str),
}

fn execution(decision_id: &str) -> (&'static str, Value) {
    (EXECUTE, json!({"decision_id": decision_id, "webhook_url": "https://hooks.example/x"}))
}

fn simulation() -> (&'static str, Value) {
    ("simulate", json!({"scenario": "expand-to-eu"}))
}

/// A model that says `turns`, one after the other, whatever it reads.
fn scripted(medium: Medium, turns: &[Turn]) -> MockCompletionModel {
    match medium {
        Medium::Awaited => MockCompletionModel::from_turns(turns.iter().map(|turn| match turn {
            Turn::Text(text) => MockTurn::text(*text),
            Turn::Calls(calls) => MockTurn::from_contents(calls.iter().enumerate().map(|(id, (name, arguments))| {
                let function = ToolFunction::new(ToolName::new(*name).unwrap(), arguments.clone());
                AssistantContent::ToolCall(ToolCall::from_wire(format!("call-{id}"), function))
            })),
        })),
        Medium::Streamed => MockCompletionModel::from_stream_turns(turns.iter().map(|turn| {
            let mut events: Vec<_> = match turn {
                Turn::Text(text) => vec![MockStreamEvent::text(*text)],
                Turn::Calls(calls) => calls
                    .iter()
                    .enumerate()
                    .map(|(id, (name, arguments))| {
                        MockStreamEvent::tool_call(format!("call-{id}"), *name, arguments.clone())
                    })
                    .collect(),
            };
            events.push(MockStreamEvent::FinalResponse(Finish::default()));
            events
        })),
    }
}

/// The governed tools of `engine`, under `execute`.
async fn tools(engine: &StubEngine) -> ToolServerHandle {
    let endpoint = Endpoint::new(engine.url()).unwrap();
    let toolset = Toolset::builder().profile(Profile::Execute).endpoint(endpoint).connect().await.unwrap();
    adapter::tools(&toolset).await.unwrap()
}

fn agent(model: &MockCompletionModel, tools: &ToolServerHandle) -> Agent {
    AgentBuilder::new(model.clone()).tool_server_handle(tools.clone()).build()
}

/// Drives a run of `agent` to its end; with a stream, asserts that nothing comes after its end.
async fn drive(medium: Medium, agent: &Agent, concurrency: usize) -> Result<String, RunError> {
    let runner = agent.prompt("Go.").max_turns(8).tool_concurrency(concurrency);
    match medium {
        Medium::Awaited => adapter::run(runner).await.map(|response| response.output()),
        Medium::Streamed => {
            let mut items = pin!(adapter::stream(runner));
            let mut end = None;
            while let Some(item) = items.next().await {
                assert!(end.is_none(), "an item after the end");
                match item {
                    Ok(MultiTurnStreamItem::FinalResponse(response)) => end = Some(Ok(response.output())),
                    Ok(_) => {}
                    Err(error) => end = Some(Err(error)),
                }
            }
            end.expect("the stream has an end")
        }
    }
}

/// A run on a script: how it ended, and what its model has read.
async fn run(
    medium: Medium,
    engine: &StubEngine,
    turns: &[Turn],
    concurrency: usize,
) -> (Result<String, RunError>, MockCompletionModel) {
    let model = scripted(medium, turns);
    let outcome = drive(medium, &agent(&model, &tools(engine).await), concurrency).await;
    (outcome, model)
}

/// All messages that `model` was sent, as JSON.
fn read(model: &MockCompletionModel) -> String {
    model.requests().iter().map(|request| serde_json::to_string(&request.chat_history).unwrap()).collect()
}

/// The model was asked once, before its first call, and so has read no answer of any tool.
#[track_caller]
fn assert_asked_once(model: &MockCompletionModel) {
    assert_eq!(model.request_count(), 1);
    let read = read(model);
    for trace in ["toolresult", "blocked", "gate", "denied", "override", "cancel", "unknown"] {
        assert!(!read.to_lowercase().contains(trace), "{trace} in {read}");
    }
    assert!(model.requests().iter().all(|request| request.tools.len() == 7));
}

/// The denial, as the caller of the run finds it.
#[track_caller]
fn gate(error: &RunError) -> &Gate {
    match Error::find(error) {
        Some(Error::Denied(denial)) => denial.gate(),
        other => panic!("{other:?} in {error:?}"),
    }
}

#[tokio::test]
async fn an_allowed_run_goes_to_its_end() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let turns =
            [Turn::Calls(vec![simulation()]), Turn::Calls(vec![execution("decision-7")]), Turn::Text("Delivered.")];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(outcome.unwrap(), "Delivered.");
        assert_eq!((model.request_count(), engine.executed("decision-7")), (3, 1));
        let read = read(&model);
        assert!(read.contains("expected_value") && read.contains("executed_at"), "{read}");
        let offered = serde_json::to_string(&model.requests()[0].tools).unwrap();
        assert!(offered.contains(EXECUTE) && !offered.contains("override_safety") && !offered.contains("\"force\""));
    }
}

#[tokio::test]
async fn a_denial_ends_the_run_and_reaches_its_caller_typed() {
    for medium in MEDIA {
        for wire in [Wire::Algenta, Wire::Algenta1_0_27, Wire::JsonRpcError] {
            for (decision, expected) in [
                ("decision-low-confidence", Gate::Confidence),
                ("decision-low-risk-floor", Gate::RiskFloor),
                ("decision-two-gates", Gate::Idempotency),
            ] {
                let engine = StubEngine::builder().wire(wire).start().await.unwrap();
                let turns = [Turn::Calls(vec![execution(decision)]), Turn::Text("Another way.")];
                let (outcome, model) = run(medium, &engine, &turns, 1).await;
                let error = outcome.unwrap_err();
                assert_eq!(gate(&error), &expected);
                assert_eq!((error.failures().len(), error.receipts().len()), (1, 0));
                assert!(matches!(error.rig(), Some(PromptError::Cancelled { .. })), "{:?}", error.rig());
                assert_asked_once(&model);
                assert_eq!((engine.received().len(), engine.executions().len()), (1, 0));
            }
        }
    }
}

#[tokio::test]
async fn a_failure_and_an_unknown_outcome_end_the_run_too() {
    for medium in MEDIA {
        for (fault, kind) in [
            (Fault::EmptyResult, "execution_failed"),
            (Fault::TaskHandle, "execution_failed"),
            (Fault::ServerError, "outcome_unknown"),
            (Fault::DropAfter, "outcome_unknown"),
        ] {
            let engine = StubEngine::builder().fault(fault).start().await.unwrap();
            let turns = [Turn::Calls(vec![execution("decision-7")]), Turn::Text("Once more.")];
            let (outcome, model) = run(medium, &engine, &turns, 1).await;
            let error = outcome.unwrap_err();
            assert_eq!(Error::find(&error).unwrap().kind(), kind, "{fault:?}");
            assert!(error.failures()[0].is_governed_failure());
            assert_asked_once(&model);
            assert_eq!((engine.received().len(), engine.executed("decision-7")), (1, 1), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn a_tools_own_error_is_the_models_to_read() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let turns =
            [Turn::Calls(vec![("simulate", json!({}))]), Turn::Calls(vec![simulation()]), Turn::Text("It pays.")];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(outcome.unwrap(), "It pays.");
        let answers = read(&model);
        assert!(answers.contains("invalid_arguments") && answers.contains("\"is_error\":true"), "{answers}");
        assert_eq!((model.request_count(), engine.received().len()), (3, 2));
    }
}

#[tokio::test]
async fn a_refusal_is_told_in_plain_words_and_nothing_was_called() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let turns = [
            Turn::Calls(vec![execution("../decisions/plan?x=")]),
            Turn::Calls(vec![execution("decision-7")]),
            Turn::Text("Delivered."),
        ];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(outcome.unwrap(), "Delivered.");
        let answers = read(&model);
        assert!(answers.contains("decision_id") && answers.contains("\"is_error\":true"), "{answers}");
        assert_eq!((engine.received().len(), engine.executed("decision-7")), (1, 1));
    }
}

#[tokio::test]
async fn a_network_error_of_another_tool_keeps_its_text_from_the_model() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let (url, tools) = (engine.url(), tools(&engine).await);
        engine.shutdown().await;
        let model = scripted(medium, &[Turn::Calls(vec![simulation()]), Turn::Text("It is away.")]);
        assert_eq!(drive(medium, &agent(&model, &tools), 1).await.unwrap(), "It is away.");
        let answers = read(&model);
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        assert!(answers.contains("\"is_error\":true") && !answers.contains(address), "{answers}");
    }
}

#[tokio::test]
async fn of_two_calls_side_by_side_one_is_denied() {
    for medium in MEDIA {
        for calls in [["decision-7", "decision-low-confidence"], ["decision-low-confidence", "decision-7"]] {
            // So that neither is answered before the other is called.
            let engine = StubEngine::builder().delay(Duration::from_millis(200)).start().await.unwrap();
            let turns = [Turn::Calls(calls.map(execution).to_vec()), Turn::Text("Another way.")];
            let (outcome, model) = run(medium, &engine, &turns, 2).await;
            let error = outcome.unwrap_err();
            assert_eq!(gate(&error), &Gate::Confidence);
            assert_asked_once(&model);
            // What went through beside it is not lost, though rig drops the results of the turn.
            let executed: Vec<_> = error.receipts().iter().map(|receipt| receipt.decision_id().to_owned()).collect();
            assert_eq!(executed, ["decision-7"], "{calls:?}");
            assert_eq!((engine.received().len(), engine.executed("decision-7")), (2, 1));
        }
    }
}

#[tokio::test]
async fn both_denials_of_a_turn_reach_the_caller() {
    for medium in MEDIA {
        let engine = StubEngine::builder().delay(Duration::from_millis(200)).start().await.unwrap();
        let calls = ["decision-low-risk-floor", "decision-low-confidence"];
        let turns = [Turn::Calls(calls.map(execution).to_vec()), Turn::Text("Another way.")];
        let (outcome, model) = run(medium, &engine, &turns, 2).await;
        let error = outcome.unwrap_err();
        let mut gates: Vec<_> = error.failures().iter().map(|error| error.denial().unwrap().gate().clone()).collect();
        gates.sort_by_key(ToString::to_string);
        assert_eq!(gates, [Gate::Confidence, Gate::RiskFloor]);
        assert_asked_once(&model);
    }
}

#[tokio::test]
async fn one_after_the_other_the_calls_after_a_denial_are_not_made() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let calls = ["decision-low-confidence", "decision-7"];
        let turns = [Turn::Calls(calls.map(execution).to_vec()), Turn::Text("Another way.")];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(gate(&outcome.unwrap_err()), &Gate::Confidence);
        assert_asked_once(&model);
        assert_eq!((engine.received().len(), engine.executions().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_run_does_not_end_for_the_denial_of_another() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let tools = tools(&engine).await;
        let script = |decision| scripted(medium, &[Turn::Calls(vec![execution(decision)]), Turn::Text("Done.")]);
        let (denied, allowed) = (script("decision-low-confidence"), script("decision-7"));
        let (denied, allowed) = (agent(&denied, &tools), agent(&allowed, &tools));
        let (denied, allowed) = tokio::join!(drive(medium, &denied, 1), drive(medium, &allowed, 1));
        assert_eq!(gate(&denied.unwrap_err()), &Gate::Confidence);
        assert_eq!(allowed.unwrap(), "Done.");
        assert_eq!(engine.executed("decision-7"), 1);
    }
}

/// Whoever forgets the adapter's `run` loses the type, not the end of the run.
#[tokio::test]
async fn a_bare_prompt_is_cancelled_as_well() {
    let engine = StubEngine::start().await.unwrap();
    let turns = [Turn::Calls(vec![execution("decision-low-confidence")]), Turn::Text("Another way.")];
    let model = scripted(Medium::Awaited, &turns);
    let error = agent(&model, &tools(&engine).await).prompt("Go.").max_turns(8).await.unwrap_err();
    assert!(
        matches!(&error, PromptError::Cancelled { reason, .. } if reason == "execution blocked by the confidence gate"),
        "{error:?}"
    );
    assert_asked_once(&model);
}

/// A hook that makes a result of whatever a tool ends in.
struct Whitewash;

impl AgentHook for Whitewash {
    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        match event.outcome {
            Err(_) => OutcomeAction::Replace(Ok(Outcome::ToolResult {
                result: ToolResult::success(ToolOutput::text("fine")),
            })),
            Ok(_) => OutcomeAction::proceed(),
        }
    }
}

#[tokio::test]
async fn a_hook_cannot_make_a_success_of_a_denied_run() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let turns = [
            Turn::Calls(vec![execution("decision-low-confidence")]),
            Turn::Calls(vec![execution("decision-7")]),
            Turn::Text("Delivered."),
        ];
        let model = scripted(medium, &turns);
        let tools = tools(&engine).await;
        let agent = AgentBuilder::new(model).tool_server_handle(tools).add_hook(Whitewash).build();
        let error = drive(medium, &agent, 1).await.unwrap_err();
        assert_eq!(gate(&error), &Gate::Confidence);
        // No governed tool answers after that.
        assert_eq!((engine.received().len(), engine.executions().len()), (1, 0));
    }
}

#[tokio::test]
async fn an_agent_below_another_one_takes_its_denial_past_both_models() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let inner = [Turn::Calls(vec![execution("decision-low-confidence")]), Turn::Text("Another way.")];
        let inner = scripted(Medium::Awaited, &inner);
        let below = AgentBuilder::new(inner.clone())
            .name("deputy")
            .default_max_turns(8)
            .tool_server_handle(tools(&engine).await)
            .build();
        let outer = scripted(medium, &[Turn::Calls(vec![("deputy", json!({"prompt": "Go."}))]), Turn::Text("Done.")]);
        let above = AgentBuilder::new(outer.clone()).dynamic_tool(below.into_tool().unwrap()).build();
        let error = drive(medium, &above, 1).await.unwrap_err();
        assert_eq!(gate(&error), &Gate::Confidence);
        assert_asked_once(&inner);
        let answers = read(&outer);
        assert!(!answers.contains("blocked") && !answers.contains("gate") && !answers.contains("cancel"), "{answers}");
    }
}

#[tokio::test]
async fn what_the_example_prints() {
    let mut printed = Vec::new();
    program::story(&mut printed).await.unwrap();
    let printed = String::from_utf8(printed).unwrap();
    for line in [
        "   model    It pays. The decision is delivered.",
        "   caller   the run was aborted: execution blocked by the confidence gate",
        "            the gate, from the typed error: confidence",
        "            the model was asked 1 time, and 1 turn of its script is left",
        "            executions of that decision: 0",
        "   caller   execution blocked by the risk_floor gate",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line} in\n{printed}");
    }
    assert!(!printed.contains("another way"), "{printed}");
}
