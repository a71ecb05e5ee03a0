//! The whole story on an engine that runs inside this process: `cargo run --example quickstart`.

use std::error::Error as StdError;

use rmcp::{model::CallToolResult, object};
use tower_algenta::{Endpoint, Error, ExecuteDecision, Profile, StubEngine, Toolset};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    // A real MCP server on a real socket. In production, `Endpoint::resolve(None)` reads ALGENTA_BASE_URL.
    let engine = StubEngine::start().await?;
    let endpoint = || Endpoint::new(engine.url());
    println!("engine at {}", engine.url());

    println!("\n1. An agent under the profile `observe` sees four tools, and can call no other.");
    let tools = Toolset::builder().profile(Profile::Observe).endpoint(endpoint()?).connect().await?;
    for tool in tools.list().await? {
        println!("   {}", tool.name);
    }
    let outcome = tools.call("simulate", object!({"scenario": "expand-to-eu"})).await?;
    println!("   simulate(scenario='expand-to-eu') -> {}", compact(outcome.result()));
    let refusal = tools.call("execute_decision", object!({"decision_id": "decision-7"})).await;
    println!("   execute_decision(..) -> refused: {} (the words for a tool that does not exist)", refused(refusal)?);
    tools.close().await?;

    println!("\n2. Under `execute`, an execution ends in a typed receipt.");
    let builder = Toolset::builder().profile(Profile::Execute).endpoint(endpoint()?);
    let (tools, operator) = builder.connect_with_operator().await?;
    let decision = ExecuteDecision::new("decision-7", "https://hooks.example/algenta")?;
    let receipt = tools.execute(decision.clone()).await?;
    println!("   receipt for {}: {} at {}", receipt.decision_id(), receipt.status(), receipt.executed_at());

    println!("\n3. The second execution is denied, since it was already delivered: an error, never a result.");
    let error = refused(tools.execute(decision).await)?;
    println!("   {error}");

    println!("\n4. A model that smuggles the operators' switch gets the same denial; the switch never arrives.");
    let smuggled = object!({
        "decision_id": "decision-7", "webhook_url": "https://hooks.example/algenta",
        "force": true, "Force": "yes", "override-safety": 1
    });
    println!("   sent by the model:  {}", serde_json::to_string(&smuggled)?);
    let denied = refused(tools.call("execute_decision", smuggled).await)?;
    println!("   {denied}");
    let arrived = engine.received().pop().and_then(|call| call.arguments);
    println!("   seen by the engine: {}", serde_json::to_string(&arrived)?);

    println!("\n5. A human reads the denial, which no model sees, and releases that very call, once.");
    let Error::Denied(denial) = &error else { return Err(error.into()) };
    println!("   the engine wrote: {:?}", denial.blocked().untrusted_message().unwrap_or_default());
    let receipt = operator.override_denial(denial).await?;
    println!("   receipt for {}: {}", receipt.decision_id(), receipt.status());
    println!("   again: {}", refused(operator.override_denial(denial).await)?);

    tools.close().await?;
    engine.shutdown().await;
    Ok(())
}

/// The JSON in a result's text, on one line.
fn compact(result: Option<&CallToolResult>) -> String {
    let text = result.and_then(|result| result.content.first()?.as_text()).map(|text| text.text.as_str());
    let value: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(text).ok());
    value.map_or_else(|| "no JSON".to_owned(), |value| value.to_string())
}

/// The error of a call that has to fail here.
fn refused<T>(outcome: Result<T, Error>) -> Result<Error, &'static str> {
    outcome.err().ok_or("the call went through")
}
