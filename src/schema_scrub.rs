//! Removes never-model-facing fields from what a list says about the tools.
//!
//! It touches the tools of a list: their schemas, `_meta`, titles and descriptions. Calls pass as they are, and so does a
//! tool that names no hidden field: it keeps its `Arc`s.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::{ListToolsResult, Tool}, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{BoxError, SchemaScrubLayer, ToolRequest, ToolResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let engine = service_fn(|_: ToolRequest| async {
//!     let schema = object!({
//!         "properties": { "decision_id": { "type": "string" }, "force": { "type": "boolean" } },
//!         "required": ["decision_id", "force"]
//!     });
//!     let tool = Tool::new("execute_decision", "Executes. `force` repeats.", schema);
//!     Ok::<_, BoxError>(ToolResponse::from(ListToolsResult::with_all_items(vec![tool])))
//! });
//! let service = ServiceBuilder::new().layer(SchemaScrubLayer::new()).service(engine);
//!
//! let ToolResponse::List(list) = service.oneshot(ToolRequest::list()).await? else { unreachable!() };
//! let [tool] = &*list.tools else { unreachable!() };
//! assert_eq!(tool.description.as_deref(), Some("Executes."));
//! assert_eq!(
//!     *tool.input_schema,
//!     object!({ "properties": { "decision_id": { "type": "string" } }, "required": ["decision_id"] })
//! );
//! # Ok(())
//! # }
//! ```
//!
//! # What it drops
//!
//! A tool whose schema is too deep, too large or malformed, so that nobody can say what it names: the rest of the list
//! stays. An output schema that names a hidden field goes whole. A list in answer to a call comes out empty.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;
use rmcp::model::{ListToolsResult, Tool};
use serde_json::Value;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    HiddenFields, ToolNames, ToolRequest, ToolResponse,
    hidden_fields::{SchemaError, discard_tool},
    json,
};

/// Layer that applies [`SchemaScrub`].
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct SchemaScrubLayer {
    fields: HiddenFields,
    names: ToolNames,
}

impl SchemaScrubLayer {
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

impl<S> Layer<S> for SchemaScrubLayer {
    type Service = SchemaScrub<S>;

    fn layer(&self, inner: S) -> Self::Service {
        SchemaScrub { inner, fields: self.fields.clone(), names: self.names.clone() }
    }
}

/// Middleware that removes never-model-facing fields from what a list says about the tools.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct SchemaScrub<S> {
    inner: S,
    fields: HiddenFields,
    names: ToolNames,
}

impl<S> SchemaScrub<S> {
    /// Wraps `inner`.
    pub const fn new(inner: S) -> Self {
        Self { inner, fields: HiddenFields::new(), names: ToolNames::bare() }
    }

    /// The layer that applies this middleware.
    pub const fn layer() -> SchemaScrubLayer {
        SchemaScrubLayer::new()
    }

    inner_service_accessors!();

    // Apart, so that what a call needs is small enough to be inlined.
    #[cold]
    pub(crate) fn listed(&self) -> Listed {
        Listed { fields: self.fields.clone(), names: self.names.clone() }
    }
}

impl<S> Service<ToolRequest> for SchemaScrub<S>
where
    S: Service<ToolRequest, Response = ToolResponse>,
{
    type Response = ToolResponse;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: ToolRequest) -> Self::Future {
        let list = match &request {
            ToolRequest::List(_) => Some(Box::new(self.listed())),
            ToolRequest::Call(_) => None,
        };
        ResponseFuture { inner: self.inner.call(request), list }
    }
}

/// What it takes to scrub a list when it arrives.
#[derive(Debug)]
pub(crate) struct Listed {
    fields: HiddenFields,
    names: ToolNames,
}

impl Listed {
    pub(crate) fn scrub(&self, list: &mut ListToolsResult) {
        if self.fields.scrub_advertised_meta(&mut list.meta).is_err() {
            discard_meta(list);
        }
        let tools = std::mem::take(&mut list.tools);
        list.tools = tools.into_iter().filter_map(|tool| self.scrubbed(tool)).collect();
    }

    /// The tool as it may be shown.
    fn scrubbed(&self, mut tool: Tool) -> Option<Tool> {
        let name = std::mem::take(&mut tool.name);
        // Without the prefix it is some other server's tool, and no tool of the contract.
        let logical = self.names.logical(&name).unwrap_or_default();
        let scrubbed = self.fields.scrub_tool(logical, &mut tool);
        match scrubbed {
            Ok(_) => {
                tool.name = name;
                Some(tool)
            }
            Err(error) => {
                dropped(&name, &error);
                discard_tool(tool);
                None
            }
        }
    }
}

/// Empties a list that nothing is known of.
fn discard_all(list: &mut ListToolsResult) {
    list.tools.drain(..).for_each(discard_tool);
    discard_meta(list);
}

fn discard_meta(list: &mut ListToolsResult) {
    if let Some(meta) = list.meta.take() {
        json::dismantle(Value::Object(meta.0));
    }
}

/// A tool is not shown, for its schema can't be scrubbed.
#[cfg_attr(not(feature = "tracing"), expect(clippy::missing_const_for_fn, reason = "has a body with `tracing`"))]
fn dropped(tool: &str, error: &SchemaError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "tower_algenta",
        tool = %crate::tool_names::for_message(tool),
        %error,
        "a tool was dropped from the list"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (tool, error);
}

/// Response future of [`SchemaScrub`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F> {
    #[pin]
    inner: F,
    // One word for the calls, which need none of it.
    list: Option<Box<Listed>>,
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<ToolResponse, E>>,
{
    type Output = Result<ToolResponse, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Changed where it is: a response is some hundred bytes, and moving it costs more than looking at it.
        let mut answer = this.inner.poll(cx);
        if let Poll::Ready(Ok(ToolResponse::List(list))) = &mut answer {
            match this.list.take() {
                Some(listed) => listed.scrub(list),
                None => discard_all(list),
            }
        }
        answer
    }
}
