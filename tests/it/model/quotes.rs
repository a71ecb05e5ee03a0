//! What a model wrote into a call, and an answer may quote.

use serde_json::Value;

use super::found::{Found, objects_in};

/// Whether the arguments hold this very object, or the text of it.
pub(crate) fn holds(arguments: &Value, found: &Found) -> bool {
    holds_text(arguments, found) || objects(arguments).contains(&found.object)
}

/// Whether it could be a quote: what a scrub left of one, too.
pub(crate) fn may_hold(arguments: &Value, found: &Found) -> bool {
    holds_text(arguments, found) || objects(arguments).iter().any(|object| is_part_of(&found.object, object))
}

fn holds_text(arguments: &Value, found: &Found) -> bool {
    found.text.as_ref().is_some_and(|text| strings(arguments).iter().any(|string| string.contains(text.as_str())))
}

/// All texts in a value, keys too.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => {
            members.iter().flat_map(|(key, value)| [vec![key.clone()], strings(value)].concat()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// All objects in a value, those in its texts too.
fn objects(value: &Value) -> Vec<Value> {
    let inner: Vec<Value> = match value {
        Value::String(text) => objects_in(text, false).iter().flat_map(|found| objects(&found.object)).collect(),
        Value::Array(items) => items.iter().flat_map(objects).collect(),
        Value::Object(members) => {
            let of_member =
                |(key, value): (&String, &Value)| [objects(&Value::String(key.clone())), objects(value)].concat();
            members.iter().flat_map(of_member).chain([value.clone()]).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    inner
}

/// Whether `less` is `more` with members taken away.
fn is_part_of(less: &Value, more: &Value) -> bool {
    match (less, more) {
        (Value::Object(less), Value::Object(more)) => {
            less.iter().all(|(key, value)| more.get(key).is_some_and(|more| is_part_of(value, more)))
        }
        (Value::Array(less), Value::Array(more)) => {
            less.len() == more.len() && less.iter().zip(more).all(|(less, more)| is_part_of(less, more))
        }
        (less, more) => less == more,
    }
}
