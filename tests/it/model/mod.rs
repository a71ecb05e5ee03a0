//! A second opinion: the rules once more, slow and obvious, from the design and not from `src`.
//!
//! Nothing here calls the crate. It works on wire JSON, builds what it needs anew for each question, and looks at
//! everything; `differential` and `small_scopes` hold the crate to it. For schemas it is a judgement of the crate's answer
//! (see [`schema`]), for the rest an answer of its own.

pub(crate) mod arguments;
mod found;
pub(crate) mod names;
pub(crate) mod outcome;
mod quotes;
pub(crate) mod schema;
pub(crate) mod text;
pub(crate) mod webhooks;

use unicode_normalization::UnicodeNormalization;

/// The operator's switches, in canonical form.
const SWITCHES: [&str; 2] = ["force", "overridesafety"];

/// NFKC, case folded, letters and digits only. A binder may compare in upper case, where more letters meet.
pub(crate) fn canonical(key: &str) -> String {
    let composed: String = key.nfkc().collect();
    let folded = composed.to_uppercase().to_lowercase();
    // The last letter of a word is not another letter: `str` writes a final sigma, which no name has.
    folded.nfkc().filter(|c| c.is_alphanumeric()).collect()
}

/// How a key is compared with a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Matching {
    #[default]
    Canonical,
    Exact,
}

impl Matching {
    pub(crate) fn hides(self, key: &str) -> bool {
        match self {
            Self::Canonical => is_hidden(key),
            Self::Exact => is_private(key) || ["force", "override_safety"].contains(&key),
        }
    }

    pub(crate) fn hides_in_meta(self, key: &str) -> bool {
        match self {
            Self::Canonical => is_hidden_in_meta(key),
            Self::Exact => self.hides(key) || last_segment(key).is_some_and(|segment| self.hides(&segment)),
        }
    }
}

/// Whether a key spells an operator's switch.
pub(crate) fn spells_a_switch(key: &str) -> bool {
    SWITCHES.contains(&canonical(key).as_str())
}

/// A key that a build of `serde_json` with other features would read as something else.
pub(crate) fn is_private(key: &str) -> bool {
    key.starts_with("$serde_json::private::")
}

pub(crate) fn is_hidden(key: &str) -> bool {
    spells_a_switch(key) || is_private(key)
}

/// In `_meta` the last segment of a key counts, too.
pub(crate) fn is_hidden_in_meta(key: &str) -> bool {
    is_hidden(key) || last_segment(key).is_some_and(|segment| is_hidden(&segment))
}

/// Keys may have a prefix that ends in a slash, of any width; the last segment that says anything counts.
fn last_segment(key: &str) -> Option<String> {
    let key_in_one_form: String = key.nfkc().collect();
    key_in_one_form.split('/').rfind(|segment| !segment.is_empty()).map(str::to_owned)
}
