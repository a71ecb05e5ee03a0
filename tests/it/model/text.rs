//! JSON text inside a string argument: some servers decode it.

use super::Matching;
use serde_json::Value;

/// What becomes of one string.
#[derive(Debug, PartialEq)]
pub(crate) enum Text {
    Unchanged,
    /// The document that has to be in the string afterwards.
    Changed(Value),
    /// Only a laxer parser reads it, and it names a switch.
    Doubtful,
}

pub(crate) fn read(text: &str) -> Text {
    read_by(Matching::Canonical, text)
}

pub(crate) fn read_by(matching: Matching, text: &str) -> Text {
    // Some readers skip a byte order mark or a control character like white space.
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}');
    if !text.starts_with(['{', '[']) {
        return Text::Unchanged;
    }
    match serde_json::from_str::<Value>(text) {
        // Whoever keeps the first of two members sees what `document` has lost, so the text decides.
        Ok(document) if names_a_switch(matching, text, '"') => {
            Text::Changed(without_hidden_keys_by(matching, &document))
        }
        Err(_) if ['"', '\''].iter().any(|quote| names_a_switch(matching, text, *quote)) => Text::Doubtful,
        Ok(_) | Err(_) => Text::Unchanged,
    }
}

pub(crate) fn without_hidden_keys(value: &Value) -> Value {
    without_hidden_keys_by(Matching::Canonical, value)
}

pub(crate) fn without_hidden_keys_by(matching: Matching, value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !matching.hides(key))
            .map(|(key, value)| (key.clone(), without_hidden_keys_by(matching, value)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| without_hidden_keys_by(matching, item)).collect(),
        other => other.clone(),
    }
}

/// Whether, from any quote to the next one that no backslash escapes, a hidden name stands before a colon.
fn names_a_switch(matching: Matching, text: &str, quote: char) -> bool {
    let chars: Vec<char> = text.chars().collect();
    (0..chars.len()).filter(|&open| chars[open] == quote && !is_escaped(&chars, open)).any(|open| {
        let Some((name, close)) = quoted(&chars, open) else {
            return false;
        };
        let after = chars[close + 1..].iter().find(|c| !c.is_whitespace());
        after == Some(&':') && matching.hides(&name)
    })
}

/// Whether an odd number of backslashes stands before.
fn is_escaped(chars: &[char], at: usize) -> bool {
    chars[..at].iter().rev().take_while(|c| **c == '\\').count() % 2 == 1
}

/// What the quote at `open` begins, with its escapes decoded, and where it ends.
fn quoted(chars: &[char], open: usize) -> Option<(String, usize)> {
    let mut name: Vec<u16> = Vec::new();
    let mut at = open + 1;
    loop {
        let c = *chars.get(at)?;
        if c == chars[open] {
            return Some((String::from_utf16_lossy(&name), at));
        }
        at += 1;
        if c != '\\' {
            name.extend(c.to_string().encode_utf16());
            continue;
        }
        let escaped = *chars.get(at)?;
        at += 1;
        let hex = |len: usize| {
            let digits: String = chars[at..].iter().take(len).take_while(|c| c.is_ascii_hexdigit()).collect();
            if digits.len() == len { u16::from_str_radix(&digits, 16).ok() } else { None }
        };
        match escaped {
            'u' | 'x' => {
                let len = if escaped == 'u' { 4 } else { 2 };
                // A reader that takes a broken escape may drop it.
                if let Some(unit) = hex(len) {
                    name.push(unit);
                    at += len;
                }
            }
            // White space and control characters: no letters of a name.
            'b' | 'f' | 'n' | 'r' | 't' | 'v' | '0' => name.push(u16::from(b' ')),
            // Not JSON. A reader that takes it drops the backslash.
            other => name.extend(other.to_string().encode_utf16()),
        }
    }
}
