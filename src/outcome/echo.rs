//! What a model wrote into a call, where an engine's prose might quote it.
//!
//! A model could put the text of a denial into an argument. An engine that then fails in another way and quotes the
//! argument would seem to have denied the call, though it may have run.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{reading::bodies, scan::Objects};
use crate::{ExecutionBlocked, decision::DECISION_ID};

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
        for (key, value) in arguments.iter().filter(|(key, _)| *key != DECISION_ID) {
            echoes.add_text(key);
            echoes.add(value);
        }
        echoes
    }

    /// Whether `object`, written as `text` in the midst of prose, stands in an argument.
    pub(super) fn contain(&self, text: &str, object: &JsonObject) -> bool {
        self.texts.iter().any(|argument| argument.contains(text)) || self.contain_object(object)
    }

    /// Whether `object` stands in an argument.
    pub(super) fn contain_object(&self, object: &JsonObject) -> bool {
        self.objects.contains(object)
    }

    fn add_text(&mut self, text: &str) {
        if text.contains('{') {
            self.texts.push(text.into());
            // An engine may decode the text and write it anew.
            for found in Objects::of(text).into_iter().flatten().map_while(Result::ok) {
                self.add_object(&found.object);
            }
        }
    }

    fn add_object(&mut self, object: &JsonObject) {
        if bodies(object).any(|body| ExecutionBlocked::from_body(body).is_some()) {
            self.objects.push(object.clone());
        }
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => {
                self.add_object(members);
                for (key, value) in members {
                    self.add_text(key);
                    self.add(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
