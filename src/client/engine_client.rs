//! The service over the connection.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use rmcp::{
    RoleClient, ServiceError,
    model::{
        CallToolRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerPeerInfo,
    },
    service::{Peer, QuitReason, RunningService, Service as Handler},
};
use tokio::{
    sync::{Mutex, OnceCell, watch},
    task::JoinError,
};
use tower_service::Service;

use super::{
    BearerToken, CallError, CallErrorKind, endpoint::CALL_TIMEOUT, failure::Failure, list_changes::Notified,
    progress::ProgressTable,
};
use crate::{Error, ProgressSink, ToolRequest, ToolResponse, error::UnexpectedResponse, meta};

/// How long closing may take. rmcp itself waits for its handlers for 2 seconds, and for the end of a session for 5.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A [`Service`] that sends lists and calls to an engine. See the [module docs](super) for an example.
///
/// Clones share the connection. When the last clone and the last future are dropped, it closes;
/// [`close`](Self::close) closes it at once, and waits for that. Dropping a [`ResponseFuture`] cancels its request at
/// the engine.
#[derive(Clone)]
pub struct EngineClient {
    shared: Arc<Shared>,
    call_timeout: Duration,
}

impl EngineClient {
    pub(super) fn new(shared: Shared, call_timeout: Duration) -> Self {
        Self { shared: Arc::new(shared), call_timeout }
    }

    /// Sends through an rmcp client that is already running, and takes over its connection.
    ///
    /// How its transport behaves is up to whoever set it up. Over HTTP, turn `reinit_on_expired_session` off: it renews
    /// a session that the engine has lost, and sends the call again.
    pub fn from_service<S: Handler<RoleClient>>(service: RunningService<RoleClient, S>) -> Self {
        Self::new(Shared::running(service, None), CALL_TIMEOUT)
    }

    /// Sends through an rmcp peer whose connection somebody else owns: it lasts as long as the owner keeps it, and
    /// [`close`](Self::close) closes this client only.
    ///
    /// The first list turns off that the peer answers with an outdated list when the engine fails, for the owner too.
    pub fn from_peer(peer: Peer<RoleClient>) -> Self {
        Self::new(Shared::new(peer, None, None), CALL_TIMEOUT)
    }

    /// Sets how long each request of this client, and of the clones made from now on, may take.
    #[must_use]
    pub const fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// The protocol version that was agreed on.
    #[must_use]
    pub fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.server_info().map(|info| info.protocol_version.clone())
    }

    /// What the engine said of itself when the connection was made. Untrusted: never show it to a model.
    #[must_use]
    pub fn server_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.shared.peer.peer_info()
    }

    /// Whether requests are refused because the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Closes the connection, for all clones, and waits until it is closed. A request that is under way fails; what it
    /// did is then unknown. Closing again only waits.
    ///
    /// If this is dropped, the connection closes all the same, and nobody can wait for that.
    ///
    /// # Errors
    ///
    /// [`Error::Upstream`] when it did not close within 10 seconds, or its task panicked, to the first who closes it. It
    /// is closed all the same.
    pub async fn close(&self) -> Result<(), Error> {
        self.shared.closed.store(true, Ordering::Release);
        // Held until it is closed, so that others who close it wait for that.
        let mut kept = self.shared.session.lock().await;
        let Some(mut session) = kept.take() else { return Ok(()) };
        match session.close().await {
            Ok(Some(QuitReason::JoinError(error))) | Err(error) => Err(Error::Upstream(Box::new(error))),
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(CallError::new(CallErrorKind::TimedOut(CLOSE_TIMEOUT)).into()),
        }
    }

    /// Sends a request of another kind, with the same limit and the same errors.
    #[cfg(feature = "server")]
    pub(crate) async fn ask<T, F>(&self, ask: impl FnOnce(Peer<RoleClient>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        self.shared.check_open()?;
        match tokio::time::timeout(self.call_timeout, ask(self.shared.peer.clone())).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.shared.error(error, UnexpectedResponse::TO_OTHER).await),
            Err(_) => Err(CallError::new(CallErrorKind::TimedOut(self.call_timeout)).into()),
        }
    }

    /// Whether both are clones of one client.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) const fn limit(&self) -> Duration {
        self.call_timeout
    }
}

impl fmt::Debug for EngineClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineClient")
            .field("protocol_version", &self.protocol_version())
            .field("call_timeout", &self.call_timeout)
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl Service<ToolRequest> for EngineClient {
    type Response = ToolResponse;
    type Error = Error;
    type Future = ResponseFuture;

    /// Ready while the connection is open; after that, [`Error::NotSent`].
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(self.shared.check_open())
    }

    fn call(&mut self, request: ToolRequest) -> ResponseFuture {
        // The future keeps the connection, as `oneshot` drops the service before the answer comes.
        let shared = Arc::clone(&self.shared);
        let limit = self.call_timeout;
        ResponseFuture {
            inner: Box::pin(async move {
                tokio::time::timeout(limit, shared.send(request))
                    .await
                    .unwrap_or_else(|_| Err(CallError::new(CallErrorKind::TimedOut(limit)).into()))
            }),
        }
    }
}

/// Response future of [`EngineClient`] and [`Connections`](super::Connections). Dropped before the answer, it cancels the
/// request at the engine.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture {
    // The one box on the way to a socket: rmcp's futures have no names.
    inner: BoxFuture<'static, Result<ToolResponse, Error>>,
}

impl ResponseFuture {
    pub(super) fn new(inner: BoxFuture<'static, Result<ToolResponse, Error>>) -> Self {
        Self { inner }
    }
}

impl Future for ResponseFuture {
    type Output = Result<ToolResponse, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// The connection that clones share.
pub(super) struct Shared {
    peer: Peer<RoleClient>,
    // Dropping it ends the connection. None if it is closed, or somebody else's.
    session: Mutex<Option<Box<dyn Session>>>,
    closed: AtomicBool,
    stale_lists_off: OnceCell<()>,
    // For the errors that quote it.
    token: Option<BearerToken>,
    // None if the notifications go to a handler of somebody else's.
    changes: Option<watch::Receiver<u64>>,
    progress: Option<Arc<ProgressTable>>,
    #[cfg(feature = "child-process")]
    exit: Option<super::child_process::Exit>,
}

impl Shared {
    pub(super) fn running<S: Handler<RoleClient>>(
        service: RunningService<RoleClient, S>,
        token: Option<BearerToken>,
    ) -> Self {
        Self::new(service.peer().clone(), Some(Box::new(service)), token)
    }

    /// As [`running`](Self::running), with this crate's own handler.
    pub(super) fn notified(service: RunningService<RoleClient, Notified>, token: Option<BearerToken>) -> Self {
        let (changes, progress) = (service.service().changes(), Arc::clone(service.service().progress()));
        Self { changes: Some(changes), progress: Some(progress), ..Self::running(service, token) }
    }

    pub(super) const fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// The changes of the list that a session tells from now on.
    pub(super) fn changes(&self) -> Option<watch::Receiver<u64>> {
        let mut changes = self.changes.clone()?;
        changes.mark_unchanged();
        Some(changes)
    }

    fn new(peer: Peer<RoleClient>, session: Option<Box<dyn Session>>, token: Option<BearerToken>) -> Self {
        Self {
            peer,
            session: Mutex::new(session),
            closed: AtomicBool::new(false),
            stale_lists_off: OnceCell::new(),
            token,
            changes: None,
            progress: None,
            #[cfg(feature = "child-process")]
            exit: None,
        }
    }

    /// Says what the engine's process ended with, if it is a child of ours.
    #[cfg(feature = "child-process")]
    pub(super) fn of_child(mut self, exit: super::child_process::Exit) -> Self {
        self.exit = Some(exit);
        self
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.peer.is_transport_closed()
    }

    pub(super) fn check_open(&self) -> Result<(), Error> {
        if !self.is_closed() {
            return Ok(());
        }
        let error = CallError::new(CallErrorKind::Closed);
        #[cfg(feature = "child-process")]
        let error = error.with_exit(self.exit.as_ref().and_then(super::child_process::Exit::status));
        Err(error.into())
    }

    async fn send(&self, request: ToolRequest) -> Result<ToolResponse, Error> {
        match request {
            ToolRequest::List(ListToolsRequest { params, mut extensions, .. }) => {
                let (cursor, meta) = params.map_or((None, None), |params| (params.cursor, params.meta));
                let mut params = PaginatedRequestParams::default().with_cursor(cursor);
                params.meta = meta::take(meta, &mut extensions);
                let is_bare = params.cursor.is_none() && params.meta.is_none();
                self.list((!is_bare).then_some(params)).await.map(ToolResponse::List)
            }
            ToolRequest::Call(CallToolRequest { mut params, mut extensions, .. }) => {
                params.meta = meta::take(params.meta, &mut extensions);
                self.check_open()?;
                // Not `call_tool`: it answers a request for input by calling again.
                let answer = match (extensions.remove::<ProgressSink>(), &self.progress) {
                    (Some(sink), Some(progress)) => progress.call_tool_once(&self.peer, params, sink).await,
                    _ => self.peer.call_tool_once(params).await,
                };
                match answer {
                    Ok(response) => Ok(response.into()),
                    Err(error) => Err(self.error(error, UnexpectedResponse::TO_CALL).await),
                }
            }
        }
    }

    pub(super) async fn list(&self, params: Option<PaginatedRequestParams>) -> Result<ListToolsResult, Error> {
        self.check_open()?;
        self.stale_lists_off
            .get_or_init(|| async {
                let config = self.peer.response_cache_config().await.with_serve_stale_on_error(false);
                self.peer.set_response_cache_config(config).await;
            })
            .await;
        match self.peer.list_tools(params).await {
            Ok(page) => Ok(page),
            Err(error) => Err(self.error(error, UnexpectedResponse::TO_LIST).await),
        }
    }

    #[cfg_attr(not(feature = "child-process"), expect(clippy::unused_async, reason = "only a child is waited for"))]
    pub(super) async fn error(&self, error: ServiceError, unexpected: UnexpectedResponse) -> Error {
        let error = match error {
            ServiceError::McpError(mut error) => {
                if let Some(token) = &self.token {
                    token.redact(&mut error);
                }
                return Error::Upstream(Box::new(error));
            }
            ServiceError::TransportSend(error) => CallError::from(Failure::from(error)),
            ServiceError::UnexpectedResponse => return Error::UnexpectedResponse(unexpected),
            // It was open when the request was handed over, so nobody knows how far that came.
            ServiceError::TransportClosed => CallError::new(CallErrorKind::Lost),
            ServiceError::Cancelled { .. } => CallError::new(CallErrorKind::Cancelled),
            ServiceError::Timeout { timeout } => CallError::new(CallErrorKind::TimedOut(timeout)),
            other => return Error::Upstream(Box::new(other)),
        };
        #[cfg(feature = "child-process")]
        if let (CallErrorKind::Lost, Some(exit)) = (error.kind(), &self.exit) {
            return error.with_exit(exit.soon().await).into();
        }
        error.into()
    }
}

/// A running rmcp client, whatever handles the engine's requests in it.
trait Session: Send {
    /// Closes it; `None` if that takes too long.
    fn close(&mut self) -> BoxFuture<'_, Result<Option<QuitReason>, JoinError>>;
}

impl<S: Handler<RoleClient>> Session for RunningService<RoleClient, S> {
    fn close(&mut self) -> BoxFuture<'_, Result<Option<QuitReason>, JoinError>> {
        Box::pin(self.close_with_timeout(CLOSE_TIMEOUT))
    }
}
