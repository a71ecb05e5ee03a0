//! From a profile and something to govern to a toolset.

use std::time::Duration;

use tower::{ServiceExt as _, util::BoxCloneSyncService};
use tower_layer::Layer as _;
use tower_service::Service;

use super::{BoxToolService, Toolset};
use crate::{
    BoxError, Error, GovernanceLayer, HiddenFields, Operator, Profile, ToolNames, ToolPolicy, ToolRequest,
    ToolResponse,
    receipt_mapping::{OnToolError, Rules},
};
#[cfg(feature = "client")]
use crate::{Endpoint, EngineClient};

/// Builds a [`Toolset`]: settings, then what it governs.
///
/// The type says what is still missing, so that a toolset without an engine doesn't compile.
#[derive(Clone, Debug)]
#[must_use = "a builder builds nothing until it is told to"]
pub struct ToolsetBuilder<T = WithoutTarget, P = Profile> {
    target: T,
    governance: GovernanceLayer<P>,
    names: ToolNames,
    // For the operator, whose repeat is scrubbed and judged like the call.
    fields: HiddenFields,
    rules: Rules,
}

/// Nothing to govern yet.
#[derive(Clone, Copy, Debug)]
pub struct WithoutTarget(());

/// A service of the user's own to govern.
#[derive(Clone, Debug)]
pub struct WithService<S>(S);

/// An engine to connect to.
#[cfg(feature = "client")]
#[derive(Clone, Debug)]
pub struct WithEndpoint(Endpoint);

impl ToolsetBuilder {
    pub(super) const fn new() -> Self {
        Self {
            target: WithoutTarget(()),
            governance: GovernanceLayer::new(Profile::Observe),
            names: ToolNames::bare(),
            fields: HiddenFields::new(),
            rules: Rules::new(),
        }
    }
}

impl<T> ToolsetBuilder<T> {
    /// Sets the profile; [`Profile::Observe`] unless set.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.governance = self.governance.policy(profile);
        self
    }

    /// Sets a policy of another kind, in place of the profile.
    ///
    /// A toolset sends no extensions, so [`ProfileFromExtensions`](crate::ProfileFromExtensions) means
    /// [`Profile::Observe`] here; it is for a stack of your own.
    pub fn policy<P: ToolPolicy>(self, policy: P) -> ToolsetBuilder<T, P> {
        ToolsetBuilder {
            target: self.target,
            governance: self.governance.policy(policy),
            names: self.names,
            fields: self.fields,
            rules: self.rules,
        }
    }
}

impl<T, P: ToolPolicy> ToolsetBuilder<T, P> {
    /// Sets the hidden fields and their rules.
    pub fn hidden_fields(mut self, fields: HiddenFields) -> Self {
        self.governance = self.governance.hidden_fields(fields.clone());
        self.fields = fields;
        self
    }

    /// Sets how the engine spells the tools' names.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.governance = self.governance.tool_names(names.clone());
        self.names = names;
        self
    }

    /// Sets how long an execution may take before its outcome counts as unknown. Needs a tokio runtime with time.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.governance = self.governance.deadline(deadline);
        self.rules.deadline = Some(deadline);
        self
    }

    /// Sets what happens to a 4xx tool error of `execute_decision`.
    pub fn on_tool_error(mut self, on_tool_error: OnToolError) -> Self {
        self.governance = self.governance.on_tool_error(on_tool_error);
        self
    }

    /// Sets whether a receipt that reports a safety override which nobody made is a failure. Otherwise it is an event.
    pub fn strict(mut self, strict: bool) -> Self {
        self.governance = self.governance.strict(strict);
        self.rules.strict = strict;
        self
    }
}

impl<P: ToolPolicy> ToolsetBuilder<WithoutTarget, P> {
    /// Governs the engine at `endpoint`.
    #[cfg(feature = "client")]
    pub fn endpoint(self, endpoint: Endpoint) -> ToolsetBuilder<WithEndpoint, P> {
        self.target(WithEndpoint(endpoint))
    }

    /// Governs a service of your own: a registry, a fake, another transport.
    pub fn service<S>(self, service: S) -> ToolsetBuilder<WithService<S>, P> {
        self.target(WithService(service))
    }

    fn target<T>(self, target: T) -> ToolsetBuilder<T, P> {
        ToolsetBuilder {
            target,
            governance: self.governance,
            names: self.names,
            fields: self.fields,
            rules: self.rules,
        }
    }
}

impl<T, P> ToolsetBuilder<T, P>
where
    P: ToolPolicy + Send + Sync + 'static,
{
    fn govern<S>(&self, inner: S) -> Toolset
    where
        S: Service<ToolRequest, Response = ToolResponse, Future: Send> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
    {
        // Boxed below the layers and not above them: what they say is then the error itself, not something inside it.
        let inner = inner.map_err(Into::<BoxError>::into);
        let governed = self.governance.layer(inner).map_err(Error::from);
        let service: BoxToolService = BoxCloneSyncService::new(governed);
        Toolset::from_governed_stack(service).tool_names(self.names.clone())
    }
}

impl<S, P> ToolsetBuilder<WithService<S>, P>
where
    S: Service<ToolRequest, Response = ToolResponse, Future: Send> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    P: ToolPolicy + Send + Sync + 'static,
{
    /// The toolset.
    pub fn build(self) -> Toolset {
        self.govern(self.target.0.clone())
    }

    /// The toolset, and beside it what a human needs to release a denied call.
    pub fn build_with_operator(self) -> (Toolset, Operator<S>) {
        let toolset = self.govern(self.target.0.clone());
        (toolset, Operator::new(self.target.0).hidden_fields(self.fields).rules(self.rules))
    }
}

#[cfg(feature = "client")]
impl<P> ToolsetBuilder<WithEndpoint, P>
where
    P: ToolPolicy + Send + Sync + 'static,
{
    /// Connects to the engine.
    ///
    /// # Errors
    ///
    /// [`Error::NotSent`] with a [`ConnectError`](crate::client::ConnectError) that says what to do.
    pub async fn connect(self) -> Result<Toolset, Error> {
        self.connect_with_operator().await.map(|(toolset, _)| toolset)
    }

    /// Connects to the engine; beside the toolset, what a human needs to release a denied call.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_with_operator(self) -> Result<(Toolset, Operator<EngineClient>), Error> {
        let client = EngineClient::connect(self.target.0.clone()).await?;
        let mut toolset = self.govern(client.clone());
        toolset.connection = Some(std::sync::Arc::new(client.clone()));
        Ok((toolset, Operator::new(client).hidden_fields(self.fields).rules(self.rules)))
    }
}

#[cfg(feature = "client")]
impl super::Connection for EngineClient {
    fn close(&self) -> super::BoxFuture<'_, ()> {
        Box::pin(Self::close(self))
    }

    fn list_changes(&self) -> super::BoxFuture<'_, crate::client::ListChanges> {
        Box::pin(Self::list_changes(self))
    }
}
