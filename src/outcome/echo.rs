//! What a model wrote into a call, where an engine's prose might quote it.
//!
//! A model could put the text of a denial into an argument. An engine that then fails in another way and quotes the
//! argument would seem to have denied the call, though it may have run.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{object::Object, reading::bodies, scan::Objects};
use crate::{decision::DECISION_ID, denial};

/// What an answer might quote of a call's arguments and that could be taken for a denial. Nearly every call has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echoes {
    /// Strings that hold a brace.
    texts: Vec<Box<str>>,
    /// Objects that read like a denial.
    objects: Vec<JsonObject>,
}

impl Echoes {
    /// No call, so nothing can be an echo.
    pub(crate) const NONE: &'static Self = &Self { texts: Vec::new(), objects: Vec::new() };

    /// What an answer to a call with `arguments`, of limited depth, might quote.
    ///
    /// `decision_id` is left out: an id that holds a brace is no decision's, so nothing that quotes it was executed.
    pub(crate) fn of(arguments: &JsonObject) -> Self {
        let mut echoes = Self::default();
        // An engine may quote the call as a whole.
        echoes.add_object(Object::Parsed(arguments));
        for (key, value) in arguments.iter().filter(|(key, _)| *key != DECISION_ID) {
            echoes.add_text(key);
            echoes.add(value);
        }
        echoes
    }

    /// Whether `object`, written as `text` in the midst of prose, stands in an argument.
    #[inline]
    pub(super) fn contain(&self, text: &str, object: Object<'_>) -> bool {
        self.texts.iter().any(|argument| argument.contains(text)) || self.contain_object(object)
    }

    /// Whether `object` reads like a denial and stands in an argument, or is what a scrub may leave of one there.
    pub(super) fn contain_object(&self, object: Object<'_>) -> bool {
        // What reads otherwise is judged, for with fields taken away it could be part of much.
        !self.objects.is_empty()
            && reads_like_a_denial(object)
            && self.objects.iter().any(|argument| is_part_of_object(&object.to_parsed(), argument))
    }

    fn add_text(&mut self, text: &str) {
        if text.contains('{') {
            self.texts.push(text.into());
            // An engine may decode the text, and write it anew or a part of it.
            let Ok(mut objects) = Objects::of(text).map(Objects::with_silent) else { return };
            while let Ok(Some(found)) = objects.next_object() {
                self.add(&Value::Object(found.read.object().to_parsed().into_owned()));
            }
        }
    }

    fn add_object(&mut self, object: Object<'_>) {
        if reads_like_a_denial(object) {
            self.objects.push(object.to_parsed().into_owned());
        }
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => {
                self.add_object(Object::Parsed(members));
                for (key, value) in members {
                    self.add_text(key);
                    self.add(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn reads_like_a_denial(object: Object<'_>) -> bool {
    bodies(object).any(|body| denial::gate_in(body).is_some())
}

/// Whether `less` is `more` with fields taken away, in texts too, and nothing else changed.
fn is_part_of(less: &Value, more: &Value) -> bool {
    match (less, more) {
        (Value::Object(less), Value::Object(more)) => is_part_of_object(less, more),
        (Value::Array(less), Value::Array(more)) => {
            less.len() == more.len() && less.iter().zip(more).all(|(less, more)| is_part_of(less, more))
        }
        (Value::String(less), Value::String(more)) if less != more => {
            // A scrub writes a text anew if it takes something out of it.
            let read = |text: &str| serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_string());
            read(less).zip(read(more)).is_some_and(|(less, more)| is_part_of(&less, &more))
        }
        (less, more) => less == more,
    }
}

fn is_part_of_object(less: &JsonObject, more: &JsonObject) -> bool {
    less.iter().all(|(key, value)| more.get(key).is_some_and(|more| is_part_of(value, more)))
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
            echoes.contain_object(Object::Parsed(&denial(quoted.clone())))
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
        assert!(echoes.contain_object(Object::Parsed(&denial)));
        for object in [error, JsonObject::new(), object!({"error": {}})] {
            assert!(!echoes.contain_object(Object::Parsed(&object)), "{object:?}");
        }
    }
}
