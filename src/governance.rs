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
//! work that it throws away.
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

use std::time::Duration;

use tower_layer::Layer;

use crate::{
    ArgumentScrub, ArgumentScrubLayer, HiddenFields, Profile, ProfileFilter, ProfileFilterLayer, ReceiptMapping,
    ReceiptMappingLayer, SchemaScrub, SchemaScrubLayer, ToolNames, ToolPolicy, receipt_mapping::OnToolError,
};

/// A service under all four layers.
pub type Governance<S, P = Profile> = SchemaScrub<ProfileFilter<ReceiptMapping<ArgumentScrub<S>>, P>>;

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
        (&self.schemas, &self.profile, &self.receipts, &self.arguments).layer(inner)
    }
}
