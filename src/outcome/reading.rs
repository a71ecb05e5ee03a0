//! One pass over a result: every JSON object in it, and what each can mean.
//!
//! What grants, a receipt, is read narrowly: only a whole text or the structured content can be one. What restricts, a
//! denial or an error, is looked for everywhere.

use std::{borrow::Cow, fmt};

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject, ResourceContents};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::scan::{Objects, Unreadable};
use crate::{ExecutionBlocked, ExecutionReceipt, NotADenial, NotAReceipt};

/// The member under which some servers put a whole result.
const RESULT: &str = "result";
const ERROR: &str = "error";
const DETAIL: &str = "detail";
const STATUS_CODE: &str = "status_code";
const MESSAGE: &str = "message";
const CONFLICT: u64 = 409;

/// Statuses in the 4xx range after which the call may have run all the same.
const UNCERTAIN: [u64; 4] = [408, CONFLICT, 425, 499];

/// A JSON object, and whether it is a whole text or the structured content: a copy of the result.
struct Found<'a> {
    object: Cow<'a, JsonObject>,
    is_copy: bool,
}

pub(super) struct Reading<'a> {
    found: Vec<Found<'a>>,
    /// A whole text, or structured content, that is JSON but no object: a copy that can't agree with any receipt.
    has_other_copy: bool,
}

impl<'a> Reading<'a> {
    pub(super) fn of_result(result: &'a CallToolResult) -> Result<Self, Unreadable> {
        let mut reading = Self { found: Vec::new(), has_other_copy: false };
        // An explicit null holds nothing; Python servers write it for "no structured content".
        if let Some(value) = result.structured_content.as_ref().filter(|value| !value.is_null()) {
            reading.take_value(value)?;
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

    pub(super) fn of_error(error: &'a ErrorData) -> Result<Self, Unreadable> {
        let mut reading = Self { found: Vec::new(), has_other_copy: false };
        if let Some(data) = &error.data {
            reading.take_value(data)?;
            // A server may put the body into `data` as text.
            if let Value::String(text) = data {
                reading.search_text(text)?;
            }
        }
        reading.search_text(&error.message)?;
        Ok(reading)
    }

    pub(super) fn of_value(value: &'a Value) -> Result<Self, Unreadable> {
        let mut reading = Self { found: Vec::new(), has_other_copy: false };
        reading.take_value(value)?;
        Ok(reading)
    }

    fn take_value(&mut self, value: &'a Value) -> Result<(), Unreadable> {
        if let Value::Object(object) = value {
            return self.take(Cow::Borrowed(object), true);
        }
        self.has_other_copy = true;
        Ok(())
    }

    fn take_text(&mut self, text: &str) -> Result<(), Unreadable> {
        let trimmed = text.trim();
        let mut is_whole = false;
        for found in Objects::of(trimmed)? {
            let (object, span) = found?;
            let spans_all = span == (0..trimmed.len());
            is_whole |= spans_all;
            // Of two members of one name the parser keeps the last; a reader elsewhere may keep the first.
            let is_copy = spans_all && has_distinct_members(trimmed, &object);
            self.has_other_copy |= spans_all && !is_copy;
            self.take(Cow::Owned(object), is_copy)?;
        }
        if !is_whole && !trimmed.is_empty() && serde_json::from_str::<IgnoredAny>(trimmed).is_ok() {
            self.has_other_copy = true;
        }
        Ok(())
    }

    /// Looks for what restricts in a text that can't grant anything.
    fn search_text(&mut self, text: &str) -> Result<(), Unreadable> {
        for found in Objects::of(text)? {
            self.take(Cow::Owned(found?.0), false)?;
        }
        Ok(())
    }

    /// Takes an object in, and what stands in it under a sole `result`, once.
    fn take(&mut self, object: Cow<'a, JsonObject>, is_copy: bool) -> Result<(), Unreadable> {
        let inner = (object.len() == 1).then(|| object.get(RESULT)).flatten();
        let inner = match inner {
            Some(Value::Object(inner)) => Some(Found { object: Cow::Owned(inner.clone()), is_copy }),
            Some(Value::String(text)) => {
                let trimmed = text.trim();
                let mut whole = None;
                for found in Objects::of(trimmed)? {
                    let (object, span) = found?;
                    let is_copy = is_copy && span == (0..trimmed.len()) && has_distinct_members(trimmed, &object);
                    if is_copy {
                        whole = Some(Found { object: Cow::Owned(object), is_copy });
                    } else {
                        self.found.push(Found { object: Cow::Owned(object), is_copy });
                    }
                }
                whole
            }
            _ => None,
        };
        // The unwrapped result stands for its wrapper as a copy; the wrapper itself is still searched for errors.
        let is_copy = is_copy && inner.is_none();
        self.found.extend(inner);
        self.found.push(Found { object, is_copy });
        Ok(())
    }

    /// The one denial in the result.
    pub(super) fn denial(&self) -> Result<ExecutionBlocked, NotADenial> {
        let mut denial: Option<ExecutionBlocked> = None;
        for found in &self.found {
            for read in denials_in(&found.object)? {
                match &denial {
                    Some(known) if known.gate() != read.gate() => return Err(NotADenial::Ambiguous),
                    Some(_) => {}
                    None => denial = Some(read),
                }
            }
        }
        denial.ok_or(NotADenial::Absent)
    }

    /// Whether anything in the result is a complete receipt.
    pub(super) fn has_receipt(&self) -> bool {
        self.found.iter().any(|found| ExecutionReceipt::check(&found.object).is_ok())
    }

    /// Whether anything in the result has a status of 409.
    pub(super) fn has_conflict(&self) -> bool {
        self.found.iter().flat_map(|found| bodies(&found.object)).any(is_conflict)
    }

    /// Whether anything in the result has an `error` member.
    pub(super) fn has_error(&self) -> bool {
        self.found.iter().any(|found| found.object.keys().any(|key| key.eq_ignore_ascii_case(ERROR)))
    }

    /// The status of the error envelope that is the whole result, if it proves that the call did not run.
    pub(super) fn sole_client_error(&self, result: &CallToolResult) -> Option<u16> {
        let ([ContentBlock::Text(_)], false) = (&*result.content, self.has_other_copy) else {
            return None;
        };
        let (first, rest) = self.found.split_first()?;
        if !first.is_copy || !rest.iter().all(|found| found.is_copy && found.object == first.object) {
            return None;
        }
        let status = first.object.get(ERROR)?.get(STATUS_CODE)?.as_u64()?;
        (400..=499).contains(&status).then_some(())?;
        (!UNCERTAIN.contains(&status)).then(|| u16::try_from(status).ok()).flatten()
    }

    /// The receipt that every copy in the result agrees on.
    pub(super) fn into_receipt(self, result: &CallToolResult) -> Result<ExecutionReceipt, NotAReceipt> {
        if self.has_other_copy || result.is_error == Some(true) {
            return Err(NotAReceipt::ABSENT);
        }
        let (mut copies, prose): (Vec<_>, Vec<_>) = self.found.into_iter().partition(|found| found.is_copy);
        let receipt = ExecutionReceipt::from_object(copies.pop().ok_or(NotAReceipt::ABSENT)?.object.into_owned())?;
        let agrees = |found: &Found<'_>| *found.object == *receipt.fields();
        // A receipt in the midst of prose is no copy, but it may not say anything else either.
        let is_other_receipt = |found: &Found<'_>| ExecutionReceipt::check(&found.object).is_ok() && !agrees(found);
        if copies.iter().all(agrees) && !prose.iter().any(is_other_receipt) {
            Ok(receipt)
        } else {
            Err(NotAReceipt::ABSENT)
        }
    }
}

/// Where the body of an error can stand in an object: at the top, or under `error`, `detail` or both.
fn bodies(object: &JsonObject) -> impl Iterator<Item = &JsonObject> {
    let under = |name: &str| object.get(name).and_then(Value::as_object);
    let detail = under(DETAIL);
    let error_in_detail = detail.and_then(|detail| detail.get(ERROR)).and_then(Value::as_object);
    [Some(object), under(ERROR), detail, error_in_detail].into_iter().flatten()
}

fn is_conflict(body: &JsonObject) -> bool {
    body.get(STATUS_CODE).is_some_and(|status| status.as_u64() == Some(CONFLICT))
}

/// The denials in an object.
///
/// The real server puts the body, gate included, as text into the message of its own envelope. That text is read only
/// under status 409: other messages echo what the model sent.
fn denials_in(object: &JsonObject) -> Result<Vec<ExecutionBlocked>, NotADenial> {
    let mut denials = Vec::new();
    for body in bodies(object) {
        let mut in_message = Vec::new();
        if let (true, Some(Value::String(message))) = (is_conflict(body), body.get(MESSAGE)) {
            for found in Objects::of(message).map_err(|Unreadable| NotADenial::Unreadable)? {
                let (object, _) = found.map_err(|Unreadable| NotADenial::Unreadable)?;
                for body in bodies(&object) {
                    in_message.extend(ExecutionBlocked::from_body(body).transpose()?);
                }
            }
        }
        // The denial in the message comes first, since it says more; the envelope's code has to name the same gate.
        denials.extend(in_message);
        denials.extend(ExecutionBlocked::from_body(body).transpose()?);
    }
    Ok(denials)
}

/// Whether no two members of the object that `text` was read into have one name.
fn has_distinct_members(text: &str, object: &JsonObject) -> bool {
    struct Count(usize);

    impl<'de> Deserialize<'de> for Count {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Members)
        }
    }

    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Count;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Count, A::Error> {
            let mut count = 0;
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(Count(count))
        }
    }

    // A repeated name takes the place of the earlier one, so the object then has fewer members than the text.
    serde_json::from_str::<Count>(text).is_ok_and(|Count(count)| count == object.len())
}
