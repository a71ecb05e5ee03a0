#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::unwrap_used, clippy::dbg_macro, clippy::todo))]
//! Tower middleware that keeps an AI agent's MCP tool calls inside the profile it was given.

#[macro_use]
mod macros;

mod json;

pub mod hidden_fields;
mod profile;
mod tool_names;

pub use hidden_fields::{HiddenFields, Matching, NEVER_MODEL_FACING, Nested, OnHidden, Prose};
pub use profile::{ParseProfileError, Profile, ProfileFromExtensions, ToolPolicy};
pub use tool_names::ToolNames;
