//! The inhabitants that break tower's contract: around any service, and right in all that they say.

use std::task::{Context, Poll};

use tower::Service;
use tower_algenta::ToolRequest;

/// Moves a service into its future, as a boxed one has to: but the clone, which nobody has polled.
#[derive(Clone)]
pub(super) struct CallsAClone<S>(pub(super) S);

impl<S: Service<ToolRequest> + Clone> Service<ToolRequest> for CallsAClone<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: ToolRequest) -> S::Future {
        self.0.clone().call(request)
    }
}

/// Has no reason of its own to wait.
#[derive(Clone)]
pub(super) struct AlwaysReady<S>(pub(super) S);

impl<S: Service<ToolRequest>> Service<ToolRequest> for AlwaysReady<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ToolRequest) -> S::Future {
        self.0.call(request)
    }
}

/// Hopes for better times.
#[derive(Clone)]
pub(super) struct WaitsOutErrors<S>(pub(super) S);

impl<S: Service<ToolRequest>> Service<ToolRequest> for WaitsOutErrors<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        match self.0.poll_ready(cx) {
            Poll::Ready(Err(_)) => Poll::Pending,
            ready => ready,
        }
    }

    fn call(&mut self, request: ToolRequest) -> S::Future {
        self.0.call(request)
    }
}
