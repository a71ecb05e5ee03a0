//! The engine behind a connection.

use std::sync::LazyLock;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};

/// An engine whose answers are made before anything is measured.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) list: ListToolsResult,
    pub(crate) receipt: CallToolResult,
}

/// The decision whose execution it denies.
pub(crate) const DENIED: &str = "dec_2";

static DENIAL: LazyLock<CallToolResult> = LazyLock::new(super::denial);

impl ServerHandler for Engine {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(self.list.clone())
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(match &*params.name {
            "execute_decision" if is_denied(&params) => DENIAL.clone().into(),
            "execute_decision" => self.receipt.clone().into(),
            _ => CallToolResult::success(Vec::new()).into(),
        })
    }
}

fn is_denied(params: &CallToolRequestParams) -> bool {
    params.arguments.as_ref().and_then(|arguments| arguments.get("decision_id")).is_some_and(|id| id == DENIED)
}
