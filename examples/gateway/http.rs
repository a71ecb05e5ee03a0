//! The HTTP side: who is let in, what is answered beside MCP, and an end that drains.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONNECTION, WWW_AUTHENTICATE},
    },
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::get,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;
use tower::ServiceExt as _;
use tower_algenta::{
    Error, ToolRequest,
    client::{CallError, CallErrorKind, ConnectError, ConnectErrorKind, Connections},
};

use crate::{args::Args, callers::Callers};

/// How long the headers of a request may take.
const HEADERS: Duration = Duration::from_secs(10);

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(10);

/// How long the engine may take to show that it is there.
const PROBE: Duration = Duration::from_secs(5);

/// How long the listener waits after it could not accept a connection, for want of file descriptors as a rule.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
struct Ready {
    connections: Connections,
    draining: Arc<AtomicBool>,
}

/// Serves until a signal says to stop, and then until the requests under way have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    args: &Args,
    server: impl ServerHandler + Clone,
    callers: Callers,
    connections: Connections,
) -> io::Result<()> {
    let config = config(args);
    let stop = config.cancellation_token.clone();
    let mcp = StreamableHttpService::new(move || Ok(server.clone()), Arc::<LocalSessionManager>::default(), config);
    let draining = Arc::new(AtomicBool::new(false));
    let ready = Ready { connections, draining: Arc::clone(&draining) };
    let mcp = Router::new()
        .nest_service("/mcp", mcp)
        .layer(from_fn_with_state(args.max_body, read))
        .layer(from_fn_with_state(callers.clone(), authenticate));
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz).with_state(ready))
        .merge(mcp)
        .layer(from_fn_with_state(Arc::clone(&draining), part));

    let connections = GracefulShutdown::new();
    let mut signals = Signals::new()?;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // An answer is one small write, and waits for nothing.
                    let _ = stream.set_nodelay(true);
                    let connection = hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEADERS)
                        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
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
    say(&format!("draining: up to {} s for what is under way", args.drain));
    tokio::select! {
        () = connections.shutdown() => {}
        () = tokio::time::sleep(Duration::from_secs(args.drain)) => {
            warn("some requests or event streams did not end in time; what the requests did is unknown");
        }
        () = signals.stop() => warn("stopped before everything had ended; what the requests did is unknown"),
    }
    stop.cancel();
    Ok(())
}

/// Prints a line. Nobody may read it any more, and that is no reason to end.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn warn(line: &str) {
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

async fn authenticate(State(callers): State<Callers>, mut request: Request, next: Next) -> Response {
    match callers.find(request.headers()) {
        Some(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        None => (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], "a valid bearer token is needed\n")
            .into_response(),
    }
}

/// Reads the body within its limits. What the request then does at the engine has limits of its own, whose errors say
/// whether it may have run; a status would not.
async fn read(State(limit): State<usize>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match tokio::time::timeout(BODY, axum::body::to_bytes(body, limit)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(parts, body.into())).await,
        Ok(Err(_)) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

/// While it drains, an answer is the last one of its connection. On one that is kept until the port closes, a client could
/// send its next call at that very moment, and would not know whether it ran.
async fn part(State(draining): State<Arc<AtomicBool>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if draining.load(Ordering::Relaxed) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Ready is a gateway whose engine answers, be it that it wants a token.
async fn readyz(State(ready): State<Ready>) -> Response {
    if ready.draining.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    match tokio::time::timeout(PROBE, ready.connections.oneshot(ToolRequest::list())).await {
        Ok(Ok(_)) => "ready\n".into_response(),
        Ok(Err(error)) if wants_token(&error) => "ready\n".into_response(),
        Ok(Err(_)) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the engine does not answer\n").into_response(),
    }
}

fn wants_token(error: &Error) -> bool {
    match error {
        Error::NotSent(error) => error
            .downcast_ref::<ConnectError>()
            .is_some_and(|error| matches!(error.kind(), ConnectErrorKind::Unauthorized | ConnectErrorKind::Forbidden)),
        Error::Upstream(error) => error
            .downcast_ref::<CallError>()
            .is_some_and(|error| matches!(error.kind(), CallErrorKind::Unauthorized | CallErrorKind::Forbidden)),
        _ => false,
    }
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
