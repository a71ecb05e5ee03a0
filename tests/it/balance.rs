//! Several engines behind tower's balancer, in the stack of the example `balance`.

#[path = "../../examples/balance/stack.rs"]
mod stack;

use std::{collections::BTreeMap, time::Duration};

use futures::{StreamExt as _, stream};
use rmcp::object;
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::{Instant, timeout},
};
use tower::discover::Change;
use tower_algenta::{
    BoxToolService, Endpoint, Error, ExecuteDecision, ExecutionReceipt, Gate, Profile, StubEngine, Toolset,
    client::Reconnect,
};

use crate::client::scripted::{Reply, Request, Scripted};

const HOOK: &str = "https://hooks.example/algenta";
/// More than any test needs, and less than it takes to lose patience.
const SOON: Duration = Duration::from_secs(20);

struct Balanced {
    tools: Toolset<BoxToolService>,
    changes: UnboundedSender<Change<String, Reconnect>>,
}

impl Balanced {
    async fn over(urls: impl IntoIterator<Item = String>) -> Self {
        let (changes, engines) = unbounded_channel();
        for url in urls {
            changes.send(Change::Insert(url.clone(), engine(&url))).unwrap();
        }
        let stack = timeout(SOON, stack::balanced(engines, Profile::Execute)).await.expect("one is there").unwrap();
        Self { tools: Toolset::from_governed_stack(stack), changes }
    }

    async fn execute(&self, id: &str) -> Result<ExecutionReceipt, Error> {
        let decision = ExecuteDecision::new(id, HOOK).unwrap();
        timeout(SOON, self.tools.execute(decision)).await.expect("an execution ends")
    }

    async fn simulate(&self) -> Result<(), Error> {
        let call = self.tools.call("simulate", object!({"scenario": "expand-to-eu"}));
        timeout(SOON, call).await.expect("a call ends").map(drop)
    }

    /// The executions with these numbers, eight at a time: how many ended how.
    async fn drive(&self, numbers: std::ops::Range<usize>) -> BTreeMap<&'static str, usize> {
        let executions = stream::iter(numbers).map(async |number| {
            let ended = self.execute(&format!("decision-{number}")).await;
            ended.map_or_else(|error| error.kind(), |_| "receipt")
        });
        let mut ends = BTreeMap::new();
        let mut executions = executions.buffer_unordered(8);
        while let Some(end) = executions.next().await {
            *ends.entry(end).or_insert(0) += 1;
        }
        ends
    }
}

fn engine(url: &str) -> Reconnect {
    Reconnect::to(Endpoint::new(url).unwrap().call_timeout(SOON))
}

/// Waits until the engines have been connected to.
async fn listed(have: impl Fn() -> bool) {
    let wait = async {
        while !have() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, wait).await.expect("they are connected to");
}

/// Executions of all engines, none of them twice.
fn executed<'a>(engines: impl IntoIterator<Item = &'a StubEngine>) -> usize {
    let mut ids: Vec<_> = engines.into_iter().flat_map(StubEngine::executions).map(|run| run.decision_id).collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "a decision was executed twice");
    all
}

#[tokio::test]
async fn each_engine_is_primed_with_a_list_and_shares_the_load() {
    let engines = [StubEngine::start().await.unwrap(), StubEngine::start().await.unwrap()];
    let balanced = Balanced::over(engines.iter().map(StubEngine::url)).await;
    listed(|| engines.iter().all(|engine| engine.lists() > 0)).await;
    assert_eq!(balanced.drive(0..100).await, BTreeMap::from([("receipt", 100)]));
    for engine in &engines {
        assert!(engine.lists() >= 1);
        assert!(!engine.executions().is_empty());
    }
    assert_eq!(executed(&engines), 100);
}

#[tokio::test]
async fn a_dead_engine_is_passed_over_and_comes_back() {
    let [a, b] = [StubEngine::start().await.unwrap(), StubEngine::start().await.unwrap()];
    let port = b.addr().port();
    let balanced = Balanced::over([a.url(), b.url()]).await;
    balanced.drive(0..40).await;
    let before = executed([&a, &b]);
    let of_b = b.executions();

    // In the midst of its work.
    let reached = of_b.len() + 5;
    let (ends, ()) = tokio::join!(balanced.drive(40..140), async {
        while b.executions().len() < reached {
            tokio::task::yield_now().await;
        }
        b.shutdown().await;
    });
    assert_eq!(ends.values().sum::<usize>(), 100);
    assert!(ends["receipt"] >= 80, "{ends:?}");
    assert!(ends.keys().all(|end| matches!(*end, "receipt" | "not_sent" | "outcome_unknown")), "{ends:?}");
    // Whoever finds it dead fails; then it is not tried with requests any more.
    let mut number = 140;
    if ends.len() == 1 {
        while balanced.execute(&format!("decision-{number}")).await.is_ok() {
            number += 1;
        }
        number += 1;
    }
    assert_eq!(balanced.drive(number..number + 60).await, BTreeMap::from([("receipt", 60)]));

    let b = StubEngine::builder().port(port).start().await.unwrap();
    timeout(SOON, async {
        let mut number = 10_000;
        while b.executions().is_empty() {
            balanced.drive(number..number + 4).await;
            number += 4;
        }
    })
    .await
    .expect("it gets requests again");
    assert!(before >= 40 && !of_b.is_empty());
    executed([&a, &b]);
}

#[tokio::test]
async fn without_engines_a_request_is_refused_and_not_kept_waiting() {
    let engine = StubEngine::start().await.unwrap();
    let url = engine.url();
    let balanced = Balanced::over([url.clone()]).await;
    engine.shutdown().await;
    let _ = balanced.simulate().await;
    let begun = Instant::now();
    let error = balanced.execute("decision-7").await.unwrap_err();
    assert!(error.is_retryable() && matches!(error, Error::NotSent(_)), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    // A list is tried again, within bounds.
    assert!(timeout(SOON, balanced.tools.list()).await.expect("it ends").unwrap_err().is_retryable());

    // Another one takes its place.
    let other = StubEngine::start().await.unwrap();
    balanced.changes.send(Change::Remove(url)).unwrap();
    balanced.changes.send(Change::Insert(other.url(), self::engine(&other.url()))).unwrap();
    timeout(SOON, async { while balanced.simulate().await.is_err() {} }).await.expect("it serves");
    assert!(balanced.execute("decision-7").await.unwrap().is_delivered());
}

#[tokio::test]
async fn an_engine_that_fails_at_once_does_not_look_like_the_fastest() {
    let broken = Scripted::start(|request: &Request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&serde_json::json!([])),
        "tools/call" => Reply::html(503),
        _ => Reply::html(404),
    })
    .await;
    let sound = StubEngine::builder().delay(Duration::from_millis(3)).start().await.unwrap();
    let balanced = Balanced::over([broken.url.clone(), sound.url()]).await;
    listed(|| sound.lists() > 0 && !broken.received("tools/list").is_empty()).await;
    let mut shed = 0;
    for _ in 0..200 {
        shed += usize::from(balanced.simulate().await.is_err_and(|error| error.is_retryable()));
    }
    let failed = broken.received("tools/call").len();
    assert!((1..=40).contains(&failed), "{failed} of 200");
    assert_eq!(failed + sound.received().len() + shed, 200, "none was sent twice");
}

#[tokio::test]
async fn a_denial_comes_through_typed() {
    let engine = StubEngine::start().await.unwrap();
    let balanced = Balanced::over([engine.url()]).await;
    match balanced.execute("decision-low-confidence").await.unwrap_err() {
        Error::Denied(denial) => assert_eq!(*denial.gate(), Gate::Confidence),
        other => panic!("{other:?}"),
    }
    let smuggled = object!({"decision_id": "decision-low-confidence", "webhook_url": HOOK, "force": true});
    let call = balanced.tools.call("execute_decision", smuggled).await;
    assert!(call.unwrap_err().denial().is_some());
    assert!(engine.received().iter().all(|call| !format!("{:?}", call.arguments).contains("force")));
}
