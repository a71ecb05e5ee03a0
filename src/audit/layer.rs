//! The layer.

use std::{
    error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{AuditSink, AuditUnavailable, Repeats, outcome::Asked, watched::Watched};
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

impl OnSinkFailure {
    /// Whether an execution is refused whose record would go to `sink`.
    pub(super) fn refuses(self, sink: &impl AuditSink) -> bool {
        match self {
            Self::RefuseExecutions => sink.is_failing(),
            Self::Continue => false,
        }
    }
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

impl<K: AuditSink + 'static> AuditLayer<K> {
    /// What records an operator's repeats where this layer records.
    pub(crate) fn into_repeats(self) -> Repeats {
        Repeats::new(Arc::new(self.sink), self.on_sink_failure)
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
        let mut watched = Box::new(Watched::request(&mut request, &self.names, self.sink.clone()));
        if watched.asked() == Asked::Execution && self.on_sink_failure.refuses(&self.sink) {
            request::discard(request);
            let refusal = Err(S::Error::from(AuditUnavailable::error()));
            watched.answered(&refusal);
            return ResponseFuture { kind: Kind::Rejected(refusal.err()), watched: None };
        }
        ResponseFuture { kind: Kind::Inner(self.inner.call(request)), watched: Some(watched) }
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
            watched.answered(answer);
        }
        answer
    }
}
