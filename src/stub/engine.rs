//! The running engine and its settings.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    model::Tool,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
};

use super::{
    Execution, Fault, RawRequest, Received, Wire,
    decisions::Decisions,
    front::{Front, PATH},
    record::Record,
    server::Server,
    tools,
};

/// How long the engine waits after it could not accept a connection, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running engine. See the [module docs](super) for what it does and for an example.
///
/// Dropping it closes the port and every connection as soon as the runtime gets to it; [`StubEngine::shutdown`] waits
/// for that. What it records stays in memory for as long as it lives.
#[must_use = "the engine stops when it is dropped"]
pub struct StubEngine {
    shared: Arc<Shared>,
    addr: SocketAddr,
    // The server stops when this is dropped; nothing is ever sent.
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl StubEngine {
    /// Starts an engine with the default settings: the real server's wire shape, on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its I/O and time drivers.
    pub async fn start() -> io::Result<Self> {
        Self::builder().start().await
    }

    /// Begins with the default settings.
    pub fn builder() -> StubEngineBuilder {
        StubEngineBuilder::default()
    }

    /// The endpoint: `http://127.0.0.1:PORT/mcp`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.addr)
    }

    /// The address that the engine listens at.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Every `tools/call` that arrived, in order, as rmcp decoded it: denied, refused and unknown ones too.
    ///
    /// A call that rmcp can't read as one (with a `requestState` that is no string, say) is not here, and not answered
    /// by a tool either; it is in [`StubEngine::received_raw`].
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.shared.record.entries().received.clone()
    }

    /// Every POST that arrived with a good token, in order: calls, lists, the handshake, notifications.
    #[must_use]
    pub fn received_raw(&self) -> Vec<RawRequest> {
        self.shared.record.entries().raw.clone()
    }

    /// How many `tools/list` requests arrived; each page is one.
    #[must_use]
    pub fn lists(&self) -> usize {
        self.shared.record.entries().lists
    }

    /// How many calls their callers gave up while the engine delayed or withheld the answer.
    #[must_use]
    pub fn cancelled(&self) -> usize {
        self.shared.record.entries().cancelled
    }

    /// What really ran, in order.
    #[must_use]
    pub fn executions(&self) -> Vec<Execution> {
        self.shared.record.entries().executions.clone()
    }

    /// How often the decision really ran.
    #[must_use]
    pub fn executed(&self, decision_id: &str) -> usize {
        let entries = self.shared.record.entries();
        entries.executions.iter().filter(|execution| execution.decision_id == decision_id).count()
    }

    /// Tells every client that listens that the list of tools has changed, although it has not.
    pub fn announce_list_change(&self) {
        self.shared.list_changes.send_modify(|changes| *changes += 1);
    }

    /// Closes the port and every connection, and returns when both are closed.
    pub async fn shutdown(self) {
        drop(self.stop);
        // It fails only if the server panicked, or its runtime is going down; either way it has stopped.
        let _ = self.server.await;
    }
}

impl fmt::Debug for StubEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StubEngine").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// Settings of a [`StubEngine`].
#[derive(Clone, Default)]
#[must_use = "an engine must be started"]
pub struct StubEngineBuilder {
    port: u16,
    settings: Settings,
}

/// What the requests' handlers need to know.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) wire: Wire,
    pub(super) token: Option<String>,
    pub(super) page_size: usize,
    pub(super) prefix: String,
    pub(super) delay: Duration,
    pub(super) fault: Option<Fault>,
}

impl StubEngineBuilder {
    /// Listens at this port of 127.0.0.1; 0, the default, takes a free one.
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the shape in which denials travel.
    pub const fn wire(mut self, wire: Wire) -> Self {
        self.settings.wire = wire;
        self
    }

    /// Answers 401 to every request without this bearer token. By default no token is asked for.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.settings.token = Some(token.into());
        self
    }

    /// Lists this many tools a page; 0, the default, lists all of them on one.
    pub const fn page_size(mut self, page_size: usize) -> Self {
        self.settings.page_size = page_size;
        self
    }

    /// Puts `prefix` before every tool's name, as a gateway to several engines does.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// Waits this long between running a tool and answering the call.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.settings.delay = delay;
        self
    }

    /// Fails in this way.
    pub const fn fault(mut self, fault: Fault) -> Self {
        self.settings.fault = Some(fault);
        self
    }

    /// Starts the engine.
    ///
    /// # Errors
    ///
    /// When the port can't be had.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its I/O and time drivers.
    pub async fn start(self) -> io::Result<StubEngine> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            tools: tools::all(&self.settings.prefix),
            settings: self.settings,
            record: Record::default(),
            decisions: Mutex::new(Decisions::new()),
            list_changes: watch::Sender::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(serve(listener, Arc::clone(&shared), stopped));
        Ok(StubEngine { shared, addr, stop, server })
    }
}

impl fmt::Debug for StubEngineBuilder {
    /// Shows whether there is a token, not which.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, settings } = self;
        f.debug_struct("StubEngineBuilder")
            .field("port", port)
            .field("wire", &settings.wire)
            .field("token", &settings.token.as_ref().map(|_| "…"))
            .field("page_size", &settings.page_size)
            .field("prefix", &settings.prefix)
            .field("delay", &settings.delay)
            .field("fault", &settings.fault)
            .finish()
    }
}

/// What the engine's tasks and its owner share.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) tools: Vec<Tool>,
    pub(super) record: Record,
    pub(super) decisions: Mutex<Decisions>,
    pub(super) list_changes: watch::Sender<u64>,
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    // A client that lost the connection must not get the answer by resuming the stream: the Python servers that this
    // engine stands for keep no events, and a lost answer is what the faults are about.
    let config = StreamableHttpServerConfig::default().with_sse_retry(None);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = None;
    // Ends the sessions, which are tasks of rmcp's own, when this task does.
    let _stop_sessions = config.cancellation_token.clone().drop_guard();
    let new_server = {
        let shared = Arc::clone(&shared);
        move || Ok(Server(Arc::clone(&shared)))
    };
    let mcp = StreamableHttpService::new(new_server, Arc::new(sessions), config);
    let front = Front { mcp, shared };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Answers are small writes; Nagle's algorithm would hold each back for some 40 ms.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(front.clone().serve(stream));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    connections.shutdown().await;
}
