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
mod tests;
