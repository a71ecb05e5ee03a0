//! One pass over an answer: every JSON object in it, and what each can mean.
//!
//! What grants, a receipt, is read narrowly: only a whole text or the structured content can be one. What restricts, a
//! denial or an error, is looked for everywhere, and compared generously. Only what a verdict needs is kept, so that a
//! text of many small objects doesn't fill the memory.

mod copies;

use std::borrow::Cow;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject, ResourceContents};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    echo::Echoes,
    scan::{Found, Objects, TEXT_LIMIT, Unreadable},
};
use crate::{ExecutionBlocked, ExecutionReceipt, NotADenial, denial::is_denial_code, hidden_fields::spells};
use copies::{Copies, has_distinct_members};

/// The member under which some servers put a whole result.
const RESULT: &str = "result";
const ERROR: &str = "error";
const DETAIL: &str = "detail";
const CODE: &str = "code";
const GATE: &str = "gate";
const STATUS_CODE: &str = "status_code";
const MESSAGE: &str = "message";
const CONFLICT: u64 = 409;

/// Members that say that a call failed, in canonical form, unless they hold null or false.
const FAILURE_KEYS: [&str; 6] = ["error", "errors", "iserror", "errorcode", "errormessage", "gate"];

/// The first letters of no name that says so: letters and digits but those of [`FAILURE_KEYS`], of a status and of a code.
/// As for hidden names, the first letter settles most keys, those beyond ASCII too.
const OTHER_LETTERS: [bool; 256] = {
    let mut others = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        others[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut name = 0;
    while name < FAILURE_KEYS.len() + 2 {
        let spelled = match name.checked_sub(FAILURE_KEYS.len()) {
            None => FAILURE_KEYS[name],
            Some(0) => STATUS_CODE,
            Some(_) => CODE,
        };
        let first = spelled.as_bytes()[0];
        others[first.to_ascii_lowercase() as usize] = false;
        others[first.to_ascii_uppercase() as usize] = false;
        name += 1;
    }
    others
};

pub(super) struct Reading<'a> {
    echoes: &'a Echoes,
    /// Bytes of text that may still be read.
    rest: usize,
    denial: Result<Option<ExecutionBlocked>, NotADenial>,
    has_error: bool,
    has_conflict: bool,
    has_receipt: bool,
    copies: Copies<'a>,
}

impl<'a> Reading<'a> {
    const fn new(echoes: &'a Echoes) -> Self {
        Self {
            echoes,
            rest: TEXT_LIMIT,
            denial: Ok(None),
            has_error: false,
            has_conflict: false,
            has_receipt: false,
            copies: Copies::new(),
        }
    }

    pub(super) fn of_result(result: &'a CallToolResult, echoes: &'a Echoes) -> Result<Self, Unreadable> {
        let mut reading = Self::new(echoes);
        // An explicit null holds nothing; Python servers write it for "no structured content".
        match &result.structured_content {
            None | Some(Value::Null) => {}
            Some(Value::Object(object)) => reading.take(Cow::Borrowed(object), true)?,
            Some(other) => {
                reading.copies.spoil();
                reading.search_value(other)?;
            }
        }
        for block in &result.content {
            match block {
                ContentBlock::Text(text) => reading.take_text(&text.text)?,
                ContentBlock::Resource(resource) => {
                    if let ResourceContents::TextResourceContents { text, .. } = &resource.resource {
                        reading.search_text(text)?;
                    }
                }
                _ => {}
            }
        }
        Ok(reading)
    }

    pub(super) fn of_error(error: &'a ErrorData, echoes: &'a Echoes) -> Result<Self, Unreadable> {
        let mut reading = Self::new(echoes);
        if let Some(data) = &error.data {
            reading.search_value(data)?;
        }
        reading.search_text(&error.message)?;
        Ok(reading)
    }

    pub(super) fn of_value(value: &'a Value, echoes: &'a Echoes) -> Result<Self, Unreadable> {
        let mut reading = Self::new(echoes);
        reading.search_value(value)?;
        Ok(reading)
    }

    /// The objects of `text`, within what the answer may cost.
    fn objects<'t>(&mut self, text: &'t str) -> Result<Objects<'t>, Unreadable> {
        self.rest = self.rest.checked_sub(text.len()).ok_or(Unreadable)?;
        Objects::of(text)
    }

    /// Reads a text that may be a copy of the result as a whole.
    fn take_text(&mut self, text: &str) -> Result<(), Unreadable> {
        let trimmed = text.trim();
        let mut is_whole = false;
        for found in self.objects(trimmed)? {
            let Found { object, span, members } = found?;
            if span == (0..trimmed.len()) {
                is_whole = true;
                // Of two members of one name the parser keeps the last; a reader elsewhere may keep the first.
                let is_copy = has_distinct_members(trimmed, members, &object);
                if !is_copy {
                    self.copies.spoil();
                }
                self.take(Cow::Owned(object), is_copy)?;
            } else if !self.echoes.contain(&trimmed[span], &object) {
                self.take(Cow::Owned(object), false)?;
            }
        }
        // Asked of what starts like JSON alone, for the error that prose would get is an allocation.
        let may_be_json =
            matches!(trimmed.bytes().next(), Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'));
        if !is_whole && may_be_json && serde_json::from_str::<IgnoredAny>(trimmed).is_ok() {
            self.copies.spoil();
        }
        Ok(())
    }

    /// Looks for what restricts in a text that can't grant anything.
    fn search_text(&mut self, text: &str) -> Result<(), Unreadable> {
        for found in self.objects(text)? {
            let Found { object, span, .. } = found?;
            if !self.echoes.contain(&text[span], &object) {
                self.take(Cow::Owned(object), false)?;
            }
        }
        Ok(())
    }

    /// Looks for what restricts in a value that can't grant anything.
    fn search_value(&mut self, value: &Value) -> Result<(), Unreadable> {
        match value {
            Value::Object(object) if self.echoes.contain_object(object) => Ok(()),
            Value::Object(object) => self.take(Cow::Owned(object.clone()), false),
            Value::Array(items) => items.iter().try_for_each(|item| self.search_value(item)),
            Value::String(text) => self.search_text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// Takes an object in, and what stands in it under a sole `result`, once.
    fn take(&mut self, object: Cow<'a, JsonObject>, is_copy: bool) -> Result<(), Unreadable> {
        let inner = (object.len() == 1).then(|| object.get(RESULT)).flatten();
        match inner {
            Some(Value::Object(inner)) => {
                // The unwrapped result stands for its wrapper as a copy.
                self.judge(Cow::Owned(inner.clone()), is_copy)?;
                self.judge(object, false)
            }
            Some(Value::String(text)) if is_copy => {
                self.take_wrapped_text(text)?;
                self.judge(object, false)
            }
            Some(other) => {
                self.search_value(other)?;
                self.judge(object, is_copy)
            }
            None => self.judge(object, is_copy),
        }
    }

    /// A text under a sole `result`: the copy if it is one object, and no copy at all otherwise.
    fn take_wrapped_text(&mut self, text: &str) -> Result<(), Unreadable> {
        let trimmed = text.trim();
        let mut is_whole = false;
        for found in self.objects(trimmed)? {
            let Found { object, span, members } = found?;
            let is_copy = span == (0..trimmed.len()) && has_distinct_members(trimmed, members, &object);
            is_whole |= is_copy;
            if is_copy || !self.echoes.contain(&trimmed[span], &object) {
                self.judge(Cow::Owned(object), is_copy)?;
            }
        }
        if !is_whole {
            self.copies.spoil();
        }
        Ok(())
    }

    /// What one object says.
    fn judge(&mut self, object: Cow<'a, JsonObject>, is_copy: bool) -> Result<(), Unreadable> {
        if object.is_empty() && !is_copy {
            return Ok(());
        }
        // Looked at first, for each look-up compares half of a receipt's names.
        let has_bodies = object.keys().any(|key| matches!(key.as_str(), ERROR | DETAIL | CODE | GATE | STATUS_CODE));
        for body in has_bodies.then(|| bodies(&object)).into_iter().flatten() {
            let is_conflict = status(body) == Some(CONFLICT);
            self.has_conflict |= is_conflict;
            // The real server puts the body, gate included, as text into the message of its own envelope. That text is
            // read only under status 409: other messages echo what the model sent. It comes before the envelope's own
            // code, since it says more; the two have to name the same gate.
            if let (true, Some(Value::String(message))) = (is_conflict, body.get(MESSAGE)) {
                for found in self.objects(message)? {
                    let Found { object, span, .. } = found?;
                    if !self.echoes.contain(&message[span], &object) {
                        bodies(&object).for_each(|body| self.note_denial(body));
                    }
                }
            }
            self.note_denial(body);
        }
        self.has_error |= object.iter().any(|(key, value)| says_failed(key, value));
        let is_receipt = ExecutionReceipt::check(&object).is_ok();
        self.has_receipt |= is_receipt;
        if is_copy {
            self.copies.add(object);
        } else if is_receipt {
            self.copies.add_mention(object);
        }
        Ok(())
    }

    fn note_denial(&mut self, body: &JsonObject) {
        let Some(read) = ExecutionBlocked::from_body(body) else { return };
        self.denial = match (std::mem::replace(&mut self.denial, Ok(None)), read) {
            (Err(known), _) => Err(known),
            (Ok(_), Err(unclear)) => Err(unclear),
            (Ok(Some(known)), Ok(read)) if known.gate() != read.gate() => Err(NotADenial::Ambiguous),
            (Ok(Some(known)), Ok(_)) => Ok(Some(known)),
            (Ok(None), Ok(read)) => Ok(Some(read)),
        };
    }

    /// The one denial in the answer. It can be taken once.
    pub(super) fn take_denial(&mut self) -> Result<ExecutionBlocked, NotADenial> {
        std::mem::replace(&mut self.denial, Ok(None))?.ok_or(NotADenial::Absent)
    }

    /// Whether anything in the answer is a complete receipt.
    pub(super) const fn has_receipt(&self) -> bool {
        self.has_receipt
    }

    /// Whether anything in the answer has a status of 409.
    pub(super) const fn has_conflict(&self) -> bool {
        self.has_conflict
    }

    /// Whether anything in the answer says that the call failed.
    pub(super) const fn has_error(&self) -> bool {
        self.has_error
    }

    /// What the copies of the result in it say.
    pub(super) fn into_copies(self) -> Copies<'a> {
        self.copies
    }
}

/// Where the body of an error can stand in an object: at the top, or under `error`, `detail` or two of them.
pub(super) fn bodies(object: &JsonObject) -> impl Iterator<Item = &JsonObject> {
    let (error, detail) = (under(Some(object), ERROR), under(Some(object), DETAIL));
    let error_in_detail = under(detail, ERROR);
    let (error_in_error, detail_in_error) = (under(error, ERROR), under(error, DETAIL));
    let deepest = under(detail_in_error, ERROR);
    [Some(object), error, detail, error_in_detail, detail_in_error, error_in_error, deepest].into_iter().flatten()
}

fn under<'a>(body: Option<&'a JsonObject>, name: &str) -> Option<&'a JsonObject> {
    body?.get(name)?.as_object()
}

/// The status in a body, as a number or as text.
fn status(body: &JsonObject) -> Option<u64> {
    read_status(body.get(STATUS_CODE)?)
}

fn read_status(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// Whether a member says that the call failed, however it is spelled.
fn says_failed(key: &str, value: &Value) -> bool {
    if key.as_bytes().first().is_some_and(|first| OTHER_LETTERS[usize::from(*first)]) {
        return false;
    }
    let is_set = !matches!(value, Value::Null | Value::Bool(false));
    is_set && FAILURE_KEYS.iter().any(|failure| spells(key, failure))
        || spells(key, "statuscode") && read_status(value).is_none_or(|status| status >= 400)
        || spells(key, CODE) && value.as_str().is_some_and(is_denial_code)
}
