//! Connecting: what answers there, if anything does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpListener};
use tower_algenta::{
    Error, StubEngine,
    client::{CallErrorKind, ConnectErrorKind},
};

use super::{
    TOKEN, call, connect, connect_error, endpoint, list, not_sent,
    scripted::{Reply, Scripted},
    simulate, with_token,
};
use crate::support::everything_printed;

#[tokio::test]
async fn an_engine() {
    let engine = StubEngine::builder().token(TOKEN).start().await.unwrap();
    let client = connect(with_token(engine.url())).await;
    assert_eq!(client.protocol_version().unwrap().as_str(), "2026-07-28");
    assert_eq!(client.server_info().unwrap().server_info.as_ref().unwrap().name, "stub-engine");
    // The list that connecting reads.
    assert_eq!(engine.lists(), 1);
    assert_eq!(list(&client).await.unwrap()[0], "get_contract");
    assert_eq!(call(&client, simulate()).await.unwrap().is_error, Some(false));
    assert_eq!(engine.received().len(), 1);

    let printed = format!("{client:?}");
    assert!(printed.contains("2026-07-28") && !printed.contains(TOKEN), "{printed}");
    for request in engine.received_raw() {
        assert_eq!(request.headers.get_all("authorization").iter().count(), 1);
        assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
    }
}

#[tokio::test]
async fn all_pages_are_read_on_connecting() {
    let engine = StubEngine::builder().page_size(4).start().await.unwrap();
    let _client = connect(endpoint(engine.url())).await;
    assert_eq!(engine.lists(), 3);
}

#[tokio::test]
async fn the_first_list_ends_where_the_engine_has_no_more() {
    for (cursors, lists) in [(&[""][..], 1), (&["a", ""], 2), (&["a", "a", "a"], 2), (&["a", "b", "a", "b"], 3)] {
        let number = Arc::new(AtomicUsize::new(0));
        let engine = Scripted::start(move |request| match request.method() {
            "server/discover" => request.discovered(),
            "tools/list" => request.result(&json!({
                "resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private",
                "nextCursor": cursors[number.fetch_add(1, Ordering::Relaxed) % cursors.len()],
            })),
            _ => Reply::html(404),
        })
        .await;
        let _client = connect(endpoint(&engine.url)).await;
        assert_eq!(engine.received("tools/list").len(), lists, "{cursors:?}");
    }
}

#[tokio::test]
async fn an_engine_that_wants_another_token() {
    let engine = StubEngine::builder().token("another").start().await.unwrap();
    for endpoint in [with_token(engine.url()), endpoint(engine.url())] {
        let (kind, text) = connect_error(endpoint).await;
        assert_eq!(kind, ConnectErrorKind::Unauthorized);
        let url = engine.url();
        assert_eq!(
            text,
            format!(
                "the request was not sent: the engine at {url} wants a valid token (HTTP 401): set it with `Endpoint::token`, or in `ALGENTA_API_KEY`, which `Endpoint::resolve` reads"
            )
        );
    }
}

#[tokio::test]
async fn a_token_that_is_good_for_the_handshake_only() {
    for (status, kind) in [(401, ConnectErrorKind::Unauthorized), (403, ConnectErrorKind::Forbidden)] {
        let server = Scripted::start(move |request| match request.method() {
            "server/discover" => request.discovered(),
            _ => Reply::html(status),
        })
        .await;
        assert_eq!(connect_error(with_token(&server.url)).await.0, kind);
    }
}

#[tokio::test]
async fn nothing_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let (kind, text) = connect_error(with_token(&url)).await;
    assert_eq!(kind, ConnectErrorKind::Unreachable);
    let start = format!("the request was not sent: the engine at {url} cannot be reached (");
    assert!(text.starts_with(&start), "{text}");
    assert!(text.to_lowercase().contains("refused"), "{text}");
    assert!(text.ends_with(": is it running there? `ALGENTA_BASE_URL` or `Endpoint::new` says where it is"), "{text}");
}

#[tokio::test]
async fn tls_to_a_server_that_speaks_none() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        }
    });
    assert_eq!(connect_error(with_token(url)).await.0, ConnectErrorKind::Unreachable);
    server.abort();
}

#[tokio::test]
async fn a_server_that_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?key=hunter2", listener.local_addr().unwrap());
    let accepts = tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            open.push(listener.accept().await.unwrap());
        }
    });
    let limit = Duration::from_millis(300);
    let start = Instant::now();
    let (kind, text) = connect_error(with_token(&url).connect_timeout(limit)).await;
    assert_eq!(kind, ConnectErrorKind::TimedOut(limit));
    assert!(start.elapsed() < Duration::from_secs(2));
    assert!(text.contains("within 300ms") && !text.contains("hunter2"), "{text}");
    accepts.abort();
}

#[tokio::test]
async fn the_first_list_has_no_time_of_its_own() {
    let server = Scripted::start(|request| match request.method() {
        "server/discover" => request.discovered(),
        _ => Reply::Silence,
    })
    .await;
    let limit = Duration::from_millis(300);
    let (kind, _) = connect_error(endpoint(&server.url).connect_timeout(limit)).await;
    assert_eq!(kind, ConnectErrorKind::TimedOut(limit));
}

#[tokio::test]
async fn a_server_that_is_no_engine() {
    use ConnectErrorKind::{Closed, Forbidden, NotMcp, Redirected, Refused, Unauthorized, Unavailable};

    let json = |text: &str| Reply::new(200, "application/json", text);
    let challenge = |status| Reply::html(status).header("www-authenticate: Bearer realm=\"tok-5f3759df\"");
    for (name, reply, kind, says) in [
        ("closes at once", Reply::HangUp, Closed, "closed the connection during the handshake"),
        ("HTML 200", Reply::html(200), NotMcp, "is usually /mcp"),
        ("HTML 404", Reply::html(404), NotMcp, "(HTTP 404)"),
        ("HTML 405", Reply::html(405), NotMcp, "(HTTP 405)"),
        ("401", Reply::html(401), Unauthorized, "`ALGENTA_API_KEY`"),
        ("401 with a challenge", challenge(401), Unauthorized, "`ALGENTA_API_KEY`"),
        ("403", Reply::html(403), Forbidden, "`ALGENTA_API_KEY`"),
        ("403 with a challenge", challenge(403), Forbidden, "`ALGENTA_API_KEY`"),
        ("429", Reply::html(429), Unavailable, "(HTTP 429)"),
        ("500", Reply::html(500), Unavailable, "(HTTP 500)"),
        ("503", Reply::html(503), Unavailable, "(HTTP 503)"),
        ("301", Reply::html(301).header("location: /mcp/"), Redirected, "(HTTP 301)"),
        ("307", Reply::html(307).header("location: http://elsewhere.example/mcp"), Redirected, "(HTTP 307)"),
        ("202", Reply::new(202, "text/plain", ""), Closed, "is its URL an MCP endpoint?"),
        ("empty object", json("{}"), NotMcp, "does not answer like an MCP server"),
        ("empty array", json("[]"), NotMcp, "does not answer like an MCP server"),
        ("no JSON", json("tok-5f3759df"), NotMcp, "does not answer like an MCP server"),
        ("nothing", json(""), NotMcp, "does not answer like an MCP server"),
        (
            "another id",
            json(r#"{"jsonrpc":"2.0","id":99,"result":{"tools":[]}}"#),
            NotMcp,
            "does not answer like an MCP server",
        ),
        ("another result", json(r#"{"jsonrpc":"2.0","id":0,"result":{"tools":[]}}"#), NotMcp, "an MCP server"),
        ("stream without an event", Reply::new(200, "text/event-stream", ""), Closed, "closed the connection"),
        ("stream of nonsense", Reply::new(200, "text/event-stream", "data: {\"a\":\n\n"), Closed, "closed"),
        (
            "JSON-RPC error",
            json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"bad token tok-5f3759df"}}"#),
            Refused,
            "refused the handshake",
        ),
    ] {
        let server = Scripted::start(move |_| reply.clone()).await;
        let start = Instant::now();
        let (found, text) = connect_error(with_token(&server.url)).await;
        assert_eq!(found, kind, "{name}: {text}");
        assert!(text.contains(says), "{name}: {text}");
        assert!(text.starts_with(&format!("the request was not sent: the engine at {} ", server.url)), "{text}");
        assert!(start.elapsed() < Duration::from_secs(3), "{name}");
    }
}

#[tokio::test]
async fn an_engine_whose_list_fails_is_still_an_engine() {
    for reply in [Reply::html(500), Reply::HangUp, Reply::new(200, "application/json", "{}")] {
        let server = Scripted::start(move |request| match request.method() {
            "server/discover" => request.discovered(),
            _ => reply.clone(),
        })
        .await;
        let client = connect(endpoint(&server.url)).await;
        assert!(matches!(list(&client).await, Err(Error::Upstream(_))));
    }
}

#[tokio::test]
async fn no_redirect_takes_the_token_elsewhere() {
    let elsewhere = Scripted::start(|_| Reply::html(200)).await;
    let location = format!("location: {}", elsewhere.url);
    let server = Scripted::start(move |_| Reply::html(308).header(&location)).await;
    assert_eq!(connect_error(with_token(&server.url)).await.0, ConnectErrorKind::Redirected);
    assert_eq!(elsewhere.received("server/discover").len(), 0);
}

#[tokio::test]
async fn an_http_client_of_ones_own() {
    let engine = StubEngine::start().await.unwrap();
    let http = reqwest::Client::builder().user_agent("mine").build().unwrap();
    let _client = connect(with_token(engine.url()).http_client(http)).await;
    assert!(engine.received_raw().iter().all(|request| request.headers["user-agent"] == "mine"));
}

#[tokio::test]
async fn a_quoted_token_is_taken_out_of_errors() {
    let server = Scripted::start(|request| match request.method() {
        "server/discover" => request.discovered(),
        _ => request.error(-32001, "no tok-5f3759df", &json!({"seen": ["x tok-5f3759df"], "tok-5f3759df": 1})),
    })
    .await;
    let client = connect(with_token(&server.url)).await;
    for error in [list(&client).await.unwrap_err(), call(&client, simulate()).await.unwrap_err()] {
        let printed = everything_printed(&error);
        assert!(!printed.contains(TOKEN), "{printed}");
        assert!(printed.contains("no [redacted]"), "{printed}");
    }
}

#[tokio::test]
async fn a_closed_port_later_on() {
    let engine = StubEngine::start().await.unwrap();
    let client = connect(with_token(engine.url())).await;
    engine.shutdown().await;
    let error = call(&client, simulate()).await.unwrap_err();
    assert_eq!(not_sent(&error), CallErrorKind::Unreachable);
    assert!(error.is_retryable());
    assert!(!everything_printed(&error).contains(TOKEN));
    client.close().await.unwrap();
}
