//! The JSON objects of an answer, and what it takes to find them.

use serde_json::Value;

/// An object that somebody could read as an answer, or as a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) object: Value,
    /// As it is written, if it stands in a text.
    pub(crate) text: Option<String>,
    /// Whether it is all of a text, or the structured content: what is said, and not what is quoted.
    pub(crate) is_whole: bool,
}

/// The objects of a value that is no answer as a whole.
pub(crate) fn objects_of(value: &Value) -> Vec<Found> {
    match value {
        Value::Object(_) => vec![Found { object: value.clone(), text: None, is_whole: false }],
        Value::Array(items) => items.iter().flat_map(objects_of).collect(),
        Value::String(text) => objects_in(text, false),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The objects of a text. One that parses is skipped whole; after a brace that opens none, one byte on.
///
/// `may_be_whole`: whether the text, if it is one object, is an answer.
pub(crate) fn objects_in(text: &str, may_be_whole: bool) -> Vec<Found> {
    scan(text)
        .0
        .into_iter()
        .map(|(object, span)| Found {
            object,
            is_whole: may_be_whole && span == text.trim(),
            text: Some(span.to_owned()),
        })
        .collect()
}

/// The objects of a text as they are written, and how many braces open none.
fn scan(text: &str) -> (Vec<(Value, &str)>, usize) {
    let (mut found, mut in_vain) = (Vec::new(), 0);
    let mut at = 0;
    while at < text.len() {
        if text.as_bytes()[at] == b'{' {
            let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter();
            if let Some(Ok(object)) = stream.next() {
                found.push((object, &text[at..at + stream.byte_offset()]));
                at += stream.byte_offset();
                continue;
            }
            in_vain += 1;
        }
        at += 1;
    }
    (found, in_vain)
}

/// All texts that are searched in a `CallToolResult`.
pub(crate) fn texts_of_result(result: &Value) -> Vec<String> {
    let mut texts = texts_of(&result["structuredContent"]);
    for block in result["content"].as_array().into_iter().flatten() {
        texts.extend(
            [&block["text"], &block["resource"]["text"]].into_iter().filter_map(Value::as_str).map(str::to_owned),
        );
    }
    texts
}

/// All texts that are searched in a value; what stands in an object is its own.
pub(crate) fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}

/// Whether a scan may give up: its budget is a small multiple of a text, which a few braces in vain don't use up, nor
/// some more in a line of prose; and together the texts may count as one.
pub(crate) fn may_be_too_hard(texts: &[String]) -> bool {
    let is_hard = |text: &String| scan(text).1 * text.len() > 4 * text.len() + 1024;
    // A text may be read twice, as itself and as the message in it.
    let len: usize = texts.iter().map(String::len).sum();
    2 * len > super::outcome::TEXT_CAP || texts.iter().any(is_hard)
}
