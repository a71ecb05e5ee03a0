//! Which regular expressions spell a hidden field.
//!
//! No engine is run: the expression is read as text, and what is not literal in it is a gap. `^force$`,
//! `^(force|x)$`, `^[Ff]orce$`, `override[_-]?safety` and `^(?!force$)` spell a field, `^.*$` and `^x-` don't. A pattern
//! that is taken for one by mistake costs a constraint, never a call.

use super::super::{HiddenFields, Matching};

/// What a pattern has to do with the hidden fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spells {
    /// Nothing.
    Nothing,
    /// It spells one, and may match other names too.
    AmongOthers,
    /// It matches hidden names and no others.
    Only,
}

/// One step of a regular expression.
enum Step {
    Literal(char),
    /// The end of an alternative.
    Bar,
    /// A bracket of a group.
    Bracket,
    /// An anchor.
    Edge,
    /// A quantifier: the literal before it is taken as written once.
    Repeat,
    /// Anything that matches more than one character.
    Gap,
}

impl HiddenFields {
    /// What `pattern` has to do with the hidden fields.
    pub(super) fn spelled_by(&self, pattern: &str) -> Spells {
        let mut steps = Steps { rest: pattern };
        let (mut grouped, mut joined) = (String::new(), String::new());
        let (mut spelled, mut only) = (false, true);
        let mut has_bars = false;
        loop {
            let step = steps.next();
            match step {
                Some(Step::Literal(char)) => {
                    grouped.push(char);
                    joined.push(char);
                }
                Some(Step::Edge) => {}
                Some(Step::Repeat) => only = false,
                Some(Step::Bracket) => {
                    spelled |= self.hides(&grouped);
                    grouped.clear();
                }
                Some(Step::Bar | Step::Gap) | None => {
                    let hidden = self.hides(&joined);
                    spelled |= hidden || self.hides(&grouped);
                    only &= hidden && !matches!(step, Some(Step::Gap));
                    has_bars |= matches!(step, Some(Step::Bar));
                    grouped.clear();
                    joined.clear();
                }
            }
            if step.is_none() {
                break;
            }
        }
        // A class may match a spelling that is hidden only in canonical form.
        only &= self.names.matching == Matching::Canonical || !pattern.contains('[');
        match (spelled, only && is_closed(pattern, has_bars)) {
            (false, _) => Spells::Nothing,
            (true, false) => Spells::AmongOthers,
            (true, true) => Spells::Only,
        }
    }
}

/// Whether `pattern` is anchored at both ends, all its alternatives included, and is otherwise plain.
fn is_closed(pattern: &str, has_bars: bool) -> bool {
    let Some(inside) = pattern.strip_prefix('^').and_then(|pattern| pattern.strip_suffix('$')) else { return false };
    let inside = if has_bars {
        let Some(inside) = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) else { return false };
        inside.strip_prefix("?:").unwrap_or(inside)
    } else {
        inside
    };
    !inside.contains(['(', ')', '^', '$', '\\'])
}

struct Steps<'a> {
    rest: &'a str,
}

impl Steps<'_> {
    fn next_char(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.rest = &self.rest[char.len_utf8()..];
        Some(char)
    }

    /// Skips up to and with the first of `ends`.
    fn skip_past(&mut self, ends: &[char]) {
        let end = self.rest.find(ends).map_or(self.rest.len(), |at| at + 1);
        self.rest = &self.rest[end..];
    }

    fn next(&mut self) -> Option<Step> {
        Some(match self.next_char()? {
            '|' => Step::Bar,
            '^' | '$' => Step::Edge,
            '.' => Step::Gap,
            '?' | '*' | '+' => Step::Repeat,
            '{' => {
                self.skip_past(&['}']);
                Step::Repeat
            }
            ')' => Step::Bracket,
            '(' => {
                if self.rest.starts_with('?') {
                    // `(?:`, `(?i)`, `(?!`, `(?<name>` …
                    self.skip_past(&[':', ')', '!', '=', '>']);
                }
                Step::Bracket
            }
            '[' => self.class(),
            '\\' => self.escape(),
            char => Step::Literal(char),
        })
    }

    /// A class counts as a literal if its members are one letter in both cases, or separators.
    fn class(&mut self) -> Step {
        let mut letter = None;
        let mut gap = self.rest.starts_with('^');
        let mut first = true;
        while let Some(char) = self.next_char() {
            let char = match char {
                ']' if !first => break,
                '\\' => {
                    let Step::Literal(char) = self.escape() else {
                        gap = true;
                        continue;
                    };
                    char
                }
                char => char,
            };
            // A range, unless the hyphen stands at either end.
            gap |= char == '-' && !first && !self.rest.starts_with(']');
            first = false;
            if char.is_alphanumeric() {
                gap |= letter.is_some_and(|letter: char| !letter.to_lowercase().eq(char.to_lowercase()));
                letter = letter.or(Some(char));
            }
        }
        match letter {
            _ if gap => Step::Gap,
            Some(letter) => Step::Literal(letter.to_ascii_lowercase()),
            None => Step::Literal('_'),
        }
    }

    fn escape(&mut self) -> Step {
        match self.next_char() {
            None | Some('b' | 'B' | 'A' | 'z' | 'Z') => Step::Edge,
            Some('x') => self.code(2),
            Some('u') => self.code(4),
            Some('t' | 'n' | 'r' | 'f' | 'v') => Step::Literal(' '),
            Some(char) if char.is_ascii_alphanumeric() => Step::Gap,
            Some(char) => Step::Literal(char),
        }
    }

    fn code(&mut self, digits: usize) -> Step {
        let digits = match self.rest.strip_prefix('{') {
            Some(rest) => {
                self.skip_past(&['}']);
                rest.split_once('}').map(|(digits, _)| digits)
            }
            None => self.rest.get(..digits).inspect(|digits| self.rest = &self.rest[digits.len()..]),
        };
        digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .and_then(char::from_u32)
            .map_or(Step::Gap, Step::Literal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn spelled_by(pattern: &str) -> Spells {
        HiddenFields::new().spelled_by(pattern)
    }

    #[test]
    fn patterns_that_match_hidden_names_alone() {
        for pattern in [
            "^force$",
            "^(force|override_safety)$",
            "^(?:force|overrideSafety)$",
            "^[Ff]orce$",
            "^[fF][oO]rce$",
            "^override[_-]safety$",
            "^override[_ -]safety$",
            "^--force$",
        ] {
            assert_eq!(spelled_by(pattern), Spells::Only, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_match_others_too() {
        for pattern in [
            "force",
            "^force",
            "^force.*$",
            "^(force|reason)$",
            "^force|override_safety$",
            "^override[_-]?safety$",
            "^(?!force$).*$",
            "^(?!(force|override_safety)$)",
            "(?i)^force$",
            r"^\x66orce$",
            r"\u0066orce",
            r"\u{66}orce",
            r"\bforce\b",
            "^for(ce)$",
            "^(over)(ride)_safety$",
            "^force{1}$",
            "^(a|(force|b))$",
            "^override[_-]+safety$",
            "^[]-z]force$",
            r"^force\d$",
            r"^override\-safety$",
        ] {
            assert_eq!(spelled_by(pattern), Spells::AmongOthers, "{pattern}");
        }
    }

    #[test]
    fn where_names_are_exact_a_class_may_match_another() {
        let exact = HiddenFields::new().matching(Matching::Exact);
        assert_eq!(exact.spelled_by("^force$"), Spells::Only);
        assert_eq!(exact.spelled_by("^[Ff]orce$"), Spells::AmongOthers);
        assert_eq!(exact.spelled_by("^Force$"), Spells::Nothing);
        assert_eq!(exact.spelled_by("^(?:force)$"), Spells::AmongOthers);
    }

    #[test]
    fn general_patterns_spell_nothing() {
        for pattern in [
            "",
            "^.*$",
            "^x-",
            "^[a-z_]+$",
            "^workforce$",
            "enforce",
            "^f.rce$",
            r"^\w+$",
            "[",
            "(",
            r"\",
            "^override[!-~]safety$",
            "^[^f]orce$",
            "[^]",
            "{",
            "(?",
        ] {
            assert_eq!(spelled_by(pattern), Spells::Nothing, "{pattern}");
        }
    }
}
