//! A gateway: any MCP client in front, an Algenta engine behind, and each caller under a profile.
//!
//! ```sh
//! cargo run --example gateway -- --upstream http://localhost:8000/mcp --profile observe
//! ```
//!
//! Clients connect to `http://127.0.0.1:8080/mcp`, or start it themselves with `--stdio`. It keeps nothing between
//! requests, so that any number of replicas can stand behind a load balancer. The engine is called with each caller's
//! own token; the gateway lends nobody its own, unless `--single-identity` says so.
//!
//! With `--callers FILE`, a caller is who sends a token with the SHA-256 of one in the file
//! (`printf %s "$TOKEN" | sha256sum`):
//!
//! ```json
//! {"callers": [{"name": "support", "token_sha256": "64 hexadecimal digits", "profile": "govern"}]}
//! ```

mod args;
mod callers;
mod front;
mod http;
mod stack;

use std::{error::Error, process::ExitCode};

use clap::Parser as _;
use rmcp::ServiceExt as _;
use tokio_util::task::TaskTracker;

use args::Args;
use callers::Callers;

#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(run(Args::parse())).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), Box<dyn Error>> {
    args.check()?;
    let callers = Callers::from_args(&args)?;
    let upstream = stack::Upstream::from_args(&args)?;
    let summary = summary(&args, &callers, &upstream);
    if args.check {
        println!("{summary}");
        return Ok(());
    }
    let connections = upstream.connections();
    let (closing, closes) = tokio::sync::watch::channel(false);
    let calls = TaskTracker::new();
    let server = stack::server(&args, &connections, closes, &calls)?;
    if args.stdio {
        // The protocol has standard output for itself.
        eprintln!("{summary}");
        Box::pin(server.serve(rmcp::transport::stdio())).await?.waiting().await?;
    } else {
        let listener = http::listen(args.listen).map_err(|error| format!("{}: {error}", args.listen))?;
        http::say(&format!("{summary}\n  listens  http://{}/mcp", listener.local_addr()?));
        http::serve(listener, &args, server, callers, connections.clone(), closing, calls).await?;
        http::say("drained");
    }
    connections.close().await;
    Ok(())
}

/// What is served, to whom, under which profile.
fn summary(args: &Args, callers: &Callers, upstream: &stack::Upstream) -> String {
    let webhooks = match &args.webhook_host[..] {
        [] => "any host that the model chooses (--webhook-host sets a list)".to_owned(),
        hosts => hosts.join(", "),
    };
    let passed = match &args.pass_through[..] {
        [] => "tools only".to_owned(),
        methods => format!("tools; past the layers: {methods:?}"),
    };
    format!(
        "gateway\n  engine   {upstream}\n  callers  {callers}\n  hidden   {}\n  webhooks {webhooks}\n  methods  {passed}\n  \
         audit    {}",
        tower_algenta::NEVER_MODEL_FACING.join(", "),
        args.audit.as_ref().map_or("none".to_owned(), |path| path.display().to_string()),
    )
}
