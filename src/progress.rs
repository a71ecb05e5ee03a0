//! How far a call has come, from the service that makes it to whoever asked.

use rmcp::model::ProgressNotificationParam;
use tokio::sync::mpsc;

/// Reports that wait to be passed on. More are dropped: the next one says more.
#[cfg(feature = "server")]
const WAITING: usize = 16;

/// Takes the reports on the progress of one call.
///
/// A `ToolServer` (feature `server`) puts one into the extensions of a call whose caller wants to know. A service of
/// yours reports to it; [`EngineClient`](crate::EngineClient) reports what the engine tells.
///
/// ```
/// # use rmcp::model::{NumberOrString, ProgressNotificationParam, ProgressToken};
/// # use tower_algenta::{ProgressSink, ToolRequest};
/// fn halfway(request: &ToolRequest) {
///     if let Some(progress) = request.extensions().get::<ProgressSink>() {
///         // The token is replaced by the caller's.
///         let token = ProgressToken(NumberOrString::Number(0));
///         progress.report(ProgressNotificationParam::new(token, 0.5));
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ProgressSink {
    reports: mpsc::Sender<ProgressNotificationParam>,
}

impl ProgressSink {
    #[cfg(feature = "server")]
    pub(crate) fn new() -> (Self, mpsc::Receiver<ProgressNotificationParam>) {
        let (reports, receiver) = mpsc::channel(WAITING);
        (Self { reports }, receiver)
    }

    /// Reports progress. Never waits: a report that nobody is ready for is dropped.
    pub fn report(&self, progress: ProgressNotificationParam) {
        // Full, or the call has ended.
        let _ = self.reports.try_send(progress);
    }
}
