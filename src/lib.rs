#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::unwrap_used, clippy::dbg_macro, clippy::todo))]
//! Tower middleware that keeps an AI agent's MCP tool calls inside the profile it was given.

#[macro_use]
mod macros;

pub mod argument_scrub;
#[cfg(feature = "client")]
pub mod client;
mod decision;
mod denial;
pub mod error;
mod events;
pub mod governance;
mod json;
pub mod operator;
mod outcome;
pub mod profile_filter;
mod receipt;
pub mod receipt_mapping;
mod refusal;
mod request;
mod response;
pub mod schema_scrub;
pub mod toolset;

pub mod hidden_fields;
mod profile;
#[cfg(feature = "stub")]
pub mod stub;
mod tool_names;

pub use argument_scrub::{ArgumentScrub, ArgumentScrubLayer};
#[cfg(feature = "client")]
pub use client::{BearerToken, Endpoint, EngineClient};
pub use decision::ExecuteDecision;
pub use denial::{Denial, ExecutionBlocked, Gate, NotADenial};
pub use error::{BoxError, Error};
pub use governance::{Governance, GovernanceLayer};
pub use hidden_fields::{HiddenFields, Matching, NEVER_MODEL_FACING, Nested, OnHidden, Prose, Stripped};
pub use operator::Operator;
pub use profile::{ParseProfileError, Profile, ProfileFromExtensions, ToolPolicy};
pub use profile_filter::{ProfileFilter, ProfileFilterLayer};
pub use receipt::{ExecutionReceipt, ExecutionStatus, NotAReceipt};
pub use receipt_mapping::{ReceiptMapping, ReceiptMappingLayer};
pub use request::{NotAToolRequest, ToolRequest};
pub use response::{CallOutcome, NotAToolResponse, ToolResponse};
pub use schema_scrub::{SchemaScrub, SchemaScrubLayer};
#[cfg(feature = "stub")]
pub use stub::StubEngine;
pub use tool_names::ToolNames;
pub use toolset::{BoxToolService, Toolset, ToolsetBuilder};
