//! Engines that no connection leads to: unknown names, and TLS that fails. Nothing is sent, and that is certain.

use std::{
    future::ready,
    net::SocketAddr,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, process::Command, time::timeout};
use tower_algenta::{
    Endpoint, EngineClient, Error, Profile, StubEngine, Toolset,
    client::{CallError, CallErrorKind, ConnectError, ConnectErrorKind, Connections},
};

use super::{ByHand, Outcome, SOON, execute, executing};
use crate::real_servers::Generation;

/// Asserts that an endpoint can't be connected to, by a client or on the way of a call, and says why.
async fn refused(endpoint: Endpoint) -> ConnectErrorKind {
    let endpoint = endpoint.connect_timeout(Duration::from_secs(5));
    let error = timeout(SOON, EngineClient::connect(endpoint.clone())).await.expect("it ends").unwrap_err();
    let Error::NotSent(inner) = &error else { panic!("{error:?}") };
    let kind = inner.downcast_ref::<ConnectError>().unwrap().kind();
    assert!(error.is_retryable());

    let tools = Toolset::builder().profile(Profile::Execute).service(Connections::shared(endpoint)).build();
    let result = execute(&tools, "decision-7").await;
    assert_eq!(Outcome::of(&result), Outcome::NotSent, "{result:?}");
    kind
}

#[tokio::test]
async fn a_name_that_nobody_has() {
    // A resolver that is far away may take its time to say so.
    let kind = refused(Endpoint::new("http://engine.invalid/mcp").unwrap()).await;
    assert!(matches!(kind, ConnectErrorKind::Unreachable | ConnectErrorKind::TimedOut(_)), "{kind:?}");
}

/// Names resolve until they don't.
#[derive(Clone)]
struct Names {
    engine: SocketAddr,
    known: Arc<AtomicBool>,
}

impl Resolve for Names {
    fn resolve(&self, _: Name) -> Resolving {
        let found: Addrs = Box::new(self.known.load(Ordering::SeqCst).then_some(self.engine).into_iter());
        Box::pin(ready(if self.known.load(Ordering::SeqCst) { Ok(found) } else { Err("no such name".into()) }))
    }
}

#[tokio::test]
async fn a_name_that_is_lost_between_two_calls() {
    for generation in Generation::BOTH {
        // A connection for each request, so that each needs the name.
        let server = ByHand::serve(generation, move |request| {
            Some(super::as_an_engine(generation, request).header("connection: close"))
        })
        .await;
        let engine = server.url.trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
        let names = Names { engine, known: Arc::new(true.into()) };
        let http = reqwest::Client::builder().dns_resolver(names.clone()).build().unwrap();
        let url = format!("http://engine.example:{}/mcp", engine.port());
        let client = EngineClient::connect(Endpoint::new(url).unwrap().http_client(http)).await.unwrap();
        let tools = executing(&client);
        assert_eq!(Outcome::of(&execute(&tools, "decision-a").await), Outcome::Receipt);

        names.known.store(false, Ordering::SeqCst);
        let error = execute(&tools, "decision-b").await.unwrap_err();
        let Error::NotSent(inner) = &error else { panic!("{generation:?}: {error:?}") };
        assert_eq!(inner.downcast_ref::<CallError>().unwrap().kind(), CallErrorKind::Unreachable);
        assert_eq!(server.received("tools/call").len(), 1, "{generation:?}");

        names.known.store(true, Ordering::SeqCst);
        assert_eq!(Outcome::of(&execute(&tools, "decision-b").await), Outcome::Receipt);
        assert_eq!(server.received("tools/call").len(), 2, "{generation:?}");
    }
}

#[tokio::test]
async fn tls_to_a_port_that_speaks_none() {
    let engine = StubEngine::start().await.unwrap();
    let url = engine.url().replace("http://", "https://");
    assert_eq!(refused(Endpoint::new(url).unwrap()).await, ConnectErrorKind::Unreachable);
    assert!(engine.received_raw().is_empty());
}

#[tokio::test]
async fn tls_that_ends_in_the_handshake() {
    // An alert, half a record, nonsense, nothing.
    for answer in [&b"\x15\x03\x03\x00\x02\x02\x28"[..], b"\x16\x03\x03\x00\x7a\x02", b"HTTP/1.1 200 OK\r\n\r\n", b""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mcp", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            }
        });
        assert_eq!(refused(Endpoint::new(url).unwrap()).await, ConnectErrorKind::Unreachable, "{answer:?}");
        server.abort();
    }
}

#[tokio::test]
async fn tls_that_never_gets_anywhere() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limit = Duration::from_millis(300);
    let endpoint = Endpoint::new(format!("https://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let error = timeout(SOON, EngineClient::connect(endpoint.connect_timeout(limit))).await.expect("it ends");
    let Err(Error::NotSent(inner)) = error else { panic!("{error:?}") };
    let kind = inner.downcast_ref::<ConnectError>().unwrap().kind();
    assert!(matches!(kind, ConnectErrorKind::TimedOut(_) | ConnectErrorKind::Unreachable), "{kind:?}");
}

/// A file that is gone with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{name}-{}.pem", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Whom nobody vouches for. `openssl` is the server; without it the test says that it skipped.
#[tokio::test]
async fn a_certificate_that_nobody_signed() {
    let (key, certificate) = (Scratch::new("key"), Scratch::new("certificate"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
        .arg(&key.0)
        .arg("-out")
        .arg(&certificate.0)
        .stderr(Stdio::null())
        .status()
        .await;
    if !made.is_ok_and(|status| status.success()) {
        use std::io::Write as _;
        std::io::stderr().write_all(b"\nskipped: a_certificate_that_nobody_signed, for want of openssl\n").unwrap();
        return;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("openssl")
        .args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-cert"])
        .arg(&certificate.0)
        .arg("-key")
        .arg(&key.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let url = format!("https://127.0.0.1:{port}/mcp");
    let listens = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, listens).await.expect("it listens");
    assert_eq!(refused(Endpoint::new(&url).unwrap()).await, ConnectErrorKind::Unreachable);

    // What it would have printed is what it was sent.
    server.start_kill().unwrap();
    let output = server.wait_with_output().await.unwrap();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}
