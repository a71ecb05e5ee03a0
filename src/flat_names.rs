//! Gives the tools flat names, for frameworks without namespaces: `algenta_simulate` in place of `simulate`.
//!
//! It stands outermost. A list gains the prefix `algenta_`, a call loses it, and nothing below knows of either: answers
//! and errors pass as they are, so a [`Denial`](crate::Denial) keeps the name by which the engine knows the tool. What
//! stands above, such as [`Toolset::tool_names`](crate::Toolset::tool_names), is told [`ToolNames::flat`].
//!
//! # Example
//!
//! ```
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{BoxError, FlatNamesLayer, GovernanceLayer, Profile, ToolNames, ToolRequest, ToolResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // It serves several engines, and puts a name of its own before the tools of each.
//! let engine = service_fn(|request: ToolRequest| async move {
//!     assert_eq!(request.tool(), Some("eu__simulate"));
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! });
//! let names = ToolNames::prefixed("eu__");
//! let service = ServiceBuilder::new()
//!     .layer(FlatNamesLayer::new().tool_names(names.clone()))
//!     .layer(GovernanceLayer::new(Profile::Observe).tool_names(names))
//!     .service(engine);
//!
//! let call = |tool: &'static str| service.clone().oneshot(ToolRequest::call(tool, object!({})));
//! assert!(call("algenta_simulate").await.is_ok());
//! assert!(call("simulate").await.is_err());
//! assert!(call("eu__simulate").await.is_err());
//! # }
//! ```
//!
//! # What it refuses
//!
//! A flat name matches `^algenta_[a-z0-9_]+$` and has 128 characters at the most, as MCP has it. A tool whose name gives
//! no such flat name, with a capital, a `-` or a `.` in it, is neither listed nor callable. Nor is one whose own name
//! begins with `algenta_`: it could not be told from the flat name of another tool. So every flat name has one tool, and
//! no list has to come before a call. A name without the prefix is refused like that of a tool that doesn't exist.

use std::{
    borrow::Cow,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;
use rmcp::model::ListToolsResult;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Error, ToolNames, ToolRequest, ToolResponse,
    error::{ToolNotAllowed, UnexpectedResponse},
    events,
    refusal::Kind,
    request,
};

const PREFIX: &str = "algenta_";

/// Characters of a flat name at the most: as many as MCP gives any tool's name.
const LIMIT: usize = 128;

impl ToolNames {
    /// The names as they are above a [`FlatNames`]: `algenta_` before each.
    #[must_use]
    pub fn flat() -> Self {
        Self::prefixed(PREFIX)
    }
}

/// Layer that applies [`FlatNames`].
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct FlatNamesLayer {
    names: ToolNames,
}

impl FlatNamesLayer {
    /// Gives flat names to the tools of a stack that calls them by their bare names.
    pub const fn new() -> Self {
        Self { names: ToolNames::bare() }
    }

    /// Sets how the stack below spells the tools' names. Its prefix does not become part of the flat name.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }
}

impl<S> Layer<S> for FlatNamesLayer {
    type Service = FlatNames<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FlatNames { inner, names: self.names.clone() }
    }
}

/// Middleware that gives the tools flat names.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct FlatNames<S> {
    inner: S,
    names: ToolNames,
}

impl<S> FlatNames<S> {
    /// Wraps `inner`, which calls the tools by their bare names.
    pub const fn new(inner: S) -> Self {
        Self { inner, names: ToolNames::bare() }
    }

    /// The layer that applies this middleware.
    pub const fn layer() -> FlatNamesLayer {
        FlatNamesLayer::new()
    }

    inner_service_accessors!();
}

/// The one rule, for lists and for calls: whether the tool that the contract would call `logical` has a flat name.
fn has_flat_name(logical: &str) -> bool {
    (1..=LIMIT - PREFIX.len()).contains(&logical.len())
        && logical.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && !logical.starts_with(PREFIX)
}

/// The flat name of the tool that the stack below calls `wire`.
fn flat(names: &ToolNames, wire: &str) -> Option<String> {
    names.logical(wire).filter(|logical| has_flat_name(logical)).map(|logical| [PREFIX, logical].concat())
}

/// Makes the name that the stack below knows of a flat one; `false` if it is none.
fn unflatten(names: &ToolNames, name: &mut Cow<'static, str>) -> bool {
    let Some(logical) = name.strip_prefix(PREFIX).filter(|logical| has_flat_name(logical)) else { return false };
    if *names == ToolNames::bare() {
        // In place: a call costs no allocation.
        match name {
            Cow::Borrowed(name) => *name = &name[PREFIX.len()..],
            Cow::Owned(name) => drop(name.drain(..PREFIX.len())),
        }
    } else {
        *name = names.wire(logical).into();
    }
    true
}

impl<S> Service<ToolRequest> for FlatNames<S>
where
    S: Service<ToolRequest, Response = ToolResponse>,
    S::Error: From<Error>,
{
    type Response = ToolResponse;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Error>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut request: ToolRequest) -> Self::Future {
        let list = match &mut request {
            ToolRequest::List(_) => Some(self.names.clone()),
            ToolRequest::Call(call) => {
                if !unflatten(&self.names, &mut call.params.name) {
                    let refusal = Error::ToolNotAllowed(ToolNotAllowed::new(&call.params.name));
                    request::discard(request);
                    return ResponseFuture { kind: Kind::rejected(refusal.into()), list: None };
                }
                None
            }
        };
        ResponseFuture { kind: Kind::Inner(self.inner.call(request)), list }
    }
}

/// Response future of [`FlatNames`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F, E> {
    #[pin]
    kind: Kind<F, E>,
    list: Option<ToolNames>,
}

impl<F, E> Future for ResponseFuture<F, E>
where
    F: Future<Output = Result<ToolResponse, E>>,
    E: From<Error>,
{
    type Output = Result<ToolResponse, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Changed where it is: a response is some hundred bytes, and moving it costs more than looking at it.
        let mut answer = this.kind.poll(cx);
        if let Poll::Ready(Ok(response)) = &mut answer {
            let wrong = match (&*this.list, response) {
                (Some(names), ToolResponse::List(list)) => {
                    flatten(names, list);
                    return answer;
                }
                (None, ToolResponse::Call(_)) => return answer,
                (Some(_), ToolResponse::Call(_)) => UnexpectedResponse::TO_LIST,
                // A list that answers a call has the names from below.
                (None, ToolResponse::List(_)) => UnexpectedResponse::TO_CALL,
            };
            return Poll::Ready(Err(Error::UnexpectedResponse(wrong).into()));
        }
        answer
    }
}

fn flatten(names: &ToolNames, list: &mut ListToolsResult) {
    list.tools.retain_mut(|tool| {
        let flat = flat(names, &tool.name);
        let stays = flat.is_some();
        match flat {
            Some(flat) => tool.name = flat.into(),
            None => events::no_flat_name(&tool.name),
        }
        stays
    });
}
