//! The methods of the protocol.

use std::{pin::Pin, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequest, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
        ListToolsRequest, ListToolsResult, PaginatedRequestParams, RequestMetaObject, ServerCapabilities, ServerConfig,
        SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
#[cfg(feature = "client")]
use rmcp::{
    RoleClient,
    model::{
        CompleteRequestMethod, CompleteRequestParams, CompleteResult, GetPromptRequestMethod, GetPromptRequestParams,
        GetPromptResponse, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
        ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ReadResourceRequestMethod,
        ReadResourceRequestParams, ReadResourceResponse,
    },
    service::Peer,
};
use tower_service::Service;

#[cfg(feature = "client")]
use super::PassThrough;
use super::{ToolServer, failure::error_data, progress::Progress};
use crate::{BoxError, Error, HiddenFields, Stripped, ToolRequest, ToolResponse, meta};

/// How soon the end of a session is noticed.
const LOOK: Duration = Duration::from_secs(1);

impl<S> ServerHandler for ToolServer<S>
where
    S: Service<ToolRequest, Response = ToolResponse, Future: Send> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
{
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if let Some(tools) = &mut capabilities.tools {
            tools.list_changed = Some(self.list_changes.is_some());
        }
        #[cfg(feature = "client")]
        self.passed.add_to(&mut capabilities);
        let mut info = ServerConfig::new(capabilities);
        info.server_info = self.implementation.clone();
        info.instructions.clone_from(&self.instructions);
        info
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = params.and_then(|params| params.cursor);
        let page = list_requests(&context)?;
        let list = async {
            match (self.merges_pages, cursor) {
                (true, None) => self.tools.list_merged(page).await.map_err(|error| error_data(&error)),
                // No list of this server's has had a cursor.
                (true, Some(_)) => Err(ErrorData::invalid_params("invalid cursor", None)),
                (false, cursor) => self.tools.list_page(page(cursor)).await.map_err(|error| error_data(&error)),
            }
        };
        let mut list = unless_cancelled(&context, Box::pin(list)).await?;
        if list.cache_scope == Some(CacheScope::Public) {
            // It is what this caller's profile leaves.
            list.cache_scope = Some(CacheScope::Private);
        }
        // The engine's words on the whole list; those on a tool are the layers' to scrub.
        list.meta = None;
        Ok(list)
    }

    async fn call_tool(
        &self,
        mut params: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut extensions = std::mem::take(&mut context.extensions);
        let mut request_meta = params.meta.take().unwrap_or_default();
        request_meta.extend(std::mem::take(&mut context.meta));
        let mut progress = request_meta.get_progress_token().map(|token| {
            // What an engine says while it executes is read by nobody who could tell a hint from a report.
            let with_message = !self.names.is_execute_decision(&params.name);
            let (sink, progress) = Progress::new(token, with_message, context.peer.clone());
            extensions.insert(sink);
            progress
        });
        params.meta = forwarded(request_meta);
        let mut request = CallToolRequest::new(params);
        request.extensions = extensions;

        let call = async {
            let call = self.tools.call_request(request);
            let answer = match &mut progress {
                Some(progress) => progress.relay(call).await,
                None => call.await,
            };
            answer.map_or_else(|error| self.on_denial.answer(&error), |outcome| Ok(outcome.into_response()))
        };
        unless_cancelled(&context, Box::pin(call)).await
    }

    #[cfg(feature = "client")]
    async fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let ask = |peer: Peer<RoleClient>| async move { peer.list_prompts(params).await };
        let asked = self.passed.ask::<ListPromptsRequestMethod, _, _>(PassThrough::Prompts, &context.extensions, ask);
        unless_cancelled(&context, Box::pin(asked)).await
    }

    #[cfg(feature = "client")]
    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let ask = |peer: Peer<RoleClient>| async move { peer.get_prompt_once(params).await };
        let asked = self.passed.ask::<GetPromptRequestMethod, _, _>(PassThrough::Prompts, &context.extensions, ask);
        unless_cancelled(&context, Box::pin(asked)).await
    }

    #[cfg(feature = "client")]
    async fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let ask = |peer: Peer<RoleClient>| async move { peer.list_resources(params).await };
        let asked =
            self.passed.ask::<ListResourcesRequestMethod, _, _>(PassThrough::Resources, &context.extensions, ask);
        unless_cancelled(&context, Box::pin(asked)).await
    }

    #[cfg(feature = "client")]
    async fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let ask = |peer: Peer<RoleClient>| async move { peer.list_resource_templates(params).await };
        let asked = self.passed.ask::<ListResourceTemplatesRequestMethod, _, _>(
            PassThrough::Resources,
            &context.extensions,
            ask,
        );
        unless_cancelled(&context, Box::pin(asked)).await
    }

    #[cfg(feature = "client")]
    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let ask = |peer: Peer<RoleClient>| async move { peer.read_resource_once(params).await };
        let asked =
            self.passed.ask::<ReadResourceRequestMethod, _, _>(PassThrough::Resources, &context.extensions, ask);
        unless_cancelled(&context, Box::pin(asked)).await
    }

    #[cfg(feature = "client")]
    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let ask = |peer: Peer<RoleClient>| async move { peer.complete(params).await };
        let answer = async {
            let mut completed = self
                .passed
                .ask::<CompleteRequestMethod, _, _>(PassThrough::Completion, &context.extensions, ask)
                .await?;
            let allowed = self.tools.list_merged(list_requests(&context)?).await;
            let allowed = allowed.map_err(|error| error_data(&error))?.tools;
            let allowed = allowed.into_iter().map(|tool| tool.name.into_owned()).collect();
            completed.meta = None;
            self.passed.clean(&mut completed, &self.names, &allowed).await?;
            Ok(completed)
        };
        unless_cancelled(&context, Box::pin(answer)).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // What rmcp can't read as the method's own request comes here.
        Err(match request.method.as_str() {
            "tools/list" | "tools/call" => ErrorData::invalid_params("the parameters cannot be read", None),
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "method not found", None),
        })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(mut changes) = self.list_changes.clone() else { return };
        if self.tells.already() {
            return;
        }
        changes.mark_unchanged();
        // It ends with the announcements, or soon after the session.
        tokio::spawn(async move {
            while !context.peer.is_transport_closed() {
                match tokio::time::timeout(LOOK, changes.changed()).await {
                    Ok(Ok(())) if context.peer.notify_tool_list_changed().await.is_ok() => {}
                    Ok(_) => return,
                    Err(_) => {}
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.list_changes.as_ref()?;
        Some(requested.intersection(&SubscriptionFilter::builder().tools_list_changed().build()))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(mut changes) = self.list_changes.clone() else { return Ok(()) };
        changes.mark_unchanged();
        let tell = async {
            while changes.changed().await.is_ok() && context.sink().notify_tool_list_changed().await.is_ok() {}
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = tell => {}
        }
        Ok(())
    }
}

/// Makes the requests for the pages that a caller asks for.
///
/// The layers scrub the `_meta` of calls; that of a list has nothing but its caller's word, so it is scrubbed here.
fn list_requests(
    context: &RequestContext<RoleServer>,
) -> Result<impl Fn(Option<String>) -> ToolRequest + use<>, ErrorData> {
    let mut meta = forwarded(context.meta.clone());
    if let Some(meta) = &mut meta {
        let scrubbed = HiddenFields::new().scrub_meta(meta, &mut Stripped::default());
        scrubbed.map_err(|error| error_data(&Error::InvalidArguments(error)))?;
    }
    let extensions = context.extensions.clone();
    Ok(move |cursor| {
        let mut params = PaginatedRequestParams::default().with_cursor(cursor);
        params.meta.clone_from(&meta);
        let mut request = ListToolsRequest::with_param(params);
        request.extensions = extensions.clone();
        ToolRequest::List(request)
    })
}

/// The `_meta` that goes on to the stack: without what belongs to the caller's own connection.
fn forwarded(mut request_meta: RequestMetaObject) -> Option<RequestMetaObject> {
    meta::retain_forwarded(&mut request_meta);
    (!request_meta.is_empty()).then_some(request_meta)
}

/// The answer, or an error that nobody reads once the caller has given up: rmcp leaves the handler running.
///
/// Boxed, since rmcp moves a future that is as large as the largest of all methods some twenty times for each request.
async fn unless_cancelled<T>(
    context: &RequestContext<RoleServer>,
    answer: Pin<Box<impl Future<Output = Result<T, ErrorData>>>>,
) -> Result<T, ErrorData> {
    tokio::select! {
        // First, so that nothing is begun for a caller who has left.
        biased;
        () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled by the caller", None)),
        answer = answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_connection_stays_behind() {
        let meta = serde_json::json!({
            "progressToken": 7,
            "io.modelcontextprotocol/clientInfo": {"name": "x"},
            "traceparent": "00-a-b-01",
        });
        let meta: RequestMetaObject = serde_json::from_value(meta).unwrap();
        let kept = forwarded(meta).unwrap();
        assert_eq!(kept.0.0.keys().collect::<Vec<_>>(), ["traceparent"]);
        assert_eq!(forwarded(RequestMetaObject::default()), None);
    }

    #[test]
    fn an_engines_error_keeps_its_code_and_loses_its_words() {
        let engines = ErrorData::new(ErrorCode(-32042), "use force=true", Some(serde_json::json!({"force": true})));
        let told = error_data(&Error::Upstream(Box::new(engines)));
        assert_eq!(told.code, ErrorCode(-32042));
        assert!(!format!("{told:?}").contains("force"), "{told:?}");
    }
}
