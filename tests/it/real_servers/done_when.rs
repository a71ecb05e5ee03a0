//! What a user does first: the command line against the real server, and a Python client against the stub.

use serde_json::{Value, json};
use tokio::process::Command;
use tower_algenta::{StubEngine, stub::Wire};

use super::{Process, algenta::Engine, programs, script};
use crate::command_line::{execute, run};

#[tokio::test]
async fn the_command_line_against_the_real_server() {
    let Some(engine) = Engine::start("the command line against algenta-mcp").await else { return };
    let url = &engine.server.url;
    let (code, printed) = run(url, &["list", "--profile", "execute"]).await;
    assert_eq!(code, 0);
    let lines: Vec<_> = printed.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(lines.len(), 7, "{printed}");
    assert!(lines.contains(&vec!["execute_decision", "execute", "force,", "override_safety"]), "{printed}");
    let (_, printed) = run(url, &["list", "--profile", "execute", "--json"]).await;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&printed).unwrap().len(), 7);
    assert!(!printed.contains("\"force\"") && !printed.contains("override_safety"), "{printed}");

    let (code, printed) = execute(url, "decision-hold", &[]).await;
    assert_eq!((code, &printed["outcome"]), (0, &json!("receipt")));
    let (code, printed) = execute(url, "decision-hold", &[]).await;
    assert_eq!((code, &printed["outcome"], &printed["gate"]), (3, &json!("denied"), &json!("idempotency")));
}

/// What a client on this line of the SDK gets from the scenarios.
async fn played(list: &str, url: &str) -> Vec<Value> {
    let python = programs(list, "a Python client").unwrap().join("python");
    let output = Command::new(python).arg(script("client.py")).arg(url).kill_on_drop(true).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The stub is no nearer to a server on the SDK than its last byte.
#[tokio::test]
async fn a_python_client_cannot_tell_the_stub_from_a_server_on_the_sdk() {
    for (list, mode) in [("sdk1", "raise"), ("sdk2", "tool-error")] {
        let Some(programs) = programs(list, "a Python client against the stub") else { continue };
        let server = Process::start(|port| {
            let mut command = Command::new(programs.join("python"));
            command.arg(script("sdk_server.py")).arg(port.to_string()).arg(mode);
            command
        })
        .await;
        let engine = StubEngine::builder().wire(Wire::PythonSdk).start().await.unwrap();
        let by_stub = played(list, &engine.url()).await;
        assert_eq!(by_stub, played(list, &server.url).await, "{list}");

        let denied: Vec<_> = by_stub.iter().map(|call| call[1].as_bool().unwrap()).collect();
        let expected = [0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0].map(|denied| denied == 1);
        assert_eq!(denied, expected, "{list}");
        assert_eq!(engine.received().len(), denied.len());
        assert_eq!(engine.executed("decision-failed-delivery"), 2);
    }
}
