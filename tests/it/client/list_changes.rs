//! Waiting for changes of the list, over both generations of the protocol.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{DiscoverResult, ErrorCode, ServerCapabilities, ServerConfig},
    service::{NotificationContext, RequestContext, ServiceExt as _},
    transport::StreamableHttpClientTransport,
};
use serde_json::json;
use tokio::time::timeout;
use tower_algenta::{EngineClient, StubEngine, Toolset, client::CallErrorKind};

use super::{
    SOON, call, connect, endpoint, list, not_sent,
    scripted::{Reply, Request, Scripted},
    simulate, upstream,
};

/// A server of the stub's versions with a handshake, for a client of this crate's own.
fn session(request: &Request) -> Reply {
    match request.method() {
        "server/discover" => Reply::new(400, "text/plain", "Bad Request"),
        "initialize" => request.initialized("2025-11-25"),
        "notifications/initialized" => Reply::new(202, "text/plain", ""),
        _ => request.result(&json!({"tools": [], "content": []})),
    }
}

#[tokio::test]
async fn changes_are_told_to_everybody_who_asked() {
    let engine = StubEngine::start().await.unwrap();
    let clients = [connect(endpoint(engine.url())).await, connect(endpoint(engine.url())).await];
    let mut changes = [clients[0].list_changes().await.unwrap(), clients[1].list_changes().await.unwrap()];
    for _ in 0..2 {
        for change in &mut changes {
            assert!(timeout(Duration::from_millis(50), change.changed()).await.is_err(), "nothing has changed");
        }
        engine.announce_list_change();
        for (client, change) in clients.iter().zip(&mut changes) {
            timeout(SOON, change.changed()).await.expect("a change is told").unwrap();
            // The connection serves calls meanwhile.
            assert_eq!(list(client).await.unwrap().len(), 9);
            call(client, simulate()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_toolset_hears_of_changes_too() {
    let engine = StubEngine::start().await.unwrap();
    let tools = Toolset::builder().endpoint(endpoint(engine.url())).connect().await.unwrap();
    let mut changes = tools.list_changes().await.unwrap();
    engine.announce_list_change();
    timeout(SOON, changes.changed()).await.expect("a change is told").unwrap();
    assert_eq!(tools.list().await.unwrap().len(), 4);

    let tools = Toolset::builder().service(connect(endpoint(engine.url())).await).build();
    assert_eq!(upstream(&tools.list_changes().await.unwrap_err()), CallErrorKind::NoListChanges);
}

#[tokio::test]
async fn the_end_of_the_engine_is_told_too() {
    let engine = StubEngine::start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    let mut changes = client.list_changes().await.unwrap();
    engine.shutdown().await;
    let error = timeout(SOON, changes.changed()).await.expect("the end is told").unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::Lost);

    let engine = StubEngine::start().await.unwrap();
    let client = connect(endpoint(engine.url())).await;
    let mut changes = client.list_changes().await.unwrap();
    client.close().await.unwrap();
    let error = timeout(SOON, changes.changed()).await.expect("the end is told").unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::Lost);
    assert_eq!(not_sent(&client.list_changes().await.unwrap_err()), CallErrorKind::Closed);
}

#[tokio::test]
async fn an_engine_that_tells_nothing() {
    // Neither of these says that it tells of changes.
    let modern = Scripted::start(|request| match request.method() {
        "server/discover" => request.discovered(),
        _ => request.tools(&json!([])),
    })
    .await;
    let older = Scripted::start(session).await;
    for server in [modern, older] {
        let client = connect(endpoint(&server.url)).await;
        let error = client.list_changes().await.unwrap_err();
        assert_eq!(upstream(&error), CallErrorKind::NoListChanges);
        assert!(error.to_string().contains("can't be awaited"), "{error}");
    }
}

#[tokio::test]
async fn a_connection_of_somebody_elses() {
    let engine = StubEngine::start().await.unwrap();
    // In a session, its own handler hears what is told.
    let transport = StreamableHttpClientTransport::from_uri(engine.url());
    let client = EngineClient::from_service(().serve(transport).await.unwrap());
    assert_eq!(upstream(&client.list_changes().await.unwrap_err()), CallErrorKind::NoListChanges);

    // In 2026-07-28, a subscription is a request like any other.
    let owner = connect(endpoint(engine.url())).await;
    let mut changes = owner.list_changes().await.unwrap();
    engine.announce_list_change();
    timeout(SOON, changes.changed()).await.unwrap().unwrap();
}

/// A server that tells of two changes as soon as it may, and of no more.
#[derive(Clone)]
struct Restless;

impl ServerHandler for Restless {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "server/discover", None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        tokio::spawn(async move {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let _ = context.peer.notify_tool_list_changed().await;
            }
        });
    }
}

#[tokio::test]
async fn changes_in_a_session() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(async move { Restless.serve(far).await.unwrap() });
    let client = timeout(SOON, EngineClient::serve(near)).await.unwrap().unwrap();
    assert_eq!(client.protocol_version().unwrap().as_str(), "2025-11-25");
    let mut changes = client.list_changes().await.unwrap();
    for _ in 0..2 {
        timeout(SOON, changes.changed()).await.expect("a change is told").unwrap();
    }
    drop(server.await.unwrap());
    let error = timeout(SOON, changes.changed()).await.expect("the end is told").unwrap_err();
    assert_eq!(upstream(&error), CallErrorKind::Lost);
}
