//! Calls through the server: what arrives, what comes back, giving up.

use std::time::Duration;

use rmcp::{
    model::{CallToolRequestParams, RequestMetaObject},
    object,
};
use serde_json::json;
use tokio::time::timeout;
use tower_algenta::{Profile, StubEngine, ToolServer};

use super::{Generation, SOON, Served, call, governed};

#[tokio::test]
async fn a_call_arrives_without_what_a_model_may_not_set() {
    for generation in Generation::ALL {
        let engine = StubEngine::start().await.unwrap();
        let server = Served::start(ToolServer::new(governed(&engine, Profile::Execute)), false).await;
        let client = server.client(generation).await;
        let arguments = object!({
            "decision_id": "decision-7",
            "webhook_url": "https://hooks.example/algenta",
            "force": true,
            "Override-Safety": 1,
        });
        let result = call(&client, "execute_decision", arguments).await.unwrap();
        assert_ne!(result.is_error, Some(true), "{generation:?}");
        let received = engine.received();
        assert_eq!(
            serde_json::to_value(&received[0].arguments).unwrap(),
            json!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/algenta"}),
        );
        assert_eq!(engine.executed("decision-7"), 1);
    }
}

#[tokio::test]
async fn meta_goes_on_without_what_belongs_to_the_connection() {
    for generation in Generation::ALL {
        let engine = StubEngine::start().await.unwrap();
        let server = Served::start(ToolServer::new(governed(&engine, Profile::Observe)), false).await;
        let client = server.client(generation).await;
        let mut meta = RequestMetaObject::default();
        meta.0.0.insert("traceparent".into(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
        meta.0.0.insert("force".into(), true.into());
        let mut params = CallToolRequestParams::new("simulate").with_arguments(object!({"scenario": "x"}));
        params.meta = Some(meta);
        timeout(SOON, client.call_tool(params)).await.unwrap().unwrap();
        let meta = engine.received()[0].meta.clone();
        assert!(meta.contains_key("traceparent"), "{meta:?}");
        assert!(!meta.contains_key("force"), "{meta:?}");
        let client_info = meta.get("io.modelcontextprotocol/clientInfo").map(ToString::to_string).unwrap_or_default();
        assert!(!client_info.contains("\"test\""), "the caller's own: {meta:?}");
    }
}

#[tokio::test]
async fn a_caller_who_gives_up_cancels_at_the_engine() {
    for generation in Generation::ALL {
        for sessions in [false, true] {
            let engine = StubEngine::builder().delay(Duration::from_secs(60)).start().await.unwrap();
            let server = Served::start(ToolServer::new(governed(&engine, Profile::Observe)), sessions).await;
            let client = server.client(generation).await;
            let given_up = call(&client, "simulate", object!({"scenario": "x"}));
            assert!(timeout(Duration::from_millis(300), given_up).await.is_err());
            timeout(SOON, async {
                while engine.cancelled() == 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
            .await
            .unwrap_or_else(|_| panic!("the engine hears of it: {generation:?}, sessions {sessions}"));
        }
    }
}
