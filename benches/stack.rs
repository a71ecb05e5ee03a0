//! Groups `profile` and `stack`: a governed call beside the bare service and beside other ways to write the same stack.
//!
//! `cargo bench --bench stack` measures, `cargo bench -- --test` runs each once. Minima are compared first;
//! `cargo bench --bench stack -- minima` does no more.

mod cases;

use std::{hint::black_box, time::Duration};

use cases::{
    minima::Minima,
    services::{Bare, Fused, Identity, Prepared, boxed_futures, boxed_services, drive, identities},
};
use criterion::{BatchSize, BenchmarkGroup, Criterion, criterion_group, criterion_main, measurement::WallTime};
use rmcp::model::{JsonObject, ListToolsResult, Tool};
use tower::{
    Layer, Service,
    layer::{layer_fn, util::Identity as NoLayer},
    service_fn,
};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, GovernanceLayer, Profile, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer,
    ToolRequest, ToolResponse,
};

fn minima(_: &mut Criterion) {
    let inputs: [fn() -> JsonObject; 3] = [cases::five_keys, || cases::flat(5), JsonObject::new];
    let [nested, flat, none] = inputs.map(fastest_calls);
    println!("{:26} {:>10} {:>10} {:>10}", "ns over bare", "5 nested", "5 flat", "no keys");
    for (((name, nested), (_, flat)), (_, none)) in nested.iter().zip(flat).zip(none) {
        println!("{name:26} {nested:>10.1} {flat:>10.1} {none:>10.1}");
    }
}

/// The nanoseconds of the bare service, and of the others over it.
fn fastest_calls(arguments: fn() -> JsonObject) -> Vec<(String, f64)> {
    let touching = service_fn(|request: ToolRequest| {
        if let ToolRequest::Call(call) = &request {
            black_box(call.params.arguments.as_ref().map(cases::touch_all_keys));
        }
        { Bare }.call(request)
    });
    let mut minima = Minima::of_batches(16);
    add(&mut minima, "bare", Bare, arguments);
    add(&mut minima, "identity layers", identities(Bare), arguments);
    add(&mut minima, "a touch of each key", touching, arguments);
    add(&mut minima, "argument scrub alone", ArgumentScrubLayer::new().layer(Bare), arguments);
    add(&mut minima, "hand-fused", Fused::new(Bare, Profile::Observe), arguments);
    add(&mut minima, "four layers", GovernanceLayer::new(Profile::Observe).layer(Bare), arguments);
    add(&mut minima, "boxed future per layer", boxed_futures(Profile::Observe), arguments);
    add(&mut minima, "boxed service per layer", boxed_services(Profile::Observe), arguments);
    let mut nanos = minima.measure(5000);
    let bare = nanos[0].1;
    nanos.iter_mut().skip(1).for_each(|(_, nanos)| *nanos -= bare);
    nanos
}

fn add<S>(minima: &mut Minima, name: &str, mut service: S, arguments: fn() -> JsonObject)
where
    S: Service<ToolRequest, Response = ToolResponse, Error = BoxError> + 'static,
{
    let make = move || ToolRequest::call("simulate", arguments());
    minima.add(name, make, move |request| drive(service.call(request)));
}

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
    for count in [7, 140, 5000] {
        let tools = cases::clean_tools(count);
        let list = ListToolsResult::with_all_items(tools.clone()).into();
        answered(&mut group, &format!("list/bare/{count}"), NoLayer::new(), ToolRequest::list, &list);
        answered(&mut group, &format!("list/identity/{count}"), layer_fn(Identity), ToolRequest::list, &list);
        let filter = ProfileFilterLayer::new(Profile::Full);
        answered(&mut group, &format!("list/filtered/{count}"), filter, ToolRequest::list, &list);
        group.bench_function(format!("list/clone_and_filter/{count}"), |bencher| {
            bencher.iter_with_large_drop(|| clone_and_filter(black_box(&tools), Profile::Full));
        });
    }
    group.finish();
}

/// What a wrapper without ownership does: a copy of the tools that are allowed.
fn clone_and_filter(tools: &[Tool], profile: Profile) -> Vec<Tool> {
    tools.iter().filter(|tool| profile.has(&tool.name)).cloned().collect()
}

/// A request, made outside of what is measured: cloning it costs more than the stack.
fn call<S>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mut service: S, arguments: fn() -> JsonObject)
where
    S: Service<ToolRequest, Response = ToolResponse, Error = BoxError>,
{
    let request = ToolRequest::call("simulate", arguments());
    group.bench_function(name, |bencher| {
        bencher.iter_batched(|| request.clone(), |request| drive(service.call(request)), BatchSize::SmallInput);
    });
}

/// A request whose answer, too, is made outside of what is measured.
fn answered<L>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    layer: L,
    request: fn() -> ToolRequest,
    answer: &ToolResponse,
) where
    L: Layer<Prepared, Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError>>,
{
    let engine = Prepared::default();
    let mut service = layer.layer(engine.clone());
    group.bench_function(name, |bencher| {
        let prepare = || {
            engine.add(answer.clone());
            request()
        };
        bencher.iter_batched(prepare, |request| drive(service.call(request)), BatchSize::SmallInput);
    });
}

fn stack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stack");
    group.measurement_time(Duration::from_secs(3));
    let clean = cases::five_keys;
    call(&mut group, "bare", Bare, clean);
    call(&mut group, "identity_layers", identities(Bare), clean);
    call(&mut group, "hand_fused", Fused::new(Bare, Profile::Observe), clean);
    call(&mut group, "four_layers", GovernanceLayer::new(Profile::Observe).layer(Bare), clean);
    call(&mut group, "boxed_future_per_layer", boxed_futures(Profile::Observe), clean);
    call(&mut group, "boxed_service_per_layer", boxed_services(Profile::Observe), clean);
    call(&mut group, "only/schema_scrub", SchemaScrubLayer::new().layer(Bare), clean);
    call(&mut group, "only/profile_filter", ProfileFilterLayer::new(Profile::Observe).layer(Bare), clean);
    call(&mut group, "only/receipt_mapping", ReceiptMappingLayer::new().layer(Bare), clean);
    call(&mut group, "only/argument_scrub", ArgumentScrubLayer::new().layer(Bare), clean);

    let dirty = || cases::with_switches(cases::five_keys());
    call(&mut group, "dirty/bare", Bare, dirty);
    call(&mut group, "dirty/hand_fused", Fused::new(Bare, Profile::Observe), dirty);
    call(&mut group, "dirty/four_layers", GovernanceLayer::new(Profile::Observe).layer(Bare), dirty);

    let list = ListToolsResult::with_all_items(cases::clean_tools(138)).into();
    let four = GovernanceLayer::new(Profile::Full);
    answered(&mut group, "list/bare", NoLayer::new(), ToolRequest::list, &list);
    answered(&mut group, "list/four_layers", four, ToolRequest::list, &list);

    let execution = || ToolRequest::call("execute_decision", cases::execution());
    let receipt = cases::receipt().into();
    let four = GovernanceLayer::new(Profile::Execute);
    answered(&mut group, "execution/bare", NoLayer::new(), execution, &receipt);
    answered(&mut group, "execution/four_layers", four, execution, &receipt);
    group.finish();
}

criterion_group!(benches, minima, profile, stack);
criterion_main!(benches);
