//! Steps over one JSON object without building anything.
//!
//! It takes what `serde_json`'s `IgnoredAny` takes and refuses what that refuses, but makes no error value, which is most
//! of what a failed try costs, and says more: where the members are, and which containers were open at an error.

use memchr::memchr2;

use super::tape::{Span, Tape, offset};

/// Bytes of a number at the most that is surely within the range of a float.
const NUMBER_LIMIT: usize = 300;

/// What stands where an object begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    /// An object that ends before `end`.
    Object { end: usize },
    /// No object: an error at this byte, or the end of the text.
    Broken { at: usize },
}

/// Where the containers begin that are open, outermost first.
#[derive(Debug)]
pub(super) struct Open {
    // A receipt is read without an allocation.
    first: [u32; 16],
    len: usize,
    more: Vec<u32>,
}

impl Open {
    pub(super) const NONE: Self = Self { first: [0; 16], len: 0, more: Vec::new() };

    fn clear(&mut self) {
        self.len = 0;
        self.more.clear();
    }

    fn push(&mut self, at: usize) {
        // A text is at most a mebibyte.
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        match self.first.get_mut(self.len) {
            Some(place) => *place = at,
            None => self.more.push(at),
        }
        self.len += 1;
    }

    /// Whether everything that is open has its place here: far from any parser's limit.
    #[inline]
    const fn is_shallow(&self) -> bool {
        self.len <= self.first.len()
    }

    fn pop(&mut self) {
        self.len -= 1;
        if self.len >= self.first.len() {
            self.more.pop();
        }
    }

    fn last(&self) -> Option<usize> {
        self.get(self.len.checked_sub(1)?)
    }

    pub(super) fn get(&self, index: usize) -> Option<usize> {
        if index >= self.len {
            return None;
        }
        let at = self.first.get(index).or_else(|| self.more.get(index - self.first.len()));
        at.map(|at| *at as usize)
    }
}

/// Steps over the object that begins at `start`; at an error, `open` says which containers it stands in. `tape` notes what
/// it takes to judge the object.
pub(super) fn skip_object(text: &str, start: usize, open: &mut Open, tape: &mut Tape) -> Skipped {
    open.clear();
    tape.clear();
    let mut skip = Skip { bytes: text.as_bytes(), at: start, start, tape };
    match skip.object(open) {
        Some(()) => Skipped::Object { end: skip.at },
        None => Skipped::Broken { at: skip.at },
    }
}

struct Skip<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the object begins.
    start: usize,
    tape: &'a mut Tape,
}

/// `None` is an error at the byte that comes next.
impl Skip<'_> {
    fn object(&mut self, open: &mut Open) -> Option<()> {
        let mut next = b'{';
        let mut frame = next;
        // Where the innermost container begins.
        let mut inner = self.at;
        loop {
            let is_member = frame == b'{' && self.at > self.start;
            let is_container = matches!(next, b'{' | b'[');
            if is_container {
                if is_member {
                    self.tape.begin_container(self.offset(self.at));
                }
                (frame, inner) = (next, self.at);
                open.push(inner);
                if !open.is_shallow() {
                    self.tape.spoil();
                }
                self.at += 1;
            } else {
                let from = self.at;
                let has_escape = self.scalar(next)?;
                if is_member {
                    self.tape.end_scalar(self.span(from, self.at), has_escape);
                }
            }
            // The ends of containers, and a comma unless nothing stands before it.
            let mut is_after_value = !is_container;
            loop {
                match self.peek()? {
                    b',' if is_after_value => {
                        self.at += 1;
                        break;
                    }
                    b'}' if frame == b'{' => {}
                    b']' if frame == b'[' => {}
                    _ if is_after_value => return None,
                    _ => break,
                }
                self.at += 1;
                open.pop();
                let Some(outer) = open.last() else { return Some(()) };
                self.tape.end_container(self.offset(inner), self.offset(self.at));
                (frame, inner) = (self.bytes[outer], outer);
                is_after_value = true;
            }
            if frame == b'{' {
                self.name(inner)?;
            }
            next = self.peek()?;
        }
    }

    /// A place in the object.
    #[inline]
    fn offset(&self, at: usize) -> u32 {
        offset(at - self.start)
    }

    /// A part of the object.
    #[inline]
    fn span(&self, from: usize, to: usize) -> Span {
        Span::new(from - self.start, to - self.start)
    }

    /// The next byte that is no white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        if self.bytes.get(self.at) == Some(&expected) {
            self.at += 1;
            Some(())
        } else {
            None
        }
    }

    /// The name of a member of the object that begins at `parent`, and its colon.
    fn name(&mut self, parent: usize) -> Option<()> {
        self.peek()?;
        self.take(b'"')?;
        let from = self.at;
        let has_escape = self.string()?;
        let to = self.at - 1;
        let name = &self.bytes[from..to];
        if has_escape || name.first() == Some(&b'$') {
            self.tape.spoil();
        }
        self.tape.add(self.offset(parent), name, self.span(from, to));
        self.peek()?;
        self.take(b':')
    }

    /// A string, a number or a word; whether an escape stands in it.
    fn scalar(&mut self, first: u8) -> Option<bool> {
        match first {
            b'"' => {
                self.at += 1;
                return self.string();
            }
            b'-' => {
                self.at += 1;
                self.number()?;
            }
            b'0'..=b'9' => self.number()?,
            b'n' => self.word(b"null")?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            _ => return None,
        }
        Some(false)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        word.iter().try_for_each(|letter| self.take(*letter))
    }

    /// The rest of a string; whether an escape stands in it.
    fn string(&mut self) -> Option<bool> {
        let mut has_escape = false;
        loop {
            let rest = &self.bytes[self.at..];
            let len = plain_len(rest);
            self.at += len;
            if len == rest.len() {
                return None;
            }
            if self.take(b'"').is_some() {
                return Some(has_escape);
            }
            self.take(b'\\')?;
            has_escape = true;
            match self.bytes.get(self.at)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                b'u' => {
                    self.at += 1;
                    // Half of a pair may stand alone, and then parsers refuse it.
                    if let Some(b"d" | b"D") = self.bytes.get(self.at..=self.at) {
                        self.tape.spoil();
                    }
                    for _ in 0..4 {
                        self.bytes.get(self.at).filter(|byte| byte.is_ascii_hexdigit())?;
                        self.at += 1;
                    }
                }
                _ => return None,
            }
        }
    }

    /// A number without its sign.
    fn number(&mut self) -> Option<()> {
        let from = self.at;
        // A zero stands alone.
        let starts_with_zero = self.bytes.get(self.at) == Some(&b'0');
        if self.digits()? > 1 && starts_with_zero {
            return None;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.tape.spoil();
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.at - from > NUMBER_LIMIT {
            self.tape.spoil();
        }
        Some(())
    }

    /// How many digits there are: at least one.
    fn digits(&mut self) -> Option<usize> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(count)
    }
}

/// How many bytes of a string come before a quote, a backslash or a control character.
#[inline]
pub(super) fn plain_len(text: &[u8]) -> usize {
    const SHORT: usize = 64;
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    // Most strings are short: a word at a time.
    let mut len = 0;
    while let Some(word) = text[len..].first_chunk() {
        let special = specials(u64::from_le_bytes(*word));
        if special != 0 {
            return len + special.trailing_zeros() as usize / 8;
        }
        len += word.len();
        if len == SHORT {
            return len + long_plain_len(&text[len..]);
        }
    }
    text[len..].iter().position(is_special).map_or(text.len(), |found| len + found)
}

/// The bytes of `word` that end a stretch of plain ones: the top bit of each. Only the first is sure, for a borrow may run
/// into those behind it.
#[inline]
const fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    const fn below(word: u64, limit: u64) -> u64 {
        word.wrapping_sub(ONES * limit) & !word & TOPS
    }
    below(word, b' ' as u64) | below(word ^ (ONES * b'"' as u64), 1) | below(word ^ (ONES * b'\\' as u64), 1)
}

/// The same for a long string, of which a vector of bytes is compared at a time.
#[inline(never)]
fn long_plain_len(text: &[u8]) -> usize {
    let end = memchr2(b'"', b'\\', text).unwrap_or(text.len());
    let plain = &text[..end];
    let is_control = |byte: &u8| *byte < b' ';
    // The least of all, and not the first that is one, which would be a byte at a time.
    let least = plain.iter().fold(u8::MAX, |least, byte| least.min(*byte));
    if is_control(&least) { plain.iter().position(is_control).unwrap_or(end) } else { end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::JsonObject;
    use serde::de::IgnoredAny;

    use super::*;
    use crate::outcome::object::Object;

    fn by_serde_json(text: &str) -> Option<usize> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        values.next()?.ok().map(|IgnoredAny| values.byte_offset())
    }

    #[track_caller]
    fn agrees(text: &str) {
        let mut open = Open::NONE;
        let mut tape = Tape::new();
        let skipped = match skip_object(text, 0, &mut open, &mut tape) {
            Skipped::Object { end } => Some(end),
            Skipped::Broken { .. } => None,
        };
        assert_eq!(skipped, by_serde_json(text), "{text}");
        if let Some(end) = skipped.filter(|_| tape.is_plain()) {
            let object = Object::Written(tape.over(&text[..end]));
            let parsed: JsonObject = serde_json::from_str(&text[..end]).expect("a plain object parses");
            let mut len = 0;
            object.any(|_, _| {
                len += 1;
                false
            });
            assert_eq!(len, parsed.len(), "{text}");
            assert!(!object.any(|key, item| parsed.get(key) != Some(&*item.to_parsed())), "{text}");
            for (key, value) in &parsed {
                let item = object.get(key).expect(key);
                assert_eq!(item.as_str().as_deref(), value.as_str(), "{text}");
                let inner = object.under(key).map(|inner| inner.to_parsed().into_owned());
                assert_eq!(inner.as_ref(), value.as_object(), "{text}");
                assert_eq!((item.as_u64(), item.as_bool()), (value.as_u64(), value.as_bool()), "{text}");
                let kinds = (value.is_null(), value.is_number(), value.is_string());
                assert_eq!((item.is_null(), item.is_number(), item.is_string()), kinds, "{text}");
            }
        }
    }

    #[test]
    fn every_start_of_an_object_is_read_as_by_serde_json() {
        let text = r#"{"a":[1,-0.5e+3,{"b":null,"\u00e9\n":"\ud800"},[],{}],"c":true , "d":false,"e":"\"{"}"#;
        for end in 1..=text.len() {
            if text.is_char_boundary(end) {
                agrees(&text[..end]);
            }
        }
        for text in [
            "{}",
            "{,}",
            "{\"a\"}",
            "{\"a\":1,}",
            "{\"a\":[1,]}",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":-}",
            "{\"a\":1e}",
            "{\"a\":[}",
            "{\"a\":{]}",
            "{\"a\":tru}",
            "{\"a\":\"\t\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":1e999}",
            "{ }",
            "{\u{a0}}",
            "{\"a\" : 1 \r\n}",
            "{'a':1}",
            "{\"a\":[1 2]}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":\"\\u12g4\"}",
        ] {
            agrees(text);
        }
        let long = "é".repeat(40);
        for text in [
            format!("{{\"a\":\"{long}\"}}"),
            format!("{{\"a\":\"{long}\\n{long}\"}}"),
            format!("{{\"a\":\"{long}\n{long}\"}}"),
            format!("{{\"a\":\"{long}"),
        ] {
            agrees(&text);
        }
        agrees(&("{\"a\":".repeat(300) + "1" + &"}".repeat(300)));
    }

    proptest! {
        #[test]
        fn texts_of_json_like_pieces_too(pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"", ",", ":", "\"a\":", "\"a\":1", "1", "-0", "0.5", "1e5", "null", "true", " ", "\n", "\\",
            "\\u00e9", "\\n", "x", "é", "{\"a\":", "\"\"", "[1,", "\u{1}", "\"b\":\"é\",", "\"a\":{}", "\"snapshot_identifier\":",
        ]), 0..16)) {
            agrees(&("{".to_owned() + &pieces.concat()));
        }
    }

    #[test]
    fn an_error_tells_what_was_open() {
        let mut open = Open::NONE;
        let text = r#"{"a":{"b":{}},"c":[{"d":x"#;
        assert_eq!(skip_object(text, 0, &mut open, &mut Tape::new()), Skipped::Broken { at: text.len() - 1 });
        assert_eq!((0..4).map(|index| open.get(index)).collect::<Vec<_>>(), [Some(0), Some(18), Some(19), None]);
        let deep = "{\"a\":".repeat(40);
        assert_eq!(skip_object(&deep, 0, &mut open, &mut Tape::new()), Skipped::Broken { at: deep.len() });
        assert!((0..40).all(|index| open.get(index) == Some(5 * index)) && open.get(40).is_none());
    }

    #[test]
    fn plain_is_what_every_parser_reads_alike() {
        let is_plain = |text: &str| {
            let (mut open, mut tape) = (Open::NONE, Tape::new());
            let skipped = skip_object(text, 0, &mut open, &mut tape);
            assert_eq!(skipped, Skipped::Object { end: text.len() }, "{text}");
            tape.is_plain()
        };
        for text in [
            r#"{"a":1,"b":{"a":[{"a":"\n\u00e9"},{"a":2}]}}"#,
            "{}",
            r#"{"":-0.5,"é":[],"a$":null}"#,
            &format!("{{{}}}", (0..32).map(|key| format!("\"k{key}\":1")).collect::<Vec<_>>().join(",")),
        ] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            r#"{"a":1,"\u0062":2}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"b":[{"c":1,"a":1,"c":2}]}"#,
            r#"{"snapshot_identifier":1,"x":[{}],"snapshot_identifier":2}"#,
            r#"{"$serde_json::private::Number":"2"}"#,
            r#"{"a":{"$serde_json::private::RawValue":"2"}}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\uDFFF"}"#,
            r#"{"a":1e999}"#,
            &format!("{{\"a\":{}}}", "9".repeat(400)),
            &format!("{{{}}}", (0..33).map(|key| format!("\"k{key}\":1")).collect::<Vec<_>>().join(",")),
            &("{\"a\":".repeat(200) + "1" + &"}".repeat(200)),
            &format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200)),
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
