//! Records as metrics.

use std::borrow::Cow;

use metrics::{Label, Unit, counter, describe_counter, describe_histogram, histogram};

use super::{AuditRecord, AuditSink, outcome::OTHER};

const DURATION: &str = "mcp.client.operation.duration";
const REQUESTS: &str = "algenta.requests";
const STRIPPED: &str = "algenta.stripped_fields";

/// Counts and times requests through the facade of the [`metrics`] crate.
///
/// | metric | kind | labels |
/// |---|---|---|
/// | `mcp.client.operation.duration` | histogram, seconds | `mcp.method.name`, `gen_ai.operation.name`, `gen_ai.tool.name`, `error.type` |
/// | `algenta.requests` | counter | `mcp.method.name`, `gen_ai.tool.name`, `algenta.outcome`, `algenta.gate` |
/// | `algenta.stripped_fields` | counter | `gen_ai.tool.name` |
///
/// Labels that don't apply are left out. A model chooses the names that it calls, so a tool outside the contract is
/// `_OTHER`, like an engine's error code that JSON-RPC does not reserve, and the number of series is bounded.
/// OpenTelemetry advises these bounds for the histogram, which are the recorder's to set: 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
/// 1, 2, 5, 10, 30, 60, 120, 300.
///
/// The facade, and not OpenTelemetry's API: that one is lighter by one crate, but since both were at 0.21 it has had
/// twelve incompatible versions and the facade three. A library and a program with different versions of either don't
/// fail to meet at compile time: the metrics are just not there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics;

impl Metrics {
    /// Describes the metrics to the recorder, which has to be installed before.
    #[must_use]
    pub fn new() -> Self {
        describe_histogram!(DURATION, Unit::Seconds, "From a request to its end");
        describe_counter!(REQUESTS, Unit::Count, "Requests by how they ended");
        describe_counter!(STRIPPED, Unit::Count, "Hidden fields that were removed from calls");
        Self
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// The labels that have a value.
fn labels<const N: usize>(all: [(&'static str, Option<Cow<'static, str>>); N]) -> Vec<Label> {
    all.into_iter().filter_map(|(name, value)| Some(Label::new(name, value?))).collect()
}

/// A type of error among a bounded number: an engine may send any code, of which JSON-RPC reserves 769.
fn bounded(code: Option<i32>, error: &str) -> Cow<'static, str> {
    match code {
        Some(code) if !(-32768..=-32000).contains(&code) => OTHER.into(),
        _ => error.to_owned().into(),
    }
}

impl AuditSink for Metrics {
    fn record(&self, record: &AuditRecord) {
        let method = || ("mcp.method.name", Some(record.method().into()));
        let tool = || ("gen_ai.tool.name", record.tool().map(|_| record.contract_tool().unwrap_or(OTHER).into()));
        let operation = ("gen_ai.operation.name", record.operation().map(Cow::from));
        let error = ("error.type", record.error_type().map(|error| bounded(record.status_code(), error)));
        histogram!(DURATION, labels([method(), tool(), operation, error])).record(record.duration());

        let outcome = ("algenta.outcome", Some(record.outcome().as_str().into()));
        let gate = ("algenta.gate", record.gate().map(Cow::from));
        counter!(REQUESTS, labels([method(), tool(), outcome, gate])).increment(1);
        if record.stripped_count() > 0 {
            let count = u64::try_from(record.stripped_count()).unwrap_or(u64::MAX);
            counter!(STRIPPED, labels([tool()])).increment(count);
        }
    }
}
