//! One of the gateways behind a balancer.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{self, ExitStatus},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use reqwest::Url;
use tokio::time::timeout;
use tower_algenta::StubEngine;

use crate::gateway::process::{Gateway, SOON, command};

/// A running gateway. Dropping it kills it.
pub(super) struct Replica {
    pub(super) port: u16,
    gateway: Gateway,
    record: Record,
}

/// Where it writes down its calls.
struct Record(PathBuf);

impl Replica {
    /// On a free port.
    pub(super) async fn before(engine: &StubEngine) -> Self {
        Self::at(0, engine).await
    }

    pub(super) async fn at(port: u16, engine: &StubEngine) -> Self {
        let record = Record::new();
        // As the README of `examples/deploy` has it.
        let mut command = command(&["--profile", "execute", "--drain-delay", "5", "--drain", "65"]);
        command.args(["--upstream", &engine.url(), "--listen", &format!("127.0.0.1:{port}")]);
        command.arg("--audit").arg(&record.0);
        let gateway = Gateway::start(command).await;
        let port = gateway.url.parse::<Url>().unwrap().port().unwrap();
        Self { port, gateway, record }
    }

    /// Waits until a call has ended here.
    pub(super) async fn is_used(&self) {
        let used = async {
            while !fs::read_to_string(&self.record.0).unwrap().contains("tools/call") {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, used).await.expect("the balancer sends calls here");
    }

    pub(super) fn kill(self) {
        self.gateway.signal("-KILL");
    }

    /// Sends the signal to drain, and waits for the end.
    pub(super) async fn stop(self) -> ExitStatus {
        self.gateway.signal("-TERM");
        self.gateway.ended().await
    }
}

impl Record {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("replica-{}-{}.jsonl", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
