//! JSON in a string: some servers decode an argument's text and read fields from it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{HiddenFields, names};

/// What a text means to the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// It carries no hidden field.
    Clean,
    /// It is JSON, and a hidden field stands in it.
    Hidden,
    /// Only a laxer parser reads it, and a hidden name stands in it like a member's.
    Doubtful,
}

impl HiddenFields {
    /// The JSON text in `value`, if a server might decode it: it starts, after white space, with `{` or `[`.
    pub(super) fn json_text(value: &str) -> Option<&str> {
        let text =
            value.trim_start_matches(|char: char| char.is_whitespace() || char.is_control() || char == '\u{feff}');
        text.starts_with(['{', '[']).then_some(text)
    }

    /// Searches `text` without building a value.
    pub(super) fn search_text(&self, text: &str) -> Text {
        let mut parser = serde_json::Deserializer::from_str(text);
        let found = Seek { fields: self }.deserialize(&mut parser).and_then(|found| parser.end().map(|()| found));
        match found {
            // Under `arbitrary_precision` the parser presents every number as a map with a private key, which stands
            // nowhere in the text. What parses has its names in double quotes.
            Ok(found) if found.name || found.private && self.names_a_member_in(text, '"') => Text::Hidden,
            Err(_) if self.names_a_member(text) => Text::Doubtful,
            Ok(_) | Err(_) => Text::Clean,
        }
    }

    /// Whether a hidden name stands in quotes before a colon, with escapes decoded.
    ///
    /// In a broken text nobody knows which quote opens a string, so each one is taken for an opening one.
    fn names_a_member(&self, text: &str) -> bool {
        ['"', '\''].into_iter().any(|quote| self.names_a_member_in(text, quote))
    }

    fn names_a_member_in(&self, text: &str, quote: char) -> bool {
        let mut quotes = unescaped(text, quote).peekable();
        while let Some(open) = quotes.next() {
            let Some(&close) = quotes.peek() else { return false };
            if text[close + 1..].trim_start().starts_with(':') && self.hides(&decoded(&text[open + 1..close])) {
                return true;
            }
        }
        false
    }
}

/// The positions of `quote` in `text` that no backslash escapes.
fn unescaped(text: &str, quote: char) -> impl Iterator<Item = usize> {
    let mut is_escaped = false;
    text.char_indices().filter_map(move |(at, char)| {
        let was_escaped = std::mem::take(&mut is_escaped);
        is_escaped = char == '\\' && !was_escaped;
        (char == quote && !was_escaped).then_some(at)
    })
}

/// `text` with its escapes decoded, those of laxer parsers too; what doesn't decode, a lone surrogate for one, becomes
/// U+FFFD.
fn decoded(text: &str) -> String {
    let mut decoded = String::new();
    let mut units = Vec::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let escape = if char == '\\' { chars.next() } else { None };
        let hex = match escape {
            Some('u') => code_unit(chars.as_str(), 4),
            Some('x') => code_unit(chars.as_str(), 2),
            _ => None,
        };
        if let Some((unit, rest)) = hex {
            units.push(unit);
            chars = rest.chars();
            continue;
        }
        flush(&mut units, &mut decoded);
        decoded.push(match escape {
            None => char,
            Some('u' | 'x') => char::REPLACEMENT_CHARACTER,
            // White space and control characters, which are no letters of a name.
            Some('b' | 'f' | 'n' | 'r' | 't' | 'v' | '0') => ' ',
            Some(escaped) => escaped,
        });
    }
    flush(&mut units, &mut decoded);
    decoded
}

/// The number that `text` begins with, of so many hexadecimal digits, and what follows.
fn code_unit(text: &str, digits: usize) -> Option<(u16, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    // The radix alone would let a sign through.
    let is_hex = number.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(number, 16).ok()).flatten().map(|unit| (unit, rest))
}

fn flush(units: &mut Vec<u16>, decoded: &mut String) {
    decoded.extend(char::decode_utf16(units.drain(..)).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
}

/// Which hidden keys a text holds.
#[derive(Clone, Copy, Default)]
struct Found {
    name: bool,
    private: bool,
}

/// Looks at every key of a JSON text.
#[derive(Clone, Copy)]
struct Seek<'a> {
    fields: &'a HiddenFields,
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found, A::Error> {
        let mut all = Found::default();
        while let Some(found) = items.next_element_seed(self)? {
            all.add(found);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        let mut all = Found::default();
        while let Some(key) = members.next_key_seed(Key(self))? {
            all.add(key);
            if key.private {
                members.next_value::<IgnoredAny>()?;
            } else {
                all.add(members.next_value_seed(self)?);
            }
        }
        Ok(all)
    }
}

impl Found {
    const fn add(&mut self, other: Self) {
        self.name |= other.name;
        self.private |= other.private;
    }
}

/// Judges a key where the parser has it, without a copy.
struct Key<'a>(Seek<'a>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Found, E> {
        let private = names::is_private(key);
        Ok(Found { name: !private && self.0.fields.hides(key), private })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn search(text: &str) -> Text {
        HiddenFields::new().search_text(text)
    }

    #[test]
    fn json_is_searched_at_any_depth() {
        assert_eq!(search(r#"{"a":[{"b":{"forc\u0065":1}}]}"#), Text::Hidden);
        assert_eq!(search(r#"{"a":[{"b":{"$serde_json::private::RawValue":"1"}}]}"#), Text::Hidden);
        assert_eq!(search(r#"{"$serde_json::private::RawValue":{"x":1}}"#), Text::Hidden);
        assert_eq!(search(r#"{"a":["force", 1.5, -2, 3e400, null, true], "b": "\u00e9"}"#), Text::Clean);
    }

    #[test]
    fn a_text_for_laxer_parsers_is_doubted_if_it_names_a_member() {
        for text in [
            r#"{"force": true, "x": NaN}"#,
            r#"{"force" : true, "x": "\ud800"}"#,
            r#"{"f\u006frce": true,}"#,
            "{'force': True}",
            r#"{"a":1} {"override_safety":1}"#,
            r#"{"it's": NaN, "force": 1}"#,
            r#"{"\nforce": NaN}"#,
            r#"{"force\t": NaN}"#,
            r#"{"\uforce": NaN}"#,
            r"{'\x66orce\0': 1}",
        ] {
            assert_eq!(search(text), Text::Doubtful, "{text}");
        }
        for text in [r#"{"x": NaN}"#, r#"[see "force" in the annex"#, "{force it: no}", "{", r#"{"a\"#, r#"["\u12"#] {
            assert_eq!(search(text), Text::Clean, "{text}");
        }
    }

    #[test]
    fn white_space_does_not_hide_a_text() {
        for text in ["{}", " \n[", "\u{a0}{", "\u{feff}{"] {
            assert!(HiddenFields::json_text(text).is_some(), "{text:?}");
        }
        for text in ["", "a{", "\"{\""] {
            assert!(HiddenFields::json_text(text).is_none(), "{text:?}");
        }
    }
}
