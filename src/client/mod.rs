//! An engine over the network: where it is, and a service that calls it.
//!
//! [`Endpoint`] says where the engine is and with which token; [`EngineClient`] is a [`Service`] over the connection:
//! streamable HTTP, a child process (feature `child-process`), any other rmcp transport, or an rmcp peer that you already
//! have. It governs nothing. Put the layers
//! around it, or let a [`Toolset`](crate::Toolset) do it.
//!
//! [`Service`]: tower_service::Service
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "stub")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use rmcp::object;
//! use tower::{ServiceBuilder, ServiceExt as _};
//! use tower_algenta::{Endpoint, EngineClient, GovernanceLayer, Profile, ToolRequest, stub::StubEngine};
//!
//! let engine = StubEngine::start().await.unwrap();
//!
//! let client = EngineClient::connect(Endpoint::new(engine.url())?).await?;
//! let governed = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Observe)).service(client.clone());
//!
//! governed.oneshot(ToolRequest::call("simulate", object!({"scenario": "expand-to-eu"}))).await?;
//! assert_eq!(engine.received().len(), 1);
//! client.close().await?;
//! # Ok::<_, tower_algenta::BoxError>(()) }).unwrap();
//! ```
//!
//! # What it sends
//!
//! One request for each call, never a second: no automatic answer to a request for input, no recovery of a lost
//! session (it would send the call again), no redirect. A response stream that breaks is resumed, which asks for the
//! rest of the answer and does not repeat the call. `_meta` is forwarded, from the parameters and from the extensions,
//! without `progressToken` and `io.modelcontextprotocol/*`, which belong to this connection.
//!
//! In protocol 2026-07-28 a tool can ask for arguments in headers, and the client knows which only from a list. So
//! connecting reads the list once. That this list fails is no failure to connect, unless the token is refused: the next
//! list will say what is wrong.
//!
//! # Limits
//!
//! | what | limit |
//! |---|---|
//! | connecting, handshake and first list included | [`Endpoint::connect_timeout`], 15 s |
//! | each request | [`Endpoint::call_timeout`], 60 s |
//! | requests in flight | [`Endpoint::max_concurrent_requests`], 1024; more wait |
//! | a JSON answer, and an event of a stream | 16 MiB each, rmcp's |
//! | closing | 10 s |
//!
//! # Errors
//!
//! [`Error::NotSent`](crate::Error::NotSent) where it is certain that the request never left: the connection was
//! refused or is closed, the name or the certificate is wrong. Everything else is
//! [`Error::Upstream`](crate::Error::Upstream), of which [`ReceiptMapping`](crate::ReceiptMapping) makes an unknown
//! outcome if it was an execution. A 401 to a call is no exception: something behind the engine may have said it.
//!
//! Inside is a [`ConnectError`] or a [`CallError`] that says what to do, or the [`ErrorData`](rmcp::ErrorData) that the
//! engine answered with. No text of these errors contains the token, even if the engine quotes it.

mod backoff;
#[cfg(feature = "child-process")]
mod child_process;
mod connect;
mod connections;
mod connector;
mod endpoint;
mod engine_client;
mod error;
mod failure;
mod list_changes;
mod progress;
mod reconnect;
mod retry;
mod token;

#[cfg(feature = "child-process")]
pub use child_process::ChildProcess;
pub use connections::Connections;
pub use connector::{ConnectFuture, Connector};
pub use endpoint::{Endpoint, EndpointError, EndpointErrorKind, EndpointSource};
pub use engine_client::{EngineClient, ResponseFuture};
pub use error::{CallError, CallErrorKind, ConnectError, ConnectErrorKind};
pub use list_changes::ListChanges;
pub use reconnect::{Reconnect, ReconnectFuture};
pub use token::{BearerToken, InvalidToken};
