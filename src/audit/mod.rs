//! Keeps one record of every call: who asked for what, and how it ended.
//!
//! The layer stands around the governed stack, outside the four layers, where it sees the typed error of each. Every
//! request that enters it makes exactly one [`AuditRecord`], a list one for each page, and a request that is given up one
//! that says so. Readiness makes none. The record goes to an [`AuditSink`]: [`JsonLines`] for an append-only file, `Events`
//! (feature `tracing`), `Metrics` (feature `metrics`), one of yours, or a pair of them.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{
//!     AuditLayer, BoxError, GovernanceLayer, Profile, ToolRequest, ToolResponse,
//!     audit::{Caller, JsonLines},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let engine = service_fn(|_: ToolRequest| async {
//!     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![])))
//! });
//! # let path = std::env::temp_dir().join(format!("tower-algenta-audit-{}.jsonl", std::process::id()));
//! let service = ServiceBuilder::new()
//!     .layer(AuditLayer::new(JsonLines::append(&path)?))
//!     .layer(GovernanceLayer::new(Profile::Observe))
//!     .service(engine);
//!
//! let mut request = ToolRequest::call("simulate", object!({"scenario": "s", "force": true}));
//! request.extensions_mut().insert(Caller::new("agent-7"));
//! service.oneshot(request).await?;
//!
//! let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
//! assert_eq!(line["gen_ai.tool.name"], "simulate");
//! assert_eq!(line["algenta.outcome"], "allowed");
//! assert_eq!(line["algenta.stripped"], serde_json::json!(["/force"]));
//! assert_eq!(line["enduser.id"], "agent-7");
//! # std::fs::remove_file(&path)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a record says
//!
//! The names are those of OpenTelemetry's conventions for MCP where it has one; those that begin with `algenta.` are this
//! crate's. What doesn't apply is left out.
//!
//! | name | value |
//! |---|---|
//! | `timestamp` | when the request came: RFC 3339, UTC, milliseconds |
//! | `mcp.method.name` | `tools/call` or `tools/list` |
//! | `gen_ai.operation.name` | `execute_tool` for a call |
//! | `gen_ai.tool.name` | the name that was called: escaped, at most 128 characters of it |
//! | `enduser.id` | the [`Caller`] in the request's extensions |
//! | `algenta.outcome` | an [`Outcome`] |
//! | `error.type` | if it failed: a JSON-RPC error's code, `tool_error` for a result with `isError`, or [`Error::kind`](crate::Error::kind) |
//! | `rpc.response.status_code` | the code of the engine's JSON-RPC error |
//! | `algenta.reason` | what a refusal or a failure says of itself; never the engine's words |
//! | `algenta.gate` | the gate that denied; `_OTHER` for one that the contract does not name |
//! | `algenta.may_have_run` | `true` if an execution may have run that has no receipt: look at the decision before it is repeated |
//! | `mcp.client.operation.duration` | seconds |
//! | `algenta.stripped` | JSON pointers to the hidden fields that were removed, at most 64 |
//! | `algenta.stripped.count` | how many there were |
//! | `algenta.decision.id` | the decision, if the id is one path segment: escaped |
//! | `algenta.execution.status` | `delivered` or `failed`, from the receipt |
//! | `algenta.overrides` | of an operator's repeat: the switches that a human granted, also if the repeat was then refused |
//! | `algenta.policy_snapshot.id`, `algenta.schema_snapshot.id` | from the receipt, if they look like ids |
//!
//! It has no argument's value but the decision's id, nothing that the engine wrote but the two snapshots' ids, and no
//! token. The pointers hold keys that the model chose.
//!
//! # What it costs
//!
//! Six allocations for a clean call, its line in [`JsonLines`] included (`cargo test --test alloc`). A call without an
//! audit still has none.
//!
//! # What it does not see
//!
//! A process that is killed during a call leaves no record of that call. An operator's repeat does not pass through the
//! stack: [`Operator::audit`](crate::Operator::audit) records it.

mod caller;
#[cfg(feature = "tracing")]
mod events;
mod json_lines;
mod layer;
#[cfg(feature = "metrics")]
mod metrics;
mod outcome;
mod record;
mod repeat;
mod sink;
mod slot;
mod timestamp;
mod watched;

pub use caller::Caller;
#[cfg(feature = "tracing")]
pub use events::Events;
pub use json_lines::JsonLines;
pub use layer::{Audit, AuditLayer, OnSinkFailure, ResponseFuture};
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use outcome::Outcome;
pub use record::AuditRecord;
pub(crate) use repeat::{Repeated, Repeats};
pub use sink::{AuditSink, AuditUnavailable};
pub(crate) use slot::StrippedSlot;
