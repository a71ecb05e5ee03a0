//! The command line.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};
use tower_algenta::{Profile, server::PassThrough};

/// Keeps the callers of an Algenta engine inside their profiles.
#[derive(Debug, Parser)]
#[command(
    name = "gateway",
    version,
    after_help = "Serves /mcp, /healthz (this process) and /readyz (the engine). SIGTERM drains, SIGHUP reads --callers again."
)]
#[expect(clippy::struct_excessive_bools, reason = "a field is an option of the command line")]
#[expect(clippy::doc_markdown, reason = "the comments are what `--help` prints")]
pub(crate) struct Args {
    /// The engine's URL; else ALGENTA_BASE_URL, else http://localhost:8000/mcp
    #[arg(long, value_name = "URL", conflicts_with = "upstream_command")]
    pub(crate) upstream: Option<String>,

    /// An engine to start, which speaks MCP over its standard input and output; words are split at white space
    #[arg(long, value_name = "COMMAND")]
    pub(crate) upstream_command: Option<String>,

    /// Calls the engine with this process's own token, ALGENTA_API_KEY, whoever the caller is
    #[arg(long)]
    pub(crate) single_identity: bool,

    /// The profile of every caller, without --callers
    #[arg(long, default_value_t = Profile::Observe, conflicts_with = "callers")]
    pub(crate) profile: Profile,

    /// A JSON file that gives callers, known by the SHA-256 of their bearer token, their profiles; SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    pub(crate) callers: Option<PathBuf>,

    /// Serves anyone who reaches the port, although it is not a loopback address and there is no --callers
    #[arg(long)]
    pub(crate) without_authentication: bool,

    /// The address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", conflicts_with = "stdio")]
    pub(crate) listen: SocketAddr,

    /// Serves one client over standard input and output
    #[arg(long, conflicts_with = "callers")]
    pub(crate) stdio: bool,

    /// A host that requests may name, beside the loopback ones; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,

    /// A browser origin that requests may come from; none by default; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,

    /// A host, or *.domain, that decisions may be delivered to; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) webhook_host: Vec<String>,

    /// A file that gets a line of JSON for each list and call; once a line is lost, executions are refused until one is
    /// written
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,

    /// Methods to pass to the engine beside the tools', unread; needs --single-identity
    #[arg(long, value_name = "METHODS", value_delimiter = ',', requires = "single_identity")]
    pub(crate) pass_through: Vec<Passed>,

    /// A prefix that the engine puts before its tools' names
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) upstream_prefix: String,

    /// Calls the tools algenta_NAME, for frameworks without namespaces; the engine's prefix is not shown then
    #[arg(long)]
    pub(crate) flat_names: bool,

    /// Answers a denial with a tool error, for clients that cannot read JSON-RPC errors
    #[arg(long)]
    pub(crate) denials_as_tool_errors: bool,

    /// Keeps sessions for clients of the protocol versions before 2026-07-28: needs affinity behind a load balancer, and
    /// callers who may see each other's answers, for a session is known by its id alone
    #[arg(long, requires = "single_identity", conflicts_with = "callers")]
    pub(crate) sessions: bool,

    /// The largest request body, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024)]
    pub(crate) max_body: usize,

    /// Seconds that a request may take at the engine
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) call_timeout: u64,

    /// Seconds in which a client has to read some hundred kilobytes of an answer, if it is that long; else its connection is
    /// closed
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) write_timeout: u64,

    /// Seconds that /readyz answers 503 before the port is closed, so that a load balancer has noticed
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) drain_delay: u64,

    /// Seconds that requests under way have to end once the port is closed; not less than --call-timeout, as a rule
    #[arg(long, value_name = "SECONDS", default_value_t = 65)]
    pub(crate) drain: u64,

    /// Checks the settings and the callers' file, says what would be served, and ends; it does not call the engine
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Passed {
    Prompts,
    Resources,
    Completion,
}

impl From<Passed> for PassThrough {
    fn from(passed: Passed) -> Self {
        match passed {
            Passed::Prompts => Self::Prompts,
            Passed::Resources => Self::Resources,
            Passed::Completion => Self::Completion,
        }
    }
}

impl Args {
    /// What the types can't say.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.stdio && self.callers.is_none() && !self.listen.ip().is_loopback() && !self.without_authentication {
            return Err(format!(
                "{} can be reached from elsewhere: name the callers with --callers, or say --without-authentication",
                self.listen,
            ));
        }
        // Over standard input and output, the caller is whoever set this process's environment.
        if self.upstream_command.is_some() && !self.single_identity && !self.stdio {
            return Err("an engine that is started has one identity for all callers: say --single-identity".to_owned());
        }
        Ok(())
    }

    /// Whether the engine is called with this process's own token.
    pub(crate) const fn has_one_identity(&self) -> bool {
        self.single_identity || self.stdio
    }

    pub(crate) const fn call_timeout(&self) -> Duration {
        Duration::from_secs(self.call_timeout)
    }
}
