//! An engine that runs as a child process and talks over its standard input and output.

use std::{
    ffi::OsStr,
    fmt, io,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{oneshot, watch},
};

use super::endpoint::{CALL_TIMEOUT, CONNECT_TIMEOUT};

/// How long a child that has lost its input may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);
/// How long the end of a child may lag behind the end of its output.
const LAG: Duration = Duration::from_secs(1);
/// A longer line of standard error is handed on in pieces.
const LINE_LIMIT: u64 = 64 * 1024;

/// Shared, since an engine may have to be started twice.
type OnStderr = Arc<Mutex<dyn FnMut(&str) + Send>>;

/// An engine to start as a child process, with [`EngineClient::spawn`](super::EngineClient::spawn).
///
/// ```no_run
/// # async fn run() -> Result<(), tower_algenta::Error> {
/// use tower_algenta::{EngineClient, Profile, Toolset, client::ChildProcess};
///
/// let engine = ChildProcess::new("algenta-mcp").env("ALGENTA_BASE_URL", "http://localhost:8000");
/// let tools = Toolset::builder().profile(Profile::Observe).service(EngineClient::spawn(engine).await?).build();
/// # Ok(())
/// # }
/// ```
///
/// The child inherits this process's environment and working folder. What it writes to its standard error goes to
/// this process's own, until [`on_stderr`](Self::on_stderr) says otherwise.
///
/// An engine that knows of protocol 2026-07-28, but does not speak it, is ended and started again, for the handshake of
/// the versions before.
///
/// It does not outlive its owner. When the client is closed, or its last clone is dropped, the child's input ends; 3
/// seconds later the child is killed if it is still there, and at once if the tokio runtime goes away. Should this
/// process be killed, the end of its input is all that the child gets to know.
#[must_use = "a child process does nothing until a client spawns it"]
pub struct ChildProcess {
    command: Command,
    on_stderr: Option<OnStderr>,
    pub(super) connect_timeout: Duration,
    pub(super) call_timeout: Duration,
}

impl ChildProcess {
    /// The engine that `program` is; it is looked up in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            command: Command::new(program),
            on_stderr: None,
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of its environment. A token belongs here, and not among the arguments, which others can see.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes a variable out of its environment.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Takes all variables out of its environment, also those set so far.
    pub fn env_clear(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets its working folder.
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Hands each line of its standard error to `receive`, without the line's end. It may quote anything that the
    /// engine was sent.
    pub fn on_stderr(mut self, receive: impl FnMut(&str) + Send + 'static) -> Self {
        self.on_stderr = Some(Arc::new(Mutex::new(receive)));
        self
    }

    /// Sets how long the handshake may take, the start of the process included. 15 seconds by default.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long each request may take. 60 seconds by default.
    pub const fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Starts it.
    pub(super) fn start(&mut self) -> io::Result<(ChildTransport, Exit)> {
        let stderr = if self.on_stderr.is_some() { Stdio::piped() } else { Stdio::inherit() };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        // For when the runtime goes away, and with it the task that waits for the child.
        self.command.kill_on_drop(true);
        let mut child = self.command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the child has no standard input and output"));
        };
        if let (Some(stderr), Some(receive)) = (child.stderr.take(), &self.on_stderr) {
            tokio::spawn(forward(stderr, Arc::clone(receive)));
        }
        let (owner, orphaned) = oneshot::channel();
        let (report, exit) = watch::channel(None);
        tokio::spawn(async move {
            report.send_replace(Some(supervise(child, orphaned).await));
        });
        let exit = Exit(exit);
        let transport =
            ChildTransport { inner: AsyncRwTransport::new(stdout, stdin), owner: Some(owner), exit: exit.clone() };
        Ok((transport, exit))
    }
}

impl fmt::Debug for ChildProcess {
    /// Shows the program only: a token may stand in the environment or, against advice, among the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildProcess").field("program", &self.command.as_std().get_program()).finish_non_exhaustive()
    }
}

/// How the child ended; `None` inside if the system did not say.
type Ended = Option<ExitStatus>;

/// Waits until the child has ended, and sees to it that it does once it is an orphan.
async fn supervise(mut child: Child, orphaned: oneshot::Receiver<()>) -> Ended {
    tokio::select! {
        status = child.wait() => return status.ok(),
        // Nothing is ever sent: it ends when the owner is dropped.
        _ = orphaned => {}
    }
    if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
        return status.ok();
    }
    // An error means that it has ended just now.
    let _ = child.start_kill();
    child.wait().await.ok()
}

async fn forward(stderr: ChildStderr, receive: OnStderr) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while (&mut stderr).take(LINE_LIMIT).read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
        let text = String::from_utf8_lossy(&line);
        // If it panicked for a line, it may still want the next one.
        receive.lock().unwrap_or_else(PoisonError::into_inner)(text.trim_end_matches(['\n', '\r']));
        line.clear();
    }
}

/// Tells how a child ended.
#[derive(Clone)]
pub(super) struct Exit(watch::Receiver<Option<Ended>>);

impl Exit {
    /// How it ended, if it has, and the system said.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        self.0.borrow().flatten()
    }

    /// As [`status`](Self::status), for a child whose output has ended: it may take a moment itself.
    pub(super) async fn soon(&self) -> Option<ExitStatus> {
        let mut exit = self.0.clone();
        let ended = exit.wait_for(Option::is_some);
        tokio::time::timeout(LAG, ended).await.ok()?.ok()?.flatten()
    }

    pub(super) async fn ended(&self) {
        // An error means that the task which waits for the child is gone, and so is the child.
        let _ = self.0.clone().wait_for(Option::is_some).await;
    }
}

/// The child's input and output. Dropping it orphans the child.
pub(super) struct ChildTransport {
    inner: AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>,
    owner: Option<oneshot::Sender<()>>,
    exit: Exit,
}

impl Transport<RoleClient> for ChildTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.inner.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.inner.receive()
    }

    /// Ends the child's input, and waits until the child has ended.
    async fn close(&mut self) -> Result<(), io::Error> {
        self.inner.close().await?;
        drop(self.owner.take());
        self.exit.ended().await;
        Ok(())
    }
}
