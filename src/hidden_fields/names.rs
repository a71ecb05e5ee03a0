//! When a key is one of the hidden fields.

use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

/// Keys by which `serde_json` smuggles a raw value or a number through a map; a build with its `raw_value` feature
/// would decode the text behind one into live JSON.
const SERDE_JSON_PRIVATE: &str = "$serde_json::private::";

/// How a key is compared with a hidden field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Matching {
    /// By canonical form: NFKC, case-folded, letters and digits only. `Force`, `overrideSafety`, `--force` and
    /// `f\u{200b}orce` are all hidden, because some binder out there accepts each of them.
    #[default]
    Canonical,
    /// Byte for byte. Only for an engine that is known to bind names exactly.
    Exact,
}

/// One hidden field and the form in which keys are compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field<T> {
    name: T,
    canonical: T,
}

// The only place that spells the operator switches of the contract.
pub(crate) const FORCE: &str = "force";
pub(crate) const OVERRIDE_SAFETY: &str = "override_safety";

const CONTRACT: [Field<&str>; 2] =
    [Field { name: FORCE, canonical: FORCE }, Field { name: OVERRIDE_SAFETY, canonical: "overridesafety" }];

/// Fields that no model may see or set: operator switches on `execute_decision`.
///
/// `force` bypasses the idempotency gate for one re-execution; `override_safety` bypasses the confidence and the
/// risk-floor gate.
pub const NEVER_MODEL_FACING: [&str; 2] = [FORCE, OVERRIDE_SAFETY];

/// The first bytes that no key with the name of a field of the contract has: ASCII letters and digits other than the
/// names' first letters.
///
/// That holds for keys beyond ASCII too. A letter may join with the marks behind it, but never into another ASCII letter,
/// so the canonical form still starts with it or with what it joined into.
const SETTLED: [bool; 256] = {
    let mut settled = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        settled[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut field = 0;
    while field < CONTRACT.len() {
        let first = CONTRACT[field].canonical.as_bytes()[0];
        settled[first as usize] = false;
        settled[first.to_ascii_uppercase() as usize] = false;
        field += 1;
    }
    settled
};

/// The names that are hidden, and how keys are compared with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    // One word while nothing was added, which is nearly always.
    added: Option<Arc<[Field<Box<str>>]>>,
    pub(crate) matching: Matching,
}

impl Names {
    pub(crate) const fn new() -> Self {
        Self { added: None, matching: Matching::Canonical }
    }

    pub(crate) fn add(&mut self, name: &str) {
        let field = Field { name: name.into(), canonical: canonical(name).into() };
        let known = self.added.as_deref().unwrap_or_default();
        if !known.contains(&field) {
            self.added = Some(known.iter().cloned().chain([field]).collect());
        }
    }

    /// Whether nothing was added to the names of the contract.
    pub(crate) const fn is_contract(&self) -> bool {
        self.added.is_none()
    }

    /// The hidden names, those of the contract first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let added = self.added.as_deref().unwrap_or_default();
        CONTRACT.iter().map(|field| field.name).chain(added.iter().map(|field| &*field.name))
    }

    /// Whether the first character of `key` alone tells that it names no hidden field and isn't private, as it does for
    /// nearly every key.
    #[inline]
    pub(crate) fn settles(&self, key: &str) -> bool {
        self.added.is_none() && key.as_bytes().first().is_some_and(|first| SETTLED[usize::from(*first)])
    }

    /// Whether `key` names a hidden field, or is one of `serde_json`'s private keys.
    #[inline]
    pub(crate) fn hides(&self, key: &str) -> bool {
        !self.settles(key) && self.hides_unsettled(key)
    }

    #[inline(never)]
    fn hides_unsettled(&self, key: &str) -> bool {
        is_private(key)
            || match self.matching {
                Matching::Exact => self.iter().any(|name| name == key),
                Matching::Canonical if key.is_ascii() => self.hides_ascii(key.as_bytes()),
                Matching::Canonical => self.hides_other(key),
            }
    }

    #[inline]
    fn hides_ascii(&self, key: &[u8]) -> bool {
        CONTRACT.iter().any(|field| ascii_is(key, field.canonical))
            || self.added.as_deref().is_some_and(|added| {
                added.iter().any(|field| ascii_is(key, &field.canonical) || field.name.as_bytes() == key)
            })
    }

    #[cold]
    fn hides_other(&self, key: &str) -> bool {
        let canonical = canonical(key);
        CONTRACT.iter().any(|field| field.canonical == canonical)
            || self.added.as_deref().is_some_and(|added| {
                added
                    .iter()
                    .any(|field| (!canonical.is_empty() && *field.canonical == *canonical) || *field.name == *key)
            })
    }
}

/// Whether `key` is one of `serde_json`'s private keys, which are dropped everywhere.
#[inline]
pub(crate) fn is_private(key: &str) -> bool {
    // The first byte settles it for nearly every key.
    key.as_bytes().first() == Some(&b'$') && key.starts_with(SERDE_JSON_PRIVATE)
}

/// Whether the letters and digits of `key`, in lower case, spell `canonical`.
#[inline]
fn ascii_is(key: &[u8], canonical: &str) -> bool {
    if key.len() < canonical.len() {
        return false;
    }
    let mut rest = canonical.as_bytes();
    for byte in key {
        if byte.is_ascii_alphanumeric() {
            match rest {
                [first, tail @ ..] if *first == byte.to_ascii_lowercase() => rest = tail,
                _ => return false,
            }
        }
    }
    rest.is_empty() && !canonical.is_empty()
}

/// Whether the letters and digits of `key`, folded, spell `canonical`.
pub(crate) fn spells(key: &str, canonical_form: &str) -> bool {
    if key.is_ascii() { ascii_is(key.as_bytes(), canonical_form) } else { canonical(key) == canonical_form }
}

/// NFKC, case-folded, letters and digits only.
///
/// Folding goes by way of the upper case, so that characters with several lower-case forms, `ſ` and final sigma
/// among them, meet in one.
pub(crate) fn canonical(key: &str) -> String {
    key.nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfkc()
        .filter(|char| char.is_alphanumeric())
        .collect()
}

/// `key` in the form that compatible spellings share.
pub(crate) fn nfkc(key: &str) -> String {
    key.nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn hides(key: &str) -> bool {
        Names::new().hides(key)
    }

    #[test]
    fn every_spelling_that_some_binder_accepts_is_hidden() {
        for key in [
            "force",
            "Force",
            "FORCE",
            " force",
            "force\0",
            "--force",
            "_force",
            "f-o-r-c-e",
            "f\u{200b}orce",
            "\u{202e}force",
            "ｆｏｒｃｅ",
            "𝐟orce",
            "override_safety",
            "overrideSafety",
            "OverrideSafety",
            "override-safety",
            "override safety",
            "override_ſafety",
            "$serde_json::private::RawValue",
            "$serde_json::private::Number",
        ] {
            assert!(hides(key), "{key:?}");
        }
    }

    #[test]
    fn other_words_are_not() {
        for key in [
            "",
            "_",
            "f",
            "forc",
            "forced",
            "enforce",
            "workforce",
            "force_majeure",
            "reinforce",
            "safety_overridden",
            "override",
            "safety",
            "fоrce",
            "$serde_json",
            "größe",
        ] {
            assert!(!hides(key), "{key:?}");
        }
    }

    #[test]
    fn a_first_letter_settles_only_what_the_whole_key_would() {
        let marks = ['\u{300}', '\u{307}', '\u{30c}', '\u{327}', '\u{338}', '\u{20e3}', '\u{200d}', '\u{ac00}'];
        for first in '\0'..='\u{7f}' {
            for mark in marks {
                for rest in ["orce", "force", "verride_safety", "override_safety"] {
                    let key = format!("{first}{mark}{rest}");
                    let names = Names::new();
                    assert_eq!(names.hides(&key), names.hides_other(&key), "{key:?}");
                    let key = format!("{first}{rest}");
                    assert_eq!(names.hides(&key), names.hides_other(&key), "{key:?}");
                }
            }
        }
    }

    #[test]
    fn exact_matching_takes_the_name_alone() {
        let names = Names { matching: Matching::Exact, ..Names::new() };
        assert!(names.hides("force"));
        assert!(names.hides("$serde_json::private::RawValue"));
        assert!(!names.hides("Force"));
    }

    #[test]
    fn a_field_can_be_added_and_none_taken_away() {
        let mut names = Names::new();
        names.add("Straße");
        names.add("--");
        assert!(names.hides("STRASSE"));
        assert!(names.hides("--"));
        assert!(!names.hides("-"), "a name without letters hides itself alone");
        assert!(!names.hides("\u{200b}"));
        assert!(names.hides("force"));
        assert_eq!(names.iter().collect::<Vec<_>>(), ["force", "override_safety", "Straße", "--"]);
        names.add("--");
        assert_eq!(names.iter().count(), 4, "a name is added once");
    }

    #[test]
    fn a_field_beyond_ascii_is_compared_like_any_other() {
        let mut names = Names::new();
        names.add("straße");
        names.add("→");
        for key in ["straße", "Straße", "stra\u{200b}sse", "→"] {
            assert!(names.hides(key), "{key:?}");
        }
        for key in ["größe", "straßen", "←", "\u{200b}"] {
            assert!(!names.hides(key), "{key:?}");
        }
    }

    #[test]
    fn a_key_spells_a_word_in_any_script_that_reads_alike() {
        assert!(spells("Error_Code", "errorcode"));
        assert!(spells("ｅｒｒｏｒ_ｃｏｄｅ", "errorcode"));
        assert!(!spells("error_codes", "errorcode"));
        assert!(!spells("ｅｒｒｏｒ", "errorcode"));
    }
}
