//! Finds the JSON objects in a text that may be half prose.
//!
//! An object that parses is skipped whole: its inside is data. After a `{` that doesn't, the scan goes one byte on.
//! Done naively that is quadratic (`{"a":` repeated: 18.5 s at 256 KiB), so a scan has a budget of a small multiple of
//! the text's length; a text over the cap is not read at all.

use std::ops::Range;

use memchr::memchr;
use rmcp::model::JsonObject;

use super::{
    object::Object,
    skip::{Open, Skipped, skip_object},
    tape::{Tape, Written},
};

/// Bytes of a text that is read at all.
pub(crate) const TEXT_LIMIT: usize = 1 << 20;

/// Bytes that a scan may read for each byte of the text.
const PASSES: usize = 16;
/// And on top, so that a short text with many braces is not refused.
const ALLOWANCE: usize = 4096;

/// Bytes of a first key that are looked at before an object is tried, once one has failed.
const KEY: usize = 32;

/// The text is longer than [`TEXT_LIMIT`], or the scan's budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// An object that stands in a text.
pub(crate) struct Found<'a> {
    pub(crate) read: Read<'a>,
    /// The bytes that it takes up.
    pub(crate) span: Range<usize>,
}

/// How the object is read.
pub(crate) enum Read<'a> {
    /// Where it stands.
    Plain(Written<'a>),
    /// By a parser: of two members of one name it keeps the last.
    Odd(JsonObject),
}

/// Where an object was found, and the object itself unless it is plain.
struct Hit {
    span: Range<usize>,
    odd: Option<JsonObject>,
}

impl Read<'_> {
    pub(crate) const fn object(&self) -> Object<'_> {
        match self {
            Self::Plain(written) => Object::Written(*written),
            Self::Odd(members) => Object::Parsed(members),
        }
    }
}

/// The outermost objects of a text, in order, but for those in the midst of it whose names say nothing.
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
    tape: Tape,
    with_silent: bool,
}

impl<'a> Objects<'a> {
    pub(crate) const fn of(text: &'a str) -> Result<Self, Unreadable> {
        if text.len() > TEXT_LIMIT {
            return Err(Unreadable);
        }
        let budget = PASSES * text.len() + ALLOWANCE;
        Ok(Self {
            text,
            at: 0,
            budget,
            doomed: Open::NONE,
            passed: 0,
            error: 0,
            tried: Open::NONE,
            tape: Tape::new(),
            with_silent: false,
        })
    }

    /// Those whose names say nothing as well, for what stands in their values. Only an empty one is left out.
    pub(crate) const fn with_silent(mut self) -> Self {
        self.with_silent = true;
        self
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

    /// The next object.
    pub(crate) fn next_object(&mut self) -> Result<Option<Found<'_>>, Unreadable> {
        Ok(self.advance()?.map(|Hit { span, odd }| {
            let read = odd.map_or_else(|| Read::Plain(self.tape.over(&self.text[span.clone()])), Read::Odd);
            Found { read, span }
        }))
    }

    fn advance(&mut self) -> Result<Option<Hit>, Unreadable> {
        while let Some(start) = self.next_brace() {
            self.at = start + 1;
            // In the midst of a text an empty object says nothing.
            if self.text.as_bytes().get(self.at) == Some(&b'}') && self.text.len() > 2 {
                self.at += 1;
                continue;
            }
            let error = if self.is_doomed(start) {
                self.error
            } else if let Err(no) = self.begins() {
                // Nothing was open there but this brace, so there is nothing to learn from it.
                self.charge((no - start).max(16))?;
                self.at = next_to_read(self.text.as_bytes(), self.at);
                continue;
            } else {
                // Skipping first finds the end, and the errors, without building anything.
                match skip_object(self.text, start, &mut self.tried, &mut self.tape) {
                    Skipped::Object { end } => {
                        self.charge(2 * (end - start))?;
                        // Whatever it holds, nothing of it would be taken in.
                        if !self.with_silent && self.tape.is_silent() && (start, end) != (0, self.text.len()) {
                            self.at = end;
                            continue;
                        }
                        let mut odd = None;
                        if !self.tape.is_plain() {
                            // Fails where the skip is more lenient: a lone surrogate, a depth over 128, a number out of range.
                            let Ok(object) = serde_json::from_str(&self.text[start..end]) else { continue };
                            odd = Some(object);
                        }
                        self.at = end;
                        return Ok(Some(Hit { span: start..end, odd }));
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

    /// Whether the object can go on behind its brace, as far as its first key tells; if not, where it can't.
    #[inline]
    fn begins(&self) -> Result<(), usize> {
        let text = self.text.as_bytes();
        if !matches!(text.get(self.at), Some(b'"' | b'}' | b' ' | b'\n' | b'\t' | b'\r')) {
            return Err(self.at);
        }
        // Where nothing has failed, as a rule nothing will.
        if self.error == 0 { Ok(()) } else { has_key(text, self.at) }
    }

    /// Where the next brace is, which is often here.
    fn next_brace(&self) -> Option<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.first() == Some(&b'{') { Some(self.at) } else { memchr(b'{', rest).map(|found| self.at + found) }
    }
}

/// Whether a key and a colon can be read at `at`, or the end of an object; if not, where not.
fn has_key(text: &[u8], at: usize) -> Result<(), usize> {
    let key = next_to_read(text, at);
    match text.get(key) {
        Some(b'"') => {}
        Some(b'}') => return Ok(()),
        _ => return Err(key),
    }
    let rest = text.get(key + 1..).unwrap_or_default();
    // Of a longer key, or one with an escape, only a try can tell.
    match rest.iter().take(KEY).position(|byte| matches!(byte, b'"' | b'\\')) {
        Some(len) if rest.get(len) == Some(&b'"') => {
            let colon = next_to_read(text, key + 1 + len + 1);
            if text.get(colon) == Some(&b':') { Ok(()) } else { Err(colon) }
        }
        _ => Ok(()),
    }
}

/// Where white space ends.
#[inline]
fn next_to_read(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r')).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn objects(text: &str) -> Result<Vec<String>, Unreadable> {
        let mut objects = Objects::of(text)?;
        let mut found = Vec::new();
        while let Some(Found { read, .. }) = objects.next_object()? {
            found.push(Value::Object(read.object().to_parsed().into_owned()).to_string());
        }
        Ok(found)
    }

    #[test]
    fn prose_and_broken_objects_are_stepped_over() {
        assert_eq!(objects("no braces").unwrap(), [""; 0]);
        assert_eq!(objects(r#"a {b}: {"code":{"d":1}} e {"f":2"#).unwrap(), [r#"{"code":{"d":1}}"#]);
        assert_eq!(objects(r#"{"trace": [1,2, {"error":{"g":1}}"#).unwrap(), [r#"{"error":{"g":1}}"#]);
        assert_eq!(objects("{\"error\": \"{\\\"b\\\":1}\"}{\"code\":\n\n2}").unwrap().len(), 2);
    }

    #[test]
    fn what_closed_before_the_error_is_not_given_up() {
        // The brace behind `a` had its end, those behind `b` were open at the error.
        assert_eq!(objects(r#"{"a":{"code":1},"b":{"c":x"#).unwrap(), [r#"{"code":1}"#]);
        assert_eq!(objects(r#"{"a":"{x","b":{"c":!"#).unwrap(), [""; 0]);
    }

    /// Behind an error a first key is looked at before the object is tried.
    #[test]
    fn an_object_behind_an_error_is_found_whatever_its_first_key() {
        let long = format!(r#"{{"{}":1,"code":1}}"#, "x".repeat(2 * KEY));
        for object in [
            r#"{"code":1}"#,
            "{ \n\"code\" \t: 1}",
            r#"{"":1,"code":1}"#,
            r#"{"\u0063ode":1}"#,
            r#"{"\"":1,"code":1}"#,
            &long,
        ] {
            let found = objects(object).unwrap();
            assert_eq!(found.len(), 1, "{object}");
            assert_eq!(objects(&format!(r#"{{"a" x {object}"#)).unwrap(), found, "{object}");
        }
    }

    #[test]
    fn braces_that_begin_nothing_fill_a_text() {
        for brace in ["{x", "{\"a\"x", "{ ,"] {
            let text = format!("{}{}", brace.repeat(TEXT_LIMIT / 16), r#"{"code":1}"#);
            assert_eq!(objects(&text).unwrap(), [r#"{"code":1}"#], "{brace}");
        }
    }

    #[test]
    fn a_scan_costs_what_it_may_and_no_more() {
        let object = format!("{{\"code\":\"{}\"}}", "x".repeat(1000));
        let is_within_budget = |objects: usize, open: usize| {
            let piece = "{\"a\":";
            let text = object.repeat(objects) + &piece.repeat(open);
            // Each that stays open is charged for as far as the end.
            let tries: usize = (1..=open).map(|behind| (piece.len() * behind).max(16)).sum();
            let cost = 2 * object.len() * objects + tries;
            let is_within = cost <= PASSES * text.len() + ALLOWANCE;
            assert_eq!(self::objects(&text).is_ok(), is_within, "{objects} and {open}");
            is_within
        };
        for objects in [0, 1, 2, 30] {
            let first_too_many = (1..2000).find(|open| !is_within_budget(objects, *open));
            assert!(first_too_many.is_some_and(|open| open > 40));
        }
    }

    #[test]
    fn an_object_that_says_nothing_counts_if_it_is_all_there_is() {
        for text in ["{}", r#"{"a":1}"#] {
            assert_eq!(objects(text).unwrap(), [text]);
            assert_eq!(objects(&text.repeat(2)).unwrap(), [""; 0]);
            assert_eq!(objects(&format!("{text}{{\"a\":[{{\"Error\":1}}]}}{text}")).unwrap().len(), 1);
        }
        for text in [r#"{"executed_at":1}"#, r#"{"result":[]}"#, r#"{"_code":1}"#, r#"{"a":1,"a":2}"#] {
            assert_eq!(objects(&text.repeat(2)).unwrap().len(), 2, "{text}");
        }
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
        let deep = |levels| format!("{}1{}", "{\"code\":".repeat(levels), "}".repeat(levels));
        assert_eq!(objects(&deep(130)).unwrap().len(), 1, "the innermost levels still parse");
        assert_eq!(objects(&deep(1000)), Err(Unreadable));
    }
}
