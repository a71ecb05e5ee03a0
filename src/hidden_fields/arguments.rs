//! Removes hidden fields from a call's arguments, from its `_meta`, and from what it answers to an engine's questions.
//!
//! A clean call is only looked at: no allocation, no write. The depth is limited on the way, so that nothing after this
//! recurses without a bound.

use rmcp::model::{InputResponses, JsonObject};
use serde_json::Value;

use super::{
    HiddenFields, Nested, OnHidden, Scope,
    names::is_private,
    stripped::{Stripped, push_segment},
    text::Text,
};
use crate::{
    decision::{DECISION_ID, METADATA, WEBHOOK_URL},
    error::{InvalidArguments, InvalidReason},
    json::DEPTH_LIMIT,
    profile::EXECUTE_DECISION,
};

/// Which keys go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Those that name a hidden field, and `serde_json`'s private ones.
    Hidden,
    /// Those of `_meta`, by their last segment.
    Meta,
    /// `serde_json`'s private ones alone; these go everywhere.
    Private,
}

/// What a look at a value found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Clean,
    Dirty,
}

impl HiddenFields {
    /// Removes the hidden fields from the arguments of a call of `tool`, a logical name (see
    /// [`ToolNames`](crate::ToolNames)).
    ///
    /// Nothing is ever added, and what stays keeps its order. In tools outside the contract and in `execute_decision` a
    /// top-level string that looks like JSON is searched too, and rewritten if a hidden field stands in it.
    ///
    /// # Errors
    ///
    /// If the arguments nest more than 128 containers, hold a text that only a laxer JSON parser reads and that seems
    /// to carry a hidden field, or if [`Nested::Refuse`] or [`OnHidden::Refuse`] is set and applies.
    pub fn scrub_arguments(&self, tool: &str, arguments: &mut JsonObject) -> Result<Stripped, InvalidArguments> {
        let scope = self.scope(tool);
        let (top_level, nested) = self.look_at_arguments(tool, scope, arguments)?;
        if (top_level, nested) == (Look::Clean, Look::Clean) {
            return Ok(Stripped::default());
        }
        self.strip_arguments(scope, top_level, nested, arguments)
    }

    /// What stands at the top level of the arguments, and what below it.
    fn look_at_arguments(
        &self,
        tool: &str,
        scope: Scope,
        arguments: &JsonObject,
    ) -> Result<(Look, Look), InvalidArguments> {
        let mut top_level = Look::Clean;
        let mut nested = Look::Clean;
        for (key, value) in arguments {
            if self.names.settles(key) && is_plain(value, scope) {
                continue;
            }
            let keys = keys_below(scope, key);
            // The value of a key that goes is measured too: it is dropped by recursion.
            let mut below = self.look(value, keys, DEPTH_LIMIT - 1)?;
            if self.hides(key) {
                top_level = Look::Dirty;
                continue;
            }
            if keys == Keys::Hidden && below == Look::Clean {
                below = self.look_at_text(value)?;
                if below == Look::Dirty && tool == EXECUTE_DECISION && matches!(key.as_str(), DECISION_ID | WEBHOOK_URL)
                {
                    // Rewritten, they would name another decision or another webhook than the call did.
                    return Err(InvalidArguments::new(InvalidReason::UnreadableText));
                }
            }
            if below == Look::Dirty {
                nested = Look::Dirty;
            }
        }
        Ok((top_level, nested))
    }

    #[cold]
    fn strip_arguments(
        &self,
        scope: Scope,
        top_level: Look,
        nested: Look,
        arguments: &mut JsonObject,
    ) -> Result<Stripped, InvalidArguments> {
        let mut stripped = Stripped::default();
        if self.on_hidden == OnHidden::Refuse {
            return Err(InvalidArguments::new(InvalidReason::HiddenField));
        }
        if nested == Look::Dirty && self.nested == Nested::Refuse {
            return Err(InvalidArguments::new(InvalidReason::HiddenFieldNested));
        }
        if top_level == Look::Dirty {
            self.retain(arguments, Keys::Hidden, "", &mut stripped);
        }
        if nested == Look::Dirty {
            let mut path = String::new();
            for (key, value) in arguments.iter_mut() {
                let keys = keys_below(scope, key);
                push_segment(&mut path, key);
                if keys == Keys::Hidden {
                    self.strip_text(value, &path, &mut stripped)?;
                }
                self.strip(value, keys, &mut path, &mut stripped);
                path.clear();
            }
        }
        Ok(stripped)
    }

    /// Removes the hidden fields from a call's `_meta`, at any depth, in every tool; a key counts by its last segment
    /// too.
    pub(crate) fn scrub_meta(&self, meta: &mut JsonObject, stripped: &mut Stripped) -> Result<(), InvalidArguments> {
        if self.look_at_object(meta, Keys::Meta, DEPTH_LIMIT)? == Look::Dirty {
            if self.on_hidden == OnHidden::Refuse {
                return Err(InvalidArguments::new(InvalidReason::HiddenField));
            }
            self.strip_object(meta, Keys::Meta, &mut "/_meta".to_owned(), stripped);
        }
        Ok(())
    }

    /// Removes the hidden fields from what a call answers to an engine's questions, at any depth, in every tool.
    pub(crate) fn scrub_responses(
        &self,
        responses: &mut InputResponses,
        stripped: &mut Stripped,
    ) -> Result<(), InvalidArguments> {
        let mut look = Look::Clean;
        for response in responses.values() {
            if self.look(response, Keys::Hidden, DEPTH_LIMIT - 1)? == Look::Dirty {
                look = Look::Dirty;
            }
        }
        if look == Look::Dirty {
            if self.on_hidden == OnHidden::Refuse {
                return Err(InvalidArguments::new(InvalidReason::HiddenField));
            }
            for (question, response) in responses {
                let mut path = "/inputResponses".to_owned();
                push_segment(&mut path, question);
                self.strip(response, Keys::Hidden, &mut path, stripped);
            }
        }
        Ok(())
    }

    /// Whether `key` goes.
    #[inline]
    fn drops(&self, key: &str, keys: Keys) -> bool {
        match keys {
            Keys::Hidden => self.hides(key),
            Keys::Meta => self.hides_in_meta(key),
            Keys::Private => is_private(key),
        }
    }

    fn look(&self, value: &Value, keys: Keys, levels: usize) -> Result<Look, InvalidArguments> {
        match value {
            Value::Array(items) => {
                let levels = deeper(levels)?;
                let mut look = Look::Clean;
                for item in items {
                    let is_container = matches!(item, Value::Array(_) | Value::Object(_));
                    if is_container && self.look(item, keys, levels)? == Look::Dirty {
                        look = Look::Dirty;
                    }
                }
                Ok(look)
            }
            Value::Object(members) => self.look_at_object(members, keys, levels),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Look::Clean),
        }
    }

    fn look_at_object(&self, members: &JsonObject, keys: Keys, levels: usize) -> Result<Look, InvalidArguments> {
        let levels = deeper(levels)?;
        let mut look = Look::Clean;
        for (key, value) in members {
            // Without a call for the scalars, which are most of what there is.
            let is_container = matches!(value, Value::Array(_) | Value::Object(_));
            if is_container && self.look(value, keys, levels)? == Look::Dirty || self.drops(key, keys) {
                look = Look::Dirty;
            }
        }
        Ok(look)
    }

    fn look_at_text(&self, value: &Value) -> Result<Look, InvalidArguments> {
        match value.as_str().and_then(Self::json_text).map(|text| self.search_text(text)) {
            None | Some(Text::Clean) => Ok(Look::Clean),
            Some(Text::Hidden) => Ok(Look::Dirty),
            Some(Text::Doubtful) => Err(InvalidArguments::new(InvalidReason::UnreadableText)),
        }
    }

    fn strip(&self, value: &mut Value, keys: Keys, path: &mut String, stripped: &mut Stripped) {
        match value {
            Value::Array(items) => {
                let len = path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    push_segment(path, &index.to_string());
                    self.strip(item, keys, path, stripped);
                    path.truncate(len);
                }
            }
            Value::Object(members) => self.strip_object(members, keys, path, stripped),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn strip_object(&self, members: &mut JsonObject, keys: Keys, path: &mut String, stripped: &mut Stripped) {
        self.retain(members, keys, path, stripped);
        let len = path.len();
        for (key, value) in members.iter_mut() {
            push_segment(path, key);
            self.strip(value, keys, path, stripped);
            path.truncate(len);
        }
    }

    /// `retain` and not `remove`: under `serde_json`'s `preserve_order`, `remove` moves the last member.
    fn retain(&self, members: &mut JsonObject, keys: Keys, path: &str, stripped: &mut Stripped) {
        members.retain(|key, _| {
            let goes = self.drops(key, keys);
            if goes {
                stripped.add(path, key);
            }
            !goes
        });
    }

    fn strip_text(&self, value: &mut Value, path: &str, stripped: &mut Stripped) -> Result<(), InvalidArguments> {
        if let Value::String(text) = value
            && let Some(json) = Self::json_text(text)
            && self.search_text(json) == Text::Hidden
        {
            let mut decoded: Value =
                serde_json::from_str(json).map_err(|_| InvalidArguments::new(InvalidReason::UnreadableText))?;
            self.strip(&mut decoded, Keys::Hidden, &mut path.to_owned(), stripped);
            *text = decoded.to_string();
        }
        Ok(())
    }
}

/// Removes `serde_json`'s private keys, which have no business in any value, from one of limited depth.
pub(crate) fn strip_private(value: &mut Value) {
    HiddenFields::new().strip(value, Keys::Private, &mut String::new(), &mut Stripped::default());
}

/// Whether `value`, a top-level argument, needs no look: a scalar, and no text that could be JSON.
#[inline]
fn is_plain(value: &Value, scope: Scope) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => {
            scope == Scope::TopLevel || text.as_bytes().first().is_none_or(u8::is_ascii_alphanumeric)
        }
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Which keys go below the top-level argument `key`.
fn keys_below(scope: Scope, key: &str) -> Keys {
    match scope {
        Scope::TopLevel => Keys::Private,
        Scope::ExceptMetadata if key == METADATA => Keys::Private,
        Scope::ExceptMetadata | Scope::Everywhere => Keys::Hidden,
    }
}

fn deeper(levels: usize) -> Result<usize, InvalidArguments> {
    levels.checked_sub(1).ok_or_else(|| InvalidArguments::new(InvalidReason::TooDeep))
}
