//! The same servers as child processes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::object;
use tower_algenta::{
    EngineClient, Error, ExecuteDecision, Gate, Profile, Toolset,
    client::{ChildProcess, ConnectError, ConnectErrorKind},
};

use super::{
    HOOK, START_TIMEOUT, TOKEN,
    algenta::{FORMS, GATES, rest},
    named, programs, script,
};

async fn spawn(child: ChildProcess) -> (EngineClient, Toolset) {
    // Python's own noise is of interest only when something fails, and the tests see that by themselves.
    let child = child.connect_timeout(START_TIMEOUT).on_stderr(|_| {});
    let client = EngineClient::spawn(child).await.unwrap();
    let tools = Toolset::builder().profile(Profile::Execute).service(client.clone()).build();
    (client, tools)
}

async fn execute(tools: &Toolset, id: &str) -> Result<tower_algenta::ExecutionReceipt, Error> {
    tools.execute(ExecuteDecision::new(id, HOOK).unwrap()).await
}

#[tokio::test]
async fn the_real_server() {
    let Some(programs) = programs("algenta", "algenta-mcp as a child process") else { return };
    let rest = rest().await;
    let child = ChildProcess::new(programs.join("algenta-mcp"))
        .env("ALGENTA_BASE_URL", rest.url.strip_suffix("/mcp").unwrap())
        .env("ALGENTA_API_KEY", TOKEN);
    let (client, tools) = spawn(child).await;
    let version = client.protocol_version().unwrap();
    assert_eq!(tools.list().await.unwrap().len(), 7);

    let receipt = execute(&tools, "sound").await.unwrap();
    assert!(receipt.is_delivered());
    let denial = execute(&tools, "sound").await.unwrap_err();
    assert_eq!(denial.denial().map(|denial| denial.gate().clone()), Some(Gate::Idempotency));
    assert!(!execute(&tools, "failed-delivery").await.unwrap().is_delivered());
    for gate in GATES {
        for form in FORMS {
            let outcome = execute(&tools, &format!("{gate}.{form}")).await;
            println!("algenta-mcp, stdio | {version} | {gate} | {form} | {}", named(&outcome));
            assert_eq!(outcome.unwrap_err().denial().unwrap().gate().to_string(), gate, "{form}");
        }
    }
    assert!(matches!(execute(&tools, "typed-status-404").await, Err(Error::Rejected(_))));
    assert!(matches!(execute(&tools, "typed-status-503").await, Err(Error::OutcomeUnknown(_))));

    let before = rest.all().len();
    let smuggled = object!({"decision_id": "smuggled", "webhook_url": HOOK, "force": true, "overrideSafety": true});
    tools.call("execute_decision", smuggled).await.unwrap();
    let body = &rest.all()[before].body;
    assert_eq!(*body, serde_json::json!({"webhook_url": HOOK}));
    let traversing = object!({"decision_id": "../decisions/plan?x=", "webhook_url": HOOK});
    let error = tools.call("execute_decision", traversing).await.unwrap_err();
    assert!(matches!(error, Error::InvalidArguments(_)));
    assert_eq!(rest.all().len(), before + 1);
    client.close().await.unwrap();
}

#[tokio::test]
async fn servers_on_the_sdk() {
    for (list, mode) in [("sdk1", "raise"), ("sdk1", "return"), ("sdk2", "tool-error"), ("sdk2", "data")] {
        let Some(programs) = programs(list, "a server on the Python SDK as a child process") else { continue };
        let child = ChildProcess::new(programs.join("python")).arg(script("sdk_server.py")).args(["stdio", mode]);
        let (client, tools) = spawn(child).await;
        let version = client.protocol_version().unwrap();
        assert!(execute(&tools, "decision-hold").await.unwrap().is_delivered(), "{list}, {mode}");
        for (id, gate) in [
            ("decision-hold", "idempotency"),
            ("decision-low-confidence", "confidence"),
            ("decision-low-risk-floor", "risk_floor"),
        ] {
            let outcome = execute(&tools, id).await;
            println!("{list}, stdio | {version} | {gate} | {mode} | {}", named(&outcome));
            assert_eq!(outcome.unwrap_err().denial().unwrap().gate().to_string(), gate, "{list}, {mode}");
        }
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_cannot_start() {
    let Some(programs) = programs("algenta", "algenta-mcp that cannot start") else { return };
    let said = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&said);
    let child = ChildProcess::new(programs.join("algenta-mcp"))
        .args(["--mode", "nonsense"])
        .connect_timeout(START_TIMEOUT)
        .on_stderr(move |line| kept.lock().unwrap().push_str(line));
    let Error::NotSent(error) = EngineClient::spawn(child).await.unwrap_err() else { panic!("it was sent") };
    let kind = error.downcast_ref::<ConnectError>().unwrap().kind();
    assert!(matches!(kind, ConnectErrorKind::Exited(status) if status.code() == Some(2)), "{kind:?}");
    while !said.lock().unwrap().contains("invalid choice: 'nonsense'") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
