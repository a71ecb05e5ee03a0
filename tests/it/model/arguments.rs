//! What of a call's arguments and `_meta` arrives.

use super::{Matching, is_private, names, text};
use serde_json::{Map, Value};

pub(crate) type Object = Map<String, Value>;

/// The arguments that have to arrive, with the keys whose value is JSON text that was written anew: of these the
/// value counts, not the spelling.
#[derive(Debug, PartialEq)]
pub(crate) struct Forwarded {
    pub(crate) arguments: Object,
    pub(crate) rewritten: Vec<String>,
}

/// What becomes of a switch below the top level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Nested {
    /// As the tool's contract has it.
    #[default]
    Contract,
    /// It goes, in every tool and under `metadata` too.
    Strip,
    /// It stays, in every tool.
    Keep,
    /// It refuses the call, in every tool.
    Refuse,
}

/// The knobs. Left alone they are the contract's rules.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) nested: Nested,
    pub(crate) matching: Matching,
    /// Whether anything that would go refuses the call instead.
    pub(crate) refuses: bool,
}

/// How deep a switch is one in this tool.
enum Scope {
    /// The six tools without gates: nested values are data.
    TopLevel,
    /// Everywhere but under the argument of this name.
    Everywhere { except: Option<&'static str> },
}

fn scope(nested: Nested, tool: &str) -> Scope {
    match (nested, tool) {
        (Nested::Keep, _) => Scope::TopLevel,
        (Nested::Contract, "execute_decision") => Scope::Everywhere { except: Some("metadata") },
        (Nested::Contract, tool) if names::CONTRACT.contains(&tool) => Scope::TopLevel,
        (Nested::Contract | Nested::Strip | Nested::Refuse, _) => Scope::Everywhere { except: None },
    }
}

/// By the contract's rules. `None`: the call is refused.
pub(crate) fn scrubbed(tool: &str, arguments: &Object) -> Option<Forwarded> {
    scrubbed_by(Rules::default(), tool, arguments)
}

/// `None`: the call is refused.
pub(crate) fn scrubbed_by(rules: Rules, tool: &str, arguments: &Object) -> Option<Forwarded> {
    if depth(&Value::Object(arguments.clone())) > 128 {
        return None;
    }
    let mut forwarded = Forwarded { arguments: Object::new(), rewritten: Vec::new() };
    let (mut lost, mut lost_below) = (false, false);
    for (key, value) in arguments {
        if rules.matching.hides(key) {
            lost = true;
            continue;
        }
        let searched = match scope(rules.nested, tool) {
            Scope::TopLevel => false,
            Scope::Everywhere { except } => except != Some(key.as_str()),
        };
        let kept = match value {
            Value::String(json) if searched => match text::read_by(rules.matching, json) {
                text::Text::Unchanged => value.clone(),
                // The receipt has to name the decision and the webhook that the call named.
                text::Text::Changed(_)
                    if tool == "execute_decision" && ["decision_id", "webhook_url"].contains(&&**key) =>
                {
                    return None;
                }
                text::Text::Changed(document) => {
                    forwarded.rewritten.push(key.clone());
                    document
                }
                text::Text::Doubtful => return None,
            },
            value if searched => text::without_hidden_keys_by(rules.matching, value),
            value => without_private_keys(value),
        };
        lost_below |= kept != *value;
        forwarded.arguments.insert(key.clone(), kept);
    }
    let refused = rules.refuses && (lost || lost_below) || rules.nested == Nested::Refuse && lost_below;
    (!refused).then_some(forwarded)
}

/// The private keys go everywhere, for what they become depends on the build.
fn without_private_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !is_private(key))
            .map(|(key, value)| (key.clone(), without_private_keys(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_private_keys).collect(),
        other => other.clone(),
    }
}

/// What is left of `_meta` by the contract's rules.
pub(crate) fn scrubbed_meta(meta: &Object) -> Object {
    scrubbed_meta_by(Rules::default(), meta).expect("nothing refuses it")
}

/// `_meta` is no tool's data: hidden keys go at every depth. `None`: the call is refused.
pub(crate) fn scrubbed_meta_by(rules: Rules, meta: &Object) -> Option<Object> {
    fn walk(matching: Matching, value: &Value) -> Value {
        match value {
            Value::Object(map) => map
                .iter()
                .filter(|(key, _)| !matching.hides_in_meta(key))
                .map(|(key, value)| (key.clone(), walk(matching, value)))
                .collect(),
            Value::Array(items) => items.iter().map(|item| walk(matching, item)).collect(),
            other => other.clone(),
        }
    }
    let before = Value::Object(meta.clone());
    match walk(rules.matching, &before) {
        after if rules.refuses && after != before => None,
        Value::Object(after) => Some(after),
        _ => unreachable!("an object stays one"),
    }
}

/// How many objects and arrays lie around the innermost one.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
