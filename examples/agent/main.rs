//! A rig agent with governed tools, a scripted model and an engine inside this process:
//! `cargo run --example agent --features rig-example`.
//!
//! In production the model is a provider's and the endpoint `Endpoint::resolve(None)`; all else stays as it is.

pub(crate) mod adapter;

use std::{
    io::{self, Write},
    pin::pin,
};

use futures::StreamExt as _;
use rig_agent::{
    agent::{AgentBuilder, MultiTurnStreamItem},
    completion::{AssistantContent, Message, PromptError},
    core::{
        message::{ToolCall, ToolResultContent, UserContent},
        operation::Finish,
        test_utils::{MockCompletionModel, MockStreamEvent, MockTurn},
    },
    tool::server::ToolServerHandle,
};
use serde_json::{Value, json};
use tower_algenta::{BoxError, Endpoint, Error, Profile, StubEngine, Toolset};

const HOOK: &str = "https://hooks.example/algenta";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    story(&mut io::stdout()).await
}

/// Tells of three runs.
pub(crate) async fn story(out: &mut impl Write) -> Result<(), BoxError> {
    let engine = StubEngine::start().await?;
    let endpoint = Endpoint::new(engine.url())?;
    let toolset = Toolset::builder().profile(Profile::Execute).endpoint(endpoint).connect().await?;
    let tools = adapter::tools(&toolset).await?;

    writeln!(out, "1. Nothing is denied. A tool's own error is the model's to read, and the run goes on.")?;
    allowed(out, tools.clone()).await?;
    writeln!(out, "\n2. A gate denies the execution. The run ends there, and the model never learns of it.")?;
    denied(out, tools.clone()).await?;
    writeln!(out, "            executions of that decision: {}", engine.executed("decision-low-confidence"))?;
    writeln!(out, "\n3. The same when streaming, with two executions side by side, of which one is denied.")?;
    streamed(out, tools).await?;

    toolset.close().await?;
    engine.shutdown().await;
    Ok(())
}

async fn allowed(out: &mut impl Write, tools: ToolServerHandle) -> Result<(), BoxError> {
    let model = MockCompletionModel::from_turns([
        MockTurn::tool_call("1", "simulate", json!({})),
        MockTurn::tool_call("2", "simulate", json!({"scenario": "expand-to-eu"})),
        MockTurn::tool_call("3", "execute_decision", execution("decision-7")),
        MockTurn::text("It pays. The decision is delivered."),
    ]);
    let agent = AgentBuilder::new(model).tool_server_handle(tools).build();
    let response = adapter::run(agent.prompt("Expand to the EU if it pays.").max_turns(5)).await?;
    transcript(out, response.messages())?;
    Ok(())
}

async fn denied(out: &mut impl Write, tools: ToolServerHandle) -> Result<(), BoxError> {
    let model = MockCompletionModel::from_turns([
        MockTurn::tool_call("1", "execute_decision", execution("decision-low-confidence")),
        MockTurn::text("I will find another way."),
    ]);
    let agent = AgentBuilder::new(model.clone()).tool_server_handle(tools).build();
    let run = adapter::run(agent.prompt("Deliver the other decision, whatever it takes.").max_turns(5)).await;
    let error = run.err().ok_or("the run was not aborted")?;
    let Some(Error::Denied(denial)) = Error::find(&error) else { return Err(error.into()) };
    if let Some(PromptError::Cancelled { chat_history, .. }) = error.rig() {
        transcript(out, chat_history)?;
    }
    writeln!(out, "   caller   {error}")?;
    writeln!(out, "            the gate, from the typed error: {}", denial.gate())?;
    let (asked, left) = (model.request_count(), model.script().len());
    writeln!(out, "            the model was asked {asked} time, and {left} turn of its script is left")?;
    Ok(())
}

async fn streamed(out: &mut impl Write, tools: ToolServerHandle) -> Result<(), BoxError> {
    let model = MockCompletionModel::from_stream_turns([[
        MockStreamEvent::tool_call("1", "execute_decision", execution("decision-8")),
        MockStreamEvent::tool_call("2", "execute_decision", execution("decision-low-risk-floor")),
        MockStreamEvent::FinalResponse(Finish::default()),
    ]]);
    let agent = AgentBuilder::new(model).tool_server_handle(tools).build();
    let mut items = pin!(adapter::stream(agent.prompt("Deliver both.").max_turns(5).tool_concurrency(2)));
    while let Some(item) = items.next().await {
        match item {
            Ok(MultiTurnStreamItem::ToolCall { tool_call }) => call(out, &tool_call)?,
            Ok(MultiTurnStreamItem::FinalResponse(_)) => return Err("the run was not aborted".into()),
            Ok(_) => {}
            Err(error) => {
                for failure in error.failures() {
                    writeln!(out, "   caller   {failure}")?;
                }
                for receipt in error.receipts() {
                    writeln!(out, "            went through: {}, {}", receipt.decision_id(), receipt.status())?;
                }
            }
        }
    }
    Ok(())
}

/// Prints what was said, and what was called.
fn transcript(out: &mut impl Write, messages: &[Message]) -> io::Result<()> {
    for message in messages {
        match message {
            Message::User { content } => {
                for part in content {
                    match part {
                        UserContent::Text(text) => writeln!(out, "   user     {}", text.text)?,
                        UserContent::ToolResult(result) => {
                            for text in result.content.iter().filter_map(ToolResultContent::as_text) {
                                writeln!(out, "   tool     {}", compact(text))?;
                            }
                        }
                        _ => {}
                    }
                }
            }
            Message::Assistant(turn) => {
                for part in &turn.content {
                    match part {
                        AssistantContent::Text(text) => writeln!(out, "   model    {}", text.text)?,
                        AssistantContent::ToolCall(tool_call) => call(out, tool_call)?,
                        _ => {}
                    }
                }
            }
            Message::System { .. } => {}
        }
    }
    Ok(())
}

fn call(out: &mut impl Write, call: &ToolCall) -> io::Result<()> {
    let arguments = Value::Object(call.function.arguments.clone());
    writeln!(out, "   model    calls {} {arguments}", call.function.name)
}

fn execution(decision_id: &str) -> Value {
    json!({"decision_id": decision_id, "webhook_url": HOOK})
}

/// JSON on one line.
fn compact(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}
