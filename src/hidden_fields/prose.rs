//! Removes from descriptions what tells a model to use a hidden field.
//!
//! A field is used as an identifier where it is written as code: `force=true`, `force: …`, quoted, in back-ticks, as a
//! flag or a member. A name that is no word, such as `override_safety`, is an identifier wherever it stands. The English
//! word stays: "enforce limits by force of habit".

use std::{borrow::Cow, ops::Range};

use memchr::memchr2;

use super::{HiddenFields, NEVER_MODEL_FACING, Prose};

/// Bytes that the type of a parameter in a docstring takes at the most.
const TYPE_LEN: usize = 128;

/// A letter that every field of the contract holds.
const SHARED: u8 = b'f';

const _: () = {
    let mut name = 0;
    while name < NEVER_MODEL_FACING.len() {
        let bytes = NEVER_MODEL_FACING[name].as_bytes();
        let mut at = 0;
        // Out of bounds, and so no build, if the letter is missing.
        while bytes[at] != SHARED {
            at += 1;
        }
        name += 1;
    }
};

impl HiddenFields {
    /// `text` without the lines that use a hidden field as an identifier; in a text of one line, without the sentences
    /// that do. `None` if there are none, or if prose is kept.
    pub(super) fn redact(&self, text: &str) -> Option<String> {
        if !self.is_mentioned(text) {
            return None;
        }
        let redacted: String = if text.trim_end().contains('\n') {
            text.split_inclusive('\n').filter(|line| !self.is_mentioned(line)).collect()
        } else {
            sentences(text).filter(|sentence| !self.is_mentioned(sentence)).collect()
        };
        if redacted.len() == text.len() {
            // The mention spans what was looked at one by one.
            return Some(String::new());
        }
        let redacted = if text.ends_with(char::is_whitespace) { redacted } else { redacted.trim_end().to_owned() };
        // What now stands side by side must not read as a mention either.
        Some(if self.is_mentioned(&redacted) { String::new() } else { redacted })
    }

    /// Redacts a title or description in place, and takes it away if nothing is left. Returns whether it changed.
    pub(super) fn redact_title(&self, text: &mut Option<String>) -> bool {
        let Some(redacted) = text.as_deref().and_then(|text| self.redact(text)) else { return false };
        *text = (!redacted.trim().is_empty()).then_some(redacted);
        true
    }

    /// As [`redact_title`](Self::redact_title).
    pub(super) fn redact_description(&self, text: &mut Option<Cow<'static, str>>) -> bool {
        let Some(redacted) = text.as_deref().and_then(|text| self.redact(text)) else { return false };
        *text = (!redacted.trim().is_empty()).then_some(Cow::Owned(redacted));
        true
    }

    /// Whether `text` uses a hidden field as an identifier, and the knob says that this matters.
    pub(super) fn is_mentioned(&self, text: &str) -> bool {
        if self.prose == Prose::Keep {
            return false;
        }
        if self.names.is_contract() && text.is_ascii() {
            return self.contract_is_mentioned(text);
        }
        let first_letters = self.first_letters();
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if !in_token(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            let mut is_ascii = true;
            while at < bytes.len() && in_token(bytes[at]) {
                is_ascii &= bytes[at].is_ascii();
                at += 1;
            }
            if is_ascii {
                if may_start(&bytes[start..at], first_letters) && self.is_identifier(text, start..at) {
                    return true;
                }
            } else if self.is_identifier(text, start..at) || self.has_ascii_identifier(text, start..at) {
                return true;
            }
        }
        false
    }

    /// Whether `text`, all ASCII, uses a field of the contract as an identifier.
    fn contract_is_mentioned(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut from = 0;
        // All of them hold this letter, which is a rare one.
        while let Some(found) = memchr2(SHARED, SHARED.to_ascii_uppercase(), &bytes[from..]) {
            let hit = from + found;
            let start =
                bytes[from..hit].iter().rposition(|byte| !in_token(*byte)).map_or(from, |before| from + before + 1);
            let end = bytes[hit..].iter().position(|byte| !in_token(*byte)).map_or(bytes.len(), |after| hit + after);
            if !self.names.settles(&text[start..end]) && self.is_identifier(text, start..end) {
                return true;
            }
            from = end;
        }
        false
    }

    /// Whether one of the ASCII runs of the token at `range` is a hidden field: a script without spaces writes a name
    /// amid its words.
    fn has_ascii_identifier(&self, text: &str, range: Range<usize>) -> bool {
        let mut start = range.start;
        text[range.clone()].split(|char: char| !char.is_ascii()).any(|run| {
            // What splits is taken off by length, for an empty run too.
            let at = start;
            start += run.len() + text[start + run.len()..].chars().next().map_or(0, char::len_utf8);
            !run.is_empty() && self.is_identifier(text, at..at + run.len())
        })
    }

    /// The letters that hidden names start with, as a set; all, if one starts with another character.
    fn first_letters(&self) -> u32 {
        self.iter().fold(0, |letters, name| {
            let first = name.chars().find(|char| char.is_alphanumeric());
            letters | first.filter(char::is_ascii_alphabetic).map_or(u32::MAX, |first| 1 << (first as u32 & 31))
        })
    }

    /// Whether the token at `range` in `text` is a hidden field, written as code if its name is a word.
    fn is_identifier(&self, text: &str, range: Range<usize>) -> bool {
        let token = &text[range.clone()];
        self.hides(token) && (!self.is_word(token) || is_code(&text[..range.start], &text[range.end..]))
    }

    /// Whether `token` is a hidden field whose name is a word of the language as well.
    fn is_word(&self, token: &str) -> bool {
        self.iter().any(|name| name.bytes().all(|byte| byte.is_ascii_alphabetic()) && name.eq_ignore_ascii_case(token))
    }
}

/// Whether `byte` belongs to an identifier. All of a character beyond ASCII does: invisible ones hide in identifiers,
/// and typographic quotes around one are as good as quotes.
const fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
}

/// Whether the first letter of `token` is among `letters`. Settles it for most words of a text.
fn may_start(token: &[u8], letters: u32) -> bool {
    letters == u32::MAX
        || token.iter().find(|byte| byte.is_ascii_alphanumeric()).is_some_and(|first| letters >> (first & 31) & 1 == 1)
}

/// Whether a word between `before` and `after` is written as code.
fn is_code(before: &str, after: &str) -> bool {
    let last = before.bytes().next_back();
    let first = after.bytes().next();
    if matches!(
        (last, first),
        (Some(b'"' | b'\'' | b'`'), Some(b'"' | b'\'' | b'`' | b'\\'))
            | (Some(b'['), Some(b']'))
            | (Some(b'{'), Some(b'}'))
            | (Some(b'<'), Some(b'>'))
            | (Some(b'*'), Some(b'*'))
            | (Some(b'$' | b'@'), _)
    ) {
        return true;
    }
    // A member: `args.force`.
    if last == Some(b'.') && before.bytes().nth_back(1).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return true;
    }
    let rest = after.trim_start_matches([' ', '\t']);
    match rest.bytes().next() {
        Some(b'=' | b':') => true,
        // A cell of a table.
        Some(b'|') => matches!(before.trim_end_matches([' ', '\t']).bytes().next_back(), None | Some(b'|' | b'\n')),
        // A docstring that gives the type: `force (bool): …`.
        Some(b'(') => {
            // No type is longer, and a search without end is quadratic.
            let kind = rest.bytes().take(TYPE_LEN).take_while(|byte| !matches!(byte, b')' | b'\n')).count();
            rest.as_bytes()[kind..].starts_with(b"):")
        }
        _ => before.ends_with("@param ") || before.ends_with(":param "),
    }
}

/// The sentences of `text`, each with the white space behind it.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len();
        for (at, _) in rest.match_indices(['.', '!', '?']) {
            let tail = &rest[at + 1..];
            let body = tail.trim_start();
            if body.len() < tail.len() {
                end = rest.len() - body.len();
                break;
            }
        }
        let (sentence, tail) = rest.split_at(end);
        rest = tail;
        Some(sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn redact(text: &str) -> String {
        let fields = HiddenFields::new();
        let redacted = fields.redact(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(fields.redact(&redacted), None, "not stable: {redacted:?}");
        redacted
    }

    #[test]
    fn identifiers_go_with_their_line() {
        for line in [
            "force: bypass",
            "  Force : bool",
            "force=True",
            "force (bool, optional): bypass",
            "- `force` repeats the call",
            r#"send {"force": true}"#,
            r#"or {\"force\":true}"#,
            "use 'force' once",
            "set args.force",
            "pass --force",
            "**force** repeats",
            "| force | boolean |",
            "@param force repeats",
            "f\u{200b}orce repeats",
            "“force” repeats",
            "with override_safety the gates open",
            "with overrideSafety too",
            "OVERRIDE-SAFETY",
            "设置force=true即可",
            "设置override_safety即可",
        ] {
            assert_eq!(redact(&format!("Before.\n{line}\nAfter.")), "Before.\nAfter.", "{line}");
            assert_eq!(redact(line), "", "{line}");
        }
    }

    #[test]
    fn the_word_stays() {
        for text in [
            "Plan for the sales force; enforce limits by force of habit.",
            "Force majeure. The task force, (force) and force.",
            "reinforce: yes, workforce = 3, force_majeure: true",
            "The \"force majeure\" clause.\nOverride safety? No.",
            "safety_overridden: whether a gate was bypassed",
            "",
            "größe: 3",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn a_text_of_one_line_loses_sentences() {
        assert_eq!(redact("Id. With override_safety=true the gates are skipped."), "Id.");
        assert_eq!(redact("One. Use force=true! Three? Four v1.2 too."), "One. Three? Four v1.2 too.");
        assert_eq!(redact("One. Use `force`.\n"), "One. ");
        assert_eq!(redact("override_safety"), "");
        // A point inside a number or a name ends nothing.
        assert_eq!(redact("One. Use force=1.5 of v2.0 at a.b! Two."), "One. Two.");
    }

    #[test]
    fn prose_can_be_kept() {
        assert_eq!(HiddenFields::new().prose(Prose::Keep).redact("force=true"), None);
    }

    #[test]
    fn a_field_that_was_added_is_redacted() {
        let fields = HiddenFields::new().with_field("skip_checks").with_field("admin");
        assert_eq!(fields.redact("A. Set skip_checks. B").as_deref(), Some("A. B"));
        assert_eq!(fields.redact("An admin may.\nadmin: may").as_deref(), Some("An admin may."));
        // Names with the same first letter are both looked for.
        let fields = HiddenFields::new().with_field("fast_track");
        assert_eq!(fields.redact("A. Set fast_track. B").as_deref(), Some("A. B"));
        assert_eq!(fields.redact("A. Set force=true. B").as_deref(), Some("A. B"));
    }
}
