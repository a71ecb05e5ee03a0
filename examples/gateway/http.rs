//! The HTTP side: connections, and an end that drains.

use std::{
    convert::Infallible,
    io::{self, Write as _},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::task::TaskTracker;
use tower_algenta::client::Connections;

use crate::{args::Args, callers::Callers, front::Front};

/// How long the headers of a request may take.
const HEADERS: Duration = Duration::from_secs(10);

/// Bytes of an answer that the kernel holds for a connection, which Linux doubles.
const SEND_BUFFER: u32 = 128 * 1024;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// How long the listener waits after it could not accept a connection, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until a signal says to stop, and then until the requests under way have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    args: &Args,
    server: impl ServerHandler + Clone,
    callers: Callers,
    connections: Connections,
    closing: watch::Sender<bool>,
    calls: TaskTracker,
) -> io::Result<()> {
    let config = config(args);
    let stop = config.cancellation_token.clone();
    let mcp = StreamableHttpService::new(move || Ok(server.clone()), Arc::<LocalSessionManager>::default(), config);
    let draining = Arc::new(AtomicBool::new(false));
    let front = Arc::new(Front {
        mcp,
        callers: callers.clone(),
        connections,
        draining: Arc::clone(&draining),
        closes: closing.subscribe(),
        was_ready: AtomicBool::new(true),
        max_body: args.max_body,
    });

    let connections = GracefulShutdown::new();
    let mut signals = Signals::new()?;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // An answer is one small write, and waits for nothing.
                    let _ = stream.set_nodelay(true);
                    let mut stream = TimeoutStream::new(stream);
                    stream.set_write_timeout(Some(Duration::from_secs(args.write_timeout)));
                    let front = Arc::clone(&front);
                    let answer = move |request| {
                        let front = Arc::clone(&front);
                        async move { Ok::<_, Infallible>(front.answer(request).await) }
                    };
                    let connection = hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEADERS)
                        .serve_connection(TokioIo::new(Box::pin(stream)), service_fn(answer));
                    let connection = connections.watch(connection);
                    // How a connection ends is its client's business.
                    tokio::spawn(async move { _ = connection.await });
                }
                Err(error) => {
                    warn(&format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            signal = signals.next() => match signal {
                Signal::Reload => match callers.reload() {
                    Ok(()) => say(&format!("callers: {callers}")),
                    Err(error) => warn(&format!("the callers stay who they were: {error}")),
                },
                Signal::Stop if args.drain_delay > 0 && !draining.swap(true, Ordering::Relaxed) => {
                    say(&format!("draining: /readyz answers 503 for {} s", args.drain_delay));
                    signals.stop_in(Duration::from_secs(args.drain_delay));
                }
                Signal::Stop => break,
            },
        }
    }
    draining.store(true, Ordering::Relaxed);
    drop(listener);
    // What has no end of its own.
    closing.send_replace(true);
    calls.close();
    say(&format!("draining: up to {} s for {} requests under way", args.drain, calls.len()));
    let ended = async {
        // In a session, a call outlives the connection that it came by.
        calls.wait().await;
        connections.shutdown().await;
    };
    tokio::select! {
        () = ended => {}
        () = tokio::time::sleep(Duration::from_secs(args.drain)) => {
            warn("some requests did not end in time; what they did is unknown");
        }
        () = signals.stop() => warn("stopped before all requests had ended; what they did is unknown"),
    }
    stop.cancel();
    Ok(())
}

/// Listens at `addr`.
pub(crate) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // A connection counts as stuck when nothing leaves this for a while, and that is told by the third of it.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Prints a line. Nobody may read it any more, and that is no reason to end.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

pub(crate) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "gateway: {line}");
}

fn config(args: &Args) -> StreamableHttpServerConfig {
    let config = StreamableHttpServerConfig::default();
    let hosts: Vec<String> = config.allowed_hosts.iter().chain(&args.allow_host).cloned().collect();
    config
        .with_allowed_hosts(hosts)
        .with_allowed_origins(args.allow_origin.iter().cloned())
        .enforce_origin_validation()
        .with_max_request_body_bytes(args.max_body)
        .with_legacy_session_mode(args.sessions)
        .with_json_response(!args.sessions)
}

impl Signals {
    /// Waits for the next signal to stop.
    async fn stop(&mut self) {
        self.stop_at = None;
        while !matches!(self.next().await, Signal::Stop) {}
    }
}

enum Signal {
    Stop,
    Reload,
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    stop_at: Option<tokio::time::Instant>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            stop_at: None,
        })
    }

    fn stop_in(&mut self, delay: Duration) {
        self.stop_at = Some(tokio::time::Instant::now() + delay);
    }

    async fn next(&mut self) -> Signal {
        let delayed = async {
            match self.stop_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
            () = delayed => Signal::Stop,
        }
    }
}

#[cfg(not(unix))]
struct Signals {
    stop_at: Option<tokio::time::Instant>,
}

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { stop_at: None })
    }

    fn stop_in(&mut self, delay: Duration) {
        self.stop_at = Some(tokio::time::Instant::now() + delay);
    }

    async fn next(&mut self) -> Signal {
        match self.stop_at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => _ = tokio::signal::ctrl_c().await,
        }
        Signal::Stop
    }
}
