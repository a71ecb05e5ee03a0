//! Groups `receipt` and `denial`: what an answer means, beside parsing the same bytes.
//!
//! `cargo bench --bench outcomes` measures, `cargo bench -- --test` runs each once.

mod cases;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rmcp::model::JsonObject;
use serde_json::Value;
use tower_algenta::{ExecutionBlocked, ExecutionReceipt};

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
    let prefix = "x ".repeat(1 << 15);
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
        for size in [1 << 14, 1 << 16] {
            let hostile = cases::text_result(cases::repeated(piece, size));
            group.throughput(Throughput::Bytes(size as u64));
            group.bench_function(BenchmarkId::new(format!("hostile/{shape}"), size), |bencher| {
                bencher.iter(|| ExecutionBlocked::from_result(black_box(&hostile)).is_ok());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, receipt, denial);
criterion_main!(benches);
