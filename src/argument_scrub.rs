//! Strips never-model-facing fields from the arguments that a call forwards.
//!
//! It touches the arguments, the `_meta` and the `inputResponses` of calls, of every tool. Lists and all responses pass as
//! they are.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{ArgumentScrubLayer, BoxError, ToolRequest, ToolResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let engine = service_fn(|request: ToolRequest| async move {
//!     if let ToolRequest::Call(call) = request {
//!         assert_eq!(call.params.arguments, Some(object!({"scenario": "s"})));
//!     }
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! });
//! let service = ServiceBuilder::new().layer(ArgumentScrubLayer::new()).service(engine);
//!
//! service.oneshot(ToolRequest::call("simulate", object!({"scenario": "s", "Force": true}))).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it refuses
//!
//! Arguments, `_meta` and `inputResponses` that nest more than 128 containers; text that only a laxer JSON parser reads and
//! that seems to carry a hidden field; `input_responses` and `request_state` on `execute_decision`, which could carry an
//! approval; and what [`Nested::Refuse`](crate::Nested::Refuse) and [`OnHidden::Refuse`](crate::OnHidden::Refuse) say.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;
use rmcp::model::CallToolRequest;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Error, HiddenFields, Stripped, ToolNames, ToolRequest,
    audit::StrippedSlot,
    error::{InvalidArguments, InvalidReason},
    events,
    operator::OperatorRepeat,
    refusal::Kind,
    request,
};

/// Layer that applies [`ArgumentScrub`].
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct ArgumentScrubLayer {
    fields: HiddenFields,
    names: ToolNames,
}

impl ArgumentScrubLayer {
    /// Hides the fields of the contract, by its rules.
    pub const fn new() -> Self {
        Self { fields: HiddenFields::new(), names: ToolNames::bare() }
    }

    /// Sets the hidden fields and their rules.
    pub fn hidden_fields(mut self, fields: HiddenFields) -> Self {
        self.fields = fields;
        self
    }

    /// Sets how the upstream spells the tools' names.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }
}

impl<S> Layer<S> for ArgumentScrubLayer {
    type Service = ArgumentScrub<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ArgumentScrub { inner, fields: self.fields.clone(), names: self.names.clone() }
    }
}

/// Middleware that strips never-model-facing fields from the arguments that a call forwards.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct ArgumentScrub<S> {
    inner: S,
    fields: HiddenFields,
    names: ToolNames,
}

impl<S> ArgumentScrub<S> {
    /// Wraps `inner` with the rules of the contract.
    pub const fn new(inner: S) -> Self {
        Self { inner, fields: HiddenFields::new(), names: ToolNames::bare() }
    }

    /// The layer that applies this middleware.
    pub const fn layer() -> ArgumentScrubLayer {
        ArgumentScrubLayer::new()
    }

    inner_service_accessors!();

    /// Scrubs a call where it is.
    pub(crate) fn scrub(&self, request: &mut CallToolRequest) -> Result<(), InvalidArguments> {
        if request.extensions.get::<OperatorRepeat>().is_some() {
            return Err(InvalidArguments::new(InvalidReason::OperatorAboveStack));
        }
        let params = &request.params;
        let is_continuation = params.input_responses.is_some() || params.request_state.is_some();
        if is_continuation && self.names.is_execute_decision(&params.name) {
            return Err(InvalidArguments::new(InvalidReason::ContinuationRefused));
        }
        let mut stripped = Stripped::default();
        if let Some(arguments) = &mut request.params.arguments {
            // A name without the prefix is some other tool's, so it is scrubbed like one outside the contract.
            let tool = self.names.logical(&request.params.name).unwrap_or_default();
            stripped = self.fields.scrub_arguments(tool, arguments)?;
        }
        let mut scrubbed = Ok(());
        request::for_each_meta(request, |meta| {
            if scrubbed.is_ok() {
                scrubbed = self.fields.scrub_meta(meta, &mut stripped);
            }
        });
        scrubbed?;
        if let Some(responses) = &mut request.params.input_responses {
            self.fields.scrub_responses(responses, &mut stripped)?;
        }
        if !stripped.is_empty() {
            events::stripped(&request.params.name, &stripped);
            if let Some(slot) = request.extensions.get::<StrippedSlot>() {
                slot.add(&stripped);
            }
            request.extensions.insert(stripped);
        }
        Ok(())
    }
}

impl<S> Service<ToolRequest> for ArgumentScrub<S>
where
    S: Service<ToolRequest>,
    S::Error: From<Error>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Error>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut request: ToolRequest) -> Self::Future {
        if let ToolRequest::Call(call) = &mut request
            && let Err(error) = self.scrub(call)
        {
            request::discard(request);
            return ResponseFuture { kind: Kind::rejected(Error::InvalidArguments(error).into()) };
        }
        ResponseFuture { kind: Kind::Inner(self.inner.call(request)) }
    }
}

/// Response future of [`ArgumentScrub`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F, E> {
    #[pin]
    kind: Kind<F, E>,
}

impl<F, T, E> Future for ResponseFuture<F, E>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().kind.poll(cx)
    }
}
