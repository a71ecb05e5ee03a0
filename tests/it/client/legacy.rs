//! Older protocol versions, and transports other than HTTP.

use std::{borrow::Cow, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ServerCapabilities, ServerConfig,
    },
    service::{ClientLifecycleMode, ClientServiceExt, QuitReason, RequestContext, RunningService, ServiceExt as _},
    transport::StreamableHttpClientTransport,
};
use serde_json::json;
use tokio::time::timeout;
use tower_algenta::{
    EngineClient, Error, StubEngine,
    client::{CallErrorKind, ConnectError, ConnectErrorKind},
    stub::Fault,
};

use super::{
    SOON, call, connect, connect_error, endpoint, eventually, list, not_sent, ready,
    scripted::{Reply, Request, Scripted},
    simulate, upstream,
};

/// A server of the versions before 2026-07-28, stateless.
fn older(request: &Request, version: &str) -> Reply {
    match request.method() {
        "server/discover" => Reply::new(400, "text/plain", "Bad Request"),
        "initialize" => request.initialized(version),
        "notifications/initialized" => Reply::new(202, "text/plain", ""),
        "tools/list" => request.result(&json!({"tools": []})),
        _ => request.result(&json!({"content": []})),
    }
}

#[tokio::test]
async fn the_older_versions() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = Scripted::start(move |request| older(request, version)).await;
        let client = connect(endpoint(&server.url)).await;
        assert_eq!(client.protocol_version().unwrap().as_str(), version);
        call(&client, simulate()).await.unwrap();
        assert_eq!(server.received("initialize")[0].body["params"]["protocolVersion"], "2025-11-25");
        // No arguments in headers there, so no list is needed.
        assert_eq!(server.received("tools/list").len(), 0);
    }
}

#[tokio::test]
async fn versions_that_this_crate_does_not_know() {
    for version in ["2024-11-05", "2031-01-01", "nonsense"] {
        let server = Scripted::start(move |request| older(request, version)).await;
        let (kind, text) = connect_error(endpoint(&server.url)).await;
        assert_eq!(kind, ConnectErrorKind::ProtocolMismatch);
        assert!(text.contains("from 2025-03-26 to 2026-07-28"), "{text}");
    }
}

#[tokio::test]
async fn an_engine_that_answers_the_new_question_with_old_versions() {
    let unsupported = |request: &Request, supported: &[&str]| match request.method() {
        "server/discover" => request.error(-32022, "unsupported protocol version", &json!({"supported": supported})),
        _ => older(request, "2025-06-18"),
    };
    let server = Scripted::start(move |request| unsupported(request, &["2025-03-26", "2025-06-18"])).await;
    let client = connect(endpoint(&server.url)).await;
    assert_eq!(client.protocol_version(), Some(ProtocolVersion::V_2025_06_18));

    let server = Scripted::start(move |request| unsupported(request, &["2031-01-01"])).await;
    assert_eq!(connect_error(endpoint(&server.url)).await.0, ConnectErrorKind::ProtocolMismatch);
    assert_eq!(server.received("initialize").len(), 0);
}

#[tokio::test]
async fn a_session_that_is_lost_is_not_renewed() {
    let server = Scripted::start(|request| match request.method() {
        "initialize" => request.initialized("2025-11-25").header("mcp-session-id: s1"),
        "tools/call" => Reply::html(404),
        _ => older(request, ""),
    })
    .await;
    let client = connect(endpoint(&server.url)).await;
    let error = call(&client, simulate()).await.unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::SessionLost);
    assert_eq!((server.received("tools/call").len(), server.received("initialize").len()), (1, 1));
}

async fn older_session(engine: &StubEngine) -> RunningService<rmcp::RoleClient, ()> {
    let transport = StreamableHttpClientTransport::from_uri(engine.url());
    ().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await.unwrap()
}

#[tokio::test]
async fn a_session_of_the_stub() {
    let engine = StubEngine::start().await.unwrap();
    let client = EngineClient::from_service(older_session(&engine).await);
    assert_eq!(client.protocol_version(), Some(ProtocolVersion::V_2025_11_25));
    assert_eq!(list(&client).await.unwrap().len(), 9);
    call(&client, simulate()).await.unwrap();
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_call_in_a_session_is_cancelled_too() {
    let engine = StubEngine::builder().fault(Fault::Hang).start().await.unwrap();
    let limit = Duration::from_millis(200);
    let client = EngineClient::from_service(older_session(&engine).await).call_timeout(limit);
    assert_eq!(upstream(&call(&client, simulate()).await.unwrap_err()), CallErrorKind::TimedOut(limit));
    eventually("the call is cancelled at the engine", || engine.cancelled() == 1).await;
}

#[tokio::test]
async fn a_peer_belongs_to_its_owner() {
    let engine = StubEngine::start().await.unwrap();
    let owner = older_session(&engine).await;
    let client = EngineClient::from_peer(owner.peer().clone());
    call(&client, simulate()).await.unwrap();
    list(&client).await.unwrap();
    assert!(!owner.peer().response_cache_config().await.serve_stale_on_error);

    let other = EngineClient::from_peer(owner.peer().clone());
    client.close().await.unwrap();
    drop(client.clone());
    assert_eq!(not_sent(&call(&client, simulate()).await.unwrap_err()), CallErrorKind::Closed);
    call(&other, simulate()).await.unwrap();

    drop(owner);
    eventually("the peer closes", || other.is_closed()).await;
    assert_eq!(not_sent(&ready(&other).await.unwrap_err()), CallErrorKind::Closed);
}

/// A server for a pipe.
#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(request.name)]).into())
    }
}

#[tokio::test]
async fn a_pipe() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(async move { Echo.serve(far).await.unwrap().waiting().await.unwrap() });
    let client = timeout(SOON, EngineClient::serve(near)).await.unwrap().unwrap();
    let clone = client.clone();
    assert_eq!(call(&client, simulate()).await.unwrap().content[0].as_text().unwrap().text, "simulate");
    drop(client);
    call(&clone, simulate()).await.unwrap();

    // The last clone closes it.
    drop(clone);
    let quit = timeout(SOON, server).await.expect("the server sees the end").unwrap();
    assert!(matches!(quit, QuitReason::Closed), "{quit:?}");
}

#[tokio::test]
async fn a_pipe_that_breaks() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    drop(far);
    let error = timeout(SOON, EngineClient::serve(near)).await.unwrap().unwrap_err();
    let Error::NotSent(inner) = error else { panic!("{error:?}") };
    let error = inner.downcast_ref::<ConnectError>().unwrap();
    assert_eq!(error.kind(), ConnectErrorKind::Closed);
    assert!(error.to_string().starts_with("the engine closed the connection"), "{error}");

    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(async move { Echo.serve(far).await.unwrap() });
    let client = EngineClient::serve(near).await.unwrap();
    drop(server.await.unwrap());
    eventually("the client notices", || client.is_closed()).await;
    assert_eq!(not_sent(&call(&client, simulate()).await.unwrap_err()), CallErrorKind::Closed);
    client.close().await.unwrap();
}
