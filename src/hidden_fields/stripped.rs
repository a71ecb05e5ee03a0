//! What a scrub took away.

use std::fmt;

use super::{HiddenFields, NEVER_MODEL_FACING, names::nfkc};

/// Pointers that a report holds at the most; what goes beyond is counted.
const KEPT: usize = 64;

/// Bytes of a pointer at the most: its keys are the model's.
const POINTER_LIMIT: usize = 256;

/// Where a scrub removed a hidden field: JSON pointers, never values.
///
/// [`ArgumentScrub`](crate::ArgumentScrub) leaves one in the request's extensions for the layers below, if it removed
/// anything.
///
/// ```
/// # use tower_algenta::HiddenFields;
/// # use rmcp::object;
/// let mut arguments = object!({"scenario": "s", "Force": true});
/// let stripped = HiddenFields::new().scrub_arguments("simulate", &mut arguments)?;
/// assert_eq!(stripped.pointers().collect::<Vec<_>>(), ["/Force"]);
/// # Ok::<_, tower_algenta::error::InvalidArguments>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Stripped {
    // The usual report, a field of the contract at the top level, needs no allocation.
    top_level: [bool; NEVER_MODEL_FACING.len()],
    others: Vec<String>,
    uncounted: usize,
}

const POINTERS: [&str; NEVER_MODEL_FACING.len()] = ["/force", "/override_safety"];

impl Stripped {
    /// Whether nothing was removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many fields were removed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.top_level.iter().filter(|gone| **gone).count() + self.others.len() + self.uncounted
    }

    /// Where they stood: the first 64, as JSON pointers into the arguments (into `/_meta` for those of `_meta`), each cut
    /// at 256 bytes. They hold keys that the model chose.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        let contract = POINTERS.into_iter().zip(self.top_level).filter_map(|(pointer, gone)| gone.then_some(pointer));
        contract.chain(self.others.iter().map(String::as_str))
    }

    pub(super) fn add(&mut self, path: &str, key: &str) {
        if path.is_empty()
            && let Some(index) = NEVER_MODEL_FACING.iter().position(|name| *name == key)
        {
            self.top_level[index] = true;
        } else if self.others.len() < KEPT {
            let mut pointer = cut(path).to_owned();
            push_segment(&mut pointer, cut(key));
            pointer.truncate(cut(&pointer).len());
            self.others.push(pointer);
        } else {
            self.uncounted += 1;
        }
    }
}

impl fmt::Debug for Stripped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.pointers()).finish()
    }
}

/// The start of `text`, as much as a pointer may hold.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(POINTER_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Adds `/segment` to a JSON pointer (RFC 6901).
pub(super) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for char in segment.chars() {
        match char {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            char => pointer.push(char),
        }
    }
}

impl HiddenFields {
    /// Whether the last segment of a `_meta` key, such as `com.example/override_safety`, names a hidden field.
    pub(super) fn hides_in_meta(&self, key: &str) -> bool {
        // A full-width slash is a slash to whoever normalises keys.
        let segments =
            |key: &str| key.split('/').rev().find(|segment| !segment.is_empty()).is_some_and(|name| self.hides(name));
        self.hides(key) || if key.is_ascii() { segments(key) } else { segments(&nfkc(key)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pointers_of_the_contract_are_those_of_its_fields() {
        for (pointer, name) in POINTERS.into_iter().zip(NEVER_MODEL_FACING) {
            assert_eq!(pointer.strip_prefix('/'), Some(name));
        }
    }

    #[test]
    fn a_report_is_bounded() {
        let mut stripped = Stripped::default();
        stripped.add("", "force");
        stripped.add("/a~b", "x/y~z");
        for _ in 0..100 {
            stripped.add("/a", "force");
        }
        assert_eq!(stripped.len(), 102);
        assert_eq!(stripped.pointers().count(), 1 + KEPT);
        assert_eq!(stripped.pointers().nth(1), Some("/a~b/x~1y~0z"));
        for start in ["", "/", "//"] {
            let mut long = Stripped::default();
            long.add(&format!("{start}{}", "/é".repeat(1 << 20)), "force");
            let pointers: Vec<_> = long.pointers().collect();
            // Cut between characters, and no shorter than that takes.
            assert!(matches!(pointers[..], [pointer] if (POINTER_LIMIT - 1..=POINTER_LIMIT).contains(&pointer.len())));
        }
    }

    #[test]
    fn a_report_shows_what_it_points_at() {
        let mut stripped = Stripped::default();
        stripped.add("", "override_safety");
        stripped.add("/options", "Force");
        assert_eq!(format!("{stripped:?}"), r#"["/override_safety", "/options/Force"]"#);
    }
}
