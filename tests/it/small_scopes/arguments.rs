//! All arguments of up to three keys over six keys, six values and depth two, against the model.

use serde_json::{Map, Value, json};
use tower_algenta::HiddenFields;

use crate::model::{self, arguments::Object};

const KEYS: [&str; 6] = ["force", "overrideSafety", "metadata", "params", "a", "$serde_json::private::RawValue"];

/// Values that hold no key.
fn leaves() -> [Value; 6] {
    [json!(true), Value::Null, json!(1.5), json!("{\"force\":1}"), json!("{\"force\":NaN}"), json!("force")]
}

/// Every map of up to `most` of the keys, with every choice of values.
fn maps(keys: &[&str], most: usize, values: &[Value]) -> Vec<Object> {
    let Some((first, rest)) = keys.split_first() else { return vec![Map::new()] };
    let mut maps_without = maps(rest, most, values);
    if most > 0 {
        let smaller = maps(rest, most - 1, values);
        for value in values {
            maps_without.extend(smaller.iter().cloned().map(|mut map| {
                map.insert((*first).to_owned(), value.clone());
                map
            }));
        }
    }
    maps_without
}

#[track_caller]
fn compare(fields: &HiddenFields, tool: &str, arguments: &Object) {
    let mut actual = arguments.clone();
    match (model::arguments::scrubbed(tool, arguments), fields.scrub_arguments(tool, &mut actual)) {
        (None, Err(_)) => {}
        (Some(expected), Ok(stripped)) => {
            let is_clean = expected.arguments == *arguments && expected.rewritten.is_empty();
            assert_eq!(stripped.is_empty(), is_clean, "{tool} with {arguments:?}");
            for key in &expected.rewritten {
                actual[key] = serde_json::from_str(actual[key].as_str().unwrap()).unwrap();
            }
            assert_eq!(actual, expected.arguments, "{tool} with {arguments:?}");
        }
        (expected, actual) => panic!("{tool} with {arguments:?}: {expected:?}, but {actual:?}"),
    }
}

/// Flat: six leaves under up to three keys. Nested: one key of the three holds an object or an array with up to one key
/// in it, which is depth two.
#[test]
fn all_small_arguments_arrive_as_in_the_model() {
    let fields = HiddenFields::new();
    let leaves = leaves();
    let mut cases = 0;
    let mut all = maps(&KEYS, 3, &leaves);
    let inner: Vec<Value> = maps(&KEYS, 1, &leaves)
        .into_iter()
        .flat_map(|map| [Value::Object(map.clone()), json!([Value::Object(map)])])
        .collect();
    let beside = [json!(true), json!("{\"force\":1}")];
    for (at, key) in KEYS.iter().enumerate() {
        let others: Vec<&str> =
            KEYS.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, key)| *key).collect();
        for rest in maps(&others, 2, &beside) {
            for value in &inner {
                let mut map = rest.clone();
                map.insert((*key).to_owned(), value.clone());
                all.push(map);
            }
        }
    }
    for arguments in &all {
        for tool in ["execute_decision", "simulate", "query_batch"] {
            compare(&fields, tool, arguments);
            cases += 1;
        }
    }
    // 6 keys: 1 + 6·6 + 15·36 + 20·216 flat; 6 · 74 · (1 + 5·2 + 10·4) nested; for three tools.
    assert_eq!(cases, 3 * (1 + 36 + 540 + 4320 + 6 * 74 * 51));
}
