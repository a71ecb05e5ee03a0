//! Connections that are made when they are needed.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;
use tokio::{net::TcpListener, time::timeout};
use tower::ServiceExt as _;
use tower_algenta::{
    BearerToken, Error, StubEngine, ToolRequest,
    client::{ConnectError, ConnectErrorKind, Connections},
};

use super::{
    SOON,
    calls::slow_to_end,
    endpoint,
    scripted::{Reply, Request, Scripted},
    simulate,
};
use crate::server::lists::announce_until;

fn kind(error: &Error) -> ConnectErrorKind {
    match error {
        Error::NotSent(error) => error.downcast_ref::<ConnectError>().expect("a connect error").kind(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn those_who_waited_for_an_attempt_make_none_of_their_own() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limit = Duration::from_millis(400);
    let engine = endpoint(format!("http://{}/mcp", silent.local_addr().unwrap())).connect_timeout(limit);
    let connections = Connections::shared(engine);
    let begun = Instant::now();
    let answers = join_all((0..6).map(|_| connections.clone().oneshot(simulate())));
    let answers = timeout(SOON, answers).await.expect("they end");
    assert!(begun.elapsed() < 4 * limit, "one attempt for all: {:?}", begun.elapsed());
    let kinds: Vec<_> = answers.iter().map(|answer| kind(answer.as_ref().unwrap_err())).collect();
    assert_eq!(kinds.iter().filter(|kind| matches!(kind, ConnectErrorKind::TimedOut(_))).count(), 1, "{kinds:?}");
    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(Error::is_retryable)));
}

#[tokio::test]
async fn a_lost_connection_is_made_anew_for_the_next_request() {
    let engine = StubEngine::start().await.unwrap();
    let port = engine.addr().port();
    let connections = Connections::shared(endpoint(engine.url()));
    connections.clone().oneshot(simulate()).await.unwrap();
    engine.shutdown().await;
    assert!(connections.clone().oneshot(simulate()).await.is_err());
    let engine = StubEngine::builder().port(port).start().await.unwrap();
    let again = async {
        while connections.clone().oneshot(simulate()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, again).await.expect("it connects again");
    assert_eq!(engine.received().len(), 1, "no request was sent twice");
}

#[tokio::test]
async fn each_caller_has_a_connection_and_the_endpoints_token_goes_to_none() {
    let engine = StubEngine::start().await.unwrap();
    let own = endpoint(engine.url()).token(BearerToken::new("the-endpoints").unwrap());
    let connections = Connections::per_caller(own);
    for token in [None, Some("a"), Some("b"), Some("a")] {
        let mut request = ToolRequest::list();
        if let Some(token) = token {
            request.extensions_mut().insert(BearerToken::new(token).unwrap());
        }
        connections.clone().oneshot(request).await.unwrap();
    }
    let mut sent: Vec<_> = (engine.received_raw().iter())
        .map(|request| request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()))
        .collect();
    sent.sort();
    sent.dedup();
    assert_eq!(sent, [None, Some("Bearer a".to_owned()), Some("Bearer b".to_owned())]);
    assert!(format!("{connections:?}").contains("callers: 3"), "{connections:?}");
}

#[tokio::test]
async fn all_connections_are_closed_at_once_and_whoever_closes_them_waits() {
    let engine = slow_to_end().await;
    let connections = Connections::per_caller(endpoint(&engine.url));
    for number in 0..12 {
        let mut request = ToolRequest::list();
        request.extensions_mut().insert(BearerToken::new(format!("caller-{number}")).unwrap());
        connections.clone().oneshot(request).await.unwrap();
    }
    let begun = Instant::now();
    let closes = join_all((0..2).map(async |number| {
        tokio::time::sleep(Duration::from_millis(50 * number)).await;
        connections.close().await;
        begun.elapsed()
    }));
    for closed in timeout(SOON, closes).await.expect("they end") {
        assert!(Duration::from_millis(400) < closed && closed < Duration::from_secs(4), "{closed:?}");
    }
    assert_eq!(engine.all().iter().filter(|request| request.head.starts_with("delete")).count(), 12);
}

/// A subscription that is acknowledged, and ended with that.
fn ended(request: &Request) -> Reply {
    let id = &request.body["id"];
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": meta, "notifications": {"toolsListChanged": true}}});
    let result = json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}});
    Reply::new(200, "text/event-stream", &format!("data: {acknowledged}\n\ndata: {result}\n\n"))
}

#[tokio::test]
async fn an_engine_that_ends_each_subscription_is_asked_less_and_less() {
    let engine = Scripted::start(|request: &Request| match request.method() {
        "server/discover" => request.result(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {"listChanged": true}},
        })),
        "tools/list" => request.tools(&json!([])),
        "subscriptions/listen" => ended(request),
        _ => Reply::html(404),
    })
    .await;
    let changes = Connections::shared(endpoint(&engine.url)).watch_list_changes();
    tokio::time::sleep(Duration::from_secs(2)).await;
    // After pauses of 50 to 100 ms, then twice that, and so on.
    let asked = engine.received("subscriptions/listen").len();
    assert!((3..=7).contains(&asked), "{asked}");
    assert!(*changes.borrow() < 7, "{changes:?}");
}

#[tokio::test]
async fn a_connection_that_is_listened_to_is_not_idle() {
    let engine = StubEngine::start().await.unwrap();
    let connections = Connections::per_caller(endpoint(engine.url()));
    let mut changes = connections.watch_list_changes();
    announce_until(&engine, changes.changed()).await.unwrap();

    // Six minutes in which nobody asks for anything, and then somebody else.
    tokio::time::pause();
    for _ in 0..2 {
        tokio::time::advance(Duration::from_secs(180)).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    tokio::time::resume();
    let mut request = ToolRequest::list();
    request.extensions_mut().insert(BearerToken::new("new").unwrap());
    connections.clone().oneshot(request).await.unwrap();
    assert!(format!("{connections:?}").contains("callers: 2"), "{connections:?}");

    // As long as it takes to notice that a connection is gone, and to ask again.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let asked = (engine.received_raw().iter())
        .filter(|request| String::from_utf8_lossy(&request.body).contains("subscriptions/listen"))
        .count();
    assert_eq!(asked, 1);
}
