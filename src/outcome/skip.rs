//! Steps over one JSON object without building anything.
//!
//! It takes what `serde_json`'s `IgnoredAny` takes and refuses what that refuses, but makes no error value, which is most
//! of what a failed try costs, and says more: how many members there are, and which containers were open at an error.

use memchr::memchr2;

/// What stands where an object begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    /// An object that ends before `end`. `members` counts those at every depth, unless a key is written with an escape or
    /// might be one of `serde_json`'s private ones.
    Object { end: usize, members: Option<usize> },
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

/// Steps over the object that begins at `start`; at an error, `open` says which containers it stands in.
pub(super) fn skip_object(text: &str, start: usize, open: &mut Open) -> Skipped {
    open.clear();
    let mut skip = Skip { bytes: text.as_bytes(), at: start, members: 0, is_odd: false };
    match skip.object(open) {
        Some(()) => Skipped::Object { end: skip.at, members: (!skip.is_odd).then_some(skip.members) },
        None => Skipped::Broken { at: skip.at },
    }
}

struct Skip<'a> {
    bytes: &'a [u8],
    at: usize,
    members: usize,
    is_odd: bool,
}

/// `None` is an error at the byte that comes next.
impl Skip<'_> {
    fn object(&mut self, open: &mut Open) -> Option<()> {
        let mut next = b'{';
        let mut frame = next;
        loop {
            let is_container = matches!(next, b'{' | b'[');
            if is_container {
                open.push(self.at);
                frame = next;
                self.at += 1;
            } else {
                self.scalar(next)?;
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
                match open.last() {
                    Some(outer) => frame = self.bytes[outer],
                    None => return Some(()),
                }
                is_after_value = true;
            }
            if frame == b'{' {
                self.name()?;
            }
            next = self.peek()?;
        }
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

    /// The name of a member and its colon.
    fn name(&mut self) -> Option<()> {
        self.peek()?;
        self.take(b'"')?;
        self.members += 1;
        self.is_odd |= self.bytes.get(self.at) == Some(&b'$');
        self.is_odd |= self.string()?;
        self.peek()?;
        self.take(b':')
    }

    fn scalar(&mut self, first: u8) -> Option<()> {
        match first {
            b'"' => {
                self.at += 1;
                self.string().map(drop)
            }
            b'-' => {
                self.at += 1;
                self.number()
            }
            b'0'..=b'9' => self.number(),
            b'n' => self.word(b"null"),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            _ => None,
        }
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
        // A zero stands alone.
        let starts_with_zero = self.bytes.get(self.at) == Some(&b'0');
        if self.digits()? > 1 && starts_with_zero {
            return None;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
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
fn plain_len(text: &[u8]) -> usize {
    const SHORT: usize = 32;
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    // Most strings are short; in a long one a vector of bytes is compared at a time.
    let start = &text[..text.len().min(SHORT)];
    if let Some(len) = start.iter().position(is_special) {
        return len;
    }
    let end = memchr2(b'"', b'\\', &text[start.len()..]).map_or(text.len(), |found| start.len() + found);
    let plain = &text[..end];
    // All of them and not up to the first, which would be one byte at a time.
    let controls = plain.iter().filter(|byte| **byte < b' ').count();
    if controls > 0 { plain.iter().position(is_special).unwrap_or(end) } else { end }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    fn by_serde_json(text: &str) -> Option<usize> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        values.next()?.ok().map(|IgnoredAny| values.byte_offset())
    }

    #[track_caller]
    fn agrees(text: &str) {
        let mut open = Open::NONE;
        let skipped = match skip_object(text, 0, &mut open) {
            Skipped::Object { end, .. } => Some(end),
            Skipped::Broken { .. } => None,
        };
        assert_eq!(skipped, by_serde_json(text), "{text}");
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
            "\\u00e9", "\\n", "x", "é", "{\"a\":", "\"\"", "[1,", "\u{1}",
        ]), 0..16)) {
            agrees(&("{".to_owned() + &pieces.concat()));
        }
    }

    #[test]
    fn an_error_tells_what_was_open() {
        let mut open = Open::NONE;
        let text = r#"{"a":{"b":{}},"c":[{"d":x"#;
        assert_eq!(skip_object(text, 0, &mut open), Skipped::Broken { at: text.len() - 1 });
        assert_eq!((0..4).map(|index| open.get(index)).collect::<Vec<_>>(), [Some(0), Some(18), Some(19), None]);
        let deep = "{\"a\":".repeat(40);
        assert_eq!(skip_object(&deep, 0, &mut open), Skipped::Broken { at: deep.len() });
        assert!((0..40).all(|index| open.get(index) == Some(5 * index)) && open.get(40).is_none());
    }

    #[test]
    fn members_are_counted_unless_a_name_is_odd() {
        let members = |text: &str| {
            let mut open = Open::NONE;
            match skip_object(text, 0, &mut open) {
                Skipped::Object { members, .. } => members,
                Skipped::Broken { .. } => None,
            }
        };
        assert_eq!(members(r#"{"a":1,"b":{"c":[{"d":"\n"}]}}"#), Some(4));
        assert_eq!(members(r#"{"a":1,"\u0062":2}"#), None);
        assert_eq!(members(r#"{"$serde_json::private::Number":"2"}"#), None);
    }
}
