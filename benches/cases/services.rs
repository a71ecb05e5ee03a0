//! The services that a stack is compared with.

use std::{
    cell::RefCell,
    future::{Future, Ready, ready},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
};

use pin_project::pin_project;
use rmcp::model::CallToolResult;
use tower::{
    Layer, Service,
    util::{BoxCloneSyncService, MapFuture},
};
use tower_algenta::{BoxError, HiddenFields, Profile, ToolRequest, ToolResponse};

/// Drives a future that is ready at once.
pub(crate) fn drive<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the engine answers at once"),
    }
}

/// An engine that answers with nothing, at no cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare;

impl Service<ToolRequest> for Bare {
    type Response = ToolResponse;
    type Error = BoxError;
    type Future = Ready<Result<ToolResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        drop(request);
        ready(Ok(CallToolResult::success(Vec::new()).into()))
    }
}

/// An engine with an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine(fn() -> CallToolResult);

impl Engine {
    pub(crate) const fn answering(answer: fn() -> CallToolResult) -> Self {
        Self(answer)
    }
}

impl Service<ToolRequest> for Engine {
    type Response = ToolResponse;
    type Error = BoxError;
    type Future = Ready<Result<ToolResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        drop(request);
        ready(Ok((self.0)().into()))
    }
}

/// An engine whose answers are made before anything is measured, and given away.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared(Rc<RefCell<Vec<ToolResponse>>>);

impl Prepared {
    /// Makes ready for one more request.
    pub(crate) fn add(&self, answer: ToolResponse) {
        self.0.borrow_mut().push(answer);
    }
}

impl Service<ToolRequest> for Prepared {
    type Response = ToolResponse;
    type Error = BoxError;
    type Future = Ready<Result<ToolResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        drop(request);
        ready(self.0.borrow_mut().pop().ok_or_else(|| "no answer is left".into()))
    }
}

/// A layer that passes everything, with a future of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<S>(pub(crate) S);

#[pin_project]
#[derive(Debug)]
pub(crate) struct IdentityFuture<F>(#[pin] F);

impl<F: Future> Future for IdentityFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().0.poll(cx)
    }
}

impl<S: Service<ToolRequest>> Service<ToolRequest> for Identity<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = IdentityFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        IdentityFuture(self.0.call(request))
    }
}

/// Four of them.
pub(crate) const fn identities<S>(inner: S) -> Identity<Identity<Identity<Identity<S>>>> {
    Identity(Identity(Identity(Identity(inner))))
}

/// What someone writes who needs no layers: all rules for a call of a tool without receipts in one service.
#[derive(Clone, Debug)]
pub(crate) struct Fused<S> {
    inner: S,
    profile: Profile,
    fields: HiddenFields,
}

impl<S> Fused<S> {
    pub(crate) const fn new(inner: S, profile: Profile) -> Self {
        Self { inner, profile, fields: HiddenFields::new() }
    }
}

#[pin_project(project = FusedProjected)]
#[derive(Debug)]
pub(crate) enum FusedFuture<F> {
    Inner(#[pin] F),
    Refused,
}

impl<F: Future<Output = Result<ToolResponse, BoxError>>> Future for FusedFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            FusedProjected::Refused => Poll::Ready(Err("refused".into())),
            FusedProjected::Inner(future) => match future.poll(cx) {
                Poll::Ready(Ok(ToolResponse::List(_))) => Poll::Ready(Err("a list".into())),
                other => other,
            },
        }
    }
}

impl<S> Service<ToolRequest> for Fused<S>
where
    S: Service<ToolRequest, Response = ToolResponse, Error = BoxError>,
{
    type Response = ToolResponse;
    type Error = BoxError;
    type Future = FusedFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: ToolRequest) -> Self::Future {
        if let ToolRequest::Call(call) = &mut request {
            let name = &*call.params.name;
            if name == "execute_decision" || !self.profile.has(name) {
                return FusedFuture::Refused;
            }
            let arguments = call.params.arguments.as_mut();
            if arguments.is_some_and(|arguments| self.fields.scrub_arguments(name, arguments).is_err()) {
                return FusedFuture::Refused;
            }
        }
        FusedFuture::Inner(self.inner.call(request))
    }
}

type Answer = Result<ToolResponse, BoxError>;
type Boxed = Pin<Box<dyn Future<Output = Answer> + Send>>;

fn boxed<F: Future<Output = Answer> + Send + 'static>(future: F) -> Boxed {
    Box::pin(future)
}

type Boxing<S> = MapFuture<S, fn(<S as Service<ToolRequest>>::Future) -> Boxed>;

/// `layer` around `inner`, with its future in a box.
fn box_future<L, S>(layer: &L, inner: S) -> Boxing<L::Service>
where
    L: Layer<S, Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send + 'static>>,
{
    MapFuture::new(layer.layer(inner), boxed)
}

/// The four layers as most middleware is written: each boxes its future.
pub(crate) fn boxed_futures(
    profile: Profile,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + Clone {
    use tower_algenta::{ArgumentScrubLayer, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer};
    let stack = box_future(&ArgumentScrubLayer::new(), Bare);
    let stack = box_future(&ReceiptMappingLayer::new(), stack);
    let stack = box_future(&ProfileFilterLayer::new(profile), stack);
    box_future(&SchemaScrubLayer::new(), stack)
}

/// The four layers, each behind a trait object.
pub(crate) fn boxed_services(profile: Profile) -> BoxCloneSyncService<ToolRequest, ToolResponse, BoxError> {
    use tower_algenta::{ArgumentScrubLayer, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer};
    let stack = BoxCloneSyncService::new(ArgumentScrubLayer::new().layer(Bare));
    let stack = BoxCloneSyncService::new(ReceiptMappingLayer::new().layer(stack));
    let stack = BoxCloneSyncService::new(ProfileFilterLayer::new(profile).layer(stack));
    BoxCloneSyncService::new(SchemaScrubLayer::new().layer(stack))
}
