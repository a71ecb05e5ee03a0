//! The audit: one record for each request, however it ends, and nothing in it that isn't the record's to keep.

mod ends;
mod given_up;
mod killed;
mod lines;
mod metrics;
mod repeats;
mod silence;

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tower_algenta::{AuditRecord, AuditSink};

const HOOK: &str = "https://hooks.example/algenta";

/// A sink that keeps what it gets.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<AuditRecord>>>);

impl AuditSink for Kept {
    fn record(&self, record: &AuditRecord) {
        self.0.lock().unwrap().push(record.clone());
    }
}

impl Kept {
    pub(crate) fn take(&self) -> Vec<AuditRecord> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// The one record since the last look, without what no two runs have alike.
    #[track_caller]
    fn one(&self) -> Value {
        match &*self.take() {
            [record] => plain(&serde_json::to_string(record).unwrap()),
            other => panic!("{} records: {other:?}", other.len()),
        }
    }
}

/// A line of a log, without its times, which have to be there.
#[track_caller]
fn plain(line: &str) -> Value {
    let mut record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    let members = record.as_object_mut().unwrap();
    let seconds = members.remove("mcp.client.operation.duration").and_then(|seconds| seconds.as_f64());
    assert!(seconds.is_some_and(|seconds| (0.0..3600.0).contains(&seconds)), "{line}");
    let timestamp = members.remove("timestamp").unwrap();
    assert!(timestamp.as_str().is_some_and(|text| text.len() == 24 && text.ends_with('Z')), "{line}");
    record
}
