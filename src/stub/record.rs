//! What arrived, and what ran.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hyper::HeaderMap;
use rmcp::model::JsonObject;

/// Bytes of one body that are kept.
const KEPT_BODY: usize = 1024 * 1024;

/// A `tools/call` that reached the engine, whatever became of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// The tool's name on the wire, with its prefix.
    pub name: String,
    /// The arguments as they came; `None` if the call had none.
    pub arguments: Option<JsonObject>,
    /// `_meta` as it came, the protocol's own keys included; empty if the call had none.
    pub meta: JsonObject,
}

/// A decision that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Execution {
    /// Which decision.
    pub decision_id: String,
    /// Where it would have been delivered.
    pub webhook_url: String,
    /// Whether the call lifted the idempotency gate, needed or not.
    pub forced: bool,
    /// Whether the call lifted the safety gates, needed or not.
    pub safety_overridden: bool,
}

/// An HTTP POST that reached the engine with a good token: what was on the wire before anything decoded it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRequest {
    /// The HTTP headers, secrets included.
    pub headers: HeaderMap,
    /// The body as far as it came, and at most its first mebibyte.
    pub body: Vec<u8>,
}

impl fmt::Debug for RawRequest {
    /// Shows the body, not the headers, which may hold a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRequest").field("body", &String::from_utf8_lossy(&self.body)).finish_non_exhaustive()
    }
}

/// Everything that the engine remembers of its callers.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Entries>);

#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) received: Vec<Received>,
    pub(super) raw: Vec<RawRequest>,
    pub(super) executions: Vec<Execution>,
    pub(super) lists: usize,
    pub(super) cancelled: usize,
}

impl Record {
    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        // No code panics while it holds the lock; were it so, what was recorded up to there would still be true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an entry for a POST; its body is handed in by [`Record::append`] as it arrives.
    pub(super) fn open(&self, headers: HeaderMap) -> usize {
        let raw = &mut self.entries().raw;
        raw.push(RawRequest { headers, body: Vec::new() });
        raw.len() - 1
    }

    pub(super) fn append(&self, entry: usize, data: &[u8]) {
        if let Some(request) = self.entries().raw.get_mut(entry) {
            let room = KEPT_BODY - request.body.len();
            request.body.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
}
