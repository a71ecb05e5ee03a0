//! Clients that nobody here wrote, through the example `gateway`: SDKs, agent frameworks, the official conformance suite.
//!
//! `.ci/python` and `.ci/node` install them. Without them these tests pass and say what they skipped.

mod conformance;

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{process::Command, time::timeout};
use tower_algenta::StubEngine;

use crate::{
    gateway::process::Gateway,
    real_servers::{programs, script},
};

/// Python takes its time to start, the more so on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// The folder that `.ci/node` made; `None`, with a word on it, if it did not.
fn node(test: &str) -> Option<PathBuf> {
    programs("node", test)?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../node");
    assert!(folder.join(".installed").exists(), "`.ci/node` follows `.ci/python`");
    Some(folder)
}

/// Has a client play its part through a gateway under `execute`, and looks at what its user gets.
async fn play(client: &str, command: impl FnOnce() -> Command) {
    let engine = StubEngine::start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute"]).await;
    let output = command().arg(&gateway.url).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(LIMIT, output).await.expect("the client ends").unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let played: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{client}: {error}\n{out}\n{err}"));

    let names =
        ["execute_decision", "get_contract", "log_decision", "plan_decision", "query_data", "recommend", "simulate"];
    assert_eq!(played["names"], serde_json::json!(names), "{client}");
    let schemas = played["schemas"].as_str().unwrap();
    assert!(!schemas.contains("override_safety") && !schemas.contains("\"force\""), "{client}: {schemas}");
    assert_eq!(played["simulate"][0], "result", "{client}: {played}");
    assert_eq!(played["execute"][0], "result", "{client}: {played}");
    // A denial and a refusal are failures, and teach nothing.
    for failed in ["again", "excluded"] {
        assert_eq!(played[failed][0], "failure", "{client}: {played}");
        let said = played[failed][1].as_str().unwrap();
        assert!(!said.contains("force") && !said.contains("override"), "{client}: {said}");
    }
    assert!(played["again"][1].as_str().unwrap().contains("idempotency"), "{client}: {played}");

    assert_eq!(engine.executed("decision-7"), 1, "{client}");
    for received in engine.received() {
        let arguments = serde_json::to_string(&received.arguments).unwrap();
        assert!(!arguments.contains("force") && !arguments.contains("overrideSafety"), "{client}: {arguments}");
    }
}

async fn python(client: &str, list: &str) {
    let Some(folder) = programs(list, &format!("the client {client}")) else { return };
    play(client, || {
        let mut command = Command::new(folder.join("python"));
        command.arg(script("clients.py")).arg(client);
        command
    })
    .await;
}

#[tokio::test]
async fn the_python_sdk_1() {
    python("mcp1", "sdk1").await;
}

#[tokio::test]
async fn the_python_sdk_2() {
    python("mcp2", "sdk2").await;
}

#[tokio::test]
async fn agent_framework() {
    python("agent_framework", "agent_framework").await;
}

#[tokio::test]
async fn pydantic_ai() {
    python("pydantic_ai", "pydantic_ai").await;
}

#[tokio::test]
async fn fastmcp() {
    python("fastmcp", "fastmcp").await;
}

#[tokio::test]
async fn langchain() {
    python("langchain", "langchain").await;
}

#[tokio::test]
async fn the_typescript_sdk() {
    let Some(folder) = node("the TypeScript SDK") else { return };
    play("typescript", || {
        let mut command = Command::new(folder.join("node"));
        command.arg(folder.join("client.mjs"));
        command
    })
    .await;
}
