//! Three engines behind tower's own balancer; one dies, and comes back: `cargo run --example balance`.

mod stack;

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use rmcp::object;
use tokio::sync::mpsc::unbounded_channel;
use tower::{BoxError, discover::Change};
use tower_algenta::{Endpoint, Error, ExecuteDecision, Profile, StubEngine, Toolset, client::Reconnect};

const HOOK: &str = "https://hooks.example/algenta";
/// Requests at a time.
const UNDER_WAY: usize = 24;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (changes, engines) = unbounded_channel();
    let mut running = BTreeMap::new();
    for name in ["a", "b", "c"] {
        let engine = StubEngine::start().await?;
        changes.send(Change::Insert(name.to_owned(), Reconnect::to(Endpoint::new(engine.url())?)))?;
        running.insert(name, engine);
    }
    let tools = Toolset::from_governed_stack(stack::balanced(engines, Profile::Execute).await?);
    println!("three engines, {} tools", tools.list().await?.len());

    println!("\n1. Requests go where they are answered soonest.");
    report(&drive(&tools, 300, 0).await, &running);

    println!(
        "\n2. `b` dies. What was under way fails, typed (`not_sent` may be repeated); the rest goes to the others."
    );
    let dead = running.remove("b").ok_or("there is a `b`")?;
    let port = dead.addr().port();
    let (ends, ()) = tokio::join!(drive(&tools, 300, 300), dead.shutdown());
    report(&ends, &running);

    println!(
        "\n3. It is started again at its address, and gets requests as soon as it has listed its tools; it counts anew."
    );
    let again = StubEngine::builder().port(port).start().await?;
    let mut id = 600;
    while again.received().is_empty() {
        drive(&tools, 20, id).await;
        id += 20;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.insert("b", again);
    report(&drive(&tools, 300, id).await, &running);

    println!("\n4. An operator takes `c` away, for good.");
    changes.send(Change::Remove("c".to_owned()))?;
    report(&drive(&tools, 300, id + 300).await, &running);

    println!("\n5. A denial is a denial, behind a retry, a buffer and a balancer.");
    let blocked = ExecuteDecision::new("decision-low-confidence", HOOK)?;
    match tools.execute(blocked).await {
        Err(Error::Denied(denial)) => println!("   {denial}"),
        other => return Err(format!("not denied: {other:?}").into()),
    }

    let mut executed = HashMap::new();
    for execution in running.values().flat_map(StubEngine::executions) {
        *executed.entry(execution.decision_id).or_insert(0) += 1;
    }
    let twice = executed.values().filter(|&&times| times > 1).count();
    println!("\n{} decisions were executed by the engines that still run, {twice} of them twice", executed.len());
    if twice == 0 { Ok(()) } else { Err("a decision was executed twice".into()) }
}

/// How `count` requests end, of which some are under way at any time.
async fn drive(tools: &Toolset, count: usize, first: usize) -> BTreeMap<&'static str, usize> {
    let mut ends = BTreeMap::new();
    let mut requests = stream::iter((first..first + count).map(|id| send(tools, id))).buffer_unordered(UNDER_WAY);
    while let Some(end) = requests.next().await {
        *ends.entry(end.unwrap_or_else(|error| error.kind())).or_insert(0) += 1;
    }
    ends
}

/// Every third request executes a decision of its own.
async fn send(tools: &Toolset, id: usize) -> Result<&'static str, Error> {
    if id.is_multiple_of(3) {
        let decision = ExecuteDecision::new(format!("decision-{id}"), HOOK).map_err(Error::InvalidArguments)?;
        tools.execute(decision).await.map(|_| "receipt")
    } else {
        tools.call("simulate", object!({"scenario": "expand-to-eu"})).await.map(|_| "result")
    }
}

/// What became of the requests, and how many calls each engine has had.
fn report(ends: &BTreeMap<&str, usize>, running: &BTreeMap<&str, StubEngine>) {
    println!("   {ends:?}");
    for (name, engine) in running {
        println!("   {name}: {} calls so far", engine.received().len());
    }
}
