//! Servers that this crate's authors did not write: `algenta-mcp`, and servers on the Python SDK.
//!
//! `.ci/python` installs them. Without them these tests pass and say, past the test runner's capture, what they skipped.

mod algenta;
mod done_when;
mod echo;
mod sdk;
mod stdio;

use std::{
    io::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use rmcp::{
    model::{ClientConfig, ProtocolVersion},
    service::{ClientLifecycleMode, serve_client_with_lifecycle},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};
use tower_algenta::{BearerToken, Endpoint, EngineClient, Error, Profile, Toolset};

pub(crate) const TOKEN: &str = "tok-0df4a1b2";
const HOOK: &str = "https://hooks.example/algenta";
/// Python takes its time to start, the more so on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The folder of programs that `.ci/python` made for this list of packages; `None`, with a word on it, if it did not.
pub(crate) fn programs(list: &str, test: &str) -> Option<PathBuf> {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../python").join(list).join("bin");
    if folder.join("python").exists() && folder.join("../.installed").exists() {
        return Some(folder);
    }
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    // The runner captures what `eprintln!` writes in a test that passes, and this must be seen.
    let line = format!("\nskipped: {test}, since `.ci/python` has not installed {list} ({count} skipped)\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

/// A file of `tests/python`.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name)
}

/// A server in a process of its own, which ends when this is dropped.
pub(crate) struct Process {
    pub(crate) url: String,
    port: u16,
    child: Child,
}

impl Process {
    /// Starts what `command` makes for a free port, and waits until it listens there.
    pub(crate) async fn start(command: impl Fn(u16) -> Command) -> Self {
        for _ in 0..3 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            // Somebody else may be quicker to take the port.
            if let Some(process) = Self::start_at(port, command(port)).await {
                return process;
            }
        }
        panic!("the server does not start");
    }

    /// Kills it, and starts it again at the same port.
    pub(crate) async fn restart(mut self, command: impl Fn(u16) -> Command) -> Self {
        self.child.kill().await.unwrap();
        Self::start_at(self.port, command(self.port)).await.expect("the server starts again")
    }

    async fn start_at(port: u16, mut command: Command) -> Option<Self> {
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("server-{port}.log"));
        let output = std::fs::File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let listens = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                if child.try_wait().unwrap().is_some() {
                    eprintln!("{}", std::fs::read_to_string(&log).unwrap());
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            true
        };
        let listens = tokio::time::timeout(START_TIMEOUT, listens).await.expect("it listens, or ends");
        listens.then(|| Self { url: format!("http://127.0.0.1:{port}/mcp"), port, child })
    }
}

/// Both generations of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    Initialize,
    Stateless,
}

impl Generation {
    pub(crate) const BOTH: [Self; 2] = [Self::Initialize, Self::Stateless];

    /// A client that speaks this generation; the server must.
    pub(crate) async fn connect(self, url: &str) -> EngineClient {
        let client = match self {
            Self::Stateless => {
                let endpoint = Endpoint::new(url).unwrap().token(BearerToken::new(TOKEN).unwrap());
                // It reads the list as well, which has a thousand pages in one test.
                EngineClient::connect(endpoint.connect_timeout(START_TIMEOUT)).await.unwrap()
            }
            Self::Initialize => {
                // As the crate's own client has it: a lost session is not renewed, since that sends a call again.
                let config = StreamableHttpClientTransportConfig::with_uri(url)
                    .auth_header(TOKEN)
                    .reinit_on_expired_session(false);
                let transport = StreamableHttpClientTransport::from_config(config);
                let service =
                    serve_client_with_lifecycle(ClientConfig::default(), transport, ClientLifecycleMode::Initialize);
                EngineClient::from_service(service.await.unwrap())
            }
        };
        let version = client.protocol_version().unwrap();
        assert_eq!(version == ProtocolVersion::V_2026_07_28, self == Self::Stateless, "{version}");
        client
    }

    pub(crate) async fn tools(self, url: &str, profile: Profile) -> Toolset {
        Toolset::builder().profile(profile).service(self.connect(url).await).build()
    }
}

/// How a call ended, in a word or two.
fn named<T>(outcome: &Result<T, Error>) -> String {
    match outcome {
        Ok(_) => "receipt".to_owned(),
        Err(Error::Denied(denial)) => format!("denied: {}", denial.gate()),
        Err(Error::Rejected(rejected)) => format!("rejected: {}", rejected.status()),
        Err(error) => error.kind().to_owned(),
    }
}
