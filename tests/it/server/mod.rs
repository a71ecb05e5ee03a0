//! The server: real rmcp clients, over a real socket, in both generations of the protocol.

mod calls;
mod failures;
pub(crate) mod lists;
mod pass_through;
mod progress;

use std::{net::SocketAddr, time::Duration};

use rmcp::{
    ClientHandler, RoleClient, ServiceError,
    model::{CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation, JsonObject},
    service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tower::{Service, ServiceBuilder};
use tower_algenta::{
    BoxError, Endpoint, GovernanceLayer, Profile, StubEngine, ToolRequest, ToolResponse, ToolServer,
    client::Connections,
};

/// More than any test needs, and less than it takes to lose patience.
const SOON: Duration = Duration::from_secs(10);

/// How a client opens.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Generation {
    Handshake,
    Stateless,
}

impl Generation {
    const ALL: [Self; 2] = [Self::Handshake, Self::Stateless];

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Handshake => ClientLifecycleMode::Initialize,
            Self::Stateless => {
                ClientLifecycleMode::Discover { preferred_versions: vec![rmcp::model::ProtocolVersion::V_2026_07_28] }
            }
        }
    }
}

/// A server on a socket, until it is dropped.
struct Served {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    async fn start<S>(server: ToolServer<S>, sessions: bool) -> Self
    where
        S: Service<ToolRequest, Response = ToolResponse, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(sessions);
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            std::sync::Arc::<LocalSessionManager>::default(),
            config,
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let router = axum::Router::new().nest_service("/mcp", service);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { addr, task }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.addr)
    }

    async fn client(&self, generation: Generation) -> RunningService<RoleClient, ClientConfig> {
        self.client_with(generation, config()).await
    }

    async fn client_with<H: ClientHandler>(&self, generation: Generation, handler: H) -> RunningService<RoleClient, H> {
        let transport = StreamableHttpClientTransport::from_uri(self.url());
        timeout(SOON, serve_client_with_lifecycle(handler, transport, generation.lifecycle()))
            .await
            .expect("connecting ends")
            .unwrap()
    }
}

fn config() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "1"))
}

/// A governed stack over `engine`.
fn governed(
    engine: &StubEngine,
    profile: Profile,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = tower_algenta::Error, Future: Send>
+ Clone
+ Send
+ Sync
+ 'static {
    let connections = Connections::shared(Endpoint::new(engine.url()).unwrap());
    ServiceBuilder::new().layer(GovernanceLayer::new(profile)).service(connections)
}

async fn call(
    client: &RunningService<RoleClient, impl ClientHandler>,
    name: &'static str,
    arguments: JsonObject,
) -> Result<CallToolResult, ServiceError> {
    let params = CallToolRequestParams::new(name).with_arguments(arguments);
    timeout(SOON, client.call_tool(params)).await.expect("a call ends")
}

#[track_caller]
fn json_rpc<T: std::fmt::Debug>(answer: Result<T, ServiceError>) -> rmcp::ErrorData {
    match answer {
        Err(ServiceError::McpError(error)) => error,
        other => panic!("expected a JSON-RPC error: {other:?}"),
    }
}
