//! P5: what an error prints depends on its kind alone, not on what an engine or a model wrote.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use tower_algenta::Error;

use crate::support::everything_printed;

/// What the first error of each kind printed.
static FIRST: Mutex<BTreeMap<(&str, String), String>> = Mutex::new(BTreeMap::new());

pub(crate) fn check(error: &Error) {
    let reason = match error {
        Error::Denied(denial) => format!("{:?}", denial.gate().known()),
        Error::ExecutionFailed(failure) => format!("{:?}", failure.reason()),
        Error::OutcomeUnknown(failure) => format!("{:?}", failure.reason()),
        Error::InvalidArguments(refusal) => format!("{:?}", refusal.reason()),
        Error::UnexpectedResponse(wrong) => format!("{wrong:?}"),
        // It quotes the tool's name, escaped and cut, and the caller may have written anything there. It says no more.
        Error::ToolNotAllowed(_) => {
            let printed = everything_printed(error);
            assert!(!printed.contains(|char: char| char.is_control() && char != '\n'), "{printed:?}");
            let said = error.to_string();
            let quotes = said.strip_prefix("unknown tool \"").and_then(|rest| rest.strip_suffix('"'));
            assert!(quotes.is_some() || said == "unknown tool", "{printed}");
            assert!(said.chars().count() < 128 * 10 + 32, "{printed}");
            return;
        }
        // The inner service's own, shown as they are.
        _ => return,
    };
    let printed = everything_printed(error);
    assert!(!printed.contains("force") && !printed.contains("override_safety"), "{printed}");
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    let first = first.entry((error.kind(), reason)).or_insert_with(|| printed.clone());
    assert_eq!(printed, *first, "of one kind");
}
