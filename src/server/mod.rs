//! A governed stack, served to any MCP client.
//!
//! [`ToolServer`] is an rmcp [`ServerHandler`] over a stack of yours. It mounts on rmcp's [`StreamableHttpService`], which
//! is itself a tower service and nests in axum, and on any other rmcp transport, standard input and output among them. It
//! speaks both generations of the protocol: with a handshake, up to 2025-11-25, and 2026-07-28 without.
//!
//! [`ServerHandler`]: rmcp::ServerHandler
//! [`StreamableHttpService`]: rmcp::transport::StreamableHttpService
//!
//! # Example
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tower_algenta::BoxError> {
//! use rmcp::{ServiceExt as _, model::CallToolResult};
//! use tower::{ServiceBuilder, service_fn};
//! use tower_algenta::{BoxError, GovernanceLayer, Profile, ToolRequest, ToolResponse, ToolServer};
//!
//! let engine = service_fn(|request: ToolRequest| async move {
//!     Ok::<_, BoxError>(match request {
//!         ToolRequest::List(_) => ToolResponse::List(Default::default()),
//!         ToolRequest::Call(_) => CallToolResult::success(vec![]).into(),
//!     })
//! });
//! let stack = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Observe)).service(engine);
//!
//! // In place of this pipe: `rmcp::transport::stdio()`.
//! let (near, far) = tokio::io::duplex(4096);
//! let server = tokio::spawn(async move { ToolServer::new(stack).serve(far).await });
//!
//! let client = ().serve(near).await?;
//! let call = rmcp::model::CallToolRequestParams::new("execute_decision");
//! assert!(client.call_tool(call).await.is_err()); // as for any tool that doesn't exist
//! client.cancel().await?;
//! # server.await??.cancel().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Lists and calls
//!
//! A list is one page, merged from all pages of the stack: some clients stop at a page that a profile has left empty. What
//! it says about caching is for this caller alone. A call gives up when its caller does, which cancels it at the engine;
//! reports of progress go to the caller's own token, the newest ones if they come faster than they are read. `_meta` goes
//! on, `traceparent` for one, without `progressToken` and `io.modelcontextprotocol/*`, which belong to the caller's
//! connection.
//!
//! # Whose request it is
//!
//! A request's extensions hold what rmcp knows of it; over HTTP, that is [`http::request::Parts`]. A layer above the
//! governed ones can put the caller's [`Profile`](crate::Profile) beside it, for
//! [`ProfileFromExtensions`](crate::ProfileFromExtensions), and the caller's token, for
//! `client::Connections`. The example `gateway` does both.
//!
//! [`http::request::Parts`]: https://docs.rs/http/1/http/request/struct.Parts.html
//!
//! # Errors
//!
//! An error of the stack is a JSON-RPC error, never a result, and holds no text of the engine's:
//!
//! | error | code | `data` |
//! |---|---|---|
//! | [`ToolNotAllowed`](crate::Error::ToolNotAllowed), as for a tool that doesn't exist | −32602 | |
//! | [`InvalidArguments`](crate::Error::InvalidArguments) | −32602 | |
//! | [`Denied`](crate::Error::Denied) | −32000 | `{"error": {"code", "gate"}}` |
//! | [`ExecutionFailed`](crate::Error::ExecutionFailed), [`OutcomeUnknown`](crate::Error::OutcomeUnknown) | −32000 | `{"error": {"code"}}` |
//! | the engine's own JSON-RPC error | the engine's, without its words | |
//! | anything else | −32603 | |
//!
//! [`OnDenial::ToolError`] is for clients that cannot read errors.
//!
//! # Everything else
//!
//! `ping` is answered. Prompts, resources and completion are refused unless
//! [`pass_through`](ToolServer::pass_through) names them; every other method is refused. What the engine says of itself
//! is not passed on.

mod failure;
mod handler;
#[cfg(feature = "client")]
mod pass_through;
mod progress;
mod tool_server;

pub use failure::OnDenial;
#[cfg(feature = "client")]
pub use pass_through::PassThrough;
pub use tool_server::ToolServer;
