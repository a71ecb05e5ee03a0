//! Ends `execute_decision` in a typed receipt, a typed denial or a typed failure.
//!
//! It touches calls of `execute_decision` alone. The results and errors of all other tools pass as they are: no other
//! tool has a receipt or a denial.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::{CallToolResult, ContentBlock}, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{BoxError, Error, Gate, ReceiptMappingLayer, ToolRequest, ToolResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // An older server: it calls the denial a success.
//! let engine = service_fn(|_: ToolRequest| async {
//!     let denial = r#"{"error": {"code": "execution_blocked_idempotency", "gate": "idempotency"}}"#;
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![ContentBlock::text(denial)])))
//! });
//! let service = ServiceBuilder::new().layer(ReceiptMappingLayer::new()).service(engine);
//!
//! let arguments = object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"});
//! let error = service.oneshot(ToolRequest::call("execute_decision", arguments)).await.unwrap_err();
//! match Error::from(error) {
//!     Error::Denied(denial) => assert_eq!(*denial.gate(), Gate::Idempotency),
//!     other => panic!("{other}"),
//! }
//! # }
//! ```
//!
//! # What it makes of an answer
//!
//! In this order:
//!
//! 1. A denial, in any recorded shape and whether or not the result says that it is an error: [`Error::Denied`]. Two
//!    different ones, one beside a receipt, or a conflict without one: [`Error::ExecutionFailed`].
//! 2. Another error. If it is an envelope with a 4xx status that proves that nothing ran, it passes on as the tool error
//!    it is. Anything else may have run: [`Error::OutcomeUnknown`]. An `error` that is null or false says that there is
//!    none.
//! 3. A complete receipt of this very call, on which every copy in the result agrees: the result passes, and the
//!    outcome has the [`ExecutionReceipt`](crate::ExecutionReceipt).
//! 4. Anything else: [`Error::ExecutionFailed`].
//!
//! An error of the inner service: a refusal by a layer below and [`Error::NotSent`] pass; a JSON-RPC error that carries a
//! denial is one; for the rest nobody knows whether it ran, so it is [`Error::OutcomeUnknown`]. There is at most one
//! inner call.
//!
//! # What it refuses
//!
//! Before the call: a `decision_id` that isn't one path segment, which the real server would put into a URL; a
//! `webhook_url` that isn't a string; an argument that is spelled like either, and isn't it; a name that looks like
//! `execute_decision` and isn't what [`ToolNames`] calls it.

mod governed;

use std::{
    error,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project::pin_project;
use rmcp::model::{CallToolRequest, CallToolRequestParams};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    BoxError, Error, ToolNames, ToolRequest, ToolResponse,
    error::{InvalidArguments, InvalidReason, ToolNotAllowed, UnexpectedResponse},
    refusal::Kind,
    request,
};

pub use governed::OnToolError;
pub(crate) use governed::{Governed, Rules};

/// Layer that applies [`ReceiptMapping`].
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct ReceiptMappingLayer {
    names: ToolNames,
    rules: Rules,
}

impl ReceiptMappingLayer {
    /// Maps the answers to `execute_decision`, without a deadline.
    pub const fn new() -> Self {
        Self { names: ToolNames::bare(), rules: Rules::new() }
    }

    /// Sets how the upstream spells the tools' names.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }

    /// Sets how long an execution may take before its outcome counts as unknown. Needs a tokio runtime with time.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.rules.deadline = Some(deadline);
        self
    }

    /// Sets what happens to a 4xx tool error.
    pub const fn on_tool_error(mut self, on_tool_error: OnToolError) -> Self {
        self.rules.on_tool_error = on_tool_error;
        self
    }

    /// Sets whether a receipt that reports a safety override which nobody made is a failure. Otherwise it is an event.
    pub const fn strict(mut self, strict: bool) -> Self {
        self.rules.strict = strict;
        self
    }
}

impl<S> Layer<S> for ReceiptMappingLayer {
    type Service = ReceiptMapping<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ReceiptMapping { inner, names: self.names.clone(), rules: self.rules }
    }
}

/// Middleware that ends `execute_decision` in a receipt, a denial or a failure.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct ReceiptMapping<S> {
    inner: S,
    names: ToolNames,
    rules: Rules,
}

impl<S> ReceiptMapping<S> {
    /// Wraps `inner`, without a deadline.
    pub const fn new(inner: S) -> Self {
        Self { inner, names: ToolNames::bare(), rules: Rules::new() }
    }

    /// The layer that applies this middleware.
    pub const fn layer() -> ReceiptMappingLayer {
        ReceiptMappingLayer::new()
    }

    inner_service_accessors!();

    /// What has to be known of `request` when its answer comes, as `keep` keeps it; nothing for other tools.
    #[inline]
    pub(crate) fn admit<T>(&self, request: &CallToolRequest, keep: fn(Governed) -> T) -> Result<Option<T>, Error> {
        let params = &request.params;
        if self.names.is_execute_decision(&params.name) {
            self.govern(params, keep).map(Some)
        } else if self.names.is_look_alike(&params.name) {
            Err(Error::ToolNotAllowed(ToolNotAllowed::new(&params.name)))
        } else {
            Ok(None)
        }
    }

    #[inline(never)]
    fn govern<T>(&self, params: &CallToolRequestParams, keep: fn(Governed) -> T) -> Result<T, Error> {
        if params.input_responses.is_some() || params.request_state.is_some() {
            return Err(Error::InvalidArguments(InvalidArguments::new(InvalidReason::ContinuationRefused)));
        }
        let Some(arguments) = &params.arguments else {
            return Err(Error::InvalidArguments(InvalidArguments::new(InvalidReason::DecisionIdMissing)));
        };
        Governed::admit(arguments, params.name.clone(), self.rules).map(keep).map_err(Error::InvalidArguments)
    }
}

impl<S> Service<ToolRequest> for ReceiptMapping<S>
where
    S: Service<ToolRequest, Response = ToolResponse>,
    S::Error: From<Error> + Into<BoxError> + AsRef<dyn error::Error + Send + Sync>,
{
    type Response = ToolResponse;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Error>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: ToolRequest) -> Self::Future {
        let expected = match &request {
            ToolRequest::List(_) => Expected::List,
            ToolRequest::Call(call) => match self.admit(call, Box::pin) {
                Ok(None) => Expected::Result,
                Ok(Some(governed)) => Expected::Receipt(governed),
                Err(error) => {
                    request::discard(request);
                    return ResponseFuture { kind: Kind::rejected(error.into()), expected: Expected::Result };
                }
            },
        };
        ResponseFuture { kind: Kind::Inner(self.inner.call(request)), expected }
    }
}

/// Response future of [`ReceiptMapping`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F, E> {
    #[pin]
    kind: Kind<F, E>,
    expected: Expected,
}

/// What answers the request.
#[derive(Debug)]
enum Expected {
    List,
    Result,
    // One word, also with a deadline.
    Receipt(Pin<Box<Governed>>),
}

impl<F, E> Future for ResponseFuture<F, E>
where
    F: Future<Output = Result<ToolResponse, E>>,
    E: From<Error> + Into<BoxError> + AsRef<dyn error::Error + Send + Sync>,
{
    type Output = Result<ToolResponse, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // Passed on where it is: a response is some hundred bytes, and moving it costs more than looking at it.
        let answer = this.kind.as_mut().poll(cx);
        let wrong = match (&mut *this.expected, &answer) {
            (Expected::Receipt(governed), Poll::Pending) => {
                if let Poll::Ready(error) = governed.as_mut().poll_deadline(cx) {
                    // Dropped here and not with the caller's future, so that the call is cancelled now.
                    this.kind.set(Kind::Rejected(None));
                    return Poll::Ready(Err(error.into()));
                }
                return Poll::Pending;
            }
            (Expected::Receipt(governed), Poll::Ready(_)) => return answer.map(|answer| governed.settle(answer)),
            (Expected::List, Poll::Ready(Ok(ToolResponse::Call(_)))) => UnexpectedResponse::TO_LIST,
            (Expected::Result, Poll::Ready(Ok(ToolResponse::List(_)))) => UnexpectedResponse::TO_CALL,
            (Expected::List, Poll::Pending | Poll::Ready(Err(_) | Ok(ToolResponse::List(_))))
            | (Expected::Result, Poll::Pending | Poll::Ready(Err(_) | Ok(ToolResponse::Call(_)))) => return answer,
        };
        Poll::Ready(Err(Error::UnexpectedResponse(wrong).into()))
    }
}
