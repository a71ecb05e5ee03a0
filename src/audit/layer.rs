//! The layer, and what watches over one request.

use std::{
    error, fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use pin_project::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{AuditRecord, AuditSink, AuditUnavailable, StrippedSlot, outcome::Asked};
use crate::{Error, ToolNames, ToolRequest, ToolResponse, refusal::Kind, request};

/// What happens to executions while the sink [is failing](AuditSink::is_failing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnSinkFailure {
    /// They are refused with [`Error::NotSent`], whose source is [`AuditUnavailable`]. The refusal is recorded like any
    /// other, so the first record that is written ends this.
    #[default]
    RefuseExecutions,
    /// They go on, unrecorded.
    Continue,
}

/// Layer that applies [`Audit`].
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct AuditLayer<K> {
    sink: K,
    names: ToolNames,
    on_sink_failure: OnSinkFailure,
}

impl<K> AuditLayer<K> {
    /// Records every request in `sink`.
    pub const fn new(sink: K) -> Self {
        Self { sink, names: ToolNames::bare(), on_sink_failure: OnSinkFailure::RefuseExecutions }
    }

    /// Sets how the stack below spells the tools' names: [`ToolNames::flat`] around a
    /// [`FlatNames`](crate::FlatNames).
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }

    /// Sets what happens to executions while the sink loses records; they are refused unless set.
    pub const fn on_sink_failure(mut self, on_sink_failure: OnSinkFailure) -> Self {
        self.on_sink_failure = on_sink_failure;
        self
    }
}

impl<S, K: Clone> Layer<S> for AuditLayer<K> {
    type Service = Audit<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { sink, names, on_sink_failure } = self.clone();
        Audit { inner, sink, names, on_sink_failure }
    }
}

/// Middleware that keeps one record of every request.
///
/// See the [module docs](super) for an example.
#[derive(Clone, Debug)]
pub struct Audit<S, K> {
    inner: S,
    sink: K,
    names: ToolNames,
    on_sink_failure: OnSinkFailure,
}

impl<S, K> Audit<S, K> {
    /// Wraps `inner` and records in `sink`.
    pub const fn new(inner: S, sink: K) -> Self {
        Self { inner, sink, names: ToolNames::bare(), on_sink_failure: OnSinkFailure::RefuseExecutions }
    }

    /// The layer that applies this middleware.
    pub const fn layer(sink: K) -> AuditLayer<K> {
        AuditLayer::new(sink)
    }

    inner_service_accessors!();
}

impl<S, K> Service<ToolRequest> for Audit<S, K>
where
    S: Service<ToolRequest, Response = ToolResponse>,
    S::Error: From<Error> + AsRef<dyn error::Error + Send + Sync>,
    K: AuditSink + Clone,
{
    type Response = ToolResponse;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Error, K>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: ToolRequest) -> Self::Future {
        // Before the inner service is called: it may panic.
        let mut watched = Box::new(Watched::begin(&mut request, &self.names, self.sink.clone()));
        if self.on_sink_failure == OnSinkFailure::RefuseExecutions
            && watched.record.asked() == Asked::Execution
            && self.sink.is_failing()
        {
            request::discard(request);
            let refusal = Err(S::Error::from(Error::NotSent(Box::new(AuditUnavailable(())))));
            watched.end(&refusal);
            return ResponseFuture { kind: Kind::Rejected(refusal.err()), watched: None };
        }
        ResponseFuture { kind: Kind::Inner(self.inner.call(request)), watched: Some(watched) }
    }
}

/// A request that is under way. It is recorded when this is dropped, so exactly once, however it ends.
struct Watched<K: AuditSink> {
    record: AuditRecord,
    since: Instant,
    stripped: StrippedSlot,
    sink: K,
}

impl<K: AuditSink> Watched<K> {
    fn begin(request: &mut ToolRequest, names: &ToolNames, sink: K) -> Self {
        let since = Instant::now();
        let record = AuditRecord::begin(request, names);
        let stripped = match request {
            ToolRequest::List(_) => StrippedSlot::default(),
            // An audit further out may have put one there.
            ToolRequest::Call(call) => call.extensions.get_or_insert_with(StrippedSlot::default).clone(),
        };
        Self { record, since, stripped, sink }
    }

    fn end<E>(&mut self, answer: &Result<ToolResponse, E>)
    where
        E: AsRef<dyn error::Error + Send + Sync>,
    {
        self.record.end(self.record.asked().ended(answer));
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

/// Response future of [`Audit`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F, E, K: AuditSink> {
    // Dropped before what watches it, which then knows all that was stripped.
    #[pin]
    kind: Kind<F, E>,
    watched: Option<Box<Watched<K>>>,
}

impl<F, E, K> Future for ResponseFuture<F, E, K>
where
    F: Future<Output = Result<ToolResponse, E>>,
    E: AsRef<dyn error::Error + Send + Sync>,
    K: AuditSink,
{
    type Output = Result<ToolResponse, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = this.kind.poll(cx);
        if let Poll::Ready(answer) = &answer
            && let Some(mut watched) = this.watched.take()
        {
            watched.end(answer);
        }
        answer
    }
}
