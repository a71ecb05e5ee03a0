//! What an agent is handed: typed calls over a governed stack.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::{CallToolResult, ContentBlock}, object};
//! use tower::service_fn;
//! use tower_algenta::{BoxError, Error, Profile, ToolRequest, ToolResponse, Toolset};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! // Any service will do: a registry in memory, a fake. With the feature `client`, `.endpoint(..)` connects to an engine.
//! let engine = service_fn(|_: ToolRequest| async {
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![ContentBlock::text("42")])))
//! });
//! let tools = Toolset::builder().profile(Profile::Observe).service(engine).build();
//!
//! let outcome = tools.call("simulate", object!({"scenario": "expand-to-eu"})).await?;
//! assert!(outcome.result().is_some());
//! assert!(matches!(tools.call("execute_decision", object!({})).await, Err(Error::ToolNotAllowed(_))));
//! # Ok(())
//! # }
//! ```

mod builder;

use std::{borrow::Cow, collections::HashSet, error, fmt, future::poll_fn, pin::Pin, sync::Arc};

use rmcp::model::{CacheScope, CallToolRequest, CallToolRequestParams, JsonObject, ListToolsResult, Tool};
use tower::util::BoxCloneSyncService;
use tower_service::Service;

use crate::{
    BoxError, CallOutcome, Error, ExecuteDecision, ExecutionReceipt, ToolNames, ToolRequest, ToolResponse,
    denial::Overrides,
    error::UnexpectedResponse,
    outcome::Echoes,
    profile::EXECUTE_DECISION,
    receipt_mapping::{Governed, Rules},
};

#[cfg(feature = "client")]
pub use builder::WithEndpoint;
pub use builder::{ToolsetBuilder, WithService, WithoutTarget};

/// A boxed governed stack.
pub type BoxToolService = BoxCloneSyncService<ToolRequest, ToolResponse, Error>;

/// Pages of a list at the most.
const PAGE_LIMIT: usize = 1000;

/// The governed tools of one engine.
///
/// Cheap to clone; dropping the last clone closes the connection, unless an [`Operator`](crate::Operator) has it, too. See
/// the [module docs](self) for an example.
#[derive(Clone)]
pub struct Toolset<S = BoxToolService> {
    service: S,
    names: ToolNames,
    connection: Option<Arc<dyn Connection>>,
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// What a toolset closes.
pub(crate) trait Connection: Send + Sync {
    fn close(&self) -> BoxFuture<'_, ()>;

    #[cfg(feature = "client")]
    fn list_changes(&self) -> BoxFuture<'_, crate::client::ListChanges>;
}

impl Toolset {
    /// Starts a toolset: choose a profile, then an endpoint or a service.
    pub const fn builder() -> ToolsetBuilder {
        ToolsetBuilder::new()
    }
}

impl<S> Toolset<S> {
    /// Takes a stack that you composed yourself. **It must be governed**: nothing is added to it.
    pub const fn from_governed_stack(service: S) -> Self {
        Self { service, names: ToolNames::bare(), connection: None }
    }

    /// Sets how the stack spells the tools' names, for [`execute`](Self::execute).
    #[must_use]
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.names = names;
        self
    }
}

impl<S> Toolset<S>
where
    S: Service<ToolRequest, Response = ToolResponse> + Clone,
    S::Error: Into<BoxError>,
{
    /// All tools that the agent may call, from all pages; a name is listed once.
    ///
    /// An empty list usually means that the engine prefixes its tools' names: set
    /// [`tool_names`](ToolsetBuilder::tool_names).
    ///
    /// # Errors
    ///
    /// As the stack, and [`Error::Upstream`] with [`EndlessList`] if a cursor comes twice or there are more than 1,000
    /// pages.
    pub async fn list(&self) -> Result<Vec<Tool>, Error> {
        self.list_merged(ToolRequest::list_from).await.map(|list| list.tools)
    }

    /// All pages as one, asked for with the requests that `page` makes for the cursors.
    ///
    /// What the pages say about caching holds for the whole in its most careful form.
    pub(crate) async fn list_merged(
        &self,
        mut page: impl FnMut(Option<String>) -> ToolRequest,
    ) -> Result<ListToolsResult, Error> {
        let mut merged = self.list_page(page(None)).await?;
        let mut names = HashSet::new();
        merged.tools.retain(|tool| names.insert(tool.name.clone()));
        let mut cursors = HashSet::new();
        // Some servers write an empty cursor for none.
        while let Some(next) = merged.next_cursor.take().filter(|next| !next.is_empty()) {
            if !cursors.insert(next.clone()) || cursors.len() >= PAGE_LIMIT {
                return Err(Error::Upstream(Box::new(EndlessList(()))));
            }
            let page = self.list_page(page(Some(next))).await?;
            merged.tools.extend(page.tools.into_iter().filter(|tool| names.insert(tool.name.clone())));
            merged.next_cursor = page.next_cursor;
            merged.ttl_ms = merged.ttl_ms.zip(page.ttl_ms).map(|(one, other)| one.min(other));
            if merged.cache_scope != page.cache_scope {
                merged.cache_scope = Some(CacheScope::Private);
            }
        }
        Ok(merged)
    }

    /// One page of the list.
    pub(crate) async fn list_page(&self, request: ToolRequest) -> Result<ListToolsResult, Error> {
        match self.ready().await?.call(request).await.map_err(|error| Error::from(error.into()))? {
            ToolResponse::List(page) => Ok(page),
            ToolResponse::Call(_) => Err(Error::UnexpectedResponse(UnexpectedResponse::TO_LIST)),
        }
    }

    /// Calls the tool that the list calls `name`.
    ///
    /// A tool error is an outcome like any other (`isError` is set). For `execute_decision`, prefer
    /// [`execute`](Self::execute).
    pub async fn call(&self, name: impl Into<Cow<'static, str>>, arguments: JsonObject) -> Result<CallOutcome, Error> {
        let request = CallToolRequestParams::new(name).with_arguments(arguments);
        self.call_request(CallToolRequest::new(request)).await
    }

    /// As [`call`](Self::call), with everything else that a request carries.
    pub(crate) async fn call_request(&self, request: CallToolRequest) -> Result<CallOutcome, Error> {
        let CallToolRequestParams { name, arguments, .. } = &request.params;
        // A layer of the user's around the stack may have failed: then nobody knows whether an execution ran. Arguments
        // that are none are the stack's to refuse.
        let governed = self
            .names
            .is_execute_decision(name)
            .then(|| Governed::admit(arguments.as_ref()?, name.clone(), Rules::new()).ok())
            .flatten();
        let mut service = self.ready().await?;
        let answer = service.call(ToolRequest::Call(request)).await.map_err(|error| Error::from(error.into()));
        let answer = match governed {
            Some(governed) => governed.settle(answer),
            None => answer,
        };
        match answer? {
            ToolResponse::Call(outcome) => Ok(outcome),
            ToolResponse::List(_) => Err(Error::UnexpectedResponse(UnexpectedResponse::TO_CALL)),
        }
    }

    /// Executes a decision: a receipt, or an error that says why there is none.
    ///
    /// A receipt says that it was executed, not that the webhook took it: ask
    /// [`is_delivered`](ExecutionReceipt::is_delivered).
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] by a gate, [`Error::Rejected`] with a 4xx before it ran, [`Error::ExecutionFailed`],
    /// [`Error::OutcomeUnknown`], or one that says that the engine was never called.
    pub async fn execute(&self, decision: ExecuteDecision) -> Result<ExecutionReceipt, Error> {
        let (name, arguments) = (Cow::from(self.names.wire(EXECUTE_DECISION)), decision.to_arguments());
        let echoes = Echoes::of(&arguments);
        let governed = Governed::new(decision, name.clone(), Overrides::NONE, echoes, Rules::new());
        let mut service = self.ready().await?;
        let answer = service.call(ToolRequest::call(name, arguments)).await;
        governed.execution(answer.map_err(|error| Error::from(error.into())))
    }

    /// Asks to be told when the engine's list of tools changes; see
    /// [`EngineClient::list_changes`](crate::EngineClient::list_changes).
    ///
    /// # Errors
    ///
    /// As there, and when the toolset has no connection of its own: only [`connect`](ToolsetBuilder::connect) makes one.
    #[cfg(feature = "client")]
    pub async fn list_changes(&self) -> Result<crate::client::ListChanges, Error> {
        match &self.connection {
            Some(connection) => connection.list_changes().await,
            None => Err(crate::client::CallError::no_list_changes()),
        }
    }

    /// Closes the connection for all clones. Without one, there is nothing to close.
    pub async fn close(self) -> Result<(), Error> {
        match &self.connection {
            Some(connection) => connection.close().await,
            None => Ok(()),
        }
    }

    /// A clone of the stack that is ready for one request.
    async fn ready(&self) -> Result<S, Error> {
        let mut service = self.service.clone();
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(|error| not_ready(error.into()))?;
        Ok(service)
    }
}

impl<S> fmt::Debug for Toolset<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolset").finish_non_exhaustive()
    }
}

/// An error of `poll_ready`: whatever it is, the request never left.
pub(crate) fn not_ready(error: BoxError) -> Error {
    match Error::from(error) {
        Error::Upstream(error) => Error::NotSent(error),
        typed => typed,
    }
}

/// The list of tools has no end: a cursor came twice, or there are more than 1,000 pages.
#[derive(Debug)]
pub struct EndlessList(());

impl fmt::Display for EndlessList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the list of tools has no end: a cursor came twice, or there are more than {PAGE_LIMIT} pages")
    }
}

impl error::Error for EndlessList {}
