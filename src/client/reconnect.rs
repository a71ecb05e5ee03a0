//! One engine whose connection is made again when it is lost.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use tower_service::Service;

use super::{CallError, CallErrorKind, Connector, Endpoint, EngineClient, backoff::Backoff, engine_client};
use crate::{BoxError, Error, ToolRequest, ToolResponse, error::links, events};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Connect = Arc<dyn Fn() -> BoxFuture<Result<EngineClient, Error>> + Send + Sync>;

/// A [`Service`] over one engine that is ready while the engine is there.
///
/// While there is no connection it is not ready, and a task of its own connects, with pauses of up to 10 seconds. So a
/// balancer passes over an engine that is gone, and comes back to it when it is back: a client that failed fast instead
/// would look like the fastest of all. What stands before it must bound the wait if all engines are gone, with tower's
/// `load_shed`, say. To be refused at once while a single engine is away, use [`Connections`](super::Connections).
///
/// **No request is sent twice.** One that fails, fails as it does with [`EngineClient`]; then the connection is made anew
/// - at once, if it is lost or could not be opened;
/// - after a pause, once three lists or three calls in a row were answered by an HTTP error, by what is no answer, or not
///   in time. One or two can be the fault of what was asked, and a model must not take an engine from everybody. That
///   goes for a 401 as well: something behind the engine may have said it. If it is the engine that refuses the token,
///   the list over the new connection finds out.
///
/// It is one service for one owner, a balancer as a rule; what needs clones gets them from tower's `Buffer` around it. A
/// connection counts when the engine has answered a list of tools over it. Until one is answered, it is tried again.
///
/// ```
/// # #[cfg(feature = "stub")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use tower::{Service as _, ServiceExt as _};
/// use tower_algenta::{Endpoint, ToolRequest, client::Reconnect, stub::StubEngine};
///
/// let stub = StubEngine::start().await.unwrap();
///
/// let mut engine = Reconnect::to(Endpoint::new(stub.url())?);
/// engine.ready().await?.call(ToolRequest::list()).await?;
/// # Ok::<_, tower_algenta::BoxError>(()) }).unwrap();
/// ```
pub struct Reconnect {
    connect: Connect,
    state: State,
}

enum State {
    /// Nobody has asked yet.
    Idle,
    Connecting(Connecting),
    Connected(EngineClient, Arc<Health>, Backoff),
}

/// What the answers say of a connection.
#[derive(Default)]
struct Health {
    is_lost: AtomicBool,
    // A list that is answered is no proof that calls are: an engine may tell its tools to everybody.
    lists: Answers,
    calls: Answers,
}

/// How requests of one kind ended.
#[derive(Default)]
struct Answers {
    has_any: AtomicBool,
    failed_in_a_row: AtomicUsize,
}

/// Requests in a row that end in no answer, until the engine is taken to be gone.
const FAILURES: usize = 3;

impl Reconnect {
    /// An engine at `endpoint`. It is connected to when it is first asked whether it is ready.
    #[must_use]
    pub fn to(endpoint: Endpoint) -> Self {
        Self::new(Connector::new(), endpoint)
    }

    /// An engine that `make`, a tower `MakeService`, connects to when it is called with `target`.
    ///
    /// ```no_run
    /// # #[cfg(feature = "child-process")]
    /// # fn run() {
    /// use tower::service_fn;
    /// use tower_algenta::{EngineClient, client::{ChildProcess, Reconnect}};
    ///
    /// // Started again when it ends.
    /// let start = service_fn(|program| EngineClient::spawn(ChildProcess::new(program)));
    /// let engine = Reconnect::new(start, "algenta-mcp");
    /// # }
    /// ```
    #[must_use]
    pub fn new<M, T>(make: M, target: T) -> Self
    where
        M: Service<T, Response = EngineClient, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
        T: Clone + Send + Sync + 'static,
    {
        let connect = move || -> BoxFuture<_> {
            let (make, target) = (make.clone(), target.clone());
            Box::pin(async move {
                let client = make.oneshot(target).await.map_err(|error| Error::from(error.into()))?;
                is_serving(&client).await.map(|()| client)
            })
        };
        Self { connect: Arc::new(connect), state: State::Idle }
    }

    /// Whether there is a connection that nothing is known against.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(&self.state, State::Connected(client, health, _) if !health.is_lost() && !client.is_closed())
    }
}

impl Service<ToolRequest> for Reconnect {
    type Response = ToolResponse;
    type Error = Error;
    type Future = ReconnectFuture;

    /// Ready while there is a connection. It fails only if the runtime, or what connects, has come to its end.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while !self.is_connected() {
            self.state = match &mut self.state {
                State::Idle => Connecting::begin(&self.connect, Backoff::new(), false).into(),
                State::Connecting(connecting) => match ready!(connecting.poll(cx)) {
                    Ok((client, backoff)) => State::Connected(client, Arc::default(), backoff),
                    Err(error) => {
                        self.state = State::Idle;
                        return Poll::Ready(Err(error));
                    }
                },
                State::Connected(_, health, backoff) => {
                    let mut backoff = std::mem::replace(backoff, Backoff::new());
                    let has_served = health.has_served();
                    if has_served {
                        backoff.reset();
                    }
                    Connecting::begin(&self.connect, backoff, !has_served || health.is_failing()).into()
                }
            };
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the request. Without a connection, so before [`poll_ready`](Self::poll_ready) said that there is one, it
    /// fails with [`Error::NotSent`].
    fn call(&mut self, request: ToolRequest) -> ReconnectFuture {
        let sent = match &mut self.state {
            State::Connected(client, health, _) => {
                let is_list = matches!(request, ToolRequest::List(_));
                Some((client.call(request), Arc::clone(health), is_list))
            }
            State::Idle | State::Connecting(_) => None,
        };
        ReconnectFuture { sent }
    }
}

impl fmt::Debug for Reconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnect").field("is_connected", &self.is_connected()).finish_non_exhaustive()
    }
}

/// The task that connects. It ends with its owner.
struct Connecting(JoinHandle<(EngineClient, Backoff)>);

impl Connecting {
    fn begin(connect: &Connect, mut backoff: Backoff, mut must_wait: bool) -> Self {
        let connect = Arc::clone(connect);
        Self(tokio::spawn(async move {
            loop {
                if must_wait {
                    tokio::time::sleep(backoff.pause()).await;
                }
                match connect().await {
                    Ok(client) => return (client, backoff),
                    Err(error) => events::not_connected(&error),
                }
                must_wait = true;
            }
        }))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(EngineClient, Backoff), Error>> {
        Pin::new(&mut self.0).poll(cx).map_err(|error| Error::NotSent(Box::new(error)))
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl From<Connecting> for State {
    fn from(connecting: Connecting) -> Self {
        Self::Connecting(connecting)
    }
}

impl Health {
    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed) || self.is_failing()
    }

    fn is_failing(&self) -> bool {
        self.lists.failed() >= FAILURES || self.calls.failed() >= FAILURES
    }

    /// Whether the connection was of use.
    fn has_served(&self) -> bool {
        self.calls.has_any() || self.lists.has_any() && self.calls.failed() == 0
    }

    fn note(&self, answer: &Result<ToolResponse, Error>, is_list: bool) {
        let answers = if is_list { &self.lists } else { &self.calls };
        match answer.as_ref().err().and_then(call_error) {
            Some(CallErrorKind::Cancelled) => {}
            Some(
                CallErrorKind::Unreachable | CallErrorKind::Closed | CallErrorKind::Lost | CallErrorKind::SessionLost,
            ) => self.is_lost.store(true, Ordering::Relaxed),
            Some(_) => _ = answers.failed_in_a_row.fetch_add(1, Ordering::Relaxed),
            // The engine's own error is an answer, too.
            None => {
                answers.has_any.store(true, Ordering::Relaxed);
                answers.failed_in_a_row.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl Answers {
    fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Relaxed)
    }

    fn failed(&self) -> usize {
        self.failed_in_a_row.load(Ordering::Relaxed)
    }
}

/// Whether an engine that was connected to answers, be it with an error of its own.
async fn is_serving(client: &EngineClient) -> Result<(), Error> {
    match client.clone().oneshot(ToolRequest::list()).await {
        Err(error) if call_error(&error).is_some() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// How the request failed, if not by the engine's answer.
fn call_error(error: &Error) -> Option<CallErrorKind> {
    links(error).find_map(|error| error.downcast_ref::<CallError>()).map(CallError::kind)
}

/// Response future of [`Reconnect`]. Dropped before the answer, it cancels the request at the engine.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ReconnectFuture {
    // The answer that is to come, what it is noted in, and whether a list was asked for.
    sent: Option<(engine_client::ResponseFuture, Arc<Health>, bool)>,
}

impl Future for ReconnectFuture {
    type Output = Result<ToolResponse, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((future, health, is_list)) = &mut self.sent else {
            return Poll::Ready(Err(CallError::new(CallErrorKind::Closed).into()));
        };
        let answer = ready!(Pin::new(future).poll(cx));
        health.note(&answer, *is_list);
        Poll::Ready(answer)
    }
}

impl fmt::Debug for ReconnectFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconnectFuture").finish_non_exhaustive()
    }
}
