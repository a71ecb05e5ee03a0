//! Callers who never rest, and the account of how their calls ended.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::object;
use tokio::{task::JoinSet, time::timeout};
use tower_algenta::{Error, ExecuteDecision, Profile, StubEngine, Toolset};

use crate::{gateway::process::SOON, real_servers::Generation};

pub(super) const CALLERS: usize = 8;

/// What a caller does between two calls: long enough for a connection to be idle.
const PAUSE: Duration = Duration::from_millis(10);

/// A call that has ended: a simulation or an execution of what only it names.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    executes: bool,
    pub(super) outcome: Result<(), Error>,
}

impl Call {
    pub(super) async fn simulate(tools: &Toolset, id: String) -> Self {
        let called = timeout(SOON, tools.call("simulate", object!({"scenario": id.clone()})));
        let outcome = called.await.unwrap_or_else(|_| panic!("{id} hangs")).map(|outcome| {
            assert_ne!(outcome.result().and_then(|result| result.is_error), Some(true), "{id}: {outcome:?}");
        });
        Self { id, executes: false, outcome }
    }

    pub(super) async fn execute(tools: &Toolset, id: String) -> Self {
        let decision = ExecuteDecision::new(&*id, "https://hooks.example/x").unwrap();
        let outcome = timeout(SOON, tools.execute(decision)).await.unwrap_or_else(|_| panic!("{id} hangs"));
        Self { id, executes: true, outcome: outcome.map(|receipt| assert!(receipt.is_delivered(), "{receipt:?}")) }
    }
}

/// Callers at work: half by each generation of the protocol, half of their calls executions.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    callers: JoinSet<Vec<Call>>,
}

impl Load {
    pub(super) async fn start(name: &'static str, url: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let tools = Generation::BOTH[caller % 2].tools(url, Profile::Execute).await;
            let stop = Arc::clone(&stop);
            callers.spawn(async move {
                let mut calls = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let id = format!("{name}-{caller}-{}", calls.len());
                    let call = if calls.len() % 2 == 0 {
                        Call::simulate(&tools, id).await
                    } else {
                        Call::execute(&tools, id).await
                    };
                    calls.push(call);
                    tokio::time::sleep(PAUSE).await;
                }
                calls
            });
        }
        Self { stop, callers }
    }

    /// Waits until every call has ended.
    pub(super) async fn stop(self) -> Vec<Call> {
        self.stop.store(true, Ordering::Relaxed);
        self.callers.join_all().await.into_iter().flatten().collect()
    }
}

/// How often the engine was called for each, by what only that call names.
fn arrivals(engine: &StubEngine) -> HashMap<String, usize> {
    let mut arrivals = HashMap::new();
    for call in engine.received() {
        let arguments = call.arguments.unwrap_or_default();
        let id = arguments.get("decision_id").or_else(|| arguments.get("scenario")).and_then(|id| id.as_str());
        *arrivals.entry(id.unwrap_or_default().to_owned()).or_default() += 1;
    }
    arrivals
}

/// Where the callers' account and the engine's differ, or a call was repeated: nothing, if all is well.
pub(super) fn faults(calls: &[Call], engine: &StubEngine) -> Vec<String> {
    let arrivals = arrivals(engine);
    let mut executions: HashMap<String, usize> = HashMap::new();
    for execution in engine.executions() {
        *executions.entry(execution.decision_id).or_default() += 1;
    }
    let mut faults = Vec::new();
    for Call { id, executes, outcome } in calls {
        let arrived = arrivals.get(id).copied().unwrap_or_default();
        let executed = executions.get(id).copied().unwrap_or_default();
        if arrived > 1 {
            faults.push(format!("{id} reached the engine {arrived} times"));
        }
        if executed > 1 {
            faults.push(format!("{id} was executed {executed} times"));
        }
        match outcome {
            Ok(()) if arrived == 0 => faults.push(format!("{id} has a result, and never arrived")),
            Ok(()) if *executes && executed == 0 => faults.push(format!("{id} has a receipt, and never ran")),
            Err(Error::NotSent(_)) if arrived > 0 => faults.push(format!("{id} was not sent, and arrived")),
            // Whatever else became of an execution, the caller must not take it for one that can be repeated.
            Err(error) if *executes && error.is_retryable() && executed > 0 => {
                faults.push(format!("{id} ran, and can be repeated: {error}"));
            }
            _ => {}
        }
    }
    faults
}

/// The calls that did not end in a result, and how.
pub(super) fn lost(calls: &[Call]) -> Vec<String> {
    let ended = |call: &Call| call.outcome.as_ref().err().map(|error| format!("{}: {error}", call.id));
    calls.iter().filter_map(ended).collect()
}
