//! Calls whose caller wants to know how far they have come.

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ProgressNotificationParam, ServerCapabilities,
        ServerConfig,
    },
    object,
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_algenta::{EngineClient, ProgressSink, ToolRequest};

use super::{
    SOON, connect, endpoint,
    scripted::{Reply, Request, Scripted},
    send, simulate,
};

/// Whatever an engine may answer a call with: what rmcp reads as some result, be it another method's, and what is none.
fn answers() -> Vec<Value> {
    let text = json!([{"type": "text", "text": "42"}]);
    let meta = json!({"x/y": 1});
    let task = json!({"taskId": "t", "status": "working", "createdAt": "2026-11-30T00:00:00Z",
        "lastUpdatedAt": "2026-11-30T00:00:00Z", "ttl": 1000, "ttlMs": 1000});
    let mut results = vec![
        json!({}),
        json!({"resultType": "complete"}),
        json!({"resultType": "complete", "_meta": meta}),
        json!({"resultType": "complete", "x": 1}),
        json!({"resultType": "input_required"}),
        json!({"resultType": "input_required", "inputRequests": {}, "requestState": "s"}),
        json!({"resultType": "task"}),
        json!({"resultType": "other"}),
        json!({"resultType": 5}),
        json!({"_meta": meta}),
        json!({"_meta": {}}),
        json!({"_meta": null}),
        json!({"_meta": 5}),
        json!({"_meta": meta, "x": 1}),
        json!({"x": 1}),
        json!({"isError": true}),
        json!({"isError": true, "_meta": meta}),
        json!({"content": text}),
        json!({"content": []}),
        json!({"content": null}),
        json!({"content": "42"}),
        json!({"content": [{"type": "strange"}]}),
        json!({"content": text, "resultType": "complete", "_meta": meta, "isError": true}),
        json!({"content": text, "structuredContent": [1]}),
        json!({"structuredContent": {"x": 1}}),
        json!({"tools": []}),
        json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
        json!({"prompts": []}),
        json!({"resources": []}),
        json!({"resourceTemplates": []}),
        json!({"contents": []}),
        json!({"messages": []}),
        json!({"skills": []}),
        json!({"completion": {"values": []}}),
        json!({"action": "accept"}),
        json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}),
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}),
        json!({"resultType": "complete", "supportedVersions": [], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}),
        json!({"task": task}),
        json!({"task": task, "resultType": "task"}),
        json!([]),
        json!(null),
        json!("42"),
    ];
    let mut flat = task;
    flat["resultType"] = "task".into();
    results.push(flat.clone());
    flat["resultType"] = "complete".into();
    results.push(flat);
    let mut answers: Vec<_> = results.into_iter().map(|result| json!({"result": result})).collect();
    answers.push(json!({"error": {"code": -32042, "message": "no"}}));
    answers
}

#[tokio::test]
async fn what_an_answer_means_does_not_depend_on_who_watches() {
    let answered = answers();
    let answers = answered.clone();
    let engine = Scripted::start(move |request: &Request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&json!([])),
        "tools/call" => {
            let index = request.body["params"]["arguments"]["answer"].as_u64().unwrap();
            let mut answer = answers[usize::try_from(index).unwrap()].clone();
            answer["jsonrpc"] = "2.0".into();
            answer["id"] = request.body["id"].clone();
            Reply::json(&answer)
        }
        _ => Reply::new(202, "text/plain", ""),
    })
    .await;
    let client = connect(endpoint(&engine.url)).await;
    let mut contentless = 0;
    for (index, answer) in answered.iter().enumerate() {
        let mut outcomes = Vec::new();
        for watched in [false, true] {
            let mut request = ToolRequest::call("simulate", object!({"answer": index}));
            let (sink, _reports) = ProgressSink::channel(1);
            if watched {
                request.extensions_mut().insert(sink);
            }
            outcomes.push(format!("{:?}", send(&client, request).await));
        }
        assert_eq!(outcomes[0], outcomes[1], "{answer}");
        contentless += usize::from(outcomes[0].contains("content: []"));
    }
    assert!(contentless >= 6, "{contentless} of them are results without content");
}

/// An engine over a pipe that tells of three steps of a call.
#[derive(Clone)]
struct Telling;

impl ServerHandler for Telling {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let token = context.meta.get_progress_token().expect("every request has one");
        for step in 1..=3 {
            let report = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(3.0);
            let _ = context.peer.notify_progress(report).await;
        }
        Ok(CallToolResult::success(vec![]).into())
    }
}

#[tokio::test]
async fn reports_come_to_whoever_asked_and_end_with_the_call() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { Box::pin(Telling.serve(far)).await.unwrap().waiting().await.unwrap() });
    let client = timeout(SOON, EngineClient::serve(near)).await.unwrap().unwrap();
    for (capacity, all) in [(8, vec![1.0, 2.0, 3.0]), (1, vec![1.0])] {
        let (sink, mut reports) = ProgressSink::channel(capacity);
        let mut request = simulate();
        request.extensions_mut().insert(sink);
        send(&client, request).await.unwrap();
        let mut told = Vec::new();
        while let Some(report) = timeout(SOON, reports.recv()).await.expect("they end") {
            assert_eq!(report.total, Some(3.0));
            told.push(report.progress);
        }
        assert_eq!(told, all, "{capacity}");
    }
}
