//! What watches over one request.

use std::{error, fmt, time::Instant};

use super::{
    AuditRecord, AuditSink, StrippedSlot,
    outcome::{Asked, Ended},
};
use crate::{ToolNames, ToolRequest, ToolResponse};

/// A request that is under way. It is recorded when this is dropped, so exactly once, however it ends.
pub(super) struct Watched<K: AuditSink> {
    record: AuditRecord,
    since: Instant,
    stripped: StrippedSlot,
    sink: K,
}

impl<K: AuditSink> Watched<K> {
    /// Watches over a request whose hidden fields are told to `stripped`.
    pub(super) fn new(record: AuditRecord, stripped: StrippedSlot, sink: K) -> Self {
        Self { record, since: Instant::now(), stripped, sink }
    }

    pub(super) fn request(request: &mut ToolRequest, names: &ToolNames, sink: K) -> Self {
        let record = AuditRecord::begin(request, names);
        let stripped = match request {
            ToolRequest::List(_) => StrippedSlot::default(),
            // An audit further out may have put one there.
            ToolRequest::Call(call) => call.extensions.get_or_insert_with(StrippedSlot::default).clone(),
        };
        Self::new(record, stripped, sink)
    }

    pub(super) const fn asked(&self) -> Asked {
        self.record.asked()
    }

    pub(super) const fn record(&mut self) -> &mut AuditRecord {
        &mut self.record
    }

    pub(super) fn answered<E>(&mut self, answer: &Result<ToolResponse, E>)
    where
        E: AsRef<dyn error::Error + Send + Sync>,
    {
        self.end(self.asked().ended(answer));
    }

    pub(super) fn end(&mut self, ended: Ended<'_>) {
        self.record.end(ended);
    }
}

impl<K: AuditSink> Drop for Watched<K> {
    fn drop(&mut self) {
        self.record.close(self.since.elapsed(), &self.stripped.all());
        self.sink.record(&self.record);
    }
}

impl<K: AuditSink> fmt::Debug for Watched<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("record", &self.record).finish_non_exhaustive()
    }
}
