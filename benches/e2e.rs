//! Group `e2e`: rmcp's client and server over an in-memory pipe, with the layers between and without.
//!
//! `cargo bench --bench e2e` measures, `cargo bench -- --test` runs each once.

mod cases;

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use rmcp::ServiceExt;
use tokio::runtime::Runtime;
use tower::{Layer, Service};
use tower_algenta::{EngineClient, Error, GovernanceLayer, Profile, ToolRequest, ToolResponse};

fn execution() -> ToolRequest {
    ToolRequest::call("execute_decision", cases::execution())
}

fn denied_execution() -> ToolRequest {
    let mut arguments = cases::execution();
    arguments.insert("decision_id".to_owned(), cases::engine::DENIED.into());
    ToolRequest::call("execute_decision", arguments)
}

/// Whether there was an answer; a denial is one.
async fn answer<S>(service: &mut S, request: ToolRequest) -> bool
where
    S: Service<ToolRequest, Response = ToolResponse, Error = Error>,
{
    std::future::poll_fn(|cx| service.poll_ready(cx)).await.is_ok()
        && matches!(service.call(request).await, Ok(_) | Err(Error::Denied(_)))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The medians of the same call, bare and governed. The two take turns, so that both see the same machine.
async fn compare<A, B>(bare: &mut A, governed: &mut B, make: fn() -> ToolRequest, calls: u64) -> [Duration; 2]
where
    A: Service<ToolRequest, Response = ToolResponse, Error = Error>,
    B: Service<ToolRequest, Response = ToolResponse, Error = Error>,
{
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..calls {
        let began = Instant::now();
        assert!(answer(bare, make()).await);
        times[0].push(began.elapsed());
        let began = Instant::now();
        assert!(answer(governed, make()).await);
        times[1].push(began.elapsed());
    }
    times.map(median)
}

/// A name, how it is made, and how often it is sent.
type Request = (&'static str, fn() -> ToolRequest, u64);

fn e2e(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (client, _server) = runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 20);
        let engine = cases::engine::Engine { list: cases::recorded_list(), receipt: cases::receipt() };
        let server = tokio::spawn(async move { engine.serve(far).await });
        let client = EngineClient::serve(near).await.expect("a client");
        (client, server.await.expect("no panic").expect("a server"))
    });
    let mut bare = client.clone();
    let mut governed = GovernanceLayer::new(Profile::Full).layer(client);
    let requests: [Request; 4] = [
        ("call", || ToolRequest::call("simulate", cases::five_keys()), 3000),
        ("receipt", execution, 3000),
        ("denial", denied_execution, 3000),
        ("list", ToolRequest::list, 60),
    ];
    for (name, make, calls) in requests {
        let calls = if cases::is_test() { 1 } else { calls };
        let [without, with] = runtime.block_on(compare(&mut bare, &mut governed, make, calls));
        println!(
            "e2e/{name}: p50 {without:?} bare, {with:?} governed: {:.3}",
            with.as_secs_f64() / without.as_secs_f64()
        );
    }
    let mut group = criterion.benchmark_group("e2e");
    group.sample_size(30);
    for (name, make, _) in requests {
        group.bench_function(format!("{name}/bare"), |bencher| {
            bencher.iter(|| runtime.block_on(answer(&mut bare, make())));
        });
        group.bench_function(format!("{name}/governed"), |bencher| {
            bencher.iter(|| runtime.block_on(answer(&mut governed, make())));
        });
    }
    group.finish();
}

criterion_group!(benches, e2e);
criterion_main!(benches);
