//! Which call the engine's progress notifications belong to.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use rmcp::{
    RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
        ClientRequest, CustomResult, MetaObject, ProgressNotificationParam, ProgressToken, RequestId, ServerResult,
        TaskAckResult,
    },
    service::{Peer, PeerRequestOptions},
};

use serde_json::Value;

use crate::ProgressSink;

/// Reports that are kept for a call whose token isn't known yet.
const EARLY: usize = 64;

/// The calls whose progress somebody waits for.
#[derive(Debug, Default)]
pub(super) struct ProgressTable {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    sinks: HashMap<ProgressToken, ProgressSink>,
    // rmcp tells a request's token when it has been sent, so the first reports can come before that.
    early: VecDeque<ProgressNotificationParam>,
    // Calls that have been sent, or are being sent, and have no sink yet.
    sending: usize,
}

impl ProgressTable {
    /// Takes a report of the engine's.
    pub(super) fn report(&self, progress: ProgressNotificationParam) {
        let mut entries = self.entries();
        if let Some(sink) = entries.sinks.get(&progress.progress_token) {
            sink.report(progress);
        } else if entries.sending > 0 {
            if entries.early.len() == EARLY {
                entries.early.pop_front();
            }
            entries.early.push_back(progress);
        }
    }

    /// Calls a tool once, like rmcp's `call_tool_once`, and has its progress reported to `sink`.
    pub(super) async fn call_tool_once(
        &self,
        peer: &Peer<RoleClient>,
        params: CallToolRequestParams,
        sink: ProgressSink,
    ) -> Result<CallToolResponse, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sending = Sending::begin(self);
        let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let mut abandoned = Abandoned { peer, id: Some(handle.id.clone()) };
        let _registered = sending.register(handle.progress_token.clone(), sink);
        let result = handle.await_response().await;
        abandoned.id = None;
        match result? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            other => without_content(other).map(CallToolResponse::Complete).ok_or(ServiceError::UnexpectedResponse),
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result that left out its content, if that is what rmcp's decoding took for another one. rmcp's own calls read it
/// like this, and who watches a call must not change what its answer means.
fn without_content(result: ServerResult) -> Option<CallToolResult> {
    let (result_type, meta) = match result {
        ServerResult::EmptyResult(_) => (None, None),
        ServerResult::TaskAckResult(TaskAckResult { result_type, meta, .. }) => (Some(result_type), meta),
        ServerResult::CustomResult(CustomResult(Value::Object(mut members))) if members.len() == 1 => {
            match members.remove("_meta")? {
                Value::Object(meta) => (None, Some(MetaObject(meta))),
                _ => return None,
            }
        }
        _ => return None,
    };
    let mut read = CallToolResult::default();
    (read.result_type, read.meta) = (result_type, meta);
    Some(read)
}

/// A call on its way, whose token isn't known yet.
struct Sending<'a>(&'a ProgressTable);

impl<'a> Sending<'a> {
    fn begin(table: &'a ProgressTable) -> Self {
        table.entries().sending += 1;
        Self(table)
    }

    fn register(self, token: ProgressToken, sink: ProgressSink) -> Registered<'a> {
        let mut entries = self.0.entries();
        let (own, others): (VecDeque<_>, _) =
            entries.early.drain(..).partition(|progress| progress.progress_token == token);
        entries.early = others;
        for progress in own {
            sink.report(progress);
        }
        entries.sinks.insert(token.clone(), sink);
        drop(entries);
        Registered { table: self.0, token }
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let mut entries = self.0.entries();
        entries.sending -= 1;
        if entries.sending == 0 {
            entries.early.clear();
        }
    }
}

/// A call whose progress goes to a sink for as long as this lives.
struct Registered<'a> {
    table: &'a ProgressTable,
    token: ProgressToken,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.table.entries().sinks.remove(&self.token);
    }
}

/// Tells the engine, when it is dropped, that nobody waits for the answer any more.
struct Abandoned<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let cancelled = CancelledNotificationParam::new(Some(id), Some("abandoned by the caller".to_owned()));
            // The connection may be gone, and then there is nobody to tell.
            let _ = peer.notify_cancelled(cancelled).await;
        });
    }
}
