//! How a client comes to its connection.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::header::AUTHORIZATION;
use rmcp::{
    RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::{ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle},
    transport::{
        IntoTransport, StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

use super::{
    CallError, CallErrorKind, ConnectError, ConnectErrorKind, Endpoint, EngineClient,
    endpoint::{CALL_TIMEOUT, CONNECT_TIMEOUT},
    engine_client::Shared,
    list_changes::Notified,
    retry::BoundedRetry,
};
use crate::{BoxError, Error, ToolRequest, Toolset};

/// Oldest first.
const WITH_HANDSHAKE: [ProtocolVersion; 3] =
    [ProtocolVersion::V_2025_03_26, ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25];

/// How long an idle connection is kept. The engines run on uvicorn, which closes one after 5 seconds: a call that is
/// sent just then is lost, and nobody knows whether it ran.
const POOL_IDLE: Duration = Duration::from_secs(4);

impl EngineClient {
    /// Connects to the engine at `endpoint` over streamable HTTP.
    ///
    /// # Errors
    ///
    /// [`Error::NotSent`] with a [`ConnectError`] that says what to do, at the latest when
    /// [`Endpoint::connect_timeout`] is over.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, Error> {
        within(endpoint.connect_timeout, Self::connect_over_http(&endpoint))
            .await
            .map_err(|error| Error::NotSent(Box::new(error.at(endpoint.shown()))))
    }

    /// Connects to the engine at the other end of `transport`: a child process, a socket, a duplex stream.
    ///
    /// It has 15 seconds for the handshake, and each request 60 seconds, which
    /// [`call_timeout`](Self::call_timeout) changes.
    ///
    /// # Errors
    ///
    /// [`Error::NotSent`] with a [`ConnectError`].
    pub async fn serve<T, E, A>(transport: T) -> Result<Self, Error>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let connect = async {
            let session = handshake(transport, auto()).await;
            let session = session.map_err(|error| ConnectError::from_handshake(error, None))?;
            finish(Shared::notified(session, None), CALL_TIMEOUT).await
        };
        within(CONNECT_TIMEOUT, connect).await.map_err(|error| Error::NotSent(Box::new(error)))
    }

    /// Starts an engine as a child process, and connects to it. See [`ChildProcess`](super::ChildProcess).
    ///
    /// # Errors
    ///
    /// [`Error::NotSent`] with a [`ConnectError`]: when it does not start, or ends during the handshake.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its I/O and time drivers.
    #[cfg(feature = "child-process")]
    pub async fn spawn(mut child: super::ChildProcess) -> Result<Self, Error> {
        let (connect_timeout, call_timeout) = (child.connect_timeout, child.call_timeout);
        let mut dial = async |lifecycle| {
            let (transport, exit) =
                child.start().map_err(|error| ConnectError::new(ConnectErrorKind::NotStarted).with_source(error))?;
            Ok::<_, ConnectError>((handshake(transport, lifecycle).await, exit))
        };
        let connect = async {
            let (mut session, mut exit) = dial(auto()).await?;
            if session.as_ref().is_err_and(wants_handshake) {
                exit.ended().await;
                (session, exit) = dial(ClientLifecycleMode::Initialize).await?;
            }
            match session {
                Ok(session) => finish(Shared::notified(session, None).of_child(exit), call_timeout).await,
                Err(error) => Err(match (ConnectError::from_handshake(error, None), exit.soon().await) {
                    (error, Some(status)) if error.kind() == ConnectErrorKind::Closed => {
                        ConnectError::new(ConnectErrorKind::Exited(status))
                    }
                    (error, _) => error,
                }),
            }
        };
        within(connect_timeout, connect).await.map_err(|error| Error::NotSent(Box::new(error)))
    }

    async fn connect_over_http(endpoint: &Endpoint) -> Result<Self, ConnectError> {
        let http = match &endpoint.http_client {
            Some(client) => client.clone(),
            None => http_client(endpoint.connect_timeout)
                .map_err(|error| ConnectError::new(ConnectErrorKind::Setup).with_source(error))?,
        };
        let dial = |lifecycle| {
            handshake(StreamableHttpClientTransport::with_client(http.clone(), transport_config(endpoint)), lifecycle)
        };
        let session = match dial(auto()).await {
            Err(error) if wants_handshake(&error) => dial(ClientLifecycleMode::Initialize).await,
            session => session,
        };
        let token = endpoint.bearer_token();
        let session = session.map_err(|error| ConnectError::from_handshake(error, token))?;
        finish(Shared::notified(session, token.cloned()), endpoint.call_timeout).await
    }
}

async fn within<T>(limit: Duration, connect: impl Future<Output = Result<T, ConnectError>>) -> Result<T, ConnectError> {
    tokio::time::timeout(limit, connect)
        .await
        .unwrap_or_else(|_| Err(ConnectError::new(ConnectErrorKind::TimedOut(limit))))
}

async fn handshake<T, E, A>(
    transport: T,
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, Notified>, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let implementation = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    // No capabilities: an engine has nothing to ask of a model, or of a person, through this client.
    let mut config = ClientConfig::new(ClientCapabilities::default(), implementation);
    config.protocol_version = ProtocolVersion::V_2025_11_25;
    // Boxed, since its state would make every caller's future some 16 KiB large.
    Box::pin(serve_client_with_lifecycle(Notified::new(config), transport, lifecycle)).await
}

/// Whether the engine knows `server/discover`, but only versions from before it. rmcp takes that for the end.
fn wants_handshake(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. }
        if server_supported.iter().any(|version| WITH_HANDSHAKE.contains(version)))
}

/// 2026-07-28 if the engine knows it, else the handshake of the versions before.
fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None }
}

/// Checks what was agreed on, and reads the first list.
async fn finish(shared: Shared, call_timeout: Duration) -> Result<EngineClient, ConnectError> {
    let client = EngineClient::new(shared, call_timeout);
    match client.protocol_version() {
        // Engines that want arguments in headers exist in this version only.
        Some(version) if version == ProtocolVersion::V_2026_07_28 => first_list(&client).await.map(|()| client),
        Some(version) if WITH_HANDSHAKE.contains(&version) => Ok(client),
        _ => Err(ConnectError::new(ConnectErrorKind::ProtocolMismatch)),
    }
}

/// Reads the list to where a toolset would.
async fn first_list(client: &EngineClient) -> Result<(), ConnectError> {
    match Toolset::from_governed_stack(client.clone()).list_merged(ToolRequest::list_from).await {
        Err(Error::Upstream(error)) => refused_token(&error),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn refused_token(error: &BoxError) -> Result<(), ConnectError> {
    let kind = match error.downcast_ref::<CallError>().map(CallError::kind) {
        Some(CallErrorKind::Unauthorized) => ConnectErrorKind::Unauthorized,
        Some(CallErrorKind::Forbidden) => ConnectErrorKind::Forbidden,
        _ => return Ok(()),
    };
    Err(ConnectError::new(kind))
}

fn http_client(connect_timeout: Duration) -> reqwest::Result<reqwest::Client> {
    // rmcp's own client keeps no connection and opens one for each call.
    reqwest::Client::builder()
        .pool_idle_timeout(POOL_IDLE)
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .build()
}

impl Endpoint {
    /// Has all clients that are made from this endpoint's clones share one pool of connections.
    pub(super) fn pooled(mut self) -> Self {
        // Where it can't be set up, connecting says so.
        self.http_client = self.http_client.or_else(|| http_client(self.connect_timeout).ok());
        self
    }
}

fn transport_config(endpoint: &Endpoint) -> StreamableHttpClientTransportConfig {
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url())
        .max_concurrent_requests(endpoint.max_concurrent_requests)
        // It sends again what was sent to the old session.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(BoundedRetry);
    if let Some(token) = endpoint.bearer_token() {
        // In rmcp's own field for it, its `Debug` would show it.
        config.custom_headers = HashMap::from([(AUTHORIZATION, token.header())]);
    }
    config
}
