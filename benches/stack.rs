//! Groups `profile` and `stack`: a governed call beside the bare service and beside other ways to write the same stack.
//!
//! `cargo bench --bench stack` measures, `cargo bench -- --test` runs each once.

mod cases;

use std::{hint::black_box, time::Duration};

use cases::services::{Bare, Fused, boxed_futures, boxed_services, drive, identities};
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime};
use rmcp::model::ListToolsResult;
use tower::{Layer, Service, service_fn};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, GovernanceLayer, Profile, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer,
    ToolRequest, ToolResponse,
};

fn profile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("profile");
    for profile in Profile::ALL {
        group.bench_function(format!("has/{profile}"), |bencher| {
            bencher.iter(|| black_box(cases::NAMES).into_iter().filter(|name| black_box(profile).has(name)).count());
        });
    }
    group.bench_function("length_of_each", |bencher| {
        bencher.iter(|| black_box(cases::NAMES).into_iter().map(str::len).sum::<usize>());
    });
    for tools in [7, 140, 5000] {
        let list = ListToolsResult::with_all_items(cases::clean_tools(tools));
        let engine =
            service_fn(move |_: ToolRequest| std::future::ready(Ok::<_, BoxError>(ToolResponse::List(list.clone()))));
        let mut bare = engine.clone();
        group.bench_function(format!("list/bare/{tools}"), |bencher| {
            bencher.iter_with_large_drop(|| drive(bare.call(ToolRequest::list())));
        });
        let mut filtered = ProfileFilterLayer::new(Profile::Full).layer(engine);
        group.bench_function(format!("list/filtered/{tools}"), |bencher| {
            bencher.iter_with_large_drop(|| drive(filtered.call(ToolRequest::list())));
        });
    }
    group.finish();
}

fn call<S>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mut service: S)
where
    S: Service<ToolRequest, Response = ToolResponse, Error = BoxError>,
{
    let request = ToolRequest::call("simulate", cases::five_keys());
    group.bench_function(name, |bencher| {
        // A request is made outside of what is measured: cloning it costs more than the stack.
        bencher.iter_batched(|| request.clone(), |request| drive(service.call(request)), BatchSize::SmallInput);
    });
}

fn stack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stack");
    group.measurement_time(Duration::from_secs(3));
    call(&mut group, "bare", Bare);
    call(&mut group, "identity_layers", identities(Bare));
    call(&mut group, "hand_fused", Fused::new(Bare, Profile::Observe));
    call(&mut group, "four_layers", GovernanceLayer::new(Profile::Observe).layer(Bare));
    call(&mut group, "boxed_future_per_layer", boxed_futures(Profile::Observe));
    call(&mut group, "boxed_service_per_layer", boxed_services(Profile::Observe));
    call(&mut group, "only/schema_scrub", SchemaScrubLayer::new().layer(Bare));
    call(&mut group, "only/profile_filter", ProfileFilterLayer::new(Profile::Observe).layer(Bare));
    call(&mut group, "only/receipt_mapping", ReceiptMappingLayer::new().layer(Bare));
    call(&mut group, "only/argument_scrub", ArgumentScrubLayer::new().layer(Bare));
    group.finish();
}

criterion_group!(benches, profile, stack);
criterion_main!(benches);
