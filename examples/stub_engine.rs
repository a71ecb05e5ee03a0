//! Serves the stub engine, so that any MCP client can be pointed at it:
//! `cargo run --example stub_engine -- --port 8000 --wire python-sdk`.

use std::{env, error::Error as StdError, time::Duration};

use tower_algenta::{StubEngine, stub::Wire};

const USAGE: &str = "\
Serves the stub engine at http://127.0.0.1:PORT/mcp until Ctrl-C.

    --port PORT        where it listens; 0 takes a free port
    --wire SHAPE       how denials travel (see below); default: algenta
    --for SECONDS      ends by itself after this time

Without arguments it says this, starts once to show that it can, and ends.
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let (mut port, mut wire, mut limit) = (0, Wire::default(), None);
    let mut arguments = env::args().skip(1);
    if arguments.len() == 0 {
        println!("{USAGE}\nShapes: {}", Wire::ALL.map(Wire::as_str).join(", "));
        limit = Some(Duration::ZERO);
    }
    while let Some(option) = arguments.next() {
        if matches!(&*option, "--help" | "-h") {
            println!("{USAGE}\nShapes: {}", Wire::ALL.map(Wire::as_str).join(", "));
            return Ok(());
        }
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--port" => port = value.parse()?,
            "--wire" => wire = value.parse()?,
            "--for" => limit = Some(Duration::from_secs(value.parse()?)),
            _ => return Err(format!("unknown option {option}\n\n{USAGE}").into()),
        }
    }

    let engine = StubEngine::builder().port(port).wire(wire).start().await?;
    println!("stub engine ({wire}) at {}", engine.url());
    match limit {
        Some(limit) => {
            let _ = tokio::time::timeout(limit, tokio::signal::ctrl_c()).await;
        }
        None => tokio::signal::ctrl_c().await?,
    }

    for call in engine.received() {
        println!("called: {}", call.name);
    }
    for execution in engine.executions() {
        println!("executed: {} for {}", execution.decision_id, execution.webhook_url);
    }
    engine.shutdown().await;
    Ok(())
}
