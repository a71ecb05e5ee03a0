//! Groups `scrub` and `schema`: arguments and schemas, clean and dirty, beside clone-and-filter and a touch of each key.
//!
//! `cargo bench --bench scrub` measures, `cargo bench -- --test` runs each once.

mod cases;

use std::{hint::black_box, sync::Arc};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rmcp::{
    model::{JsonObject, ListToolsResult},
    object,
};
use serde_json::Value;
use tower_algenta::{HiddenFields, Matching, NEVER_MODEL_FACING};

fn argument_scrub(criterion: &mut Criterion) {
    let fields = HiddenFields::new();
    let mut group = criterion.benchmark_group("scrub");
    for keys in cases::KEYS {
        group.throughput(Throughput::Elements(keys as u64));
        let (mut flat, mut nested) = (cases::flat(keys), cases::arguments(keys));
        // In place and again and again: cloning the input would cost more than what is measured.
        group.bench_function(BenchmarkId::new("flat", keys), |bencher| {
            bencher.iter(|| fields.scrub_arguments("simulate", black_box(&mut flat)).is_ok_and(|gone| gone.is_empty()));
        });
        let exact = HiddenFields::new().matching(Matching::Exact);
        group.bench_function(BenchmarkId::new("exact", keys), |bencher| {
            bencher.iter(|| exact.scrub_arguments("simulate", black_box(&mut flat)).is_ok_and(|gone| gone.is_empty()));
        });
        group.bench_function(BenchmarkId::new("touch_each_key", keys), |bencher| {
            bencher.iter(|| cases::touch_each_key(black_box(&flat)));
        });
        group.bench_function(BenchmarkId::new("nested", keys), |bencher| {
            bencher.iter(|| {
                fields.scrub_arguments("query_batch", black_box(&mut nested)).is_ok_and(|gone| gone.is_empty())
            });
        });
        group.bench_function(BenchmarkId::new("touch_all_keys", keys), |bencher| {
            bencher.iter(|| cases::touch_all_keys(black_box(&nested)));
        });
        let dirty = cases::with_switches(cases::arguments(keys));
        group.bench_function(BenchmarkId::new("dirty", keys), |bencher| {
            bencher.iter_batched_ref(
                || dirty.clone(),
                |arguments| fields.scrub_arguments("simulate", arguments).is_ok_and(|gone| gone.len() == 2),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(BenchmarkId::new("clone_and_filter", keys), |bencher| {
            bencher.iter_with_large_drop(|| cases::clone_and_filter(black_box(&dirty)));
        });
    }
    let aliases = cases::aliases();
    group.bench_function("aliases", |bencher| {
        bencher.iter_batched_ref(
            || aliases.clone(),
            |arguments| fields.scrub_arguments("simulate", arguments).is_ok_and(|gone| gone.len() == 4),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn json_text(criterion: &mut Criterion) {
    let fields = HiddenFields::new();
    let mut group = criterion.benchmark_group("scrub/text");
    let clean = serde_json::to_string(&cases::arguments(50)).unwrap_or_default();
    let dirty = serde_json::to_string(&cases::with_switches(cases::arguments(50))).unwrap_or_default();
    group.throughput(Throughput::Bytes(clean.len() as u64));
    let mut payload = object!({"payload": clean.clone()});
    group.bench_function("clean", |bencher| {
        bencher
            .iter(|| fields.scrub_arguments("query_batch", black_box(&mut payload)).is_ok_and(|gone| gone.is_empty()));
    });
    let payload = object!({"payload": dirty});
    group.bench_function("dirty", |bencher| {
        bencher.iter_batched_ref(
            || payload.clone(),
            |arguments| fields.scrub_arguments("query_batch", arguments).is_ok_and(|gone| gone.len() == 2),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("parse_and_filter", |bencher| {
        bencher.iter(|| {
            serde_json::from_str::<JsonObject>(black_box(&clean)).map(|parsed| cases::clone_and_filter(&parsed))
        });
    });
    group.finish();
}

/// A copy of the schema without the two properties.
fn clone_and_filter_schema(schema: &JsonObject) -> Arc<JsonObject> {
    let mut schema = schema.clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|key, _| !NEVER_MODEL_FACING.contains(&key.as_str()));
    }
    Arc::new(schema)
}

fn schema_scrub(criterion: &mut Criterion) {
    let fields = HiddenFields::new();
    let tools = cases::recorded_list().tools;
    assert_eq!(tools.len(), 140);
    let mut group = criterion.benchmark_group("schema");
    for count in [7, 138, 5000] {
        group.throughput(Throughput::Elements(count as u64));
        let mut scrubbed = cases::clean_tools(count);
        let text = serde_json::to_string(&ListToolsResult::with_all_items(scrubbed.clone())).unwrap_or_default();
        group.bench_function(BenchmarkId::new("parse", count), |bencher| {
            bencher.iter_with_large_drop(|| serde_json::from_str::<ListToolsResult>(black_box(&text)));
        });
        group.bench_function(BenchmarkId::new("touch_all_keys", count), |bencher| {
            bencher.iter(|| cases::touch_all_keys_of(black_box(&scrubbed)));
        });
        group.bench_function(BenchmarkId::new("clean", count), |bencher| {
            bencher.iter(|| {
                for tool in black_box(&mut scrubbed) {
                    let name = std::mem::take(&mut tool.name);
                    assert!(fields.scrub_tool(&name, tool).is_ok_and(|changed| !changed));
                    tool.name = name;
                }
            });
        });
    }
    let clean = cases::clean_tools(138);
    group.throughput(Throughput::Elements(clean.len() as u64));
    group.bench_function("clone_and_filter/138", |bencher| {
        bencher.iter(|| {
            black_box(&clean).iter().map(|tool| clone_and_filter_schema(&tool.input_schema)).collect::<Vec<_>>()
        });
    });
    group.throughput(Throughput::Elements(1));
    if let Some(execute) = tools.iter().find(|tool| tool.name == "execute_decision") {
        group.bench_function("dirty/execute_decision", |bencher| {
            bencher.iter_batched_ref(
                || {
                    // A schema of its own, as a list off the wire has it.
                    let mut tool = execute.clone();
                    tool.input_schema = Arc::new((*execute.input_schema).clone());
                    tool
                },
                |tool| fields.scrub_tool("execute_decision", tool),
                BatchSize::SmallInput,
            );
        });
        group.bench_function("clone_and_filter/execute_decision", |bencher| {
            bencher.iter(|| clone_and_filter_schema(black_box(&execute.input_schema)));
        });
    }
    group.finish();
}

criterion_group!(benches, argument_scrub, json_text, schema_scrub);
criterion_main!(benches);
