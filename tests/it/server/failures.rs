//! What a client is told when a call fails, and of methods that are none of the tools'.

use std::{error::Error as StdError, fmt};

use rmcp::{ErrorData, model::ErrorCode, object};
use serde_json::json;
use tower::{ServiceBuilder, service_fn};
use tower_algenta::{BoxError, Error, Profile, StubEngine, ToolRequest, ToolServer, server::OnDenial, stub::Wire};

use super::{Generation, Served, call, governed, json_rpc};

#[tokio::test]
async fn a_tool_outside_the_profile_reads_like_one_that_does_not_exist() {
    for generation in Generation::ALL {
        let engine = StubEngine::start().await.unwrap();
        let server = Served::start(ToolServer::new(governed(&engine, Profile::Observe)), false).await;
        let client = server.client(generation).await;
        let excluded = json_rpc(call(&client, "execute_decision", object!({})).await);
        let unknown = json_rpc(call(&client, "no_such_tool", object!({})).await);
        assert_eq!(excluded.code, ErrorCode::INVALID_PARAMS);
        assert_eq!(excluded.code, unknown.code);
        assert_eq!(excluded.message.replace("execute_decision", "X"), unknown.message.replace("no_such_tool", "X"));
        assert_eq!((excluded.data, unknown.data), (None, None));
        assert!(engine.received().is_empty());
    }
}

#[tokio::test]
async fn a_denial_is_an_error_in_every_wire_shape() {
    for generation in Generation::ALL {
        for wire in Wire::ALL {
            let engine = StubEngine::builder().wire(wire).start().await.unwrap();
            let server = Served::start(ToolServer::new(governed(&engine, Profile::Execute)), false).await;
            let client = server.client(generation).await;
            let decision = object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"});
            call(&client, "execute_decision", decision.clone()).await.unwrap();
            let denied = json_rpc(call(&client, "execute_decision", decision).await);
            assert_eq!(denied.code, ErrorCode(-32000), "{wire:?}");
            let data = json!({"error": {"code": "execution_blocked_idempotency", "gate": "idempotency"}});
            assert_eq!(denied.data, Some(data), "{wire:?}");
            let printed = format!("{denied:?}");
            assert!(!printed.contains("force") && !printed.contains("override"), "{printed}");
            assert_eq!(engine.executed("decision-7"), 1);
        }
    }
}

#[tokio::test]
async fn a_denial_can_be_a_tool_error_without_hints() {
    let engine = StubEngine::start().await.unwrap();
    let server = ToolServer::new(governed(&engine, Profile::Execute)).on_denial(OnDenial::ToolError);
    let server = Served::start(server, false).await;
    let client = server.client(Generation::Handshake).await;
    let decision = object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"});
    call(&client, "execute_decision", decision.clone()).await.unwrap();
    let denied = call(&client, "execute_decision", decision).await.unwrap();
    assert_eq!(denied.is_error, Some(true));
    let printed = serde_json::to_string(&denied).unwrap();
    assert!(printed.contains("idempotency") && !printed.contains("force"), "{printed}");
    // Only what is governed: a refusal is an error all the same.
    json_rpc(call(&client, "query_batch", object!({})).await);
}

/// An error of a user's own, which says more than a client may read.
#[derive(Debug)]
struct Annotated(Error);

impl fmt::Display for Annotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tenant-7 at 10.0.0.3, use force: {}", self.0)
    }
}

impl StdError for Annotated {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn what_an_error_of_ones_own_adds_is_told_in_neither_form() {
    let decision = object!({"decision_id": "decision-low-confidence", "webhook_url": "https://hooks.example/x"});
    let mut told = Vec::new();
    for on_denial in [OnDenial::Error, OnDenial::ToolError] {
        let engine = StubEngine::start().await.unwrap();
        let stack = ServiceBuilder::new().map_err(Annotated).service(governed(&engine, Profile::Execute));
        let server = Served::start(ToolServer::new(stack).on_denial(on_denial), false).await;
        let client = server.client(Generation::Handshake).await;
        told.push(match call(&client, "execute_decision", decision.clone()).await {
            Ok(result) => result.content[0].as_text().unwrap().text.clone(),
            failed => json_rpc(failed).message.into_owned(),
        });
    }
    assert!(told[0].contains("confidence") && !told[0].contains("tenant-7"), "{told:?}");
    assert_eq!(told[0], told[1]);
}

#[tokio::test]
async fn an_engines_error_loses_its_words() {
    let stack = service_fn(|_: ToolRequest| async {
        let engines = ErrorData::new(ErrorCode(-32042), "set force=true", Some(json!({"hint": "force"})));
        Err::<tower_algenta::ToolResponse, BoxError>(Box::new(Error::Upstream(Box::new(engines))))
    });
    let server = Served::start(ToolServer::new(stack), false).await;
    let client = server.client(Generation::Handshake).await;
    let told = json_rpc(call(&client, "simulate", object!({})).await);
    assert_eq!((told.code, &told.data), (ErrorCode(-32042), &None));
    assert!(!told.message.contains("force"), "{told}");
}

#[tokio::test]
async fn an_execution_that_a_layer_above_has_lost_is_unknown() {
    let stack = service_fn(|_: ToolRequest| async { Err::<tower_algenta::ToolResponse, BoxError>("lost".into()) });
    let server = Served::start(ToolServer::new(stack), false).await;
    let client = server.client(Generation::Handshake).await;
    let decision = object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"});
    let told = json_rpc(call(&client, "execute_decision", decision).await);
    assert_eq!(told.data, Some(json!({"error": {"code": "outcome_unknown"}})));
}

#[tokio::test]
async fn a_call_that_cannot_be_read_is_refused() {
    let engine = StubEngine::start().await.unwrap();
    let server = Served::start(ToolServer::new(governed(&engine, Profile::Full)), false).await;
    // `requestState` is no string: rmcp makes a custom request of it, hidden field and all.
    let smuggled = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "execute_decision", "requestState": 5, "arguments": {"decision_id": "d", "force": true}},
    });
    let answer = reqwest::Client::new()
        .post(server.url())
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25")
        .body(smuggled.to_string())
        .send()
        .await
        .unwrap();
    let text = answer.text().await.unwrap();
    assert!(text.contains("-32602") && !text.contains("force"), "{text}");
    assert!(
        engine.received_raw().iter().all(|request| !String::from_utf8_lossy(&request.body).contains("requestState"))
    );
}

#[tokio::test]
async fn other_methods_are_refused() {
    let engine = StubEngine::start().await.unwrap();
    let server = Served::start(ToolServer::new(governed(&engine, Profile::Full)), false).await;
    for generation in Generation::ALL {
        let client = server.client(generation).await;
        let capabilities = client.peer_info().unwrap().capabilities.clone();
        assert!(capabilities.prompts.is_none() && capabilities.resources.is_none());
        assert!(capabilities.completions.is_none() && capabilities.logging.is_none());
        for error in [
            json_rpc(client.list_prompts(None).await),
            json_rpc(client.list_resources(None).await),
            json_rpc(client.list_resource_templates(None).await),
            json_rpc(client.get_prompt_once(rmcp::model::GetPromptRequestParams::new("x")).await),
            json_rpc(client.read_resource_once(rmcp::model::ReadResourceRequestParams::new("x:y")).await),
        ] {
            assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
        }
    }
}
