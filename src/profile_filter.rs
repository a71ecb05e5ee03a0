//! Keeps lists and calls inside a profile.
//!
//! A list keeps the tools that the policy allows, its cursor and its cache hints; a name that stands in it twice is
//! advertised once. A call of any other tool is refused before the inner service is touched, whether or not a list came
//! first: a tool is listed exactly if it can be called.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{BoxError, Error, Profile, ProfileFilterLayer, ToolRequest, ToolResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let engine = service_fn(|_: ToolRequest| async {
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! });
//! let service = ServiceBuilder::new().layer(ProfileFilterLayer::new(Profile::Observe)).service(engine);
//!
//! let call = |tool: &'static str| service.clone().oneshot(ToolRequest::call(tool, object!({})));
//! assert!(call("simulate").await.is_ok());
//! let refusal = Error::from(call("execute_decision").await.unwrap_err());
//! assert!(matches!(refusal, Error::ToolNotAllowed(_)));
//! # }
//! ```
//!
//! # What it refuses
//!
//! Whatever the policy says, a malformed name (MCP: 1 to 128 of letters, digits, `_`, `-`, `.`), and a look-alike of
//! `execute_decision` such as `Execute_Decision` or `srv__execute_decision`: it would pass here and miss
//! [`ReceiptMapping`](crate::ReceiptMapping). If your upstream prefixes its names, say so with [`ToolNames`].

use std::{
    collections::HashSet,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;
use rmcp::model::{CallToolRequest, Extensions, ListToolsResult};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Error, Profile, ToolNames, ToolPolicy, ToolRequest, ToolResponse,
    error::{ToolNotAllowed, UnexpectedResponse},
    events,
    refusal::Kind,
    request,
};

/// Layer that applies [`ProfileFilter`].
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct ProfileFilterLayer<P = Profile> {
    policy: P,
    names: ToolNames,
}

impl<P> ProfileFilterLayer<P> {
    /// Keeps lists and calls inside `policy`: a [`Profile`], a
    /// [`ProfileFromExtensions`](crate::ProfileFromExtensions), or a closure.
    pub const fn new(policy: P) -> Self {
        Self { policy, names: ToolNames::bare() }
    }

    pub(crate) fn policy<Q>(self, policy: Q) -> ProfileFilterLayer<Q> {
        ProfileFilterLayer { policy, names: self.names }
    }

    /// Sets how the upstream spells the tools' names.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }
}

impl<S, P: Clone> Layer<S> for ProfileFilterLayer<P> {
    type Service = ProfileFilter<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        ProfileFilter { inner, policy: self.policy.clone(), names: self.names.clone() }
    }
}

/// Middleware that keeps lists and calls inside a profile.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct ProfileFilter<S, P = Profile> {
    inner: S,
    policy: P,
    names: ToolNames,
}

impl<S, P> ProfileFilter<S, P> {
    /// Wraps `inner` with `policy`.
    pub const fn new(inner: S, policy: P) -> Self {
        Self { inner, policy, names: ToolNames::bare() }
    }

    /// The layer that applies this middleware.
    pub const fn layer(policy: P) -> ProfileFilterLayer<P> {
        ProfileFilterLayer::new(policy)
    }

    inner_service_accessors!();

    /// Refuses a call outside the profile.
    #[inline]
    pub(crate) fn admit(&self, call: &CallToolRequest) -> Result<(), Error>
    where
        P: ToolPolicy,
    {
        if allows(&self.policy, &self.names, &call.params.name, &call.extensions) {
            Ok(())
        } else {
            Err(Error::ToolNotAllowed(ToolNotAllowed::new(&call.params.name)))
        }
    }

    // Apart, so that what a call needs is small enough to be inlined.
    #[cold]
    pub(crate) fn listed(&self, extensions: &Extensions) -> Listed<P>
    where
        P: Clone,
    {
        Listed { policy: self.policy.clone(), names: self.names.clone(), extensions: extensions.clone() }
    }
}

/// The one rule, for lists and for calls.
#[inline]
fn allows<P: ToolPolicy>(policy: &P, names: &ToolNames, wire: &str, extensions: &Extensions) -> bool {
    names.vouched(wire).is_some_and(|tool| policy.allows(tool, extensions))
}

impl<S, P> Service<ToolRequest> for ProfileFilter<S, P>
where
    S: Service<ToolRequest, Response = ToolResponse>,
    S::Error: From<Error>,
    P: ToolPolicy,
{
    type Response = ToolResponse;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Error, P>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: ToolRequest) -> Self::Future {
        let list = match &request {
            ToolRequest::List(list) => Some(Box::new(self.listed(&list.extensions))),
            ToolRequest::Call(call) => {
                if let Err(refusal) = self.admit(call) {
                    request::discard(request);
                    return ResponseFuture { kind: Kind::rejected(refusal.into()), list: None };
                }
                None
            }
        };
        ResponseFuture { kind: Kind::Inner(self.inner.call(request)), list }
    }
}

/// What it takes to judge a list when it arrives.
#[derive(Debug)]
pub(crate) struct Listed<P> {
    policy: P,
    names: ToolNames,
    // The policy may read the caller's profile there, for the list as for a call.
    extensions: Extensions,
}

impl<P: ToolPolicy> Listed<P> {
    pub(crate) fn filter(&self, list: &mut ListToolsResult) {
        list.tools.retain(|tool| allows(&self.policy, &self.names, &tool.name, &self.extensions));
        let mut seen = HashSet::with_capacity(list.tools.len());
        let is_first: Vec<bool> = list.tools.iter().map(|tool| seen.insert(&*tool.name)).collect();
        let mut is_first = is_first.into_iter();
        list.tools.retain(|tool| {
            let stays = is_first.next().unwrap_or_default();
            if !stays {
                events::duplicate_tool(&tool.name);
            }
            stays
        });
    }
}

/// Response future of [`ProfileFilter`].
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F, E, P> {
    #[pin]
    kind: Kind<F, E>,
    // One word for the calls, which need none of it.
    list: Option<Box<Listed<P>>>,
}

impl<F, E, P> Future for ResponseFuture<F, E, P>
where
    F: Future<Output = Result<ToolResponse, E>>,
    E: From<Error>,
    P: ToolPolicy,
{
    type Output = Result<ToolResponse, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Changed where it is: a response is some hundred bytes, and moving it costs more than looking at it.
        let mut answer = this.kind.poll(cx);
        if let Poll::Ready(Ok(response)) = &mut answer {
            let wrong = match (this.list.take(), response) {
                (Some(listed), ToolResponse::List(list)) => {
                    listed.filter(list);
                    return answer;
                }
                (None, ToolResponse::Call(_)) => return answer,
                (Some(_), ToolResponse::Call(_)) => UnexpectedResponse::TO_LIST,
                // A list that answers a call was filtered by nobody.
                (None, ToolResponse::List(_)) => UnexpectedResponse::TO_CALL,
            };
            return Poll::Ready(Err(Error::UnexpectedResponse(wrong).into()));
        }
        answer
    }
}
