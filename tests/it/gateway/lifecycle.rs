//! Health, limits, and an end that loses nothing.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use rmcp::{
    ServiceExt as _,
    model::ClientConfig,
    object,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use tokio::{sync::mpsc, time::timeout};
use tower_algenta::{Endpoint, EngineClient, Profile, StubEngine, Toolset};

use super::{
    SOON,
    process::{self, Gateway},
    toolset,
};
use crate::{
    server::lists::{Told, announce_until},
    wait::eventually,
};

async fn status(request: reqwest::RequestBuilder) -> StatusCode {
    request.send().await.unwrap().status()
}

fn initialize(url: &str) -> reqwest::RequestBuilder {
    let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(body.to_string())
}

#[tokio::test]
async fn readiness_follows_the_engine() {
    let engine = StubEngine::start().await.unwrap();
    let addr = engine.addr();
    let gateway = Gateway::before(&engine, &[]).await;
    let get = async |path: &str| status(reqwest::Client::new().get(gateway.at(path))).await;
    assert_eq!(get("/readyz").await, StatusCode::OK);
    let tools = toolset(&gateway.url, None).await.unwrap();
    tools.list().await.unwrap();

    engine.shutdown().await;
    // What finds out that the engine is gone is a request.
    assert!(tools.list().await.is_err());
    assert_eq!(get("/healthz").await, StatusCode::OK);

    let _engine = StubEngine::builder().port(addr.port()).start().await.unwrap();
    let again = async {
        while get("/readyz").await != StatusCode::OK || tools.list().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("it is ready again");
}

#[tokio::test]
async fn an_unreachable_engine_is_no_reason_not_to_start() {
    let engine = StubEngine::start().await.unwrap();
    let url = engine.url();
    engine.shutdown().await;
    let args = ["--upstream", &url, "--listen", "127.0.0.1:0"];
    let gateway = Gateway::start(process::command(&args)).await;
    assert_eq!(status(reqwest::Client::new().get(gateway.at("/readyz"))).await, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn hosts_origins_and_sizes_are_checked() {
    let engine = StubEngine::start().await.unwrap();
    let args = ["--max-body", "1000", "--allow-origin", "https://app.example", "--allow-host", "gateway.example"];
    let gateway = Gateway::before(&engine, &args).await;
    let url = &gateway.url;
    assert_eq!(status(initialize(url)).await, StatusCode::OK);
    assert_eq!(status(initialize(url).header("host", "gateway.example")).await, StatusCode::OK);
    assert_eq!(status(initialize(url).header("host", "evil.example")).await, StatusCode::FORBIDDEN);
    assert_eq!(status(initialize(url).header("origin", "https://app.example")).await, StatusCode::OK);
    assert_eq!(status(initialize(url).header("origin", "https://evil.example")).await, StatusCode::FORBIDDEN);
    assert_eq!(status(initialize(url).header("origin", "null")).await, StatusCode::FORBIDDEN);
    assert_eq!(status(initialize(url).body("x".repeat(1001))).await, StatusCode::PAYLOAD_TOO_LARGE);
}

#[cfg(unix)]
#[tokio::test]
async fn a_drained_gateway_loses_no_call() {
    let engine = StubEngine::builder().delay(Duration::from_millis(700)).start().await.unwrap();
    let mut gateway = Gateway::before(&engine, &["--profile", "execute", "--drain-delay", "1"]).await;
    let tools = toolset(&gateway.url, None).await.unwrap();
    assert_eq!(initialize(&gateway.url).send().await.unwrap().headers().get("connection"), None);
    let decision = object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"});
    let call = tokio::spawn(async move { tools.call("execute_decision", decision).await });
    eventually("the call arrives", || engine.received().len() == 1).await;
    gateway.signal("-TERM");
    assert!(gateway.line().await.contains("/readyz answers 503"));
    let ready = reqwest::Client::new().get(gateway.at("/readyz")).send().await.unwrap();
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    // Else the next call of somebody who keeps the connection could meet the port's end.
    assert_eq!(ready.headers().get("connection").unwrap(), "close");
    assert_eq!(initialize(&gateway.url).send().await.unwrap().headers().get("connection").unwrap(), "close");
    let outcome = call.await.unwrap().unwrap();
    assert_ne!(outcome.result().unwrap().is_error, Some(true));
    assert_eq!(engine.executed("decision-7"), 1);
    assert!(gateway.ended().await.success());
}

/// A stream of events has no end of its own. A gateway with one open must not take as long to drain as a call may.
#[cfg(unix)]
async fn drains(engine: &StubEngine, mut gateway: Gateway, client: EngineClient) {
    let tools = Toolset::builder().profile(Profile::Full).service(client).build();
    let decision = object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"});
    let call = tokio::spawn(async move { tools.call("execute_decision", decision).await });
    eventually("the call arrives", || engine.received().len() == 1).await;
    let began = Instant::now();
    gateway.signal("-TERM");
    // What has an end comes to it.
    assert_ne!(call.await.unwrap().unwrap().result().unwrap().is_error, Some(true));
    assert!(gateway.line().await.starts_with("draining: up to 65 s for "));
    assert_eq!(gateway.line().await, "drained");
    assert!(gateway.ended().await.success());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[cfg(unix)]
#[tokio::test]
async fn a_subscription_ends_with_the_drain() {
    let engine = StubEngine::builder().delay(Duration::from_millis(700)).start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute", "--single-identity"]).await;
    let client = EngineClient::connect(Endpoint::new(&gateway.url).unwrap()).await.unwrap();
    let mut changes = client.list_changes().await.unwrap();
    announce_until(&engine, changes.changed()).await.unwrap();
    drains(&engine, gateway, client).await;
    timeout(SOON, changes.changed()).await.expect("it ends").unwrap_err();
}

/// In a session, a caller who has lost the connection of a call comes back for its answer; and one who doesn't has it run
/// to its end all the same.
#[cfg(unix)]
#[tokio::test]
async fn a_call_of_a_session_outlives_its_connection_and_is_not_cut_short() {
    for comes_back in [true, false] {
        let engine = StubEngine::builder().delay(Duration::from_secs(2)).start().await.unwrap();
        let mut gateway = Gateway::before(&engine, &["--profile", "execute", "--single-identity", "--sessions"]).await;
        let client = reqwest::Client::new();
        let greeted = initialize(&gateway.url).send().await.unwrap();
        let session = greeted.headers().get("mcp-session-id").expect("a session").to_str().unwrap().to_owned();
        let ask = |request: reqwest::RequestBuilder| {
            let request = request.header("accept", "application/json, text/event-stream");
            request.header("mcp-session-id", &session).header("mcp-protocol-version", "2025-11-25")
        };
        let post = |body: serde_json::Value| {
            ask(client.post(&gateway.url)).header("content-type", "application/json").body(body.to_string())
        };
        post(serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).send().await.unwrap();
        let call = serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "execute_decision", "arguments": {"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"}
        }});
        let mut stream = post(call).send().await.unwrap();
        let first = String::from_utf8(stream.chunk().await.unwrap().unwrap().to_vec()).unwrap();
        let id = first.lines().find_map(|line| line.strip_prefix("id: ")).expect("an event to go on from").to_owned();
        eventually("the call arrives", || engine.received().len() == 1).await;
        drop(stream);
        let resumed = async {
            if !comes_back {
                return None;
            }
            Some(ask(client.get(&gateway.url)).header("last-event-id", &id).send().await.unwrap())
        };
        let resumed = resumed.await;
        gateway.signal("-TERM");
        assert_eq!(gateway.line().await, "draining: up to 65 s for 1 requests under way");
        if let Some(resumed) = resumed {
            let answer = timeout(SOON, resumed.text()).await.expect("it ends").unwrap();
            assert!(answer.contains("executed_at"), "{answer}");
        }
        assert_eq!(gateway.line().await, "drained");
        assert_eq!(engine.executed("decision-7"), 1);
        assert!(gateway.ended().await.success());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_stream_of_a_session_ends_with_the_drain() {
    let engine = StubEngine::builder().delay(Duration::from_millis(700)).start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute", "--single-identity", "--sessions"]).await;
    let (told, mut hears) = mpsc::unbounded_channel();
    let config = StreamableHttpClientTransportConfig::with_uri(&*gateway.url).reinit_on_expired_session(false);
    let transport = StreamableHttpClientTransport::from_config(config);
    let client = Told { config: ClientConfig::default(), told }.serve(transport).await.unwrap();
    announce_until(&engine, hears.recv()).await.unwrap();
    drains(&engine, gateway, EngineClient::from_service(client)).await;
}
