//! What a model wrote into a call, where an engine's prose might quote it.
//!
//! A model could put the text of a denial into an argument. An engine that then fails in another way and quotes the
//! argument would seem to have denied the call, though it may have run.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{
    object::Object,
    reading::bodies,
    scan::{Objects, TEXT_LIMIT, Unreadable},
    telling::{CODE, GATE},
};
use crate::{
    decision::DECISION_ID,
    denial,
    hidden_fields::{nfkc, spells},
    json::any,
};

/// What an answer might quote of a call's arguments and that could be taken for a denial. Nearly every call has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echoes {
    /// Strings that hold a brace.
    texts: Vec<Box<str>>,
    /// Objects in which one reads like a denial, none of them inside another.
    objects: Vec<JsonObject>,
    may_forge: bool,
}

/// What may still be compared with the arguments. A model that writes a thousand denials, and has an engine quote a
/// thousand others, must not hold this process up.
#[derive(Debug)]
pub(super) struct Comparisons(usize);

/// Bytes of a text that are searched at the cost of one value that is compared.
const SEARCHED: usize = 64;

impl Comparisons {
    /// Values: some tenths of a second's worth, where each is far from the next in memory.
    pub(super) const fn new() -> Self {
        Self(TEXT_LIMIT)
    }

    fn charge(&mut self, cost: usize) -> Result<(), Unreadable> {
        self.0 = self.0.checked_sub(cost).ok_or(Unreadable)?;
        Ok(())
    }
}

impl Echoes {
    /// No call, so nothing can be an echo.
    pub(crate) const NONE: &'static Self = &Self { texts: Vec::new(), objects: Vec::new(), may_forge: false };

    /// What an answer to a call with `arguments`, of limited depth, might quote.
    ///
    /// The text of `decision_id` is left out. An id that holds a brace is hardly a decision's, so what quotes it has hardly
    /// run, and aborts as a denial, which no operator can override.
    pub(crate) fn of(arguments: &JsonObject) -> Self {
        let mut echoes = Self { may_forge: may_forge(arguments), ..Self::default() };
        // An engine may quote the call as a whole.
        echoes.add_object(arguments);
        for (key, value) in arguments.iter().filter(|(key, _)| *key != DECISION_ID) {
            echoes.add_text(key);
            echoes.add_texts_in(value);
        }
        echoes
    }

    /// Whether an engine that quotes the call, in whatever form, could seem to have written a denial.
    pub(crate) const fn may_forge(&self) -> bool {
        self.may_forge
    }

    /// Whether `object`, written as `text` in the midst of prose, stands in an argument.
    #[inline]
    pub(super) fn contain(
        &self,
        text: &str,
        object: Object<'_>,
        comparisons: &mut Comparisons,
    ) -> Result<bool, Unreadable> {
        for argument in &self.texts {
            comparisons.charge(1 + argument.len() / SEARCHED)?;
            if argument.contains(text) {
                return Ok(true);
            }
        }
        self.contain_object(object, comparisons)
    }

    /// Whether `object` reads like a denial and stands in an argument, or is what a scrub may leave of one there.
    pub(super) fn contain_object(&self, object: Object<'_>, comparisons: &mut Comparisons) -> Result<bool, Unreadable> {
        // What reads otherwise is judged, for with fields taken away it could be part of much.
        if self.objects.is_empty() || !reads_like_a_denial(object) {
            return Ok(false);
        }
        let object = object.to_parsed();
        any(&self.objects, |argument| comparisons.has_part(&object, argument))
    }

    fn add_object(&mut self, object: &JsonObject) {
        if holds_a_denial(object) {
            self.objects.push(object.clone());
        }
    }

    fn add_texts(&mut self, members: &JsonObject) {
        for (key, value) in members {
            self.add_text(key);
            self.add_texts_in(value);
        }
    }

    fn add_texts_in(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.add_texts_in(item)),
            Value::Object(members) => self.add_texts(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if text.contains('{') {
            self.texts.push(text.into());
            // An engine may decode the text, and write it anew or a part of it.
            let Ok(mut objects) = Objects::of(text).map(Objects::with_silent) else { return };
            while let Ok(Some(found)) = objects.next_object() {
                let object = found.read.object().to_parsed();
                self.add_object(&object);
                self.add_texts(&object);
            }
        }
    }
}

impl Comparisons {
    /// Whether `less` is `more`, or an object in it, with fields taken away.
    fn has_part(&mut self, less: &JsonObject, more: &JsonObject) -> Result<bool, Unreadable> {
        Ok(self.is_part_of_object(less, more)? || any(more.values(), |value| self.has_part_in(less, value))?)
    }

    fn has_part_in(&mut self, less: &JsonObject, more: &Value) -> Result<bool, Unreadable> {
        self.charge(1)?;
        match more {
            Value::Object(more) => self.has_part(less, more),
            Value::Array(items) => any(items, |item| self.has_part_in(less, item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(false),
        }
    }

    /// Whether `less` is `more` with fields taken away, in texts too, and nothing else changed.
    fn is_part_of(&mut self, less: &Value, more: &Value) -> Result<bool, Unreadable> {
        match (less, more) {
            (Value::Object(less), Value::Object(more)) => self.is_part_of_object(less, more),
            (Value::Array(less), Value::Array(more)) => {
                self.charge(1)?;
                Ok(less.len() == more.len()
                    && !any(less.iter().zip(more), |(less, more)| Ok(!self.is_part_of(less, more)?))?)
            }
            (Value::String(less), Value::String(more)) => {
                self.charge(1 + less.len() / SEARCHED)?;
                if less == more {
                    return Ok(true);
                }
                // A value for each byte of either, if it is JSON.
                let is_json = |text: &str| text.trim_start().starts_with(['{', '[']);
                if !is_json(less) || !is_json(more) {
                    return Ok(false);
                }
                self.charge(less.len() + more.len())?;
                // A scrub writes a text anew if it takes something out of it.
                let read = |text: &str| serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string());
                match read(less).zip(read(more)) {
                    Some((less, more)) => self.is_part_of(&less, &more),
                    None => Ok(false),
                }
            }
            (less, more) => {
                self.charge(1)?;
                Ok(less == more)
            }
        }
    }

    fn is_part_of_object(&mut self, less: &JsonObject, more: &JsonObject) -> Result<bool, Unreadable> {
        Ok(!any(less, |(key, value)| {
            // A look-up compares some keys.
            self.charge(4 + key.len() / SEARCHED)?;
            match more.get(key) {
                Some(more) => Ok(!self.is_part_of(value, more)?),
                None => Ok(true),
            }
        })?)
    }
}

/// Whether `members`, or an object in them, reads like a denial.
fn holds_a_denial(members: &JsonObject) -> bool {
    reads_like_a_denial(Object::Parsed(members)) || members.values().any(holds_a_denial_in)
}

fn holds_a_denial_in(value: &Value) -> bool {
    match value {
        Value::Object(members) => holds_a_denial(members),
        Value::Array(items) => items.iter().any(holds_a_denial_in),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether an engine that writes out what is in `members`, whole or in part, decoded, joined, or in lower case, may seem to
/// have written a denial. For that, a brace has to come from a text, or from an object that names a gate.
fn may_forge(members: &JsonObject) -> bool {
    members.iter().any(|(key, value)| names_a_gate(key, value) || may_hold_a_brace(key) || value_may_forge(value))
}

fn value_may_forge(value: &Value) -> bool {
    match value {
        Value::String(text) => may_hold_a_brace(text),
        Value::Array(items) => items.iter().any(value_may_forge),
        Value::Object(members) => may_forge(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn names_a_gate(key: &str, value: &Value) -> bool {
    spells(key, GATE) || spells(key, CODE) && value.as_str().is_some_and(denial::is_denial_code)
}

/// Whether `text` holds a brace, or what is decoded to one: an escape of a URL's, of JSON's or of HTML's, another width.
fn may_hold_a_brace(text: &str) -> bool {
    let may = |text: &str| text.contains('{') || text.contains(['%', '\\', '&']) && may_escape_a_brace(text.as_bytes());
    may(text) || !text.is_ascii() && may(&nfkc(text))
}

fn may_escape_a_brace(text: &[u8]) -> bool {
    let escapes_once_or_twice = |window: &[u8]| matches!(window, [b'%', b'7', b'b' | b'B'] | [b'%', b'2', b'5']);
    let starts_an_escape =
        |window: &[u8]| matches!(window, [b'\\', b'u' | b'U' | b'x' | b'N' | b'0' | b'1'] | [b'&', b'#' | b'l']);
    text.windows(3).any(escapes_once_or_twice) || text.windows(2).any(starts_an_escape)
}

fn reads_like_a_denial(object: Object<'_>) -> bool {
    bodies(object).any(|body| denial::gate_in(body).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::object;
    use serde_json::json;

    #[test]
    fn what_a_scrub_may_leave_of_an_object_is_part_of_it_and_nothing_else_is() {
        let denial = |rest: Value| object!({"error": {"gate": "confidence", "rest": rest}});
        let contains = |argument: &Value, quoted: &Value| {
            let echoes = Echoes::of(&object!({"metadata": {"a": denial(argument.clone())}}));
            echoes.contain_object(Object::Parsed(&denial(quoted.clone())), &mut Comparisons::new()).unwrap()
        };
        let rest = json!([1, {"a": "b", "c": 2}, "{\"d\": [3], \"e\": 4}", "f"]);
        assert!(contains(&rest, &rest));
        for part in [json!([1, {"a": "b"}, "{\"d\":[3]}", "f"]), json!([1, {}, "{}", "f"])] {
            assert!(contains(&rest, &part), "{part}");
        }
        for other in [
            json!([1, {"a": "b", "c": 2}, "{\"d\": [3], \"e\": 4}"]),
            json!([1, {"a": "b", "c": 2}, "{\"d\": [3], \"e\": 4}", "f", 5]),
            json!([2, {"a": "b", "c": 2}, "{\"d\": [3], \"e\": 4}", "f"]),
            json!([1, {"a": "c"}, "{}", "f"]),
            json!([1, {"a": "b", "d": 2}, "{}", "f"]),
            json!([1, {}, "{\"d\": [4]}", "f"]),
            json!([1, {}, "{\"f\": 4}", "f"]),
            json!([1, {}, "{}", "g"]),
            json!([1, {}, "{}", "\"f\""]),
        ] {
            assert!(!contains(&rest, &other), "{other}");
        }
    }

    #[test]
    fn only_what_reads_like_a_denial_is_an_echo_as_a_part() {
        let error = object!({"error": {"message": "m"}});
        let denial = object!({"error": {"gate": "confidence"}});
        let echoes = Echoes::of(&object!({"metadata": {"a": error.clone(), "b": denial.clone()}}));
        let contains =
            |object: &JsonObject| echoes.contain_object(Object::Parsed(object), &mut Comparisons::new()).unwrap();
        assert!(contains(&denial));
        for object in [error, JsonObject::new(), object!({"error": {}})] {
            assert!(!contains(&object), "{object:?}");
        }
    }

    #[test]
    fn each_level_of_nesting_is_kept_once() {
        let deep =
            (0..100).fold(json!({"gate": "g", "pad": "x".repeat(1000)}), |inner, _| json!({"gate": "h", "a": inner}));
        let echoes = Echoes::of(&object!({"metadata": (deep.clone())}));
        assert_eq!(echoes.objects.len(), 1);
        let contains = |object: &Value| {
            let object = object.as_object().unwrap();
            echoes.contain_object(Object::Parsed(object), &mut Comparisons::new()).unwrap()
        };
        let mut inner = &deep;
        while let Some(next) = inner.get("a") {
            assert!(contains(inner));
            inner = next;
        }
        assert!(contains(inner));
        assert!(!contains(&json!({"gate": "g", "pad": "y"})));
    }

    #[test]
    fn a_call_may_forge_what_needs_a_brace_or_names_a_gate() {
        for harmless in [
            json!({"note": "n", "rows": [1, 2.5, true, null], "code": "EMEA-7", "url": "https://h/x?a=1&b=%C3%A4%20", "path": "C:\\dir"}),
            json!({"note": "5 % more, \"quoted\", größer", "error": {"detail": "x"}, "gates": 3}),
            json!("plain"),
        ] {
            assert!(!Echoes::of(&object!({"metadata": (harmless.clone())})).may_forge(), "{harmless}");
        }
        for forging in [
            json!({"gate": "x"}),
            json!([{"deep": {"Gate": 1}}]),
            json!({"code": "Execution_Blocked_x"}),
            json!({"decision_id": "{"}),
            json!({"{\"gate\"": "\"idempotency\"}"}),
            json!(["{\"gate\"", ":\"idempotency\"}"]),
            json!("%7B%22gate%22"),
            json!("%257b"),
            json!("\\u007b"),
            json!("&#123;"),
            json!("&lcub;"),
            json!("\u{ff5b}"),
            json!("\u{ff05}7b"),
        ] {
            assert!(Echoes::of(&object!({"metadata": (forging.clone())})).may_forge(), "{forging}");
        }
        assert!(Echoes::of(&object!({"decision_id": "d", "webhook_url": "https://h/%7B%22gate%22"})).may_forge());
        assert!(Echoes::of(&object!({"decision_id": "d", "gate": "x"})).may_forge());
        assert!(Echoes::of(&object!({"decision_id": "d&lcub;", "webhook_url": "https://h/x"})).may_forge());
    }

    #[test]
    fn a_call_without_a_denial_keeps_nothing_to_compare() {
        let gateless = json!([{"error": {"message": "m"}}, {"code": "x"}, {"a": {"gate": null}}]);
        assert!(Echoes::of(&object!({"decision_id": "d", "metadata": gateless})).objects.is_empty());
    }

    #[test]
    fn a_comparison_costs_what_it_reads() {
        let long = "x".repeat(100 * SEARCHED + 1);
        for (less, more, cost) in [
            (json!(1), json!(2), 1),
            (json!([]), json!([1]), 1),
            (json!(long), json!(long), 101),
            (json!({(&*long): 1}), json!({(&*long): 1}), 104 + 1),
            (json!({"a": 1}), json!({}), 4),
            // Text by text, and what is in them only if it may be JSON.
            (json!("x"), json!("{\"a\": 1}"), 1),
            (json!("[2]"), json!("[ 2 ]"), 1 + 8 + 2),
        ] {
            let mut comparisons = Comparisons::new();
            comparisons.is_part_of(&less, &more).unwrap();
            assert_eq!(Comparisons::new().0 - comparisons.0, cost, "{less} {more}");
        }
    }

    #[test]
    fn comparisons_have_an_end() {
        let denials = |name: &str| (0..6000).map(|index| json!({"gate": format!("{name}{index}")})).collect::<Value>();
        let echoes = Echoes::of(&object!({"metadata": {"x": (denials("a"))}}));
        let mut comparisons = Comparisons::new();
        let denial = object!({"gate": "b"});
        let compared =
            (0..100).take_while(|_| echoes.contain_object(Object::Parsed(&denial), &mut comparisons) == Ok(false));
        assert!((10..100).contains(&compared.count()));
        let echoes = Echoes::of(&object!({"a": (format!("{{{}", "x".repeat(1 << 20)))}));
        let mut comparisons = Comparisons::new();
        let compared = (0..100).take_while(|_| echoes.contain("y", Object::Parsed(&denial), &mut comparisons).is_ok());
        assert_eq!(compared.count(), 63, "sixty-four times a mebibyte, and some bytes");
    }
}
