//! Envoy gives executions a cluster of their own, by the name in a header.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_algenta::{Error, Profile, StubEngine};

use super::{
    Balancer, Kind, Replica, engine,
    load::{Call, faults},
};
use crate::{gateway::process::SOON, real_servers::Generation};

/// Envoy with room for one execution at a time.
async fn with_room_for_one(replicas: [&Replica; 2], test: &str) -> Option<Balancer> {
    let shipped = "max_requests: 32";
    assert!(Kind::Envoy.shipped().contains(shipped));
    Balancer::with(Kind::Envoy, &Kind::Envoy.shipped().replace(shipped, "max_requests: 1"), replicas, test).await
}

async fn arrival(engine: &StubEngine, id: &str) {
    let arrived = async {
        while engine.executed(id) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, arrived).await.expect("it arrives");
}

#[tokio::test]
async fn executions_have_a_limit_of_their_own() {
    let engine = engine(Duration::from_secs(4)).await;
    let (a, b) = (Replica::before(&engine).await, Replica::before(&engine).await);
    let Some(envoy) = with_room_for_one([&a, &b], "limits of executions").await else { return };
    let tools = Generation::Stateless.tools(&envoy.url, Profile::Execute).await;
    let old = Generation::Initialize.tools(&envoy.url, Profile::Execute).await;

    let first = tokio::spawn({
        let tools = tools.clone();
        async move { Call::execute(&tools, "first".to_owned()).await }
    });
    arrival(&engine, "first").await;
    let second = Call::execute(&tools, "second".to_owned()).await;
    assert!(matches!(second.outcome, Err(Error::OutcomeUnknown(_))), "{second:?}");
    assert_eq!(engine.executed("second"), 0);
    // Neither is in its way: not another tool, nor a client whose protocol has no such header.
    let simulation = Call::simulate(&tools, "meanwhile".to_owned()).await;
    let unnamed = Call::execute(&old, "unnamed".to_owned()).await;
    let calls = [first.await.unwrap(), simulation, unnamed];
    assert!(calls.iter().all(|call| call.outcome.is_ok()), "{calls:?}");
    assert_eq!(faults(&calls, &engine), [""; 0]);
    assert_eq!(envoy.stat("cluster.execute.upstream_rq_active_overflow").await, 1);
    assert_eq!(envoy.stat("cluster.execute.upstream_rq_completed").await, 2);
}

/// A call with headers of one's own choice: the status, and what came with it.
async fn call(url: &str, named: &str, id: &str) -> (StatusCode, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "execute_decision",
        "arguments": {"decision_id": id, "webhook_url": "https://hooks.example/x"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let answer = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", named)
        .body(body.to_string());
    let answer = timeout(SOON, answer.send()).await.expect("it ends").unwrap();
    let status = answer.status();
    (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
}

#[tokio::test]
async fn a_name_in_a_header_decides_nothing_but_the_way() {
    let engine = engine(Duration::from_secs(4)).await;
    let (a, b) = (Replica::before(&engine).await, Replica::before(&engine).await);
    let Some(envoy) = with_room_for_one([&a, &b], "names in headers").await else { return };

    // The header's own encoding of `execute_decision`, and it under a prefix that the gateway does not have.
    let encoded = "=?base64?ZXhlY3V0ZV9kZWNpc2lvbg==?=";
    let first = tokio::spawn({
        let url = envoy.url.clone();
        async move { call(&url, encoded, "first").await }
    });
    arrival(&engine, "first").await;
    for named in [encoded, "execute_decision", "algenta_execute_decision", "simulate,execute_decision"] {
        assert_eq!(call(&envoy.url, named, "second").await.0, StatusCode::SERVICE_UNAVAILABLE, "{named}");
    }
    let (status, body) = first.await.unwrap();
    assert!(status == StatusCode::OK && body["result"]["isError"] != json!(true), "{status} {body}");

    // One who names another tool takes the other way, and gets no further than the gateway.
    let (status, body) = call(&envoy.url, "simulate", "second").await;
    assert!(status == StatusCode::BAD_REQUEST && body["error"].is_object(), "{status} {body}");
    assert_eq!(engine.executed("second"), 0);
}
