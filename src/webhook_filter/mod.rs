//! Keeps the webhooks of `execute_decision` on a list of hosts.
//!
//! The model chooses `webhook_url`: under [`Profile::Execute`](crate::Profile::Execute) it could have a decision's payload
//! delivered anywhere, without any hidden field. This layer is not one of the four. It touches calls of
//! `execute_decision` alone.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{BoxError, ToolRequest, ToolResponse, WebhookFilterLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = service_fn(|_: ToolRequest| async {
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! });
//! let layer = WebhookFilterLayer::new(["hooks.example", "*.corp.example"])?;
//! let service = ServiceBuilder::new().layer(layer).service(engine);
//! let call = |url: &str| {
//!     let arguments = object!({"decision_id": "d", "webhook_url": url});
//!     service.clone().oneshot(ToolRequest::call("execute_decision", arguments))
//! };
//! assert!(call("https://hooks.example/x").await.is_ok());
//! assert!(call("https://eu.corp.example:8443/x").await.is_ok());
//! assert!(call("https://evil.example/x").await.is_err());
//! assert!(call("http://hooks.example/x").await.is_err());
//! assert!(call("https://hooks.example@evil.example/x").await.is_err());
//! # Ok(())
//! # }
//! ```
//!
//! # What it refuses
//!
//! A host that is not on the list; anything but HTTPS; user-info; a URL that two parsers could read differently (white
//! space, backslashes, percent signs or non-ASCII letters in the host, addresses in decimal, octal or hex); and
//! `localhost`, loopback, private, link-local and other special addresses, even if they are on the list. A list entry
//! may be written in Unicode; a URL has to be in Punycode. It also refuses an argument that is spelled like `webhook_url`
//! and isn't it, and a tool that is called like `execute_decision` and isn't it, since with the wrong
//! [`tool_names`](WebhookFilterLayer::tool_names) it might be.
//!
//! It does not resolve names. A name on the list that leads to an internal address is the operator's to prevent.
//!
//! # Where it stands
//!
//! Under [`GovernanceLayer`](crate::GovernanceLayer), and so under [`AuditLayer`](crate::AuditLayer). Outside the audit,
//! what it refuses leaves no record; outside the profile, it tells a model of a tool that the model doesn't have. A repeat
//! of an [`Operator`](crate::Operator) around the bare engine does not pass through it; the denied call did.

mod hosts;

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;
use rmcp::model::CallToolRequest;
use serde_json::Value;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Error, ToolNames, ToolRequest,
    decision::{WEBHOOK_URL, has_alias},
    error::{InvalidArguments, InvalidReason, ToolNotAllowed},
    refusal::Kind,
    request,
};

use hosts::Hosts;
pub use hosts::InvalidHost;

/// Layer that applies [`WebhookFilter`].
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it wraps a service"]
pub struct WebhookFilterLayer {
    hosts: Hosts,
    names: ToolNames,
}

impl WebhookFilterLayer {
    /// Allows webhooks at `hosts`: names, addresses, or `*.` and a domain for every name below it.
    ///
    /// # Errors
    ///
    /// If an entry is none of these.
    pub fn new<I>(hosts: I) -> Result<Self, InvalidHost>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Ok(Self { hosts: Hosts::new(hosts)?, names: ToolNames::bare() })
    }

    /// Sets how the upstream spells the tools' names.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }

    /// Allows plain HTTP, too. Whoever is on the way can then read and change what is delivered.
    pub const fn dangerous_allow_http(mut self) -> Self {
        self.hosts.allow_http = true;
        self
    }

    /// Allows loopback, private and other special addresses, if they are on the list.
    pub const fn dangerous_allow_internal(mut self) -> Self {
        self.hosts.allow_private = true;
        self
    }
}

impl<S> Layer<S> for WebhookFilterLayer {
    type Service = WebhookFilter<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WebhookFilter { inner, hosts: self.hosts.clone(), names: self.names.clone() }
    }
}

/// Middleware that keeps the webhooks of `execute_decision` on a list of hosts.
///
/// See the [module docs](self) for an example.
#[derive(Clone, Debug)]
pub struct WebhookFilter<S> {
    inner: S,
    hosts: Hosts,
    names: ToolNames,
}

impl<S> WebhookFilter<S> {
    /// Wraps `inner`, and allows webhooks at `hosts`; see [`WebhookFilterLayer::new`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new<I>(inner: S, hosts: I) -> Result<Self, InvalidHost>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Ok(WebhookFilterLayer::new(hosts)?.layer(inner))
    }

    /// The layer that applies this middleware.
    ///
    /// # Errors
    ///
    /// As [`WebhookFilterLayer::new`].
    pub fn layer<I>(hosts: I) -> Result<WebhookFilterLayer, InvalidHost>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        WebhookFilterLayer::new(hosts)
    }

    inner_service_accessors!();

    fn admit(&self, call: &CallToolRequest) -> Result<(), Error> {
        let name = &*call.params.name;
        if self.names.is_look_alike(name) {
            // These names may not be those of the stack, and then it is an execution.
            return Err(Error::ToolNotAllowed(ToolNotAllowed::new(name)));
        }
        if !self.names.is_execute_decision(name) {
            return Ok(());
        }
        let arguments = call.params.arguments.as_ref();
        let admitted = match arguments.and_then(|arguments| arguments.get(WEBHOOK_URL)) {
            _ if arguments.is_some_and(has_alias) => Err(InvalidReason::AmbiguousName),
            Some(Value::String(url)) => self.hosts.admit(url),
            _ => Err(InvalidReason::WebhookUrlMissing),
        };
        admitted.map_err(|reason| Error::InvalidArguments(InvalidArguments::new(reason)))
    }
}

impl<S> Service<ToolRequest> for WebhookFilter<S>
where
    S: Service<ToolRequest>,
    S::Error: From<Error>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        if let ToolRequest::Call(call) = &request
            && let Err(refusal) = self.admit(call)
        {
            request::discard(request);
            return ResponseFuture { kind: Kind::rejected(refusal.into()) };
        }
        ResponseFuture { kind: Kind::Inner(self.inner.call(request)) }
    }
}

/// Response future of [`WebhookFilter`].
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

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().kind.poll(cx)
    }
}
