//! Names of members that say something: of an error, of its body, or of what wraps a result.

use super::object::Item;
use crate::{denial::is_denial_code, hidden_fields::spells};

/// The member under which some servers put a whole result.
pub(super) const RESULT: &str = "result";
pub(super) const ERROR: &str = "error";
pub(super) const DETAIL: &str = "detail";
pub(super) const CODE: &str = "code";
pub(super) const GATE: &str = "gate";
pub(super) const STATUS_CODE: &str = "status_code";

/// Members that say that a call failed, in canonical form, unless they hold null or false.
const FAILURE_KEYS: [&str; 6] = ["error", "errors", "iserror", "errorcode", "errormessage", "gate"];

/// A status, in canonical form.
const STATUS: &str = "statuscode";

/// Whether a member of this name says nothing of an error, as the first two characters tell of nearly every one.
///
/// That holds however it is spelled: a letter may join with the marks behind it, but never into another ASCII letter.
#[inline]
pub(super) fn is_harmless(name: &[u8]) -> bool {
    match name {
        [first, second, ..] if first.is_ascii_alphanumeric() && second.is_ascii_alphanumeric() => {
            let starts_telling = matches!(
                [first.to_ascii_lowercase(), second.to_ascii_lowercase()],
                [b'e', b'r'] | [b'i', b's'] | [b'g', b'a'] | [b's', b't'] | [b'c', b'o']
            );
            !starts_telling && name != DETAIL.as_bytes()
        }
        [first] => first.is_ascii(),
        _ => false,
    }
}

/// Whether it is one of those that the body of an error has, or stands under.
pub(super) fn is_of_body(name: &str) -> bool {
    matches!(name, ERROR | DETAIL | CODE | GATE | STATUS_CODE)
}

/// Whether a member says that the call failed, however it is spelled.
pub(super) fn says_failed(key: &str, value: Item<'_>) -> bool {
    let is_set = !value.is_null() && value.as_bool() != Some(false);
    is_set && FAILURE_KEYS.iter().any(|failure| spells(key, failure))
        || spells(key, STATUS) && read_status(value).is_none_or(|status| status >= 400)
        || spells(key, CODE) && value.as_str().is_some_and(|code| is_denial_code(&code))
}

/// A status, as a number or as text.
pub(super) fn read_status(item: Item<'_>) -> Option<u64> {
    item.as_u64().or_else(|| item.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_settles_only_what_the_whole_key_would() {
        let names = || FAILURE_KEYS.into_iter().chain([STATUS, ERROR, DETAIL, CODE, GATE, STATUS_CODE]);
        let marks = ["", "\u{300}", "\u{307}", "\u{30c}", "\u{338}", "\u{200d}", "_", " "];
        for name in names() {
            for mark in marks {
                for rest in [&name[1..], &name[2..]] {
                    for key in [
                        format!("{}{mark}{rest}", &name[..1]),
                        format!("{}{mark}{}{rest}", name[..1].to_ascii_uppercase(), &name[1..2]),
                        format!("{mark}{}{mark}{rest}", &name[..2]),
                    ] {
                        let tells = names().any(|name| name == key || name != DETAIL && spells(&key, name));
                        assert!(!(tells && is_harmless(key.as_bytes())), "{key:?}");
                    }
                }
            }
        }
        for key in ["decision_id", "webhook_url", "execution_status", "executed_at", "schema", "safety", "a1", "a"] {
            assert!(is_harmless(key.as_bytes()), "{key}");
        }
        for key in ["detail", "Error", "GATE", "-error", "ｅrror", "ſtatus_code", "é", ""] {
            assert!(!is_harmless(key.as_bytes()), "{key}");
        }
    }
}
