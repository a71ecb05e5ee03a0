//! What of a call's arguments and `_meta` arrives.

use super::{is_hidden, is_hidden_in_meta, is_private, names, text};
use serde_json::{Map, Value};

pub(crate) type Object = Map<String, Value>;

/// The arguments that have to arrive, with the keys whose value is JSON text that was written anew: of these the
/// value counts, not the spelling.
#[derive(Debug, PartialEq)]
pub(crate) struct Forwarded {
    pub(crate) arguments: Object,
    pub(crate) rewritten: Vec<String>,
}

/// How deep a switch is one in this tool.
enum Scope {
    /// The six tools without gates: nested values are data.
    TopLevel,
    /// Everywhere but under the argument of this name.
    Everywhere { except: Option<&'static str> },
}

fn scope(tool: &str) -> Scope {
    match tool {
        "execute_decision" => Scope::Everywhere { except: Some("metadata") },
        tool if names::CONTRACT.contains(&tool) => Scope::TopLevel,
        _ => Scope::Everywhere { except: None },
    }
}

/// `None`: the call is refused.
pub(crate) fn scrubbed(tool: &str, arguments: &Object) -> Option<Forwarded> {
    if depth(&Value::Object(arguments.clone())) > 128 {
        return None;
    }
    let mut forwarded = Forwarded { arguments: Object::new(), rewritten: Vec::new() };
    for (key, value) in arguments {
        if is_hidden(key) {
            continue;
        }
        let searched = match scope(tool) {
            Scope::TopLevel => false,
            Scope::Everywhere { except } => except != Some(key.as_str()),
        };
        let value = match value {
            Value::String(json) if searched => match text::read(json) {
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
            value if searched => text::without_hidden_keys(value),
            value => without_private_keys(value),
        };
        forwarded.arguments.insert(key.clone(), value);
    }
    Some(forwarded)
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

/// `_meta` is no tool's data: hidden keys go at every depth.
pub(crate) fn scrubbed_meta(meta: &Object) -> Object {
    fn walk(value: &Value) -> Value {
        match value {
            Value::Object(map) => Value::Object(scrubbed_meta(map)),
            Value::Array(items) => items.iter().map(walk).collect(),
            other => other.clone(),
        }
    }
    meta.iter().filter(|(key, _)| !is_hidden_in_meta(key)).map(|(key, value)| (key.clone(), walk(value))).collect()
}

/// How many objects and arrays lie around the innermost one.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
