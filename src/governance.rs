//! All four layers in their order.
//!
//! ```text
//!              requests           responses
//!                 |                   ^
//!                 v                   |
//!   +------------ SchemaScrub --------+-----------+
//!   |  +--------- ProfileFilter ------+--------+  |
//!   |  |  +------ ReceiptMapping -----+-----+  |  |
//!   |  |  |  +--- ArgumentScrub ------+--+  |  |  |
//!   |  |  |  |          |             |  |  |  |  |
//!   |  |  |  |          v             |  |  |  |  |
//!   |  |  |  |        your service       |  |  |  |
//! ```
//!
//! On the way in, a tool outside the profile is refused before anything reads its arguments; on the way out, tools are
//! dropped before schemas are scrubbed. Any other order gives the same results and refuses the same calls; it only does
//! work that it throws away. [`Governance`] asks the four in this order but has one future, so that a request and its
//! answer are moved once and not four times.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{BoxError, GovernanceLayer, Profile, ToolRequest, ToolResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let engine = service_fn(|_: ToolRequest| async {
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! });
//! let governed = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Observe)).service(engine);
//!
//! assert!(governed.clone().oneshot(ToolRequest::call("simulate", object!({}))).await.is_ok());
//! assert!(governed.oneshot(ToolRequest::call("log_decision", object!({}))).await.is_err());
//! # Ok(())
//! # }
//! ```

use std::{
    error, fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    ArgumentScrub, ArgumentScrubLayer, BoxError, Error, HiddenFields, Profile, ProfileFilter, ProfileFilterLayer,
    ReceiptMapping, ReceiptMappingLayer, SchemaScrub, SchemaScrubLayer, ToolNames, ToolPolicy, ToolRequest,
    ToolResponse,
    error::UnexpectedResponse,
    profile_filter,
    receipt_mapping::{Governed, OnToolError},
    refusal::Kind,
    request, schema_scrub,
};

/// Layer that applies [`SchemaScrub`], [`ProfileFilter`], [`ReceiptMapping`] and [`ArgumentScrub`], outermost first.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug, Default)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct GovernanceLayer<P = Profile> {
    schemas: SchemaScrubLayer,
    profile: ProfileFilterLayer<P>,
    receipts: ReceiptMappingLayer,
    arguments: ArgumentScrubLayer,
}

impl<P: ToolPolicy> GovernanceLayer<P> {
    /// Governs by `policy`: a [`Profile`], a [`ProfileFromExtensions`](crate::ProfileFromExtensions), or a closure.
    pub const fn new(policy: P) -> Self {
        Self {
            schemas: SchemaScrubLayer::new(),
            profile: ProfileFilterLayer::new(policy),
            receipts: ReceiptMappingLayer::new(),
            arguments: ArgumentScrubLayer::new(),
        }
    }

    pub(crate) fn policy<Q: ToolPolicy>(self, policy: Q) -> GovernanceLayer<Q> {
        GovernanceLayer {
            schemas: self.schemas,
            profile: self.profile.policy(policy),
            receipts: self.receipts,
            arguments: self.arguments,
        }
    }

    /// Sets the hidden fields and their rules, for schemas and arguments alike.
    pub fn hidden_fields(mut self, fields: HiddenFields) -> Self {
        self.schemas = self.schemas.hidden_fields(fields.clone());
        self.arguments = self.arguments.hidden_fields(fields);
        self
    }

    /// Sets how the upstream spells the tools' names, for all four layers.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.schemas = self.schemas.tool_names(names.clone());
        self.profile = self.profile.tool_names(names.clone());
        self.receipts = self.receipts.tool_names(names.clone());
        self.arguments = self.arguments.tool_names(names);
        self
    }

    /// Sets how long an execution may take before its outcome counts as unknown. Needs a tokio runtime with time.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.receipts = self.receipts.deadline(deadline);
        self
    }

    /// Sets what happens to a 4xx tool error of `execute_decision`.
    pub fn on_tool_error(mut self, on_tool_error: OnToolError) -> Self {
        self.receipts = self.receipts.on_tool_error(on_tool_error);
        self
    }

    /// Sets whether a receipt that reports a safety override which nobody made is a failure. Otherwise it is an event.
    pub fn strict(mut self, strict: bool) -> Self {
        self.receipts = self.receipts.strict(strict);
        self
    }
}

impl<S, P: Clone> Layer<S> for GovernanceLayer<P> {
    type Service = Governance<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Governance {
            inner,
            schemas: self.schemas.layer(()),
            profile: self.profile.layer(()),
            receipts: self.receipts.layer(()),
            arguments: self.arguments.layer(()),
        }
    }
}

/// A service under all four layers.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct Governance<S, P = Profile> {
    inner: S,
    // Around nothing: each is asked for its rules alone.
    schemas: SchemaScrub<()>,
    profile: ProfileFilter<(), P>,
    receipts: ReceiptMapping<()>,
    arguments: ArgumentScrub<()>,
}

impl<S, P: ToolPolicy> Governance<S, P> {
    /// Governs `inner` by `policy`.
    pub const fn new(inner: S, policy: P) -> Self {
        Self {
            inner,
            schemas: SchemaScrub::new(()),
            profile: ProfileFilter::new((), policy),
            receipts: ReceiptMapping::new(()),
            arguments: ArgumentScrub::new(()),
        }
    }

    /// The layer that applies this middleware.
    pub const fn layer(policy: P) -> GovernanceLayer<P> {
        GovernanceLayer::new(policy)
    }
}

impl<S, P> Governance<S, P> {
    inner_service_accessors!();
}

impl<S, P: ToolPolicy> Governance<S, P> {
    /// What has to be known of `request` when its answer comes; nothing for a call that has no receipt.
    #[inline]
    fn admit(&self, request: &mut ToolRequest) -> Result<Option<Pin<Box<Expected<P>>>>, Error> {
        match request {
            ToolRequest::List(list) => {
                let (profile, schemas) = (self.profile.listed(&list.extensions), self.schemas.listed());
                Ok(Some(Box::pin(Expected::List { profile, schemas })))
            }
            ToolRequest::Call(call) => {
                self.profile.admit(call)?;
                let expected = self.receipts.admit(call, |governed| Box::pin(Expected::Receipt { governed }))?;
                self.arguments.scrub(call).map_err(Error::InvalidArguments)?;
                Ok(expected)
            }
        }
    }
}

impl<S, P> Service<ToolRequest> for Governance<S, P>
where
    S: Service<ToolRequest, Response = ToolResponse>,
    S::Error: From<Error> + Into<BoxError> + AsRef<dyn error::Error + Send + Sync>,
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
    fn call(&mut self, mut request: ToolRequest) -> Self::Future {
        match self.admit(&mut request) {
            Ok(expected) => ResponseFuture { kind: Kind::Inner(self.inner.call(request)), expected },
            Err(refusal) => {
                request::discard(request);
                ResponseFuture { kind: Kind::rejected(refusal.into()), expected: None }
            }
        }
    }
}

/// What answers a request, unless any result of a call does.
#[pin_project(project = Projected)]
#[expect(clippy::large_enum_variant, reason = "it stands in a box of its own, and no call but an execution has one")]
enum Expected<P> {
    List {
        profile: profile_filter::Listed<P>,
        schemas: schema_scrub::Listed,
    },
    Receipt {
        #[pin]
        governed: Governed,
    },
}

/// Response future of [`Governance`].
#[pin_project]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ResponseFuture<F, E, P = Profile> {
    #[pin]
    kind: Kind<F, E>,
    // One word for the calls, nearly all of which need none of it.
    expected: Option<Pin<Box<Expected<P>>>>,
}

impl<F, E, P> fmt::Debug for ResponseFuture<F, E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<F, E, P> Future for ResponseFuture<F, E, P>
where
    F: Future<Output = Result<ToolResponse, E>>,
    E: From<Error> + Into<BoxError> + AsRef<dyn error::Error + Send + Sync>,
    P: ToolPolicy,
{
    type Output = Result<ToolResponse, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let answer = this.kind.as_mut().poll(cx);
        let Some(expected) = this.expected else {
            // Passed on where it is: a response is some hundred bytes, and moving it costs more than looking at it.
            return match answer {
                Poll::Ready(Ok(ToolResponse::List(_))) => {
                    Poll::Ready(Err(Error::UnexpectedResponse(UnexpectedResponse::TO_CALL).into()))
                }
                answer => answer,
            };
        };
        match expected.as_mut().project() {
            Projected::List { profile, schemas } => Poll::Ready(match ready!(answer) {
                Ok(ToolResponse::List(mut list)) => {
                    profile.filter(&mut list);
                    schemas.scrub(&mut list);
                    Ok(ToolResponse::List(list))
                }
                Ok(ToolResponse::Call(_)) => Err(Error::UnexpectedResponse(UnexpectedResponse::TO_LIST).into()),
                Err(error) => Err(error),
            }),
            Projected::Receipt { mut governed } => match answer {
                Poll::Ready(answer) => Poll::Ready(governed.settle(answer)),
                Poll::Pending => {
                    let error = ready!(governed.as_mut().poll_deadline(cx));
                    // Dropped here and not with the caller's future, so that the call is cancelled now.
                    this.kind.set(Kind::Rejected(None));
                    Poll::Ready(Err(error.into()))
                }
            },
        }
    }
}
