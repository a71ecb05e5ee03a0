//! The example `gateway`: a real process, between real clients and the stub engine.

mod callers;
mod lifecycle;
pub(crate) mod process;

use rmcp::{
    RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation},
    object,
    service::RunningService,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use tokio::time::timeout;
use tower_algenta::{
    Endpoint, EngineClient, Profile, StubEngine, Toolset,
    client::{BearerToken, ChildProcess},
};

use process::{Gateway, SOON, program, refusal};

/// A client with a token, or none.
async fn toolset(url: &str, token: Option<&str>) -> Result<Toolset, tower_algenta::Error> {
    let mut endpoint = Endpoint::new(url).unwrap();
    if let Some(token) = token {
        endpoint = endpoint.token(BearerToken::new(token).unwrap());
    }
    // Under `full`, so that what is missing is missing for the gateway's sake.
    timeout(SOON, Toolset::builder().profile(Profile::Full).endpoint(endpoint).connect()).await.expect("it ends")
}

/// A plain rmcp client, of this crate's making in no part.
async fn plain(url: &str) -> RunningService<RoleClient, ClientConfig> {
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::from_config(config);
    let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("plain", "1"));
    timeout(SOON, client.serve(transport)).await.expect("it ends").unwrap()
}

#[tokio::test]
async fn a_plain_client_lists_and_calls() {
    let engine = StubEngine::start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute"]).await;
    assert!(gateway.summary.contains("anyone, under execute: get_contract"), "{}", gateway.summary);
    let client = plain(&gateway.url).await;
    let list = client.list_tools(None).await.unwrap();
    assert_eq!(list.tools.len(), 7);
    let printed = serde_json::to_string(&list).unwrap();
    assert!(!printed.contains("\"force\"") && !printed.contains("override_safety"), "{printed}");

    let arguments =
        object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x", "force": true, "Force": 1});
    let execute = CallToolRequestParams::new("execute_decision").with_arguments(arguments);
    client.call_tool(execute.clone()).await.unwrap();
    let denied = client.call_tool(execute).await.unwrap_err().to_string();
    assert!(denied.contains("idempotency") && !denied.contains("force"), "{denied}");
    assert_eq!(engine.executed("decision-7"), 1);
}

#[tokio::test]
async fn names_are_flat_before_an_engine_that_prefixes() {
    let engine = StubEngine::builder().prefix("eu__").start().await.unwrap();
    let args = ["--profile", "execute", "--upstream-prefix", "eu__", "--flat-names"];
    let gateway = Gateway::before(&engine, &args).await;
    let client = plain(&gateway.url).await;
    let list = client.list_tools(None).await.unwrap();
    assert!(list.tools.len() == 7 && list.tools.iter().all(|tool| tool.name.starts_with("algenta_")), "{list:?}");
    let decision = object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x", "force": true});
    let execute =
        |name: &'static str| client.call_tool(CallToolRequestParams::new(name).with_arguments(decision.clone()));
    execute("algenta_execute_decision").await.unwrap();
    let denied = execute("algenta_execute_decision").await.unwrap_err().to_string();
    assert!(denied.contains("idempotency"), "{denied}");
    for unknown in ["execute_decision", "eu__execute_decision", "algenta_eu__execute_decision"] {
        let refused = execute(unknown).await.unwrap_err().to_string();
        assert!(refused.contains("unknown tool"), "{refused}");
    }
    assert_eq!(engine.received().len(), 2);
    assert_eq!(engine.received()[0].name, "eu__execute_decision");
}

#[tokio::test]
async fn it_serves_one_client_over_standard_input() {
    let engine = StubEngine::builder().token("the-engines").start().await.unwrap();
    let url = engine.url();
    let gateway = ChildProcess::new(program())
        .args(["--stdio", "--upstream", &url, "--profile", "govern"])
        .env("ALGENTA_API_KEY", "the-engines")
        .on_stderr(|_| {});
    let client = EngineClient::spawn(gateway).await.unwrap();
    let tools = Toolset::builder().profile(Profile::Full).service(client.clone()).build();
    assert_eq!(tools.list().await.unwrap().len(), 6);
    tools.call("simulate", object!({"scenario": "x"})).await.unwrap();
    client.close().await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_engine_can_be_a_process_and_is_started_again() {
    let engine = StubEngine::start().await.unwrap();
    let program = program().into_os_string().into_string().unwrap();
    let inner = format!("{program} --stdio --upstream {} --profile execute", engine.url());
    let gateway = process::command(&[
        "--upstream-command",
        &inner,
        "--single-identity",
        "--listen",
        "127.0.0.1:0",
        "--profile",
        "observe",
    ]);
    let gateway = Gateway::start(gateway).await;
    let tools = toolset(&gateway.url, None).await.unwrap();
    assert_eq!(tools.list().await.unwrap().len(), 4);
    // The gateway's own command line names it, too, but begins otherwise.
    let pattern = format!("^{program} --stdio --upstream {}", engine.url());
    assert!(std::process::Command::new("pkill").args(["-9", "-f", &pattern]).status().unwrap().success());
    let again = async {
        while tools.call("simulate", object!({"scenario": "x"})).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    timeout(SOON, again).await.expect("the engine is started again");
}

#[tokio::test]
async fn what_is_unsafe_is_refused_and_the_knob_named() {
    for (args, knob) in [
        (&["--listen", "0.0.0.0:0"][..], "--without-authentication"),
        (&["--upstream-command", "engine"], "--single-identity"),
        (&["--profile", "Execute"], "expected one of observe, govern, execute, full"),
        (&["--upstream", "ftp://engine"], "http"),
        (&["--webhook-host", "https://hooks.example"], "host"),
        (&["--pass-through", "prompts"], "--single-identity"),
        (&["--callers", "/no/such/file"], "/no/such/file"),
    ] {
        let said = refusal(args).await;
        assert!(said.contains(knob), "{args:?}: {said}");
    }
}
