//! From a tool's name on the wire to the name that the contract knows.

use std::sync::Arc;

use crate::profile::{EXECUTE_DECISION, is_contract_tool};

/// Characters of a name that a message quotes at the most.
pub(crate) const QUOTED_CHARS: usize = 128;

/// How the upstream spells the tools' names: bare, or with one prefix before each.
///
/// Turns a name on the wire into a logical one: exact bytes, the prefix taken off once. What goes over the wire is never
/// changed. Every layer takes a `ToolNames`, and all layers of a stack need the same one.
///
/// ```
/// # use tower_algenta::ToolNames;
/// let names = ToolNames::prefixed("eu__");
/// assert_eq!(names.logical("eu__simulate"), Some("simulate"));
/// assert_eq!(names.logical("simulate"), None); // some other server's tool
/// assert_eq!(ToolNames::bare().logical("simulate"), Some("simulate"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNames {
    prefix: Option<Arc<str>>,
}

impl ToolNames {
    /// The names as the contract spells them.
    #[must_use]
    pub const fn bare() -> Self {
        Self { prefix: None }
    }

    /// Names that the upstream puts `prefix` before. With one set, a bare name is not ours.
    pub fn prefixed(prefix: impl Into<Arc<str>>) -> Self {
        Self { prefix: Some(prefix.into()).filter(|prefix: &Arc<str>| !prefix.is_empty()) }
    }

    /// The logical name of the tool that the wire calls `wire`; `None` if it lacks the prefix.
    #[inline]
    #[must_use]
    pub fn logical<'a>(&self, wire: &'a str) -> Option<&'a str> {
        match &self.prefix {
            None => Some(wire),
            Some(prefix) => wire.strip_prefix(&**prefix),
        }
    }

    /// The wire name of the tool that the contract calls `logical`.
    #[must_use]
    pub fn wire(&self, logical: &str) -> String {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        [prefix, logical].concat()
    }

    /// Whether the wire calls `execute_decision` by `wire`.
    #[inline]
    pub(crate) fn is_execute_decision(&self, wire: &str) -> bool {
        self.logical(wire) == Some(EXECUTE_DECISION)
    }

    /// Whether `wire` would pass for `execute_decision` somewhere, but is not what these names call it.
    #[inline]
    pub(crate) fn is_look_alike(&self, wire: &str) -> bool {
        !self.is_execute_decision(wire) && ends_like_execute_decision(wire)
    }

    /// The logical name of `wire`, if it is one that a layer can vouch for: well formed, and no look-alike.
    ///
    /// Both names are looked at: a prefix of `execute_` would leave no more than `decision` of a look-alike.
    #[inline]
    pub(crate) fn vouched<'a>(&self, wire: &'a str) -> Option<&'a str> {
        let is_look_alike = |name| ends_like_execute_decision(name) || ends_like_execute_decision(wire);
        self.logical(wire).filter(|name| is_contract_tool(name) || (is_well_formed(name) && !is_look_alike(name)))
    }
}

/// The form that MCP gives tool names: 1 to 128 of `A`–`Z`, `a`–`z`, `0`–`9`, `_`, `-`, `.`.
fn is_well_formed(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// Whether the canonical form of `name` ends with that of `execute_decision`.
#[inline]
fn ends_like_execute_decision(name: &str) -> bool {
    // The last character settles it for most names, those beyond ASCII too: nothing joins it to what stands before.
    match name.as_bytes().last() {
        Some(last) if last.is_ascii_alphanumeric() && last.to_ascii_lowercase() != LAST => false,
        _ => spells_execute_decision(name),
    }
}

/// The last letter of the tool's name.
const LAST: u8 = EXECUTE_DECISION.as_bytes()[EXECUTE_DECISION.len() - 1];

fn spells_execute_decision(name: &str) -> bool {
    if !name.is_ascii() {
        return crate::hidden_fields::canonical(name).ends_with(&crate::hidden_fields::canonical(EXECUTE_DECISION));
    }
    let letters = |text: &'static str| text.bytes().rev().filter(u8::is_ascii_alphanumeric);
    let mut spelled = name.bytes().rev().filter(u8::is_ascii_alphanumeric);
    letters(EXECUTE_DECISION).all(|letter| spelled.next().is_some_and(|byte| byte.to_ascii_lowercase() == letter))
}

/// `name` as a message may quote it: escaped, and cut at 128 characters.
pub(crate) fn for_message(name: &str) -> String {
    let mut chars = name.chars();
    let mut quoted: String = chars.by_ref().take(QUOTED_CHARS).flat_map(escape).collect();
    if chars.next().is_some() {
        quoted.push('…');
    }
    quoted
}

fn escape(char: char) -> impl Iterator<Item = char> {
    // `escape_debug` leaves printable characters of all scripts alone and escapes what could drive a terminal.
    char.escape_debug()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_goes_once() {
        let names = ToolNames::prefixed("a_");
        assert_eq!(names.logical("a_a_simulate"), Some("a_simulate"));
        assert_eq!(names.wire("simulate"), "a_simulate");
        assert_eq!(ToolNames::prefixed("").logical("x"), Some("x"));
    }

    #[test]
    fn look_alikes_end_like_the_tool() {
        let names = ToolNames::bare();
        for name in [
            "Execute_Decision",
            "execute-decision",
            "executeDecision",
            "srv__execute_decision",
            "execute_decision ",
            "execute_decision\n",
            "ｅxecute_decision",
            "execute_decisi\u{200b}on",
        ] {
            assert!(names.is_look_alike(name), "{name:?}");
            assert_eq!(names.vouched(name), None, "{name:?}");
        }
        for name in ["execute_decision", "execute_decision_v2", "execute_capability", "decision", ""] {
            assert!(!names.is_look_alike(name), "{name:?}");
        }
        assert!(ToolNames::prefixed("a_").is_look_alike("execute_decision"));
        assert!(!ToolNames::prefixed("a_").is_look_alike("a_execute_decision"));
        assert_eq!(ToolNames::prefixed("execute_").vouched("execute_decision"), None);
        assert_eq!(ToolNames::prefixed("execute_").vouched("execute_execute_decision"), Some("execute_decision"));
    }

    #[test]
    fn malformed_names_are_not_vouched_for() {
        let names = ToolNames::bare();
        for name in ["", " simulate", "a b", "a\n", "größe", &"x".repeat(129)] {
            assert_eq!(names.vouched(name), None, "{name:?}");
        }
        for name in ["query_batch", "a.b-c", &"x".repeat(128)] {
            assert_eq!(names.vouched(name), Some(name));
        }
    }

    #[test]
    fn a_quoted_name_is_escaped_and_bounded() {
        assert_eq!(for_message("a\u{1b}[31m\n\""), "a\\u{1b}[31m\\n\\\"");
        assert_eq!(for_message(&"é".repeat(200)), format!("{}…", "é".repeat(128)));
    }
}
