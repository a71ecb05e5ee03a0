//! The example `gateway` as a process of its own.

use std::{
    env,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::OnceLock,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use tower_algenta::StubEngine;

/// More than any test needs, and less than it takes to lose patience.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The program.
pub(crate) fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| example("gateway")).clone()
}

/// An example, built as it stands now: `cargo test --test it` alone does not build the examples.
pub(crate) fn example(name: &str) -> PathBuf {
    let built = std::process::Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--example", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the example builds");
    let tests = env::current_exe().unwrap();
    tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name)
}

/// The program with these arguments, and nothing of this process's environment that it would read.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args).env_remove("ALGENTA_BASE_URL").env_remove("ALGENTA_API_KEY").kill_on_drop(true);
    command
}

/// A running gateway. Dropping it kills it.
pub(crate) struct Gateway {
    pub(crate) url: String,
    /// What it said at the start.
    pub(crate) summary: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Gateway {
    /// A gateway in front of `engine`, on a free port.
    pub(crate) async fn before(engine: &StubEngine, args: &[&str]) -> Self {
        let url = engine.url();
        Self::start(command(&[&["--upstream", &url, "--listen", "127.0.0.1:0"], args].concat())).await
    }

    pub(crate) async fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut summary = String::new();
        let url = timeout(SOON, async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some(url) = line.strip_prefix("  listens  ") {
                    return url.to_owned();
                }
                summary += &line;
                summary.push('\n');
            }
            panic!("it ended before it listened: {summary}");
        });
        let url = url.await.expect("it starts");
        Self { url, summary, child, lines }
    }

    /// The URL of `path` beside `/mcp`.
    pub(crate) fn at(&self, path: &str) -> String {
        self.url.replace("/mcp", path)
    }

    pub(crate) fn id(&self) -> String {
        self.child.id().expect("it runs").to_string()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.id();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// The next line that it prints.
    pub(crate) async fn line(&mut self) -> String {
        timeout(SOON, self.lines.next_line()).await.expect("it says something").unwrap().unwrap_or_default()
    }

    pub(crate) async fn ended(mut self) -> ExitStatus {
        timeout(SOON, self.child.wait()).await.expect("it ends").unwrap()
    }
}

/// What the program prints to its standard error when it won't start.
pub(crate) async fn refusal(args: &[&str]) -> String {
    let mut child = command(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut text = String::new();
    let status = timeout(SOON, async {
        child.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
        child.wait().await.unwrap()
    });
    assert!(!status.await.expect("it ends").success(), "{text}");
    text
}
