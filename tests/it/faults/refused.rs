//! Engines that have lost a session, or have had enough: HTTP 404 and 429.

use std::time::Duration;

use rmcp::object;
use tokio::time::timeout;
use tower::ServiceExt as _;
use tower_algenta::{
    Endpoint, EngineClient, Error, GovernanceLayer, Profile, ToolRequest, ToolResponse, Toolset,
    client::{CallErrorKind, ConnectError, ConnectErrorKind, Connections},
    error::UnknownReason,
};

use super::{ByHand, HOOK, Outcome, SOON, answer, cause, execute};
use crate::{
    client::scripted::{Reply, Request},
    real_servers::Generation,
};

fn busy(retry_after: Option<&str>) -> Reply {
    let reply = Reply::new(429, "application/json", r#"{"error":{"code":"rate_limit_exceeded","status_code":429}}"#);
    match retry_after {
        Some(value) => reply.header(&format!("retry-after: {value}")),
        None => reply,
    }
}

const RETRY_AFTER: [Option<&str>; 4] =
    [None, Some("0"), Some("Wed, 21 Oct 2015 07:28:00 GMT"), Some("99999999999999999999")];

/// A 429 of the envelope's is the engine's word that it refused. One of HTTP's may come from what stands between the
/// engine and here, after the engine has run: the outcome is unknown, as with every other status, and a `Retry-After`
/// asks in vain.
#[tokio::test]
async fn too_many_requests_in_answer_to_a_call() {
    for generation in Generation::BOTH {
        for retry_after in RETRY_AFTER {
            let engine = ByHand::start(generation, SOON, move |request| {
                (request.method() == "tools/call").then(|| busy(retry_after))
            })
            .await;
            let error = execute(&engine.tools, "decision-7").await.unwrap_err();
            let Error::OutcomeUnknown(unknown) = &error else { panic!("{generation:?}: {error:?}") };
            assert_eq!((unknown.reason(), cause(&error)), (UnknownReason::InnerError, CallErrorKind::Status(429)));
            let error = engine.tools.call("simulate", object!({"scenario": "s"})).await.unwrap_err();
            assert_eq!(cause(&error), CallErrorKind::Status(429));
            assert!(!error.is_retryable());
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(engine.calls(), 2, "{generation:?}, {retry_after:?}: one each");
        }
    }
}

#[tokio::test]
async fn too_many_requests_in_the_engines_own_words() {
    for generation in Generation::BOTH {
        let engine = ByHand::start(generation, SOON, |request| {
            (request.method() == "tools/call").then(|| {
                let envelope = serde_json::json!({"error":
                    {"code": "rate_limit_exceeded", "message": "slow down", "status_code": 429}});
                let mut answer = answer(&request.body["id"], &envelope);
                answer["result"]["isError"] = true.into();
                Reply::json(&answer)
            })
        })
        .await;
        let error = execute(&engine.tools, "decision-7").await.unwrap_err();
        let Error::Rejected(rejected) = &error else { panic!("{generation:?}: {error:?}") };
        assert_eq!((rejected.status(), engine.calls()), (429, 1));
        // It did not run. Whether to try again later is its caller's business all the same.
        assert!(!error.is_retryable() && !error.is_governed_failure());
    }
}

#[tokio::test]
async fn too_many_requests_in_answer_to_a_list() {
    for generation in Generation::BOTH {
        for retry_after in RETRY_AFTER {
            let engine = ByHand::start(generation, SOON, move |request| {
                (request.method() == "tools/list").then(|| busy(retry_after))
            })
            .await;
            // Connecting reads the list in one of the generations, and does not mind.
            let lists = engine.server.received("tools/list").len();
            assert_eq!(lists, usize::from(generation == Generation::Stateless));
            let error = timeout(SOON, engine.tools.list()).await.expect("it ends").unwrap_err();
            assert_eq!(cause(&error), CallErrorKind::Status(429));
            assert_eq!(engine.server.received("tools/list").len(), lists + 1, "{generation:?}, {retry_after:?}");
            assert_eq!(engine.execute("decision-7").await, Outcome::Receipt);
        }
    }
}

#[tokio::test]
async fn too_many_requests_in_answer_to_the_handshake() {
    for generation in Generation::BOTH {
        for retry_after in RETRY_AFTER {
            let greeting = if generation == Generation::Stateless { "server/discover" } else { "initialize" };
            let server =
                ByHand::serve(generation, move |request| (request.method() == greeting).then(|| busy(retry_after)))
                    .await;
            let connect = EngineClient::connect(Endpoint::new(&server.url).unwrap());
            let error = timeout(SOON, connect).await.expect("it ends").unwrap_err();
            let Error::NotSent(inner) = &error else { panic!("{error:?}") };
            let kind = inner.downcast_ref::<ConnectError>().unwrap().kind();
            assert_eq!(kind, ConnectErrorKind::Unavailable, "{generation:?}, {retry_after:?}");
            assert!(error.is_retryable() && server.received("tools/call").is_empty());
            assert_eq!(server.received(greeting).len(), 1, "{generation:?}: connecting is no loop");
        }
    }
}

/// An engine that knows each session for one call.
fn forgetful(request: &Request) -> Option<Reply> {
    let session = request.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: session-"));
    match request.method() {
        "initialize" => Some(request.initialized("2025-11-25").header("mcp-session-id: session-1")),
        "tools/call" if session.is_some() => Some(Reply::new(404, "application/json", r#"{"error":"no session"}"#)),
        _ => None,
    }
}

#[tokio::test]
async fn a_session_that_the_engine_has_lost() {
    let engine = ByHand::start(Generation::Initialize, SOON, forgetful).await;
    let error = execute(&engine.tools, "decision-7").await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)) && !error.is_retryable(), "{error:?}");
    assert_eq!((cause(&error), engine.calls()), (CallErrorKind::SessionLost, 1));
    let error = engine.tools.call("simulate", object!({"scenario": "s"})).await.unwrap_err();
    assert_eq!((cause(&error), engine.calls()), (CallErrorKind::SessionLost, 2));
    assert_eq!(engine.server.received("initialize").len(), 1, "nobody renewed it");
}

#[tokio::test]
async fn the_next_request_has_a_session_of_its_own() {
    let server = ByHand::serve(Generation::Initialize, |request| {
        let is_first = request.body["params"]["arguments"]["decision_id"] == "decision-first";
        is_first.then(|| forgetful(request)).flatten()
    })
    .await;
    let connections = Connections::shared(Endpoint::new(&server.url).unwrap());
    let tools = Toolset::builder().profile(Profile::Execute).service(connections).build();
    let error = execute(&tools, "decision-first").await.unwrap_err();
    assert_eq!(cause(&error), CallErrorKind::SessionLost);
    assert!(execute(&tools, "decision-second").await.unwrap().is_delivered());
    let calls = server.received("tools/call");
    let sent: Vec<_> = calls.iter().map(|call| call.body["params"]["arguments"]["decision_id"].as_str()).collect();
    assert_eq!(sent, [Some("decision-first"), Some("decision-second")]);
    assert_eq!(server.received("initialize").len(), 2);
}

/// Without a session, a 404 is a status like others.
#[tokio::test]
async fn not_found_without_a_session() {
    let engine = ByHand::start(Generation::Stateless, SOON, |request| {
        (request.method() == "tools/call").then(|| Reply::html(404))
    })
    .await;
    let error = execute(&engine.tools, "decision-7").await.unwrap_err();
    assert_eq!((cause(&error), engine.calls()), (CallErrorKind::Status(404), 1));

    // The layers say the same where they stand alone.
    let stack =
        tower::ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(engine.client.clone());
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "decision-8", "webhook_url": HOOK}));
    let answer: Result<ToolResponse, Error> = stack.oneshot(call).await;
    assert!(matches!(answer, Err(Error::OutcomeUnknown(_))));
}
