//! One view of an object, whether it was parsed or stands in a text, so that both are judged by the same rules.

use std::{borrow::Cow, fmt, sync::OnceLock};

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{
    skip::plain_len,
    tape::{Span, Written},
};

/// An object that is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object<'a> {
    Parsed(&'a JsonObject),
    Written(Written<'a>),
}

/// The value of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    Parsed(&'a Value),
    /// As it is written, and where in the text of its object.
    Written {
        text: &'a str,
        at: u32,
        /// It is a string that is written with an escape.
        has_escape: bool,
    },
}

impl<'a> Object<'a> {
    /// Whether a member, at any depth, may say something of an error.
    pub(super) const fn may_tell(self) -> bool {
        match self {
            Self::Parsed(_) => true,
            Self::Written(written) => written.marks().tells,
        }
    }

    /// Whether it may be a receipt.
    pub(crate) const fn may_be_receipt(self) -> bool {
        match self {
            Self::Parsed(_) => true,
            Self::Written(written) => written.marks().is_dated,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        match self {
            Self::Parsed(members) => members.is_empty(),
            Self::Written(written) => written.members().next().is_none(),
        }
    }

    /// The value of the one member, if it has this name.
    pub(super) fn sole(self, name: &str) -> Option<Item<'a>> {
        match self {
            Self::Parsed(members) if members.len() == 1 => members.get(name).map(Item::Parsed),
            Self::Parsed(_) => None,
            Self::Written(written) => {
                let mut members = written.members();
                let (key, item) = members.next()?;
                (key == name && members.next().is_none()).then_some(item)
            }
        }
    }

    pub(crate) fn get(self, name: &str) -> Option<Item<'a>> {
        match self {
            Self::Parsed(members) => members.get(name).map(Item::Parsed),
            Self::Written(written) => written.get(name),
        }
    }

    /// Whether `test` holds for one of the members.
    #[inline]
    pub(crate) fn any(self, mut test: impl FnMut(&'a str, Item<'a>) -> bool) -> bool {
        match self {
            Self::Parsed(members) => members.iter().any(|(key, value)| test(key, Item::Parsed(value))),
            Self::Written(written) => written.members().any(|(key, item)| test(key, item)),
        }
    }

    /// The object under `name`.
    pub(super) fn under(self, name: &str) -> Option<Self> {
        match self {
            Self::Parsed(members) => members.get(name)?.as_object().map(Self::Parsed),
            Self::Written(written) => written.under(name).map(Self::Written),
        }
    }

    pub(super) fn to_parsed(self) -> Cow<'a, JsonObject> {
        match self {
            Self::Parsed(members) => Cow::Borrowed(members),
            Self::Written(written) => Cow::Owned(parse(written.text())),
        }
    }

    /// A copy to be kept.
    pub(super) fn to_kept(self) -> Kept {
        match self {
            Self::Parsed(members) => Kept::parsed(members.clone()),
            Self::Written(written) => Kept::written(written.text()),
        }
    }
}

impl<'a> Item<'a> {
    fn starts_with(self, is_start: impl Fn(u8) -> bool) -> bool {
        matches!(self, Self::Written { text, .. } if text.bytes().next().is_some_and(is_start))
    }

    pub(crate) fn is_null(self) -> bool {
        matches!(self, Self::Parsed(Value::Null)) || self.starts_with(|byte| byte == b'n')
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Parsed(Value::Number(_))) || self.starts_with(|byte| byte == b'-' || byte.is_ascii_digit())
    }

    pub(crate) fn is_string(self) -> bool {
        matches!(self, Self::Parsed(Value::String(_))) || self.starts_with(|byte| byte == b'"')
    }

    pub(crate) fn as_bool(self) -> Option<bool> {
        match self {
            Self::Parsed(value) => value.as_bool(),
            Self::Written { text: "true", .. } => Some(true),
            Self::Written { text: "false", .. } => Some(false),
            Self::Written { .. } => None,
        }
    }

    pub(crate) fn as_u64(self) -> Option<u64> {
        match self {
            Self::Parsed(value) => value.as_u64(),
            Self::Written { text, .. } => text.parse().ok(),
        }
    }

    /// Copied only where it is written with an escape.
    pub(crate) fn as_str(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Parsed(value) => value.as_str().map(Cow::Borrowed),
            Self::Written { text, has_escape, .. } => {
                let string = text.strip_prefix('"')?.strip_suffix('"')?;
                Some(if has_escape { Cow::Owned(unescaped(string)) } else { Cow::Borrowed(string) })
            }
        }
    }

    /// Where the characters of a string stand in the text of its object, if they are written as they are.
    pub(crate) fn plain_string(self) -> Span {
        match self {
            Self::Written { text, at, has_escape: false } if text.len() >= 2 => {
                let at = at as usize;
                Span::new(at + 1, at + text.len() - 1)
            }
            _ => Span::NONE,
        }
    }

    pub(super) fn to_parsed(self) -> Cow<'a, Value> {
        match self {
            Self::Parsed(value) => Cow::Borrowed(value),
            Self::Written { text, .. } => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
        }
    }
}

/// What `string`, that of a plain object, spells. As `serde_json` has it, in one allocation.
fn unescaped(string: &str) -> String {
    let mut spelled = String::with_capacity(string.len());
    let mut rest = string;
    loop {
        let (plain, escape) = rest.split_at_checked(plain_len(rest.as_bytes())).unwrap_or((rest, ""));
        spelled.push_str(plain);
        let mut chars = escape.chars();
        chars.next();
        let char = match chars.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let digits = chars.by_ref().take(4);
                let code = digits.fold(0, |code, digit| code << 4 | digit.to_digit(16).unwrap_or_default());
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            Some(char) => char,
            None => return spelled,
        };
        spelled.push(char);
        rest = chars.as_str();
    }
}

/// Parses the text of a plain object, which can't fail.
pub(super) fn parse(text: &str) -> JsonObject {
    serde_json::from_str(text).unwrap_or_default()
}

/// An object that was judged and is kept: parsed, or as its text until someone asks for its members.
#[derive(Clone)]
pub(crate) struct Kept {
    /// Empty where the object was parsed.
    text: Box<str>,
    members: OnceLock<JsonObject>,
}

impl Kept {
    pub(crate) fn parsed(members: JsonObject) -> Self {
        Self { text: Box::default(), members: members.into() }
    }

    /// Keeps the text of a plain object.
    pub(super) fn written(text: &str) -> Self {
        Self { text: text.into(), members: OnceLock::new() }
    }

    pub(crate) fn members(&self) -> &JsonObject {
        self.members.get_or_init(|| parse(&self.text))
    }

    /// What stands at `span`, if the object is kept as its text.
    pub(crate) fn text_at(&self, span: Span) -> Option<&str> {
        Some(span.of(&self.text)).filter(|_| span != Span::NONE && !self.text.is_empty())
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.members() == other.members()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.members().fmt(f)
    }
}
