//! What has to hold for a [`Value`] before recursion may touch it.
//!
//! A value that was built in memory can be deeper than any parser allows, and `serde_json`'s `Clone`, `PartialEq`,
//! `Serialize` and `Drop` all recurse: at a depth of some ten thousand they overflow the stack. So a value is
//! measured before it is walked, and one that is too deep is taken apart without recursion.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Containers that may stand inside each other: the limit of `serde_json`'s own parser.
pub(crate) const DEPTH_LIMIT: usize = 128;

/// Whether `value` nests at most `levels` containers.
pub(crate) fn is_within(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_within(item, levels - 1)),
        Value::Object(members) => object_is_within(members, levels),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Whether `members` nests at most `levels` containers, itself included.
pub(crate) fn object_is_within(members: &JsonObject, levels: usize) -> bool {
    levels > 0 && members.values().all(|value| is_within(value, levels - 1))
}

/// Whether `test`, which may give up, holds for one of `items`.
pub(crate) fn any<T, E>(
    items: impl IntoIterator<Item = T>,
    mut test: impl FnMut(T) -> Result<bool, E>,
) -> Result<bool, E> {
    for item in items {
        if test(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Drops `value` without recursion.
pub(crate) fn dismantle(value: Value) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items.into_iter().filter(is_container)),
            Value::Object(members) => {
                rest.extend(members.into_iter().map(|(_, value)| value).filter(is_container));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

const fn is_container(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        let mut value = Value::Null;
        for level in 0..levels {
            value = if level % 2 == 0 {
                Value::Array(vec![value])
            } else {
                let mut members = JsonObject::new();
                members.insert("a".to_owned(), value);
                Value::Object(members)
            };
        }
        value
    }

    #[test]
    fn the_limit_is_inclusive() {
        assert!(is_within(&nested(DEPTH_LIMIT), DEPTH_LIMIT));
        assert!(!is_within(&nested(DEPTH_LIMIT + 1), DEPTH_LIMIT));
        assert!(is_within(&Value::Null, 0));
    }

    #[test]
    fn a_value_deeper_than_the_stack_is_measured_and_dropped() {
        std::thread::Builder::new()
            .stack_size(256 * 1024)
            .spawn(|| {
                let value = nested(100_000);
                assert!(!is_within(&value, DEPTH_LIMIT));
                dismantle(value);
            })
            .and_then(|thread| thread.join().map_err(|_| std::io::Error::other("overflow")))
            .unwrap();
    }
}
