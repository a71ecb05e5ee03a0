//! What one pass over an object's text notes, so that the object can be judged where it stands.

use super::{
    object::Item,
    telling::{RESULT, is_harmless},
};
use crate::receipt::EXECUTED_AT;

/// Members that an object may have, at every depth together, and still be plain. A receipt has about a dozen.
const CAPACITY: usize = 32;

/// Where a part of an object stands, in bytes from its brace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// No part: nothing but the brace stands at the start of an object.
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: offset(start), end: offset(end) }
    }

    /// The part of `text`.
    #[inline]
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// A place in a text, which is at most a mebibyte.
#[inline]
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, Debug)]
struct Member {
    /// Where the object begins that it stands in.
    parent: u32,
    name: Span,
    value: Span,
    /// The value is a string that is written with an escape.
    has_escape: bool,
}

/// The members of an object, at every depth, and whether it is plain.
///
/// Plain means that every parser of JSON reads the same into it: no name comes twice at any depth, none is written with an
/// escape or might be one of `serde_json`'s private ones, and no value is out of the ordinary. All others are parsed.
#[derive(Debug)]
pub(super) struct Tape {
    members: [Member; CAPACITY],
    /// A number for each name, with the object that it stands in.
    prints: [u32; CAPACITY],
    len: usize,
    /// A bit for each print, by its last digits.
    seen: u64,
    is_plain: bool,
    marks: Marks,
}

/// What the names in an object, at every depth, let expect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// A member may say something of an error, or wrap a result.
    pub(super) tells: bool,
    /// It may be a receipt, for each has this.
    pub(super) is_dated: bool,
}

impl Marks {
    const NONE: Self = Self { tells: false, is_dated: false };
}

impl Tape {
    pub(super) const fn new() -> Self {
        const NONE: Member = Member { parent: 0, name: Span::NONE, value: Span::NONE, has_escape: false };
        Self { members: [NONE; CAPACITY], prints: [0; CAPACITY], len: 0, seen: 0, is_plain: true, marks: Marks::NONE }
    }

    pub(super) const fn clear(&mut self) {
        (self.len, self.seen, self.is_plain, self.marks) = (0, 0, true, Marks::NONE);
    }

    /// Notes that something stands in the object for which parsers differ, or which only a parser can tell.
    pub(super) const fn spoil(&mut self) {
        self.is_plain = false;
    }

    pub(super) const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether it is plain, tells nothing of an error and is no receipt.
    pub(super) const fn is_silent(&self) -> bool {
        self.is_plain && !self.marks.tells && !self.marks.is_dated
    }

    /// Notes a member of the object that begins at `parent`: its name, and where that stands.
    #[inline]
    pub(super) fn add(&mut self, parent: u32, name: &[u8], span: Span) {
        self.marks.tells |= !is_harmless(name) || name == RESULT.as_bytes();
        self.marks.is_dated |= name == EXECUTED_AT.as_bytes();
        let print = print(parent, name);
        let bit = 1 << (print % u64::BITS);
        // Two names with one print may differ; a parser will tell.
        if self.seen & bit != 0 && self.prints[..self.len].contains(&print) {
            self.is_plain = false;
        }
        self.seen |= bit;
        match (self.members.get_mut(self.len), self.prints.get_mut(self.len)) {
            (Some(member), Some(place)) => {
                *member = Member { parent, name: span, value: Span::NONE, has_escape: false };
                *place = print;
                self.len += 1;
            }
            _ => self.is_plain = false,
        }
    }

    /// Notes the value of the last member.
    #[inline]
    pub(super) fn end_scalar(&mut self, value: Span, has_escape: bool) {
        if let Some(member) = self.members[..self.len].last_mut() {
            (member.value, member.has_escape) = (value, has_escape);
        }
    }

    /// Notes where the value of the last member begins.
    #[inline]
    pub(super) fn begin_container(&mut self, start: u32) {
        self.end_scalar(Span { start, end: 0 }, false);
    }

    /// Notes the end of the container that began at `start`, which may be no member's value.
    pub(super) fn end_container(&mut self, start: u32, end: u32) {
        let member = self.members[..self.len].iter_mut().rfind(|member| member.value.start == start);
        if let Some(member) = member {
            member.value.end = end;
        }
    }

    /// The plain object `text`, of which this is the tape.
    pub(super) fn over<'a>(&'a self, text: &'a str) -> Written<'a> {
        debug_assert!(self.is_plain, "{text}");
        Written { text, members: &self.members[..self.len], span: Span::new(0, text.len()), marks: self.marks }
    }
}

/// A number for `name` in the object at `parent`: the same for the same, and hardly ever for others.
#[inline]
fn print(parent: u32, name: &[u8]) -> u32 {
    // Fibonacci hashing: the upper half depends on every bit.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let (start, end) = match (name.first_chunk(), name.last_chunk()) {
        (Some(start), Some(end)) => (u64::from_le_bytes(*start), u64::from_le_bytes(*end)),
        _ => (0, name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
    };
    let place = (u64::from(parent) << 32) | name.len() as u64;
    let mixed = (start ^ place).wrapping_mul(GOLDEN).rotate_left(32) ^ end;
    u32::try_from(mixed.wrapping_mul(GOLDEN) >> 32).unwrap_or_default()
}

/// A plain object that stands in a text, perhaps inside another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    /// From the brace of the outermost object on.
    text: &'a str,
    /// Those of the outermost object, at every depth.
    members: &'a [Member],
    /// Where it stands in the text.
    span: Span,
    marks: Marks,
}

impl<'a> Written<'a> {
    pub(super) const fn marks(self) -> Marks {
        self.marks
    }

    pub(super) fn text(self) -> &'a str {
        self.span.of(self.text)
    }

    #[inline]
    fn own(self) -> impl Iterator<Item = &'a Member> {
        let Self { members, span, .. } = self;
        members.iter().filter(move |member| member.parent == span.start)
    }

    #[inline]
    fn item(self, member: &Member) -> Item<'a> {
        let Member { value, has_escape, .. } = *member;
        Item::Written { text: value.of(self.text), at: value.start - self.span.start, has_escape }
    }

    #[inline]
    pub(super) fn members(self) -> impl Iterator<Item = (&'a str, Item<'a>)> {
        self.own().map(move |member| (member.name.of(self.text), self.item(member)))
    }

    fn find(self, name: &str) -> Option<&'a Member> {
        self.own().find(|member| member.name.of(self.text) == name)
    }

    pub(super) fn get(self, name: &str) -> Option<Item<'a>> {
        self.find(name).map(|member| self.item(member))
    }

    /// The object under `name`.
    pub(super) fn under(self, name: &str) -> Option<Self> {
        let value = self.find(name)?.value;
        value.of(self.text).starts_with('{').then_some(Self { span: value, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_has_the_same_print() {
        for (name, others) in [
            ("", &["a", "\0"][..]),
            ("a", &["b", "aa", "A"]),
            ("policy_snapshot_id", &["schema_snapshot_id", "policy_snapshot_ie", "policy_snapshot__id"]),
            ("decision", &["decisioN", "ddecision"]),
        ] {
            assert_eq!(print(0, name.as_bytes()), print(0, name.as_bytes()));
            assert_ne!(print(0, name.as_bytes()), print(9, name.as_bytes()));
            for other in others {
                assert_ne!(print(0, name.as_bytes()), print(0, other.as_bytes()), "{name} and {other}");
            }
        }
    }
}
