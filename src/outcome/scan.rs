//! Finds the JSON objects in a text that may be half prose.
//!
//! An object that parses is skipped whole: its inside is data. After a `{` that doesn't, the scan goes one byte on.
//! Done naively that is quadratic (`{"a":` repeated: 18.5 s at 256 KiB), so a scan has a budget of a small multiple of
//! the text's length; a text over the cap is not read at all.

use std::ops::Range;

use memchr::memchr;
use rmcp::model::JsonObject;

use super::skip::{Open, Skipped, skip_object};

/// Bytes of a text that is read at all.
pub(crate) const TEXT_LIMIT: usize = 1 << 20;

/// Bytes that a scan may read for each byte of the text.
const PASSES: usize = 16;
/// And on top, so that a short text with many braces is not refused.
const ALLOWANCE: usize = 4096;

/// The text is longer than [`TEXT_LIMIT`], or the scan's budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// An object that stands in a text.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) object: JsonObject,
    /// The bytes that it takes up.
    pub(crate) span: Range<usize>,
    /// How many members are written, at every depth, where that is sure.
    pub(crate) members: Option<usize>,
}

/// The outermost objects of a text, in order.
pub(crate) struct Objects<'a> {
    text: &'a str,
    at: usize,
    budget: usize,
    /// What was open at the farthest error. None of it will end well: a try from inside meets the same error.
    doomed: Open,
    /// How much of `doomed` lies behind, and where the error is.
    passed: usize,
    error: usize,
    /// What the next try finds open.
    tried: Open,
}

impl<'a> Objects<'a> {
    pub(crate) const fn of(text: &'a str) -> Result<Self, Unreadable> {
        if text.len() > TEXT_LIMIT {
            return Err(Unreadable);
        }
        let budget = PASSES * text.len() + ALLOWANCE;
        Ok(Self { text, at: 0, budget, doomed: Open::NONE, passed: 0, error: 0, tried: Open::NONE })
    }

    /// Charges for `bytes` that were read.
    fn charge(&mut self, bytes: usize) -> Result<(), Unreadable> {
        self.budget = self.budget.checked_sub(bytes).ok_or(Unreadable)?;
        Ok(())
    }

    /// Whether the brace at `start` was open at the last error.
    fn is_doomed(&mut self, start: usize) -> bool {
        while let Some(open) = self.doomed.get(self.passed) {
            if open >= start {
                return open == start;
            }
            self.passed += 1;
        }
        false
    }

    fn next_object(&mut self) -> Result<Option<Found>, Unreadable> {
        while let Some(found) = memchr(b'{', &self.text.as_bytes()[self.at..]) {
            let start = self.at + found;
            self.at = start + 1;
            let error = if self.is_doomed(start) {
                self.error
            } else if !may_begin(self.text.as_bytes(), self.at) {
                self.at
            } else {
                // Skipping first finds the end, and the errors, without building anything.
                match skip_object(self.text, start, &mut self.tried) {
                    Skipped::Object { end, members } => {
                        self.charge(2 * (end - start))?;
                        // Fails where the skip is more lenient: a lone surrogate, a depth over 128, a number out of range.
                        let read = match members {
                            Some(0) => Ok(JsonObject::new()),
                            _ => serde_json::from_str(&self.text[start..end]),
                        };
                        let Ok(object) = read else { continue };
                        self.at = end;
                        return Ok(Some(Found { object, span: start..end, members }));
                    }
                    Skipped::Broken { at } => at,
                }
            };
            // What was open at one byte behind the brace is the brace.
            if error > self.error.max(self.at) {
                std::mem::swap(&mut self.doomed, &mut self.tried);
                (self.passed, self.error) = (0, error);
            }
            // What a try costs, though for many it is known without one.
            self.charge((error - start).max(16))?;
        }
        Ok(None)
    }
}

/// Whether an object can go on with the byte at `at`.
fn may_begin(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), Some(b'"' | b'}' | b' ' | b'\n' | b'\t' | b'\r'))
}

impl Iterator for Objects<'_> {
    type Item = Result<Found, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_object().transpose();
        if matches!(next, Some(Err(Unreadable))) {
            self.at = self.text.len();
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn objects(text: &str) -> Result<Vec<String>, Unreadable> {
        Objects::of(text)?.map(|found| found.map(|found| Value::Object(found.object).to_string())).collect()
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
            let text = piece.repeat(TEXT_LIMIT / 4 / piece.len());
            let began = std::time::Instant::now();
            let _ = objects(&text);
            // Without a budget some of these take minutes in a debug build; with one, a second on a busy machine.
            assert!(began.elapsed().as_secs() < 30, "{piece:?} took {:?}", began.elapsed());
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
