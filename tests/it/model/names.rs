//! Which names a profile reaches.

use super::canonical;

const OBSERVE: [&str; 4] = ["get_contract", "query_data", "simulate", "recommend"];
const GOVERN: [&str; 2] = ["plan_decision", "log_decision"];
const EXECUTE: &str = "execute_decision";

/// The seven names of the contract.
pub(crate) const CONTRACT: [&str; 7] =
    ["get_contract", "query_data", "simulate", "recommend", "plan_decision", "log_decision", "execute_decision"];

/// What the engine calls a tool, once the configured prefix is off. `None`: with a prefix set, a name without it is
/// not ours.
pub(crate) fn logical<'a>(prefix: &str, wire: &'a str) -> Option<&'a str> {
    if prefix.is_empty() { Some(wire) } else { wire.strip_prefix(prefix) }
}

/// Whether a call of this wire name goes through, and a tool of this name is listed.
pub(crate) fn allowed(profile: &str, prefix: &str, wire: &str) -> bool {
    let Some(name) = logical(prefix, wire) else {
        return false;
    };
    let observe = OBSERVE.contains(&name);
    let govern = observe || GOVERN.contains(&name);
    let execute = govern || name == EXECUTE;
    match profile {
        "observe" => observe,
        "govern" => govern,
        "execute" => execute,
        "full" => execute || (well_formed(name) && ![name, wire].into_iter().any(ends_like_execute)),
        other => unreachable!("no profile is called {other}"),
    }
}

/// Of a name that isn't the tool's: it would pass the filter of `full` and miss the receipt mapping, or the engine could
/// take it for the tool.
fn ends_like_execute(name: &str) -> bool {
    canonical(name).ends_with("executedecision")
}

/// MCP's own rule for tool names.
fn well_formed(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}
