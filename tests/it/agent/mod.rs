//! The example `agent`: an agent loop that nobody here wrote, on a scripted model, against the stub engine.

use std::pin::pin;

use futures::StreamExt as _;
use rig_agent::{
    agent::{Agent, AgentBuilder, MultiTurnStreamItem},
    completion::AssistantContent,
    core::{
        message::{ToolCall, ToolFunction, ToolName},
        operation::Finish,
        test_utils::{MockCompletionModel, MockStreamEvent, MockTurn},
    },
    tool::server::ToolServerHandle,
};
use serde_json::{Value, json};
use tower_algenta::{Endpoint, Error, Gate, Profile, StubEngine, Toolset};

mod around;
mod runs;
mod together;

#[path = "../../../examples/agent/main.rs"]
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
