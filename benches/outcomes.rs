//! Groups `receipt` and `denial`: what an answer means, beside parsing the same bytes.
//!
//! `cargo bench --bench outcomes` measures, `cargo bench -- --test` runs each once. Minima are compared first;
//! `cargo bench --bench outcomes -- minima` does no more.

mod cases;

use std::{hint::black_box, rc::Rc};

use cases::{
    minima::Minima,
    services::{Prepared, drive},
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rmcp::model::{CallToolResult, JsonObject};
use serde::de::IgnoredAny;
use serde_json::Value;
use tower::{Layer, Service};
use tower_algenta::{
    BoxError, ExecuteDecision, ExecutionBlocked, ExecutionReceipt, GovernanceLayer, Profile, ToolRequest, ToolResponse,
};

/// Bytes of the shorter hostile texts, and of the four times longer ones.
const HOSTILE_SIZES: [usize; 2] = [1 << 14, 1 << 16];

fn minima(_: &mut Criterion) {
    execution_minima();
    prefix_minima();
    hostile_minima();
}

/// Adds what reads a result, which is made once.
fn add<O: 'static>(minima: &mut Minima, name: &str, result: CallToolResult, read: fn(&CallToolResult) -> O) {
    let result = Rc::new(result);
    minima.add(name, move || Rc::clone(&result), move |result| read(black_box(&result)));
}

/// Adds an execution through `service`, which answers with what was prepared in `engine`.
fn add_execution<S>(minima: &mut Minima, name: &str, engine: Prepared, mut service: S)
where
    S: Service<ToolRequest, Response = ToolResponse, Error = BoxError> + 'static,
{
    let make = move || {
        engine.add(cases::receipt().into());
        ToolRequest::call("execute_decision", cases::execution())
    };
    minima.add(name, make, move |request| drive(service.call(request)));
}

/// What an execution costs, and the parts of that.
fn execution_minima() {
    let mut minima = Minima::of_batches(16);
    let engine = Prepared::default();
    add_execution(&mut minima, "execution, bare", engine.clone(), engine);
    let engine = Prepared::default();
    let governed = GovernanceLayer::new(Profile::Execute).layer(engine.clone());
    add_execution(&mut minima, "execution, four layers", engine, governed);
    let receipt = cases::receipt;
    add(&mut minima, "receipt from text", receipt(), |result| ExecutionReceipt::from_result(result).is_ok());
    add(&mut minima, "denial search alone", receipt(), |result| ExecutionBlocked::from_result(result).is_ok());
    let skip = |result: &CallToolResult| serde_json::from_str::<IgnoredAny>(first_text(result)).is_ok();
    add(&mut minima, "step over the text", receipt(), skip);
    let parse = |result: &CallToolResult| serde_json::from_str::<JsonObject>(first_text(result)).is_ok();
    add(&mut minima, "parse the text", receipt(), parse);
    let arguments = Rc::new(cases::execution());
    let read = |arguments: Rc<JsonObject>| ExecuteDecision::from_arguments(black_box(&arguments)).is_ok();
    minima.add("read the arguments", move || Rc::clone(&arguments), read);
    add(&mut minima, "copy the text", receipt(), |result| first_text(result).to_owned());
    for (name, nanos) in minima.measure(5000) {
        println!("{name:26} {nanos:>8.0} ns");
    }
}

fn first_text(result: &CallToolResult) -> &str {
    result.content[0].as_text().map_or("", |text| &text.text)
}

/// A denial behind prose, over the search for a brace in as many bytes.
fn prefix_minima() {
    let denial = cases::text_of(&cases::denial());
    let mut minima = Minima::of_batches(1);
    let prefixes = cases::PREFIXES.map(cases::prose);
    for prefix in &prefixes {
        let denied = cases::text_result(prefix.clone() + &denial);
        add(&mut minima, "", denied, |result| ExecutionBlocked::from_result(result).is_ok());
        add(&mut minima, "", cases::text_result(prefix.clone()), |result| {
            memchr::memchr(b'{', first_text(result).as_bytes())
        });
    }
    let nanos = minima.measure(2000);
    for (prefix, pair) in prefixes.iter().zip(nanos.chunks(2)) {
        let [denied, memchr] = [pair[0].1, pair[1].1];
        let ratio = denied / memchr;
        println!("a prefix of {:>7} bytes {denied:>8.0} ns, memchr {memchr:>6.0}: {ratio:.2}", prefix.len());
    }
}

/// What hostile texts cost, and how that grows.
fn hostile_minima() {
    let mut minima = Minima::of_batches(1);
    for (shape, piece) in cases::HOSTILE {
        for size in HOSTILE_SIZES {
            let hostile = cases::text_result(cases::repeated(piece, size));
            add(&mut minima, shape, hostile, |result| ExecutionBlocked::from_result(result).is_ok());
        }
    }
    let nanos = minima.measure(300);
    println!("{:26} {:>10} {:>16}", "hostile text", "ns a byte", "4 times as long");
    for pair in nanos.chunks(2) {
        let (shape, [short, long]) = (&pair[0].0, [pair[0].1, pair[1].1]);
        #[expect(clippy::cast_precision_loss, reason = "a size is no large number")]
        let a_byte = long / HOSTILE_SIZES[1] as f64;
        println!("{shape:26} {a_byte:>10.2} {:>16.2}", long / short);
    }
}

fn receipt(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("receipt");
    let result = cases::receipt();
    let text = cases::text_of(&result);
    group.bench_function("text", |bencher| bencher.iter(|| ExecutionReceipt::from_result(black_box(&result)).is_ok()));
    group.bench_function("via_value", |bencher| {
        bencher.iter(|| {
            let value: Value = serde_json::from_str(black_box(&text)).expect("JSON");
            ExecutionReceipt::from_value(&value).is_ok()
        });
    });
    group.bench_function("parse_map", |bencher| {
        bencher.iter(|| serde_json::from_str::<JsonObject>(black_box(&text)).is_ok());
    });
    group.bench_function("memcpy", |bencher| bencher.iter(|| black_box(&text).as_bytes().to_vec()));
    group.bench_function("memchr", |bencher| {
        // What isn't in it, so that all of it is searched.
        bencher.iter(|| memchr::memchr(b'\0', black_box(text.as_bytes())));
    });
    let mut structured = result.clone();
    structured.structured_content = serde_json::from_str(&text).ok();
    structured.content.clear();
    group.bench_function("structured", |bencher| {
        bencher.iter(|| ExecutionReceipt::from_result(black_box(&structured)).is_ok());
    });
    group.bench_function("structured_clone", |bencher| {
        bencher.iter(|| black_box(&structured).structured_content.clone());
    });
    let text = cases::large_receipt(cases::TEXT_LIMIT);
    let large = cases::text_result(text.clone());
    assert!(ExecutionReceipt::from_result(&large).is_ok());
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("mebibyte", |bencher| {
        bencher.iter(|| ExecutionReceipt::from_result(black_box(&large)).is_ok());
    });
    group.bench_function("mebibyte_memcpy", |bencher| bencher.iter(|| black_box(&text).as_bytes().to_vec()));
    group.bench_function("mebibyte_parse_map", |bencher| {
        bencher.iter(|| serde_json::from_str::<JsonObject>(black_box(&text)).is_ok());
    });
    group.finish();
}

fn denial(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("denial");
    let result = cases::denial();
    let text = cases::text_of(&result);
    group.bench_function("text", |bencher| bencher.iter(|| ExecutionBlocked::from_result(black_box(&result)).is_ok()));
    group.bench_function("via_value", |bencher| {
        bencher.iter(|| {
            let value: Value = serde_json::from_str(black_box(&text)).expect("JSON");
            ExecutionBlocked::from_value(&value).is_ok()
        });
    });
    group.bench_function("parse_map", |bencher| {
        bencher.iter(|| serde_json::from_str::<JsonObject>(black_box(&text)).is_ok());
    });
    let prefix = cases::prose(1 << 16);
    group.throughput(Throughput::Bytes(prefix.len() as u64));
    let prose = cases::text_result(prefix.clone());
    group.bench_function("no_braces", |bencher| {
        bencher.iter(|| ExecutionBlocked::from_result(black_box(&prose)).is_ok());
    });
    let prefixed = cases::text_result(prefix.clone() + &text);
    group.bench_function("long_prefix", |bencher| {
        bencher.iter(|| ExecutionBlocked::from_result(black_box(&prefixed)).is_ok());
    });
    group.bench_function("memchr", |bencher| {
        bencher.iter(|| memchr::memchr(b'{', black_box(prefix.as_bytes())));
    });
    for (shape, piece) in cases::HOSTILE {
        for size in HOSTILE_SIZES {
            let hostile = cases::text_result(cases::repeated(piece, size));
            group.throughput(Throughput::Bytes(size as u64));
            group.bench_function(BenchmarkId::new(format!("hostile/{shape}"), size), |bencher| {
                bencher.iter(|| ExecutionBlocked::from_result(black_box(&hostile)).is_ok());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, minima, receipt, denial);
criterion_main!(benches);
