//! All arguments of up to three keys over six keys, six values and depth two, against the model.
//!
//! A value is one of six leaves, or an object or an array of one with up to three keys in it, whose values are leaves. If
//! that may stand under each of the three keys, there are 10¹³ maps, so two cuts are made, and each is whole: one key holds
//! anything and the others a leaf, and every key holds anything with up to one key in it. In a usual run the cuts are
//! smaller, as each test says. All of both are 99,954,306 cases, which take a core ten minutes, and none differs:
//!
//! ```sh
//! SMALL_SCOPES=whole cargo test --release --test it small_scopes::arguments
//! ```

use serde_json::{Map, Value, json};
use tower_algenta::HiddenFields;

use crate::model::{self, arguments::Object};

const KEYS: [&str; 6] = ["force", "overrideSafety", "metadata", "params", "a", "$serde_json::private::RawValue"];

const TOOLS: [&str; 3] = ["execute_decision", "simulate", "query_batch"];

/// Values that hold no key.
fn leaves() -> Vec<Value> {
    vec![json!(true), Value::Null, json!(1.5), json!("{\"force\":1}"), json!("{\"force\":NaN}"), json!("force")]
}

/// Shows `visit` every map of up to `most` of the keys, with every choice of values, `map` included in each.
fn each_map(keys: &[&str], most: usize, values: &[Value], map: &mut Object, visit: &mut dyn FnMut(&mut Object)) {
    let Some((key, rest)) = keys.split_first().filter(|_| most > 0) else { return visit(map) };
    each_map(rest, most, values, map, visit);
    for value in values {
        map.insert((*key).to_owned(), value.clone());
        each_map(rest, most - 1, values, map, visit);
    }
    map.remove(*key);
}

/// Every object of up to `most` keys that hold leaves, and every array of one.
fn containers(most: usize) -> Vec<Value> {
    let mut found = Vec::new();
    each_map(&KEYS, most, &leaves(), &mut Map::new(), &mut |map| {
        found.extend([Value::Object(map.clone()), json!([map])]);
    });
    found
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

/// Compares what each tool receives of up to `most` keys with these values. How many maps that were.
fn compare_all(keys: &[&str], most: usize, values: &[Value], map: &mut Object) -> usize {
    let fields = HiddenFields::new();
    let mut maps = 0;
    each_map(keys, most, values, map, &mut |map| {
        for tool in TOOLS {
            compare(&fields, tool, map);
        }
        maps += 1;
    });
    maps
}

/// Under one key what has up to `inner` keys; leaves under up to `beside` others.
fn below_one_key(inner: usize, beside: usize) -> usize {
    let (leaves, containers) = (leaves(), containers(inner));
    let mut maps = 0;
    for key in KEYS {
        let others: Vec<&str> = KEYS.into_iter().filter(|other| *other != key).collect();
        for value in &containers {
            let mut map = Map::from_iter([(key.to_owned(), value.clone())]);
            maps += compare_all(&others, beside, &leaves, &mut map);
        }
    }
    maps
}

fn is_whole() -> bool {
    std::env::var("SMALL_SCOPES").is_ok_and(|scopes| scopes == "whole")
}

#[test]
fn all_small_arguments_arrive_as_in_the_model() {
    let maps = compare_all(&KEYS, 3, &leaves(), &mut Map::new());
    assert_eq!(maps, 1 + 6 * 6 + 15 * 6_usize.pow(2) + 20 * 6_usize.pow(3));
}

/// Beside two others that hold leaves, up to three keys are below one, or one if the scope is cut; so are up to three of
/// them below a key that is alone.
#[test]
fn all_small_arguments_below_one_key_arrive_as_in_the_model() {
    let objects = |most: usize| [1, 1 + 36, 1 + 36 + 540, 1 + 36 + 540 + 4320][most];
    let beside = [1, 1 + 5 * 6, 1 + 5 * 6 + 10 * 36];
    let cuts: &[(usize, usize)] = if is_whole() { &[(3, 2)] } else { &[(1, 2), (3, 0)] };
    for &(inner, others) in cuts {
        assert_eq!(below_one_key(inner, others), 6 * 2 * objects(inner) * beside[others], "{inner} and {others}");
    }
}

/// Up to one key is below each of three keys, or of two if the scope is cut; then no arrays are tried.
#[test]
fn all_small_arguments_below_every_key_arrive_as_in_the_model() {
    let mut values = leaves();
    values.extend(containers(1).into_iter().filter(|value| is_whole() || value.is_object()));
    let most = if is_whole() { 3 } else { 2 };
    let maps = compare_all(&KEYS, most, &values, &mut Map::new());
    let expected = |count: usize| 1 + 6 * count + 15 * count.pow(2);
    assert_eq!(maps, if is_whole() { expected(80) + 20 * 80_usize.pow(3) } else { expected(43) });
}
