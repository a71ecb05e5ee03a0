//! Finds the JSON objects in a text that may be half prose.
//!
//! An object that parses is skipped whole: its inside is data. After a `{` that doesn't, the scan goes one byte on.
//! Done naively that is quadratic (`{"a":` repeated: 18.5 s at 256 KiB), so a scan has a budget of a small multiple of
//! the text's length; a text over the cap is not read at all.

use std::ops::Range;

use rmcp::model::JsonObject;
use serde::de::IgnoredAny;
use serde_json::Deserializer;

/// Bytes of a text that is read at all.
pub(crate) const TEXT_LIMIT: usize = 1 << 20;

/// Bytes that a scan may read for each byte of the text.
const PASSES: usize = 16;
/// And on top, so that a short text with many braces is not refused.
const ALLOWANCE: usize = 4096;

/// The text is longer than [`TEXT_LIMIT`], or the scan's budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// The outermost objects of a text, in order, each with the bytes that it spans.
pub(crate) struct Objects<'a> {
    text: &'a str,
    at: usize,
    budget: usize,
}

impl<'a> Objects<'a> {
    pub(crate) const fn of(text: &'a str) -> Result<Self, Unreadable> {
        if text.len() > TEXT_LIMIT {
            return Err(Unreadable);
        }
        Ok(Self { text, at: 0, budget: PASSES * text.len() + ALLOWANCE })
    }

    /// Charges for `bytes` that were read.
    fn charge(&mut self, bytes: usize) -> Result<(), Unreadable> {
        self.budget = self.budget.checked_sub(bytes).ok_or(Unreadable)?;
        Ok(())
    }

    fn next_object(&mut self) -> Result<Option<(JsonObject, Range<usize>)>, Unreadable> {
        while let Some(found) = self.text[self.at..].find('{') {
            let start = self.at + found;
            let rest = &self.text[start..];
            // Skipping first finds the end, and the errors, without building anything.
            let mut skipped = Deserializer::from_str(rest).into_iter::<IgnoredAny>();
            let first = skipped.next();
            if let Some(Ok(IgnoredAny)) = first {
                let len = skipped.byte_offset();
                self.charge(2 * len)?;
                // Fails where the skip is more lenient: a lone surrogate, a depth over 128, a number out of range.
                if let Ok(object) = serde_json::from_str::<JsonObject>(&rest[..len]) {
                    self.at = start + len;
                    return Ok(Some((object, start..start + len)));
                }
            } else if let Some(Err(error)) = first {
                self.charge(position(rest, &error).max(16))?;
            }
            self.at = start + 1;
        }
        Ok(None)
    }
}

impl Iterator for Objects<'_> {
    type Item = Result<(JsonObject, Range<usize>), Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_object().transpose();
        if matches!(next, Some(Err(Unreadable))) {
            self.at = self.text.len();
        }
        next
    }
}

/// Bytes that the parser read before `error`.
fn position(text: &str, error: &serde_json::Error) -> usize {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    before + error.column()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn objects(text: &str) -> Result<Vec<String>, Unreadable> {
        Objects::of(text)?.map(|found| found.map(|(object, _)| Value::Object(object).to_string())).collect()
    }

    #[test]
    fn prose_and_broken_objects_are_stepped_over() {
        assert_eq!(objects("no braces").unwrap(), [""; 0]);
        assert_eq!(objects(r#"a {b}: {"c":{"d":1}} e {"f":2"#).unwrap(), [r#"{"c":{"d":1}}"#]);
        assert_eq!(objects(r#"{"trace": [1,2, {"error":{"g":1}}"#).unwrap(), [r#"{"error":{"g":1}}"#]);
        assert_eq!(objects("{\"a\": \"{\\\"b\\\":1}\"}{\"c\":\n\n2}").unwrap().len(), 2);
    }

    #[test]
    fn hostile_texts_end_soon() {
        for piece in ["{", "{\"a\":", "{\"a\":[", "\"", "{\"", "{\"a\":\"{", "[{", "{\\", "{\"\\u00", "{}", "{ ", "{\n"]
        {
            let text = piece.repeat(TEXT_LIMIT / piece.len());
            let began = std::time::Instant::now();
            let _ = objects(&text);
            assert!(began.elapsed().as_secs() < 5, "{piece:?} took {:?}", began.elapsed());
        }
        assert_eq!(objects(&" ".repeat(TEXT_LIMIT + 1)), Err(Unreadable));
        assert_eq!(objects(&"{\"a\":".repeat(50_000)), Err(Unreadable));
    }

    #[test]
    fn an_object_that_is_too_deep_is_tried_from_its_next_brace() {
        let deep = |levels| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        assert_eq!(objects(&deep(130)).unwrap().len(), 1, "the innermost levels still parse");
        assert_eq!(objects(&deep(1000)), Err(Unreadable));
    }
}
