//! The MCP side: lists and calls.

use std::sync::{Arc, PoisonError};

use hyper::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};

use super::{Fault, Received, engine::Shared, front::Hangup, tools, wire::Answer};

/// One per session and per stateless request; all share one state.
#[derive(Clone)]
pub(super) struct Server(pub(super) Arc<Shared>);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info =
            ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build());
        info.server_info = Implementation::new("stub-engine", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.0.list_changes.subscribe();
        // It ends with the engine, or at the first change after the session.
        tokio::spawn(async move {
            while changes.changed().await.is_ok() && context.peer.notify_tool_list_changed().await.is_ok() {}
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let all = SubscriptionFilter::builder().tools_list_changed().build();
        Some(requested.intersection(&all))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.list_changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                told = changes.changed() => {
                    if told.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.record.entries().lists += 1;
        let cursor = request.and_then(|params| params.cursor);
        let fault = self.0.settings.fault;
        match fault {
            Some(Fault::EmptyPage) if cursor.is_none() => return Ok(page(&[], Some(FIRST.to_owned()))),
            Some(Fault::EndlessCursors) => {
                let read: u64 = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
                return Ok(page(&[], Some((read + 1).to_string())));
            }
            _ => {}
        }
        let tools = &self.0.tools;
        let start = match cursor {
            None => 0,
            Some(cursor) if fault == Some(Fault::EmptyPage) && cursor == FIRST => 0,
            // A cursor is where the page starts: opaque to a client, and nothing to keep between requests.
            Some(cursor) => cursor
                .parse()
                .ok()
                .filter(|start| (1..tools.len()).contains(start))
                .ok_or_else(|| ErrorData::invalid_params("Invalid cursor", None))?,
        };
        let end = match self.0.settings.page_size {
            0 => tools.len(),
            size => tools.len().min(start.saturating_add(size)),
        };
        let mut page = page(&tools[start..end], (end < tools.len()).then(|| end.to_string()));
        if fault == Some(Fault::DuplicateNames) {
            page.tools.extend(tools[start..end].iter().cloned().map(|mut tool| {
                tool.description = Some("The same, once more.".into());
                tool
            }));
        }
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.record(&request, &context);
        let settings = &self.0.settings;
        let Some(tool) = self.0.tools.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None));
        };

        if settings.fault == Some(Fault::DropBefore) {
            return self.hang_up(&context).await;
        }
        let mut answer = self.run(tool, &request.arguments.unwrap_or_default())?;
        match settings.fault {
            Some(Fault::EmptyResult) => return Ok(CallToolResult::success(Vec::new()).into()),
            Some(Fault::ServerError) => answer = upstream_unavailable(),
            Some(Fault::Hang) => return self.cancelled(&context).await,
            Some(Fault::DropAfter) => return self.hang_up(&context).await,
            // The others are done, or are for the front, or for lists.
            _ => {}
        }
        if !settings.delay.is_zero() {
            // rmcp leaves a cancelled handler running; without this, the answer would come to nobody.
            tokio::select! {
                () = tokio::time::sleep(settings.delay) => {}
                cancelled = self.cancelled(&context) => return cancelled,
            }
        }
        settings.wire.render(&tool.name, answer).map(Into::into)
    }
}

impl Server {
    fn record(&self, request: &CallToolRequestParams, context: &RequestContext<RoleServer>) {
        // rmcp's decoding moves `_meta` out of the params and into the context.
        let mut meta = request.meta.clone().unwrap_or_default().0.0;
        meta.extend(context.meta.0.0.clone());
        let received = Received { name: request.name.clone().into_owned(), arguments: request.arguments.clone(), meta };
        self.0.record.entries().received.push(received);
    }

    fn run(&self, tool: &Tool, arguments: &JsonObject) -> Result<Answer, ErrorData> {
        if let Some(refusal) = tools::refuse(tool, arguments) {
            return Ok(refusal);
        }
        let argument = |name| arguments.get(name).unwrap_or(&Value::Null);
        let number = |name, default| argument(name).as_f64().unwrap_or(default);
        let mut decisions = self.0.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match tool.name.strip_prefix(&*self.0.settings.prefix).unwrap_or_default() {
            "get_contract" => json!({"capabilities": ["query", "simulate", "recommend"], "engine_version": "1.4.0"}),
            "query_data" => json!({"dataset": argument("dataset"), "rows": rows()}),
            "simulate" => json!({"expected_value": 42.0, "scenario": argument("scenario")}),
            "recommend" => {
                json!({"scenario": argument("scenario"), "recommended_action": "hold", "confidence": 0.87})
            }
            "plan_decision" => json!({"scenario": argument("scenario"), "rationale": "looks fine"}),
            "log_decision" => {
                let confidence = number("confidence", 0.9);
                let chosen_action = argument("chosen_action").as_str().unwrap_or_default();
                json!({
                    "decision_id": decisions.log(chosen_action, confidence),
                    "chosen_action": chosen_action,
                    "expected_value": number("expected_value", 0.0),
                    "confidence": confidence,
                    "note": "logged",
                })
            }
            "execute_decision" => {
                return match decisions.execute(arguments) {
                    Ok((receipt, execution)) => {
                        self.0.record.entries().executions.push(execution);
                        Answer::done(&receipt)
                    }
                    Err(denial) => Ok(Answer::Denied(denial)),
                };
            }
            "query_batch" => {
                let keys = argument("queries").as_array().into_iter().flatten().map(|query| &query["key"]);
                let results: Vec<_> = keys.map(|key| json!({"key": key, "rows": rows()})).collect();
                json!({"results": results})
            }
            "update_execution_policy" => decisions.update_policy(arguments),
            name => return Err(ErrorData::internal_error(format!("the stub does not know its own tool {name}"), None)),
        };
        Answer::done(&result)
    }

    /// Waits until the caller has given up.
    async fn cancelled(&self, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        context.ct.cancelled().await;
        self.0.record.entries().cancelled += 1;
        Err(ErrorData::internal_error("cancelled", None))
    }

    /// Closes the connection that the call came by, and never answers.
    async fn hang_up(&self, context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        if let Some(hangup) = parts.and_then(|parts| parts.extensions.get::<Hangup>()) {
            hangup.hang_up();
        }
        context.ct.cancelled().await;
        Err(ErrorData::internal_error("hung up", None))
    }
}

/// The cursor from an empty page to the tools.
const FIRST: &str = "first";

fn page(tools: &[Tool], next_cursor: Option<String>) -> ListToolsResult {
    let mut page = ListToolsResult::with_all_items(tools.to_vec());
    page.next_cursor = next_cursor;
    page
}

fn rows() -> Value {
    json!([{"value": 1}, {"value": 2}])
}

fn upstream_unavailable() -> Answer {
    Answer::Failed {
        code: "mcp_upstream_unavailable",
        message: "Algenta API returned a temporary upstream failure for this MCP request.".to_owned(),
        status_code: 503,
        details: None,
    }
}
