//! Connections that are made when they are needed, and made again when they are lost.

use std::{
    collections::HashMap,
    fmt,
    future::{poll_fn, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use rmcp::model::Extensions;
use tokio::{
    sync::{OnceCell, watch},
    task::JoinSet,
    time::Instant,
};
use tower_service::Service;

use super::{
    BearerToken, CallError, CallErrorKind, ConnectError, ConnectErrorKind, Endpoint, EngineClient, ResponseFuture,
    backoff::Backoff,
};
use crate::{Error, ToolRequest, ToolResponse, error::links};

/// Callers whose connections are kept open.
const MAX_CALLERS: usize = 1024;

/// How long a caller's connection is kept without a request.
const IDLE: Duration = Duration::from_secs(300);

/// How often it is looked whether a connection that is listened to is still the one that requests take.
const LOOK: Duration = Duration::from_secs(1);

/// How long a connection is listened to until its end is no sign of the next one's.
const STEADY: Duration = Duration::from_secs(10);

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Connect = Arc<dyn Fn(Option<BearerToken>) -> BoxFuture<Result<EngineClient, Error>> + Send + Sync>;

/// A [`Service`] over an engine that connects when the first request comes, and again after the connection is lost.
///
/// **No request is sent twice.** The one that finds a connection lost fails, and says whether it may have run; the next
/// one connects anew. After a failure to connect, requests are refused with [`Error::NotSent`] until the next attempt is
/// due, after 0.05 to 10 seconds. Clones share the connections.
///
/// ```
/// # use tower_algenta::{Endpoint, client::Connections};
/// // One identity, whoever asks; or that of each caller, whose token a layer has put into the request's extensions.
/// let shared = Connections::shared(Endpoint::from_env()?);
/// let callers = Connections::per_caller(Endpoint::from_env()?);
/// # Ok::<_, tower_algenta::client::EndpointError>(())
/// ```
#[derive(Clone)]
pub struct Connections {
    inner: Arc<Inner>,
}

struct Inner {
    connect: Connect,
    per_caller: bool,
    max_callers: usize,
    idle: Duration,
    callers: Mutex<HashMap<Caller, Slot>>,
    closing: tokio::sync::Mutex<()>,
}

/// Whose connection it is: the token's, or nobody's.
type Caller = Option<Box<[u8]>>;

struct Slot {
    client: Arc<OnceCell<EngineClient>>,
    used: Instant,
    backoff: Backoff,
    // No attempt before this.
    retry_at: Option<Instant>,
}

impl Slot {
    /// How long the next attempt is off.
    fn waits(&self) -> Option<Duration> {
        self.retry_at?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    fn tried(&mut self, connected: bool) {
        if connected {
            (self.retry_at, self.backoff) = (None, Backoff::new());
        } else {
            self.retry_at = Some(Instant::now() + self.backoff.pause());
        }
    }

    fn holds(&self, client: &EngineClient) -> bool {
        self.client.get().is_some_and(|kept| kept.is_same(client))
    }
}

impl Connections {
    /// Connects to `endpoint` with the endpoint's own token, whoever asks. A token in a request's extensions is ignored.
    pub fn shared(endpoint: Endpoint) -> Self {
        let endpoint = endpoint.pooled();
        Self::shared_with(move || EngineClient::connect(endpoint.clone()))
    }

    /// Connects with `connect`: to a child process, say.
    pub fn shared_with<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<EngineClient, Error>> + Send + 'static,
    {
        Self::new(false, Arc::new(move |_| Box::pin(connect())))
    }

    /// Connects to `endpoint` once for each caller, with the [`BearerToken`] in the request's extensions.
    ///
    /// A caller without one gets a connection without one: the endpoint's own token is never lent. The connections of
    /// the 1,024 callers who asked last are kept; one that was not used for 5 minutes goes when a new caller comes.
    pub fn per_caller(endpoint: Endpoint) -> Self {
        let endpoint = endpoint.without_token().pooled();
        Self::new(
            true,
            Arc::new(move |token| {
                let endpoint = match token {
                    Some(token) => endpoint.clone().token(token),
                    None => endpoint.clone(),
                };
                Box::pin(EngineClient::connect(endpoint))
            }),
        )
    }

    fn new(per_caller: bool, connect: Connect) -> Self {
        Self {
            inner: Arc::new(Inner {
                connect,
                per_caller,
                max_callers: MAX_CALLERS,
                idle: IDLE,
                callers: Mutex::default(),
                closing: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Connects now, if there is no connection yet, as the caller whom `extensions` name.
    ///
    /// # Errors
    ///
    /// [`Error::NotSent`] with a [`ConnectError`].
    pub async fn connect(&self, extensions: &Extensions) -> Result<EngineClient, Error> {
        let token = extensions.get::<BearerToken>().filter(|_| self.inner.per_caller).cloned();
        self.inner.client(token).await
    }

    /// The number of announcements that the list of tools has changed, for
    /// `ToolServer::list_changes` (feature `server`) and for whoever else waits for them.
    ///
    /// A task of its own listens, without a caller's token, for as long as the receiver lives. It connects again when the
    /// connection is lost, after up to 10 seconds, and counts that as a change: what changed in between is not told.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[must_use]
    pub fn watch_list_changes(&self) -> watch::Receiver<u64> {
        let (changes, receiver) = watch::channel(0);
        let connections = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = changes.closed() => {}
                () = connections.listen(&changes) => {}
            }
        });
        receiver
    }

    async fn listen(&self, changes: &watch::Sender<u64>) {
        let mut backoff = Backoff::new();
        let mut missed = false;
        loop {
            let listening = async {
                let client = self.connect(&Extensions::new()).await?;
                Ok::<_, Error>((client.list_changes().await?, client))
            };
            if let Ok((mut listening, client)) = listening.await {
                let begun = Instant::now();
                if std::mem::replace(&mut missed, true) {
                    changes.send_modify(|changes| *changes += 1);
                }
                // A session over HTTP outlives its engine, so a request may be what finds out that it is lost.
                while self.inner.keeps(&client) {
                    match tokio::time::timeout(LOOK, listening.changed()).await {
                        Ok(Ok(())) => changes.send_modify(|changes| *changes += 1),
                        Ok(Err(_)) => break,
                        Err(_) => {}
                    }
                }
                // Each end counts as a change, so an engine that ends what it has just begun is asked less and less.
                if begun.elapsed() >= STEADY {
                    backoff.reset();
                }
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// Closes all connections and waits until they are closed, but for one that is being made. The next request connects
    /// again, and so does [`watch_list_changes`](Self::watch_list_changes).
    pub async fn close(&self) {
        // Held until they are closed, so that others who close them wait for that.
        let _closing = self.inner.closing.lock().await;
        let callers = std::mem::take(&mut *self.inner.callers());
        let clients = callers.into_values().filter_map(|slot| slot.client.get().cloned());
        // All at once, as each may take its ten seconds. It is closed either way.
        let mut closes: JoinSet<_> = clients.map(|client| async move { client.close().await }).collect();
        while closes.join_next().await.is_some() {}
    }
}

impl Inner {
    async fn client(&self, token: Option<BearerToken>) -> Result<EngineClient, Error> {
        let caller = caller(token.as_ref());
        let cell = self.cell(&caller)?;
        let connect = || async {
            // Whoever waited for an attempt that has failed makes none of its own.
            if let Some(left) = self.callers().get(&caller).and_then(Slot::waits) {
                return Err(waiting(left));
            }
            let client = (self.connect)(token).await;
            // Here, before the next one who waits gets its turn.
            self.with_slot(&caller, &cell, |slot| slot.tried(client.is_ok()));
            client
        };
        cell.get_or_try_init(connect).await.cloned()
    }

    /// Where the caller's connection is, or will be.
    fn cell(&self, caller: &Caller) -> Result<Arc<OnceCell<EngineClient>>, Error> {
        let now = Instant::now();
        let mut callers = self.callers();
        if !callers.contains_key(caller) {
            self.make_room(&mut callers, now);
        }
        let slot = callers.entry(caller.clone()).or_insert_with(|| Slot {
            client: Arc::default(),
            used: now,
            backoff: Backoff::new(),
            retry_at: None,
        });
        slot.used = now;
        if slot.client.get().is_some_and(EngineClient::is_closed) {
            slot.client = Arc::default();
        }
        match slot.waits() {
            Some(left) if slot.client.get().is_none() => Err(waiting(left)),
            _ => Ok(Arc::clone(&slot.client)),
        }
    }

    /// Drops what has been idle for too long, and the oldest if there are still too many. A request under way keeps its
    /// connection.
    fn make_room(&self, callers: &mut HashMap<Caller, Slot>, now: Instant) {
        callers.retain(|_, slot| now.duration_since(slot.used) < self.idle);
        while callers.len() >= self.max_callers {
            let Some(oldest) = callers.iter().min_by_key(|(_, slot)| slot.used).map(|(caller, _)| caller.clone())
            else {
                return;
            };
            callers.remove(&oldest);
        }
    }

    /// Changes the caller's slot, if it is still that of `cell`.
    fn with_slot(&self, caller: &Caller, cell: &Arc<OnceCell<EngineClient>>, change: impl FnOnce(&mut Slot)) {
        let mut callers = self.callers();
        if let Some(slot) = callers.get_mut(caller)
            && Arc::ptr_eq(&slot.client, cell)
        {
            change(slot);
        }
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<Caller, Slot>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, request: ToolRequest) -> Result<ToolResponse, Error> {
        let token = request.extensions().get::<BearerToken>().filter(|_| self.per_caller).cloned();
        let caller = caller(token.as_ref());
        let mut client = self.client(token).await?;
        poll_fn(|cx| client.poll_ready(cx)).await?;
        let answer = client.call(request).await;
        if answer.as_ref().is_err_and(is_lost) {
            let mut callers = self.callers();
            // Not one that has been made in the meantime.
            if callers.get(&caller).is_some_and(|slot| slot.holds(&client)) {
                callers.remove(&caller);
            }
        }
        answer
    }

    /// Whether `client` is still the one that requests take. Whoever asks is using it, so it is not idle.
    fn keeps(&self, client: &EngineClient) -> bool {
        let mut callers = self.callers();
        let slot = callers.values_mut().find(|slot| slot.holds(client)).filter(|_| !client.is_closed());
        slot.map(|slot| slot.used = Instant::now()).is_some()
    }
}

fn waiting(left: Duration) -> Error {
    Error::NotSent(Box::new(ConnectError::new(ConnectErrorKind::Waiting(left))))
}

fn caller(token: Option<&BearerToken>) -> Caller {
    token.map(|token| token.header().as_bytes().into())
}

impl From<EngineClient> for Connections {
    /// The client's one connection, which is not made again.
    fn from(client: EngineClient) -> Self {
        Self::shared_with(move || ready(Ok(client.clone())))
    }
}

/// Whether the connection is of no more use.
fn is_lost(error: &Error) -> bool {
    links(error)
        .filter_map(|error| error.downcast_ref::<CallError>())
        .any(|error| matches!(error.kind(), CallErrorKind::Closed | CallErrorKind::Lost | CallErrorKind::SessionLost))
}

impl Service<ToolRequest> for Connections {
    type Response = ToolResponse;
    type Error = Error;
    type Future = ResponseFuture;

    /// Always ready: which connection it takes is known with the request only.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ToolRequest) -> ResponseFuture {
        let inner = Arc::clone(&self.inner);
        ResponseFuture::new(Box::pin(async move { inner.send(request).await }))
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("per_caller", &self.inner.per_caller)
            .field("callers", &self.inner.callers().len())
            .finish_non_exhaustive()
    }
}
