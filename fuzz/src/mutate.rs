//! Changes JSON and keeps it JSON: nearly every byte that is changed by chance breaks it.
//!
//! Data is lines, each of them a document. Now and then libFuzzer's own mutator has its turn, so that what is no JSON,
//! or JSON that no writer would write, is tried as well.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Value, json};

use crate::{
    random::Random,
    words::{PIECES, WORDS},
};

/// One turn in so many is libFuzzer's.
const RAW: usize = 8;

/// Changes the first `size` bytes of `data`, to `max_size` bytes at the most. Returns how many there are now.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = random(seed);
    if !random.one_in(RAW) {
        let changed = change_line(&data[..size], &mut random, |document, random| {
            for _ in 0..=random.below(3) {
                edit(document, random);
            }
        });
        if let Some(changed) = changed.filter(|changed| changed.len() <= max_size) {
            data[..changed.len()].copy_from_slice(&changed);
            return changed.len();
        }
    }
    fuzzer_mutate(data, size, max_size)
}

/// Puts something of `other` into `one`. Returns how long it is in `out`; nought if nothing came of it.
pub fn cross(one: &[u8], other: &[u8], out: &mut [u8], seed: u32) -> usize {
    let mut random = random(seed);
    let lines: Vec<&[u8]> = other.split(|byte| *byte == b'\n').collect();
    let Ok(mut donor) = serde_json::from_slice::<Value>(lines[random.below(lines.len())]) else { return 0 };
    let crossed = change_line(one, &mut random, |document, random| {
        let graft = any_node(&mut donor, random).clone();
        *any_node(document, random) = graft;
    });
    match crossed.filter(|crossed| crossed.len() <= out.len()) {
        Some(crossed) => {
            out[..crossed.len()].copy_from_slice(&crossed);
            crossed.len()
        }
        None => 0,
    }
}

fn random(seed: u32) -> Random {
    // Seeds that follow each other have to begin differently.
    let mut random = Random::new((u64::from(seed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.below(2);
    random
}

/// `data` with one of its lines changed; `None` if that line is no JSON.
fn change_line(data: &[u8], random: &mut Random, change: impl FnOnce(&mut Value, &mut Random)) -> Option<Vec<u8>> {
    let mut lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let at = random.below(lines.len());
    let mut document = serde_json::from_slice(lines[at]).ok()?;
    change(&mut document, random);
    let written = document.to_string();
    lines[at] = written.as_bytes();
    Some(lines.join(&b'\n'))
}

fn edit(document: &mut Value, random: &mut Random) {
    let graft = match random.below(4) {
        0 | 1 => leaf(random),
        2 => any_node(document, random).clone(),
        _ => json!({key(random): any_node(document, random).clone()}),
    };
    let place = any_node(document, random);
    match (random.below(8), &mut *place) {
        (0, _) => *place = graft,
        (1, _) => *place = json!([place.take()]),
        (2, _) => *place = json!({key(random): place.take()}),
        (3, Value::Object(_) | Value::Array(_)) => *place = Value::String(place.to_string()),
        (4, Value::Object(_) | Value::Array(_)) => *place = any_node(place, random).take(),
        (_, Value::Object(members)) => {
            let keys: Vec<String> = members.keys().cloned().collect();
            let known = if keys.is_empty() { key(random) } else { keys[random.below(keys.len())].clone() };
            match random.below(4) {
                0 => drop(members.remove(&known)),
                1 => {
                    if let Some(value) = members.remove(&known) {
                        members.insert(key(random), value);
                    }
                }
                2 => drop(members.insert(known, graft)),
                _ => drop(members.insert(key(random), graft)),
            }
        }
        (_, Value::Array(items)) => {
            let at = random.below(items.len() + 1);
            match (random.below(3), items.get(at).cloned()) {
                (0, Some(_)) => drop(items.remove(at)),
                (1, Some(twice)) => items.insert(at, twice),
                _ => items.insert(at, graft),
            }
        }
        (_, Value::String(text)) => edit_text(text, random),
        (_, Value::Null | Value::Bool(_) | Value::Number(_)) => *place = graft,
    }
}

fn edit_text(text: &mut String, random: &mut Random) {
    if let Ok(mut document @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
        && !random.one_in(3)
    {
        edit(&mut document, random);
        *text = document.to_string();
        return;
    }
    let boundary = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (start, end) = (boundary(random.below(text.len() + 1)), boundary(random.below(text.len() + 1)));
    match random.below(6) {
        0 => random.pick(WORDS).clone_into(text),
        1 => text.replace_range(start.min(end)..start.max(end), ""),
        2 => text.insert_str(start, &key(random)),
        _ => text.insert_str(start, random.pick(PIECES)),
    }
}

fn leaf(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => Value::Bool(random.one_in(2)),
        2 => [0, 1, 2, 200, 404, 409, 500, u64::MAX][random.below(8)].into(),
        3 => [-1.5, 1e23, 0.1, 409.0][random.below(4)].into(),
        _ => random.pick(WORDS).into(),
    }
}

/// A word, now and then in another spelling.
fn key(random: &mut Random) -> String {
    let word = random.pick(WORDS);
    match random.below(8) {
        0 => word.to_uppercase(),
        1 => {
            let at = random.below(word.chars().count() + 1);
            let noise = random.pick(&["_", "-", " ", "\0", "\u{200b}", "\u{301}", "/", ".", "x"]);
            word.chars().take(at).chain(noise.chars()).chain(word.chars().skip(at)).collect()
        }
        2 => word.replace('_', ""),
        _ => word.to_owned(),
    }
}

fn any_node<'a>(document: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let at = random.below(nodes(document));
    node(document, at)
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        _ => 0,
    }
}

/// The node that comes after `at` others.
fn node(value: &mut Value, mut at: usize) -> &mut Value {
    if at == 0 {
        return value;
    }
    at -= 1;
    let children: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => Vec::new(),
    };
    for child in children {
        let inside = nodes(child);
        if at < inside {
            return node(child, at);
        }
        at -= inside;
    }
    unreachable!("there are as many nodes as were counted")
}
