//! The records of what an operator repeats.

use std::sync::Arc;

use super::{
    AuditRecord, AuditSink, AuditUnavailable, Caller, OnSinkFailure, StrippedSlot, outcome::Asked, watched::Watched,
};
use crate::{Denial, Error, ExecutionReceipt, denial::Overrides};

/// Records the repeats of an operator.
#[derive(Clone)]
pub(crate) struct Repeats {
    sink: Arc<dyn AuditSink>,
    on_sink_failure: OnSinkFailure,
}

impl Repeats {
    pub(super) fn new(sink: Arc<dyn AuditSink>, on_sink_failure: OnSinkFailure) -> Self {
        Self { sink, on_sink_failure }
    }

    /// A repeat that sets what is in `granted`.
    pub(crate) fn begin(&self, denial: &Denial, granted: Overrides, caller: Option<Caller>) -> Repeated {
        let record = AuditRecord::repeat(denial, granted, caller);
        Repeated(Watched::new(record, StrippedSlot::default(), Arc::clone(&self.sink)))
    }

    /// An error if the record would be lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.on_sink_failure.refuses(&self.sink) { Err(AuditUnavailable::error()) } else { Ok(()) }
    }
}

/// A repeat that is under way. It is recorded when this is dropped.
pub(crate) struct Repeated(Watched<Arc<dyn AuditSink>>);

impl Repeated {
    /// From now on it may run.
    pub(crate) const fn sent(&mut self) {
        self.0.record().sent();
    }

    pub(crate) fn end(mut self, outcome: &Result<ExecutionReceipt, Error>) {
        self.0.end(Asked::executed(outcome));
    }
}
