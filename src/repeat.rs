//! Applies layers that may send a request twice, to all requests but executions.
//!
//! Retrying, hedging, caching and coalescing all break the promise that a call of `execute_decision` reaches the engine
//! at most once and is answered by the engine. So those layers are put beside the path of executions:
//! [`RepeatLayer`] takes a layer over [`RepeatableRequest`]s, a type that an execution cannot be made into, and sends
//! everything else straight to the inner service.
//!
//! # Example
//!
//! tower's `Hedge` sends a slow request a second time. Which ones is up to its policy, which never sees an execution:
//!
//! ```
//! use std::time::Duration;
//! use rmcp::{model::CallToolResult, object};
//! use tower::{Layer as _, ServiceBuilder, ServiceExt as _, buffer::BufferLayer, hedge::{Hedge, Policy}, layer::layer_fn, service_fn};
//! use tower_algenta::{BoxError, RepeatLayer, RepeatableRequest, ToolRequest, ToolResponse};
//!
//! #[derive(Clone)]
//! struct Readers;
//!
//! impl Policy<RepeatableRequest> for Readers {
//!     fn clone_request(&self, request: &RepeatableRequest) -> Option<RepeatableRequest> {
//!         matches!(request.tool(), None | Some("get_contract" | "query_data")).then(|| request.clone())
//!     }
//!
//!     fn can_retry(&self, _: &RepeatableRequest) -> bool {
//!         true
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # let engine = service_fn(|_: ToolRequest| async {
//! #     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! # });
//! // The 95th percentile of the last minute, once there are 100 answers.
//! let hedge = layer_fn(|inner| Hedge::new(inner, Readers, 100, 0.95, Duration::from_secs(60)));
//! let service = ServiceBuilder::new().layer(RepeatLayer::new((BufferLayer::new(64), hedge))).service(engine);
//!
//! service.oneshot(ToolRequest::call("query_data", object!({"metric": "churn"}))).await.unwrap();
//! # }
//! ```
//!
//! For tower's `Retry` there is a policy here, `RetryPolicy` (feature `retry`):
//! `RepeatLayer::new(RetryLayer::new(RetryPolicy::new()))`.
//!
//! A cache, and what answers several callers at once with one answer, goes in the same place:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! # use std::sync::atomic::{AtomicUsize, Ordering};
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, layer::layer_fn, service_fn};
//! use tower_algenta::{BoxError, RepeatLayer, RepeatableRequest, ToolRequest, ToolResponse, repeat::Repeatable};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # static ASKED: AtomicUsize = AtomicUsize::new(0);
//! # let engine = tower::util::BoxCloneService::new(service_fn(|_: ToolRequest| async {
//! #     ASKED.fetch_add(1, Ordering::Relaxed);
//! #     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! # }));
//! let contract = Arc::new(Mutex::new(None::<ToolResponse>));
//! let cache = layer_fn(|engine: Repeatable<_>| {
//!     # fn is<S: tower::Service<ToolRequest, Response = ToolResponse, Error = BoxError> + Clone>(_: &Repeatable<S>) {}
//!     # is(&engine);
//!     let contract = Arc::clone(&contract);
//!     service_fn(move |request: RepeatableRequest| {
//!         let (engine, contract) = (engine.clone(), Arc::clone(&contract));
//!         async move {
//!             if request.tool() != Some("get_contract") {
//!                 return engine.oneshot(request).await;
//!             }
//!             let kept = contract.lock().unwrap().clone();
//!             if let Some(answer) = kept {
//!                 return Ok(answer);
//!             }
//!             let answer: ToolResponse = engine.oneshot(request).await?;
//!             *contract.lock().unwrap() = Some(answer.clone());
//!             Ok::<_, BoxError>(answer)
//!         }
//!     })
//! });
//! let service = ServiceBuilder::new().layer(RepeatLayer::new(cache)).service(engine);
//!
//! service.clone().oneshot(ToolRequest::call("get_contract", object!({}))).await?;
//! service.oneshot(ToolRequest::call("get_contract", object!({}))).await?; // from memory
//! # assert_eq!(ASKED.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! ```
//!
//! **What one caller was answered may not be another's to see.** Where callers have tokens of their own, the key of a
//! cache has to have the caller in it, from the request's [extensions](RepeatableRequest::extensions).
//!
//! # Where it stands
//!
//! Under the governing layers, so that what is repeated has been governed, and above what chooses between engines. It
//! needs an inner service that can be cloned, since both paths end there, and a layer whose service can: around one that
//! can't, put tower's `Buffer`. It is ready when the inner service is; what the layer waits for, its future waits for.
//!
//! Of two layers that repeat, `Hedge` belongs outside `Retry`: if one of a hedge's two copies was not sent, the other
//! may run, and a retry outside would not know.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;
use rmcp::model::Extensions;
use tower::util::Oneshot;
use tower_layer::Layer;
use tower_service::Service;

use crate::{ToolNames, ToolRequest, json, request};

/// A request that is no execution: what a layer may send more than once, or not at all.
///
/// Only [`Repeat`] makes one. It is a list, or a call of a tool whose name is well formed, is one of the upstream's, and
/// is neither `execute_decision` nor a look-alike. Whether a tool may *run* twice is for the layer to know: `log_decision`
/// may not.
///
/// ```compile_fail,E0423
/// # use tower_algenta::{RepeatableRequest, ToolRequest};
/// let execution = ToolRequest::call("execute_decision", rmcp::object!({}));
/// let request = RepeatableRequest(execution);
/// ```
#[derive(Clone, Debug)]
pub struct RepeatableRequest(ToolRequest);

impl RepeatableRequest {
    /// Borrows the request.
    #[must_use]
    pub const fn get_ref(&self) -> &ToolRequest {
        &self.0
    }

    /// The wire name of the tool that is called; `None` for a list.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.0.tool()
    }

    /// What travels with the request inside this process.
    #[must_use]
    pub const fn extensions(&self) -> &Extensions {
        self.0.extensions()
    }

    /// What travels with the request inside this process, mutably.
    pub const fn extensions_mut(&mut self) -> &mut Extensions {
        self.0.extensions_mut()
    }
}

fn is_repeatable(request: &ToolRequest, names: &ToolNames) -> bool {
    // A copy is made by recursion, which a value that no parser has seen could drive through the stack.
    if !request::meta_is_within(request, json::DEPTH_LIMIT) {
        return false;
    }
    let ToolRequest::Call(call) = request else { return true };
    let params = &call.params;
    let arguments = params.arguments.iter().flat_map(|arguments| arguments.values());
    let responses = params.input_responses.iter().flat_map(|responses| responses.values());
    arguments.chain(responses).all(|value| json::is_within(value, json::DEPTH_LIMIT))
        && names.vouched(&params.name).is_some()
        && !names.is_execute_decision(&params.name)
}

/// Layer that applies [`Repeat`]: under governance, over a service that can be cloned.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct RepeatLayer<L> {
    layer: L,
    names: ToolNames,
}

impl<L> RepeatLayer<L> {
    /// Applies `layer` to the requests that are no executions.
    pub const fn new(layer: L) -> Self {
        Self { layer, names: ToolNames::bare() }
    }

    /// Sets how the upstream spells the tools' names. No spelling makes an execution repeatable.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }
}

impl<S, L> Layer<S> for RepeatLayer<L>
where
    S: Clone,
    L: Layer<Repeatable<S>>,
{
    type Service = Repeat<S, L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        Repeat { names: self.names.clone(), ..Repeat::new(inner, &self.layer) }
    }
}

/// Middleware that sends executions one way, and everything else through a layer that may repeat it.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct Repeat<S, R> {
    inner: S,
    repeating: R,
    names: ToolNames,
}

impl<S, R> Repeat<S, R> {
    /// Wraps `inner`, and applies `layer` to the requests that are no executions.
    pub fn new<L>(inner: S, layer: &L) -> Self
    where
        S: Clone,
        L: Layer<Repeatable<S>, Service = R>,
    {
        let repeating = layer.layer(Repeatable { inner: inner.clone() });
        Self { inner, repeating, names: ToolNames::bare() }
    }

    inner_service_accessors!();
}

impl<S, R> Service<ToolRequest> for Repeat<S, R>
where
    S: Service<ToolRequest> + Clone,
    S::Error: Into<R::Error>,
    R: Service<RepeatableRequest, Response = S::Response> + Clone,
{
    type Response = S::Response;
    type Error = R::Error;
    type Future = ResponseFuture<S::Future, Oneshot<R, RepeatableRequest>>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), R::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        if !is_repeatable(&request, &self.names) {
            return ResponseFuture { path: Path::Straight(self.inner.call(request)) };
        }
        // The other path ends in the same service. Whoever kept a place there while waiting for a second one could wait
        // for ever, so the place goes back.
        let fresh = self.inner.clone();
        drop(std::mem::replace(&mut self.inner, fresh));
        ResponseFuture { path: Path::Repeating(Oneshot::new(self.repeating.clone(), RepeatableRequest(request))) }
    }
}

/// The inner service, as the layer inside a [`RepeatLayer`] sees it.
#[derive(Clone, Debug)]
pub struct Repeatable<S> {
    inner: S,
}

impl<S> Repeatable<S> {
    inner_service_accessors!();
}

impl<S: Service<ToolRequest>> Service<RepeatableRequest> for Repeatable<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: RepeatableRequest) -> S::Future {
        self.inner.call(request.0)
    }
}

/// Response future of [`Repeat`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F, R> {
    #[pin]
    path: Path<F, R>,
}

#[pin_project(project = Projected)]
#[derive(Debug)]
enum Path<F, R> {
    Straight(#[pin] F),
    Repeating(#[pin] R),
}

impl<F, R, T, E, U> Future for ResponseFuture<F, R>
where
    F: Future<Output = Result<T, E>>,
    R: Future<Output = Result<T, U>>,
    E: Into<U>,
{
    type Output = Result<T, U>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().path.project() {
            Projected::Straight(future) => future.poll(cx).map_err(Into::into),
            Projected::Repeating(future) => future.poll(cx),
        }
    }
}
