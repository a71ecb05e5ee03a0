//! The processes that are measured, and their memory.

use std::{env, error::Error, fmt, path::PathBuf, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// A server of its own, which is killed when this is dropped.
pub(crate) struct Process {
    pub(crate) name: &'static str,
    pub(crate) url: String,
    child: Child,
}

impl Process {
    /// This very program, as something else.
    pub(crate) async fn of_role(role: &'static str, upstream: Option<&str>) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["--role", role]);
        if let Some(upstream) = upstream {
            command.args(["--upstream", upstream]);
        }
        Self::start(role, command).await
    }

    /// The example `gateway`, under `execute`.
    pub(crate) async fn gateway(upstream: &str) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(gateway()?);
        command.args(["--upstream", upstream, "--listen", "127.0.0.1:0", "--profile", "execute"]);
        command.env_remove("ALGENTA_BASE_URL").env_remove("ALGENTA_API_KEY");
        Self::start("gateway", command).await
    }

    async fn start(name: &'static str, mut command: Command) -> Result<Self, Box<dyn Error>> {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = child.stdout.take().ok_or("its output is piped")?;
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(url) = line.strip_prefix("  listens  ") {
                return Ok(Self { name, url: url.to_owned(), child });
            }
        }
        Err(format!("the {name} did not start").into())
    }

    /// The seconds that its threads have run so far, in steps of 10 ms; 0 where that is not told.
    pub(crate) fn worked(&self) -> f64 {
        self.child.id().and_then(ticks).unwrap_or_default() / 100.0
    }

    pub(crate) fn memory(&self) -> Memory {
        Memory(self.child.id().and_then(resident))
    }
}

/// The program, built as it stands now: benches alone do not build the examples.
fn gateway() -> Result<PathBuf, Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = std::process::Command::new(cargo)
        .args(["build", "--locked", "--quiet", "--release", "--example", "gateway"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    if !built.success() {
        return Err("the example `gateway` does not build".into());
    }
    let deps = env::current_exe()?;
    let profile = deps.parent().and_then(|deps| deps.parent()).ok_or("a bench lies in a target folder")?;
    Ok(profile.join("examples/gateway"))
}

/// What a process holds of the machine's memory, where that is told.
pub(crate) struct Memory(Option<u64>);

/// What the kernel counts in hundredths of a second, the user's and its own.
fn ticks(id: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // After the name, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?)
}

fn resident(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(kibibytes) => write!(f, "{kibibytes} KiB"),
            None => f.write_str("not told"),
        }
    }
}
