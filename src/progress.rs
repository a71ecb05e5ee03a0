//! How far a call has come, from the service that makes it to whoever asked.

use rmcp::model::ProgressNotificationParam;
use tokio::sync::mpsc;

/// Takes the reports on the progress of one call.
///
/// It stands in the extensions of a call whose caller wants to know: put one there, or let a `ToolServer` (feature
/// `server`) do it. [`EngineClient`](crate::EngineClient) reports what the engine tells, and a service of yours what it
/// likes:
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
    /// Makes a sink, and the end at which its reports come out. `capacity` of them are kept until somebody reads them,
    /// and one at the least; more are dropped.
    ///
    /// The reports end with the last clone of the sink, which a client drops when the call has ended. Their token is the
    /// connection's to the engine; their messages are the engine's words, not to be shown to a model.
    ///
    /// ```
    /// # use rmcp::{model::{CallToolResult, NumberOrString, ProgressNotificationParam, ProgressToken}, object};
    /// # use tower::{ServiceExt as _, service_fn};
    /// # use tower_algenta::{BoxError, ProgressSink, ToolRequest, ToolResponse};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let client = service_fn(|request: ToolRequest| async move {
    /// #     let token = ProgressToken(NumberOrString::Number(0));
    /// #     let progress = request.extensions().get::<ProgressSink>().unwrap();
    /// #     progress.report(ProgressNotificationParam::new(token, 0.5));
    /// #     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
    /// # });
    /// let (sink, mut reports) = ProgressSink::channel(16);
    /// let mut request = ToolRequest::call("simulate", object!({"scenario": "expand-to-eu"}));
    /// request.extensions_mut().insert(sink);
    ///
    /// let told = async {
    ///     let mut told = Vec::new();
    ///     while let Some(report) = reports.recv().await {
    ///         told.push(report.progress);
    ///     }
    ///     told
    /// };
    /// let (answer, told) = tokio::join!(client.oneshot(request), told);
    /// answer?;
    /// assert_eq!(told, [0.5]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<ProgressNotificationParam>) {
        let (reports, receiver) = mpsc::channel(capacity.max(1));
        (Self { reports }, receiver)
    }

    /// Reports progress. Never waits: a report that nobody is ready for is dropped.
    pub fn report(&self, progress: ProgressNotificationParam) {
        // Full, or the call has ended.
        let _ = self.reports.try_send(progress);
    }
}
