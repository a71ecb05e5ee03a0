//! The two requests that enter a governed stack.

use std::{borrow::Cow, error, fmt};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, Extensions, GetExtensions as _, JsonObject,
    ListToolsRequest, MetaObject, PaginatedRequestParams, RequestMetaObject,
};

use serde_json::Value;

use crate::json;

/// A request about tools: a list of them, or a call of one.
///
/// What cannot be read as one of the two never enters the stack, so no layer has an arm that lets an unread message
/// through. Both arms carry rmcp's `extensions`.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a custom layer matches two arms and the compiler checks it")]
pub enum ToolRequest {
    /// `tools/list`.
    List(ListToolsRequest),
    /// `tools/call`.
    Call(CallToolRequest),
}

impl ToolRequest {
    /// The first page of the list of tools.
    #[must_use]
    pub fn list() -> Self {
        Self::list_from(None)
    }

    /// The page of the list of tools that `cursor` points to; `None` is the first.
    #[must_use]
    pub fn list_from(cursor: Option<String>) -> Self {
        Self::List(match cursor {
            None => ListToolsRequest::default(),
            cursor => ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor)),
        })
    }

    /// A call of the tool that the wire calls `name`.
    ///
    /// ```
    /// # use tower_algenta::ToolRequest;
    /// # use rmcp::object;
    /// let request = ToolRequest::call("simulate", object!({"scenario": "expand-to-eu"}));
    /// assert_eq!(request.tool(), Some("simulate"));
    /// ```
    pub fn call(name: impl Into<Cow<'static, str>>, arguments: JsonObject) -> Self {
        Self::Call(CallToolRequest::new(CallToolRequestParams::new(name).with_arguments(arguments)))
    }

    /// The wire name of the tool that is called; `None` for a list.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::List(_) => None,
            Self::Call(request) => Some(&request.params.name),
        }
    }

    /// What travels with the request inside this process.
    #[must_use]
    pub const fn extensions(&self) -> &Extensions {
        match self {
            Self::List(request) => &request.extensions,
            Self::Call(request) => &request.extensions,
        }
    }

    /// What travels with the request inside this process, mutably.
    pub const fn extensions_mut(&mut self) -> &mut Extensions {
        match self {
            Self::List(request) => &mut request.extensions,
            Self::Call(request) => &mut request.extensions,
        }
    }
}

impl From<ListToolsRequest> for ToolRequest {
    fn from(request: ListToolsRequest) -> Self {
        Self::List(request)
    }
}

impl From<CallToolRequest> for ToolRequest {
    fn from(request: CallToolRequest) -> Self {
        Self::Call(request)
    }
}

impl From<CallToolRequestParams> for ToolRequest {
    fn from(params: CallToolRequestParams) -> Self {
        Self::Call(CallToolRequest::new(params))
    }
}

impl From<ToolRequest> for ClientRequest {
    fn from(request: ToolRequest) -> Self {
        match request {
            ToolRequest::List(request) => Self::ListToolsRequest(request),
            ToolRequest::Call(request) => Self::CallToolRequest(request),
        }
    }
}

impl TryFrom<ClientRequest> for ToolRequest {
    type Error = NotAToolRequest;

    /// Takes a typed `tools/list` or `tools/call` and refuses everything else.
    ///
    /// A `CustomRequest` is refused even if its method is `tools/call`: that is what rmcp's untagged decoding makes of
    /// a call with one unreadable sibling (`"requestState": 5`, arguments that are an array), hidden fields and all.
    fn try_from(request: ClientRequest) -> Result<Self, NotAToolRequest> {
        match request {
            ClientRequest::ListToolsRequest(request) => Ok(Self::List(request)),
            ClientRequest::CallToolRequest(request) => Ok(Self::Call(request)),
            other => Err(NotAToolRequest { request: Box::new(other) }),
        }
    }
}

/// The request is not a well-formed `tools/list` or `tools/call`.
pub struct NotAToolRequest {
    request: Box<ClientRequest>,
}

impl NotAToolRequest {
    /// Whether the method is `tools/list` or `tools/call`, so that only the parameters are unreadable.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(&*self.request, ClientRequest::CustomRequest(request)
            if matches!(request.method.as_str(), "tools/list" | "tools/call"))
    }

    /// The request, unchanged. Nothing has governed it.
    #[must_use]
    pub fn into_request(self) -> ClientRequest {
        *self.request
    }
}

impl fmt::Debug for NotAToolRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotAToolRequest").field("is_malformed", &self.is_malformed()).finish_non_exhaustive()
    }
}

impl fmt::Display for NotAToolRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_malformed() {
            f.write_str("the parameters of the tool request cannot be read")
        } else {
            f.write_str("the request is neither a list of tools nor a call of one")
        }
    }
}

impl error::Error for NotAToolRequest {}

/// Drops a refused request, however deep the values in it are.
pub(crate) fn discard(request: ToolRequest) {
    if let ToolRequest::Call(mut request) = request {
        // Extensions give up no values, so the maps of `_meta` are emptied where they are.
        for_each_meta(&mut request, |meta| dismantle_all(std::mem::take(meta)));
        let params = request.params;
        dismantle_all(params.arguments.into_iter().flatten());
        dismantle_all(params.input_responses.into_iter().flatten());
    }
}

fn dismantle_all(members: impl IntoIterator<Item = (String, Value)>) {
    members.into_iter().for_each(|(_, value)| json::dismantle(value));
}

/// Calls `f` with every `_meta` map that rmcp would serialise with `request`.
///
/// There are three: `params._meta`, and in the extensions a `RequestMetaObject`, where decoding puts it, and a plain
/// `MetaObject`, which rmcp still reads for older callers.
pub(crate) fn for_each_meta(request: &mut CallToolRequest, mut f: impl FnMut(&mut JsonObject)) {
    if let Some(meta) = &mut request.params.meta {
        f(&mut meta.0.0);
    }
    let extensions = request.extensions_mut();
    if let Some(meta) = extensions.get_mut::<RequestMetaObject>() {
        f(&mut meta.0.0);
    }
    if let Some(meta) = extensions.get_mut::<MetaObject>() {
        f(&mut meta.0);
    }
}

/// Whether no `_meta` of `request` nests more than `levels` containers, itself included.
pub(crate) fn meta_is_within(request: &ToolRequest, levels: usize) -> bool {
    let own = match request {
        ToolRequest::List(request) => request.params.as_ref().and_then(|params| params.meta.as_ref()),
        ToolRequest::Call(request) => request.params.meta.as_ref(),
    };
    let extensions = request.extensions();
    let requests = [own, extensions.get::<RequestMetaObject>()].into_iter().flatten().map(|meta| &meta.0.0);
    requests.chain(extensions.get::<MetaObject>().map(|meta| &meta.0)).all(|meta| json::object_is_within(meta, levels))
}
