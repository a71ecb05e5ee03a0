//! `StubEngine`: an engine on a real socket, deterministic, that remembers what arrived.
//!
//! A streamable-HTTP MCP server made with rmcp, for examples, for this crate's tests, and for yours. It speaks both
//! generations of the protocol (sessions opened by `initialize`, and stateless 2026-07-28), answers in the shapes that
//! were recorded from real servers, and keeps its own book of decisions, so that a second execution is denied. Nothing
//! is ever sent to a webhook.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use tower_algenta::stub::{StubEngine, Wire};
//!
//! let engine = StubEngine::builder().wire(Wire::FastMcp).token("secret").start().await?;
//! assert!(engine.url().starts_with("http://127.0.0.1:"));
//!
//! // … hand `engine.url()` to a client, let it call tools, then ask the engine's own record …
//! assert!(engine.received().is_empty());
//! assert_eq!(engine.executed("decision-hold"), 0);
//! engine.shutdown().await;
//! # std::io::Result::Ok(()) }).unwrap();
//! ```
//!
//! # Decisions
//!
//! `execute_decision` runs any decision, once, unless a gate holds it. The gates are asked in the order `idempotency`,
//! `confidence`, `risk_floor`, and the first that objects denies. `log_decision` records a decision as
//! `decision-<chosen_action>` with the confidence that it was given; these are known from the start:
//!
//! | decision | what happens |
//! |---|---|
//! | `decision-low-confidence` | denied by `confidence` |
//! | `decision-low-risk-floor` | denied by `risk_floor` |
//! | `decision-two-gates` | delivered before: denied by `idempotency`, and by `confidence` once that is overridden |
//! | `decision-failed-delivery` | runs; the webhook answers 500, so the receipt says `failed`, and it may run again |
//! | `decision-malformed-receipt` | runs; the receipt lacks `execution_status` |
//!
//! # Bad input
//!
//! Missing or mistyped arguments get the real server's 400 `invalid_arguments` envelope; arguments that the schema does
//! not name are ignored, as the real server does. A tool that does not exist, or a cursor that the engine did not hand
//! out, is a JSON-RPC error −32602. Without the token, where one is set, every request is answered 401.

mod decisions;
mod engine;
mod fault;
mod front;
mod record;
mod server;
mod tools;
mod wire;

pub use engine::{StubEngine, StubEngineBuilder};
pub use fault::Fault;
pub use record::{Execution, RawRequest, Received};
pub use wire::{ParseWireError, Wire};
