//! The engine, the proxy that governs nothing, and the layers in its place.

use std::{error::Error, sync::Arc};

use axum::Router;
use rmcp::{
    ErrorData, RoleClient, RoleServer, ServerHandler, ServiceError,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    },
    service::{ClientLifecycleMode, Peer, RequestContext, serve_client_with_lifecycle},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use tokio::net::TcpListener;
use tower::Layer as _;
use tower_algenta::{Endpoint, EngineClient, GovernanceLayer, Profile, ToolServer};

use crate::{Role, cases};

pub(crate) async fn serve(role: Role, upstream: Option<String>) -> Result<(), Box<dyn Error>> {
    match role {
        Role::Plain => listen(ToolServer::new(client(upstream).await?)).await,
        Role::Governed => {
            listen(ToolServer::new(GovernanceLayer::new(Profile::Execute).layer(client(upstream).await?))).await
        }
        Role::Engine => listen(cases::engine::Engine { list: seven_tools(), receipt: cases::receipt() }).await,
        Role::Proxy => {
            let mut config = StreamableHttpClientTransportConfig::with_uri(upstream.ok_or("a proxy has an upstream")?);
            config.max_concurrent_requests = 1024;
            // As the gateway does: rmcp's own opens a connection for each call.
            let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: None,
            };
            let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("proxy", "1"));
            let engine = Box::pin(serve_client_with_lifecycle(client, transport, lifecycle)).await?;
            engine.list_tools(None).await?;
            listen(Proxy { engine: engine.peer().clone() }).await
        }
    }
}

async fn client(upstream: Option<String>) -> Result<EngineClient, Box<dyn Error>> {
    Ok(EngineClient::connect(Endpoint::new(upstream.ok_or("a hop has an upstream")?)?).await?)
}

/// Serves as the gateway does: without sessions, JSON in answer to JSON.
async fn listen(handler: impl ServerHandler + Clone) -> Result<(), Box<dyn Error>> {
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::<LocalSessionManager>::default(), config);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("  listens  http://{}/mcp", listener.local_addr()?);
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| _ = stream.set_nodelay(true));
    Ok(axum::serve(listener, Router::new().nest_service("/mcp", service)).await?)
}

fn seven_tools() -> ListToolsResult {
    let mut list = cases::recorded_list();
    list.tools.retain(|tool| Profile::Execute.has(&tool.name));
    list
}

#[derive(Clone)]
struct Proxy {
    engine: Peer<RoleClient>,
}

impl ServerHandler for Proxy {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.engine.list_tools(params).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.engine.call_tool_once(params).await.map_err(failed)
    }
}

fn failed(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}
