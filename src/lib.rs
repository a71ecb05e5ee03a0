//! Tower middleware that keeps an AI agent's MCP tool calls inside the profile it was given.
//!
//! It stands between a model and a self-hosted Algenta engine, an MCP server that can run real-world decisions. It keeps
//! three promises, in this order:
//!
//! 1. The model cannot reach what its profile excludes: not by list, not by call, not by a field.
//! 2. A denial is never dressed as a result. `execute_decision` ends in a typed receipt, a typed denial or a typed
//!    failure.
//! 3. Where a layer is not sure, it refuses.
//!
//! # Words
//!
//! A *decision* is something that the engine can carry out by delivering it to a webhook. A *gate* is a policy check that
//! may block that: the decision was already delivered (`idempotency`), its confidence is too low (`confidence`), or what
//! it may lose is too much (`risk_floor`). The *contract* is what the engine promises its clients: seven tools, the
//! profiles over them, these gates, and two switches that are an operator's alone, `force` and `override_safety`.
//!
//! # Where to begin
//!
//! - [`Toolset`] is what an agent is handed: typed calls over a governed engine.
//! - [`GovernanceLayer`] is the four layers in their order, for a tower stack of your own.
//! - [`ProfileFilter`], [`ArgumentScrub`], [`SchemaScrub`] and [`ReceiptMapping`] are the layers; each has a module with an
//!   example, and each can be used alone and in any order.
//! - [`AuditLayer`] keeps a record of every call, and [`FlatNamesLayer`] gives the tools flat names.
//! - [`RepeatLayer`] lets layers that may send a request twice see everything but executions.
//! - [`Error`] says how a call failed. It is found again under any wrapper by [`Error::find`].
//! - [`Operator`] is the human's way past a denial; an agent has none.
//! - `ToolServer` (feature `server`) serves a stack to MCP clients in any language; the example `gateway` is one to run.
//!
//! # The service
//!
//! Every layer wraps a `Service<`[`ToolRequest`]`, Response = `[`ToolResponse`]`>`: two requests, two responses, made of
//! rmcp's own types, which this crate re-exports. What cannot be read as one of them never enters the stack. The error type
//! is yours, as long as an [`Error`] converts into it: if the compiler only says that a stack is no `Service`, its error
//! type lacks `From<Error>`, or `AsRef<dyn std::error::Error + Send + Sync>` where a layer looks at it; use [`BoxError`], or `.map_err(BoxError::from)` under the layers.
//!
//! # Features
//!
//! - `client` (default): `Endpoint` and `EngineClient`, an engine over streamable HTTP or any rmcp transport.
//! - `child-process`: `ChildProcess`, an engine that is started as a child process and talks over its standard input.
//! - `server`: `ToolServer`, a governed stack for any MCP client.
//! - `stub`: `StubEngine`, a real MCP server on a real socket for examples and tests.
//! - `webhook-filter`: `WebhookFilter`, a list of hosts that a model may have decisions delivered to.
//! - `tracing`: events with the target `tower_algenta` for what was stripped, for tools that are dropped as
//!   duplicates, for their schema or for want of a flat name, for an override that nobody made, an engine that can't be
//!   connected to, and an audit record that was lost; never an
//!   argument's value, a text of the engine's or a token. And `audit::Events`: an event for each record of an audit.
//! - `retry`: `RetryPolicy`, for tower's `Retry`: it repeats lists, and calls that cannot have run.
//! - `metrics`: `audit::Metrics`, counters and a histogram for the records of an audit.
//!
//! Without features there are the layers alone: rmcp's types, no HTTP.

#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::unwrap_used, clippy::dbg_macro, clippy::todo))]

#[macro_use]
mod macros;

pub mod argument_scrub;
pub mod audit;
#[cfg(feature = "client")]
pub mod client;
mod decision;
mod denial;
pub mod error;
mod events;
pub mod flat_names;
pub mod governance;
mod json;
#[cfg(any(feature = "client", feature = "server"))]
mod meta;
pub mod operator;
mod outcome;
pub mod profile_filter;
#[cfg(any(feature = "client", feature = "server"))]
mod progress;
mod receipt;
pub mod receipt_mapping;
mod refusal;
pub mod repeat;
mod request;
mod response;
#[cfg(feature = "retry")]
pub mod retry;
pub mod schema_scrub;
#[cfg(feature = "server")]
pub mod server;
pub mod toolset;

pub mod hidden_fields;
mod profile;
#[cfg(feature = "stub")]
pub mod stub;
mod tool_names;
#[cfg(feature = "webhook-filter")]
pub mod webhook_filter;

#[doc(inline)]
pub use argument_scrub::{ArgumentScrub, ArgumentScrubLayer};
#[doc(inline)]
pub use audit::{Audit, AuditLayer, AuditRecord, AuditSink};
#[cfg(feature = "client")]
#[doc(inline)]
pub use client::{BearerToken, Endpoint, EngineClient};
pub use decision::ExecuteDecision;
pub use denial::{Denial, ExecutionBlocked, Gate, NotADenial};
#[doc(inline)]
pub use error::{BoxError, Error};
#[doc(inline)]
pub use flat_names::{FlatNames, FlatNamesLayer};
#[doc(inline)]
pub use governance::{Governance, GovernanceLayer};
#[doc(inline)]
pub use hidden_fields::{HiddenFields, Matching, NEVER_MODEL_FACING, Nested, OnHidden, Prose, Stripped};
#[doc(inline)]
pub use operator::Operator;
pub use profile::{ParseProfileError, Profile, ProfileFromExtensions, ToolPolicy, policy_fn};
#[doc(inline)]
pub use profile_filter::{ProfileFilter, ProfileFilterLayer};
#[cfg(any(feature = "client", feature = "server"))]
pub use progress::ProgressSink;
pub use receipt::{ExecutionReceipt, ExecutionStatus, NotAReceipt};
#[doc(inline)]
pub use receipt_mapping::{ReceiptMapping, ReceiptMappingLayer};
#[doc(inline)]
pub use repeat::{Repeat, RepeatLayer, RepeatableRequest};
pub use request::{NotAToolRequest, ToolRequest};
pub use response::{CallOutcome, NotAToolResponse, ToolResponse};
#[cfg(feature = "retry")]
#[doc(inline)]
pub use retry::RetryPolicy;
#[doc(inline)]
pub use schema_scrub::{SchemaScrub, SchemaScrubLayer};
#[cfg(feature = "server")]
#[doc(inline)]
pub use server::ToolServer;
#[cfg(feature = "stub")]
#[doc(inline)]
pub use stub::StubEngine;
pub use tool_names::ToolNames;
#[doc(inline)]
pub use toolset::{BoxToolService, Toolset, ToolsetBuilder};
#[cfg(feature = "webhook-filter")]
#[doc(inline)]
pub use webhook_filter::{WebhookFilter, WebhookFilterLayer};

#[doc(no_inline)]
pub use rmcp;

/// The README's code is run like any other example.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
