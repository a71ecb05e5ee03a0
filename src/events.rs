//! What the layers report through `tracing`; without that feature, nothing.
//!
//! No event holds an argument's value, a text of the engine's or a token.

#![cfg_attr(not(feature = "tracing"), expect(clippy::missing_const_for_fn, reason = "they have a body with `tracing`"))]

use crate::hidden_fields::Stripped;

/// Hidden fields were removed from a call.
pub(crate) fn stripped(tool: &str, stripped: &Stripped) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "tower_algenta",
        tool = %crate::tool_names::for_message(tool),
        fields = stripped.len(),
        pointers = ?stripped,
        "hidden fields stripped from a call"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (tool, stripped);
}

/// A name was advertised more than once; the first tool stays.
pub(crate) fn duplicate_tool(tool: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "tower_algenta",
        tool = %crate::tool_names::for_message(tool),
        "duplicate tool name: the later one is not listed"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = tool;
}

/// A tool's name gives no flat name that is its alone.
pub(crate) fn no_flat_name(tool: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "tower_algenta",
        tool = %crate::tool_names::for_message(tool),
        "a tool has no flat name: it is not listed, and a call of it is refused"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = tool;
}

/// A record of the audit was not written.
pub(crate) fn audit_record_lost(error: &std::io::Error, failures: u64) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: "tower_algenta", %error, failures, "an audit record was lost");
    #[cfg(not(feature = "tracing"))]
    let _ = (error, failures);
}

/// No connection to an engine came about; there will be another attempt.
#[cfg(feature = "client")]
pub(crate) fn not_connected(error: &crate::Error) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "tower_algenta", %error, "an engine could not be connected to");
    #[cfg(not(feature = "tracing"))]
    let _ = error;
}

/// A receipt says that the safety gates were overridden, and nobody did.
pub(crate) fn safety_overridden() {
    #[cfg(feature = "tracing")]
    tracing::error!(target: "tower_algenta", "a receipt reports a safety override that nobody made");
}
