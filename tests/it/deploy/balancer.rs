//! A load balancer as a process of its own.

use std::{
    env, fs,
    io::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{self, Stdio},
    time::{Duration, Instant},
};

use reqwest::StatusCode;
use tokio::process::{Child, Command};

use super::Replica;
use crate::{gateway::process::SOON, real_servers::programs};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Nginx,
    HaProxy,
    Envoy,
}

impl Kind {
    /// The configuration that a reader copies.
    pub(super) const fn shipped(self) -> &'static str {
        match self {
            Self::Nginx => include_str!("../../../examples/deploy/nginx.conf"),
            Self::HaProxy => include_str!("../../../examples/deploy/haproxy.cfg"),
            Self::Envoy => include_str!("../../../examples/deploy/envoy.yaml"),
        }
    }

    /// The program; `None`, with a word on it, if it is not installed.
    fn program(self, test: &str) -> Option<PathBuf> {
        let name = match self {
            Self::Nginx => "nginx",
            Self::HaProxy => "haproxy",
            Self::Envoy => return programs("envoy", test).map(|folder| folder.join("envoy")),
        };
        let path = env::var_os("PATH").unwrap_or_default();
        // Debian has them where the path of an ordinary user does not lead.
        let mut folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        let program = folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()));
        if program.is_none() {
            let line = format!("\nskipped: {test}, since `.ci/balancers` has not installed {name}\n");
            std::io::stderr().write_all(line.as_bytes()).unwrap();
        }
        program
    }

    fn command(self, program: &Path, folder: &Path, config: &Path) -> Command {
        let mut command = Command::new(program);
        match self {
            Self::Nginx => {
                command.args(["-e", "stderr", "-g", "daemon off;", "-p"]).arg(folder).arg("-c").arg(config);
            }
            Self::HaProxy => {
                command.arg("-db").arg("-f").arg(config);
            }
            Self::Envoy => {
                command.args(["--disable-hot-restart", "--concurrency", "2", "-c"]).arg(config);
            }
        }
        command
    }
}

/// A running balancer. Dropping it stops it.
pub(super) struct Balancer {
    pub(super) url: String,
    kind: Kind,
    admin: u16,
    folder: PathBuf,
    config: String,
    child: Child,
}

impl Balancer {
    /// The balancer before these replicas, by the configuration that is shipped; `None` if it is not installed.
    pub(super) async fn before(kind: Kind, replicas: [&Replica; 2], test: &str) -> Option<Self> {
        Self::with(kind, kind.shipped(), replicas, test).await
    }

    /// The same by another configuration.
    pub(super) async fn with(kind: Kind, config: &str, replicas: [&Replica; 2], test: &str) -> Option<Self> {
        let program = kind.program(test)?;
        for _ in 0..3 {
            if let Some(balancer) = Self::start(kind, &program, config, replicas.map(|replica| replica.port)).await {
                return Some(balancer);
            }
            // Somebody else was quicker to take the port.
        }
        panic!("{kind:?} does not start");
    }

    async fn start(kind: Kind, program: &Path, config: &str, [a, b]: [u16; 2]) -> Option<Self> {
        // Both at once, or the second may be the first again.
        let taken = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [listen, admin] = taken.map(|taken| taken.local_addr().unwrap().port());
        let config = at_ports(config, &[("8080", listen), ("8081", a), ("8082", b), ("9901", admin)]);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("balancer-{}-{listen}", process::id()));
        fs::create_dir_all(folder.join("tmp")).unwrap();
        let file = folder.join("balancer.yaml");
        fs::write(&file, &config).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut command = kind.command(program, &folder, &file);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).kill_on_drop(true);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let url = format!("http://127.0.0.1:{listen}/mcp");
        let mut balancer = Self { url, kind, admin, folder, config, child };
        balancer.serves().await.then_some(balancer)
    }

    /// Waits until a replica answers through it; `false` if it ends before.
    async fn serves(&mut self) -> bool {
        let started = Instant::now();
        loop {
            // What a gateway without sessions answers to a GET, and no balancer does.
            if reqwest::get(&self.url).await.is_ok_and(|answer| answer.status() == StatusCode::METHOD_NOT_ALLOWED) {
                return true;
            }
            let log = || fs::read_to_string(self.folder.join("log")).unwrap();
            if self.child.try_wait().unwrap().is_some() {
                eprintln!("{}", log());
                return false;
            }
            assert!(started.elapsed() < SOON, "{:?} does not serve: {}", self.kind, log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Does what the configuration wants done before a planned stop. Balancers that ask for readiness want nothing.
    pub(super) fn before_stop(&self, replica: &Replica) {
        if self.kind == Kind::Nginx {
            let address = format!("server 127.0.0.1:{}", replica.port);
            assert!(self.config.contains(&address), "{}", self.config);
            self.reload(&self.config.replace(&address, &format!("{address} down")));
        }
    }

    /// Takes back what [`before_stop`](Self::before_stop) did.
    pub(super) fn after_start(&self) {
        if self.kind == Kind::Nginx {
            self.reload(&self.config);
        }
    }

    fn reload(&self, config: &str) {
        fs::write(self.folder.join("balancer.yaml"), config).unwrap();
        self.signal("-HUP");
    }

    /// A counter or gauge of Envoy's.
    pub(super) async fn stat(&self, name: &str) -> u64 {
        let url = format!("http://127.0.0.1:{}/stats?filter=^{}$", self.admin, name.replace('.', "\\."));
        let text = reqwest::get(url).await.unwrap().text().await.unwrap();
        let value = text.trim().strip_prefix(&format!("{name}: ")).unwrap_or_else(|| panic!("{name} in {text:?}"));
        value.parse().unwrap()
    }

    fn signal(&self, signal: &str) {
        if let Some(id) = self.child.id() {
            let _ = process::Command::new("kill").args([signal, &id.to_string()]).status();
        }
    }
}

impl Drop for Balancer {
    /// Asks first: nginx, killed, would leave its workers behind.
    fn drop(&mut self) {
        self.signal("-TERM");
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && started.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The configuration with other ports than those that it is shipped with.
fn at_ports(config: &str, ports: &[(&str, u16)]) -> String {
    // A new port can look like an old one, so each is marked first.
    let marked =
        ports.iter().fold(config.to_owned(), |text, (shipped, _)| text.replace(shipped, &format!("<{shipped}>")));
    ports.iter().fold(marked, |text, (shipped, port)| text.replace(&format!("<{shipped}>"), &port.to_string()))
}
