//! Calls over a connection, and how they fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use rmcp::{
    ErrorData,
    model::{GetExtensions, MetaObject, NumberOrString, ProgressToken, RequestMetaObject},
    object,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_algenta::{
    Error, Gate, GovernanceLayer, Profile, StubEngine, ToolRequest, ToolResponse,
    client::CallErrorKind,
    error::UnknownReason,
    stub::{Fault, Wire},
};

use super::{
    SOON, call, connect, endpoint, eventually, find, list, no_arguments, not_sent, ready,
    scripted::{Reply, Request, Scripted, Step},
    simulate, upstream, with_token,
};

fn execute() -> ToolRequest {
    let arguments = object!({"decision_id": "decision-x", "webhook_url": "https://hooks.example/x"});
    ToolRequest::call("execute_decision", arguments)
}

#[tokio::test]
async fn a_hundred_at_once() {
    let delay = Duration::from_millis(500);
    let engine = StubEngine::builder().delay(delay).start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    let start = Instant::now();
    let answers = join_all((0..100).map(|_| call(&client, simulate()))).await;
    assert!(answers.iter().all(Result::is_ok));
    // Sixteen at a time would take seven times the delay.
    assert!(start.elapsed() < delay * 6, "{:?}", start.elapsed());
    assert_eq!(engine.received().len(), 100);
}

#[tokio::test]
async fn the_connection_is_kept_between_calls() {
    let server = Scripted::start(|request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&json!([])),
        _ => request.result(&json!({"resultType": "complete", "content": []})),
    })
    .await;
    let client = connect(endpoint(&server.url)).await;
    for _ in 0..5 {
        call(&client, simulate()).await.unwrap();
    }
    assert_eq!((server.received("tools/call").len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn every_meta_arrives_but_the_connections_own() {
    let engine = StubEngine::start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    let ToolRequest::Call(mut request) = simulate() else { unreachable!() };
    let meta = |value: Value| RequestMetaObject(MetaObject(crate::support::object(&value)));
    request.params.meta = Some(meta(json!({"a": "params", "b": "params", "c": "params"})));
    request.extensions_mut().insert(MetaObject(object!({"b": "older", "c": "older", "d": "older"})));
    let mut decoded = meta(json!({
        "c": "decoded",
        "io.modelcontextprotocol/protocolVersion": "2025-03-26",
        "io.modelcontextprotocol/logLevel": "debug",
    }));
    decoded.set_progress_token(ProgressToken(NumberOrString::String("theirs".into())));
    request.extensions_mut().insert(decoded);

    call(&client, request.into()).await.unwrap();
    let mut received = engine.received().pop().unwrap().meta;
    assert_ne!(received.remove("progressToken"), Some(json!("theirs")));
    assert_eq!(received.remove("io.modelcontextprotocol/protocolVersion"), Some(json!("2026-07-28")));
    received.retain(|key, _| {
        !["clientInfo", "clientCapabilities"].iter().any(|name| *key == format!("io.modelcontextprotocol/{name}"))
    });
    assert_eq!(Value::Object(received), json!({"a": "params", "b": "older", "c": "decoded", "d": "older"}));
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time() {
    let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
    let limit = Duration::from_millis(200);
    let client = connect(endpoint(engine.url()).call_timeout(limit)).await;
    let start = Instant::now();
    let error = call(&client, simulate()).await.unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::TimedOut(limit));
    assert_eq!(error.to_string(), "the inner service failed: the engine did not answer within 200ms");
    assert!(start.elapsed() < Duration::from_secs(2));
    eventually("the call is cancelled at the engine", || engine.cancelled() == 1).await;
}

#[tokio::test]
async fn a_future_that_is_dropped_cancels_its_call() {
    let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
    let mut client = connect(endpoint(engine.url())).await;
    let kept = client.clone();
    let future = client.ready().await.unwrap().call(simulate());
    assert!(timeout(Duration::from_millis(200), future).await.is_err());
    eventually("the call is cancelled at the engine", || engine.cancelled() == 1).await;
    // The connection is as good as before.
    list(&kept).await.unwrap();
}

#[tokio::test]
async fn an_engine_that_dies_during_a_call() {
    for fault in [Fault::DropBefore, Fault::DropAfter] {
        let engine = StubEngine::builder().fault(fault).start().await.unwrap();
        let client = connect(with_token(engine.url())).await;
        let error = call(&client, execute()).await.unwrap_err();
        assert_eq!(upstream(&error), CallErrorKind::Lost);
        // It arrived once: nobody sent it again.
        assert_eq!(engine.received().len(), 1);
        list(&client).await.unwrap();
    }

    let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    let pending = tokio::spawn({
        let client = client.clone();
        async move { call(&client, execute()).await }
    });
    eventually("the call arrives", || engine.received().len() == 1).await;
    engine.shutdown().await;
    let error = timeout(SOON, pending).await.unwrap().unwrap().unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::Lost);
    assert_eq!(not_sent(&call(&client, execute()).await.unwrap_err()), CallErrorKind::Unreachable);
}

#[tokio::test]
async fn the_governed_stack_knows_what_may_have_run() {
    let governed = |client| ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(client);

    let engine = StubEngine::builder().fault(Fault::DropAfter).start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    match governed(client.clone()).oneshot(execute()).await.unwrap_err() {
        Error::OutcomeUnknown(unknown) => assert_eq!(unknown.reason(), UnknownReason::InnerError),
        other => panic!("{other:?}"),
    }
    assert_eq!(engine.executed("decision-x"), 1);

    engine.shutdown().await;
    let error = governed(client).oneshot(execute()).await.unwrap_err();
    assert!(error.is_retryable() && !error.is_governed_failure());
}

#[tokio::test]
async fn a_json_rpc_error_stays_reachable() {
    let engine = StubEngine::builder().wire(Wire::JsonRpcError).start().await.unwrap();
    let client = connect(with_token(engine.url())).await;
    let request = || {
        let arguments = object!({"decision_id": "decision-low-confidence", "webhook_url": "https://hooks.example/x"});
        ToolRequest::call("execute_decision", arguments)
    };
    let error = call(&client, request()).await.unwrap_err();
    let data = find::<ErrorData>(&error).expect("the engine's own error");
    assert_eq!(data.data.as_ref().unwrap()["error"]["gate"], "confidence");

    let governed = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(client);
    match governed.oneshot(request()).await.unwrap_err() {
        Error::Denied(denial) => assert_eq!(*denial.gate(), Gate::Confidence),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn http_failures_of_a_call() {
    for (reply, kind) in [
        (Reply::html(401), CallErrorKind::Unauthorized),
        (Reply::html(401).header("www-authenticate: Bearer"), CallErrorKind::Unauthorized),
        (Reply::html(403), CallErrorKind::Forbidden),
        (Reply::html(404), CallErrorKind::Status(404)),
        (Reply::html(429), CallErrorKind::Status(429)),
        (Reply::html(503), CallErrorKind::Status(503)),
        (Reply::html(307).header("location: /elsewhere"), CallErrorKind::Status(307)),
        (Reply::html(200), CallErrorKind::Unreadable),
        (Reply::new(200, "application/json", "{}"), CallErrorKind::Unreadable),
        (Reply::HangUp, CallErrorKind::Lost),
        (Reply::new(200, "text/event-stream", ""), CallErrorKind::Lost),
    ] {
        let name = format!("{reply:?}");
        let server = Scripted::start(move |request| match request.method() {
            "server/discover" => request.discovered(),
            "tools/list" => request.tools(&json!([])),
            _ => reply.clone(),
        })
        .await;
        let client = connect(with_token(&server.url)).await;
        let error = call(&client, execute()).await.unwrap_err();
        assert_eq!(upstream(&error), kind, "{name}");
        assert_eq!(server.received("tools/call").len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_broken_stream_is_resumed_without_a_second_call() {
    let events = |events: &str| Reply::new(200, "text/event-stream", events);
    let called = Arc::new(Mutex::new(Value::Null));
    let server = Scripted::start(move |request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&json!([])),
        "tools/call" => {
            *called.lock().unwrap() = request.body["id"].clone();
            events("id: e1\nretry: 10\ndata:\n\n")
        }
        _ if request.head.contains("last-event-id: e1") => {
            let result = json!({"resultType": "complete", "content": []});
            events(&format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": *called.lock().unwrap(), "result": result})))
        }
        _ => Reply::html(400),
    })
    .await;
    let client = connect(with_token(&server.url)).await;
    call(&client, execute()).await.unwrap();
    assert_eq!(server.received("tools/call").len(), 1);
}

#[tokio::test]
async fn an_answer_of_another_kind() {
    let odd = json!([{"name": "simulate", "inputSchema": {}}, {"name": 5}]);
    let server = Scripted::start(move |request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&odd),
        _ => request.tools(&json!([])),
    })
    .await;
    let client = connect(endpoint(&server.url)).await;
    for error in [list(&client).await.unwrap_err(), call(&client, simulate()).await.unwrap_err()] {
        assert!(matches!(error, Error::UnexpectedResponse(_)), "{error:?}");
    }
}

#[tokio::test]
async fn arguments_that_belong_into_headers_are_there_from_the_first_call_on() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let server = Scripted::start(move |request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&json!([{"name": "route", "inputSchema": schema}])),
        _ => request.result(&json!({"resultType": "complete", "content": []})),
    })
    .await;
    let client = connect(endpoint(&server.url)).await;
    call(&client, ToolRequest::call("route", object!({"region": "eu"}))).await.unwrap();
    let head = server.received("tools/call").pop().unwrap().head;
    assert!(head.contains("mcp-param-region: eu"), "{head}");
}

#[tokio::test]
async fn an_outdated_list_does_not_stand_in_for_a_failure() {
    let server = Scripted::start({
        let lists = Arc::new(AtomicUsize::new(0));
        move |request| match request.method() {
            "server/discover" => request.discovered(),
            _ if lists.fetch_add(1, Ordering::SeqCst) == 0 => request.result(&json!({
                "resultType": "complete",
                "tools": [{"name": "simulate", "inputSchema": {"type": "object"}}],
                "ttlMs": 50,
                "cacheScope": "private",
            })),
            _ => Reply::html(500),
        }
    })
    .await;
    let client = connect(endpoint(&server.url)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(upstream(&list(&client).await.unwrap_err()), CallErrorKind::Status(500));
}

#[tokio::test]
async fn a_closed_client_refuses() {
    let engine = StubEngine::start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    let clone = client.clone();
    ready(&client).await.unwrap();
    client.close().await.unwrap();
    assert!(clone.is_closed());
    for error in [ready(&clone).await.unwrap_err(), clone.clone().call(simulate()).await.unwrap_err()] {
        assert_eq!(not_sent(&error), CallErrorKind::Closed);
    }
    clone.close().await.unwrap();
    assert_eq!(engine.received(), []);
}

#[tokio::test]
async fn closing_ends_calls_that_are_under_way() {
    let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    let pending = tokio::spawn({
        let client = client.clone();
        async move { call(&client, simulate()).await }
    });
    eventually("the call arrives", || engine.received().len() == 1).await;
    client.close().await.unwrap();
    let error = timeout(SOON, pending).await.unwrap().unwrap().unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::Lost);
    eventually("the call is cancelled at the engine", || engine.cancelled() == 1).await;
}

#[tokio::test]
async fn the_future_keeps_the_connection() {
    let engine = StubEngine::builder().delay(Duration::from_millis(100)).start().await.unwrap();
    let future = connect(endpoint(engine.url())).await.oneshot(ToolRequest::call("get_contract", no_arguments()));
    assert!(matches!(timeout(SOON, future).await.unwrap().unwrap(), ToolResponse::Call(_)));
}

/// An engine with sessions, which takes half a second to end one.
pub(super) async fn slow_to_end() -> Scripted {
    Scripted::start(|request: &Request| match request.method() {
        "initialize" => request.initialized("2025-11-25").header("mcp-session-id: session-1"),
        "tools/list" => request.tools(&json!([])),
        "" if request.head.starts_with("delete") => Reply::Steps(vec![
            Step::Slowly(b"HTTP/1.1 204 No Content\r\n".to_vec(), Duration::from_millis(20)),
            Step::Bytes(b"\r\n".to_vec()),
        ]),
        "" => Reply::new(405, "text/plain", ""),
        method if method.starts_with("notifications/") => Reply::new(202, "text/plain", ""),
        _ => Reply::new(400, "text/plain", ""),
    })
    .await
}

#[tokio::test]
async fn whoever_closes_waits_until_it_is_closed() {
    let engine = slow_to_end().await;
    let client = connect(endpoint(&engine.url)).await;
    let begun = Instant::now();
    let closes = (0..3).map(|number| {
        let client = client.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(50 * number)).await;
            client.close().await.unwrap();
            begun.elapsed()
        }
    });
    for closed in timeout(SOON, join_all(closes)).await.expect("they end") {
        assert!(closed > Duration::from_millis(400), "{closed:?}");
    }
    client.close().await.unwrap();
    assert_eq!(engine.all().iter().filter(|request| request.head.starts_with("delete")).count(), 1);
}
