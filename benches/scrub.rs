//! The scrub path, clean and dirty, for arguments and for schemas; each group holds its clone-and-filter baseline.
//!
//! `cargo bench --bench scrub` measures, `cargo bench -- --test` runs each once.

use std::{hint::black_box, sync::Arc};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rmcp::{
    model::{JsonObject, ListToolsResult, Tool},
    object,
};
use serde_json::Value;
use tower_algenta::{HiddenFields, NEVER_MODEL_FACING};

/// Arguments of `keys` keys; some of the values are nested.
fn arguments(keys: usize) -> JsonObject {
    (0..keys)
        .map(|key| {
            let value = match key % 5 {
                0 => Value::from("a text of some length"),
                1 => Value::from(key),
                2 => serde_json::json!({"weight": 0.5, "region": {"name": "eu"}}),
                3 => serde_json::json!([1, 2, 3]),
                _ => Value::Null,
            };
            (format!("argument_{key}"), value)
        })
        .collect()
}

fn with_switches(mut arguments: JsonObject) -> JsonObject {
    for name in NEVER_MODEL_FACING {
        arguments.insert(name.to_owned(), true.into());
    }
    arguments
}

/// What a wrapper without ownership does: a copy without the two names at the top level.
fn clone_and_filter(arguments: &JsonObject) -> JsonObject {
    arguments
        .iter()
        .filter(|(key, _)| !NEVER_MODEL_FACING.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn argument_scrub(criterion: &mut Criterion) {
    let fields = HiddenFields::new();
    for tool in ["simulate", "execute_decision"] {
        let mut group = criterion.benchmark_group(format!("arguments/{tool}"));
        for keys in [0, 5, 24, 50, 500, 5000] {
            group.throughput(Throughput::Elements(keys as u64));
            let mut clean = arguments(keys);
            group.bench_function(BenchmarkId::new("clean", keys), |bencher| {
                // In place and again and again: cloning the input would cost more than what is measured.
                bencher.iter(|| fields.scrub_arguments(tool, black_box(&mut clean)).is_ok_and(|gone| gone.is_empty()));
            });
            let dirty = with_switches(arguments(keys));
            group.bench_function(BenchmarkId::new("dirty", keys), |bencher| {
                bencher.iter_batched_ref(
                    || dirty.clone(),
                    |arguments| fields.scrub_arguments(tool, arguments).is_ok_and(|gone| gone.len() == 2),
                    BatchSize::SmallInput,
                );
            });
            group.bench_function(BenchmarkId::new("clone_and_filter", keys), |bencher| {
                bencher.iter(|| clone_and_filter(black_box(&dirty)));
            });
            group.bench_function(BenchmarkId::new("touch_each_key", keys), |bencher| {
                bencher.iter(|| black_box(&clean).keys().map(|key| usize::from(key.as_bytes()[0])).sum::<usize>());
            });
        }
        group.finish();
    }
}

fn json_text(criterion: &mut Criterion) {
    let fields = HiddenFields::new();
    let mut group = criterion.benchmark_group("arguments/text");
    let clean = serde_json::to_string(&arguments(50)).unwrap_or_default();
    let dirty = serde_json::to_string(&with_switches(arguments(50))).unwrap_or_default();
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
        bencher.iter(|| serde_json::from_str::<JsonObject>(black_box(&clean)).map(|parsed| clone_and_filter(&parsed)));
    });
    group.finish();
}

fn recorded_tools() -> Vec<Tool> {
    serde_json::from_str::<ListToolsResult>(include_str!("../tests/data/tools_list.json"))
        .map(|list| list.tools)
        .unwrap_or_default()
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
    let tools = recorded_tools();
    assert_eq!(tools.len(), 140);
    let mut group = criterion.benchmark_group("schema");
    let clean: Vec<Tool> =
        tools.iter().filter(|tool| !matches!(&*tool.name, "execute_decision" | "fire_trigger")).cloned().collect();
    group.throughput(Throughput::Elements(clean.len() as u64));
    let mut scrubbed = clean.clone();
    group.bench_function("clean/138_tools", |bencher| {
        bencher.iter(|| {
            for tool in black_box(&mut scrubbed) {
                let name = std::mem::take(&mut tool.name);
                assert!(fields.scrub_tool(&name, tool).is_ok_and(|changed| !changed));
                tool.name = name;
            }
        });
    });
    group.bench_function("clone_and_filter/138_tools", |bencher| {
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
