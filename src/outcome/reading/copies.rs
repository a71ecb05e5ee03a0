//! The copies of a result in an answer: the structured content, and each text that is one JSON object.

use std::{borrow::Cow, fmt};

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::CONFLICT;
use crate::{
    ExecutionReceipt, NotAReceipt,
    hidden_fields::is_private,
    outcome::{
        object::{Kept, parse},
        telling::{ERROR, RESULT, STATUS_CODE},
    },
    receipt::Outline,
};

/// Members that may stand beside `error` in an envelope which proves that nothing ran.
pub(super) const BESIDE_ERROR: &str = "request_id";

/// Statuses in the 4xx range after which the call may have run all the same.
const UNCERTAIN: [u64; 4] = [408, CONFLICT, 425, 499];

/// Where a copy of the result is.
pub(super) enum Source<'a> {
    Parsed(Cow<'a, JsonObject>),
    /// A plain object in a text.
    Written(Cow<'a, str>),
}

impl Source<'_> {
    /// The object under the sole `result`.
    pub(super) fn unwrapped(self) -> Self {
        let mut members = self.to_parsed().into_owned();
        let inner = match members.remove(RESULT) {
            Some(Value::Object(inner)) => inner,
            _ => JsonObject::new(),
        };
        Self::Parsed(Cow::Owned(inner))
    }

    fn to_parsed(&self) -> Cow<'_, JsonObject> {
        match self {
            Self::Parsed(members) => Cow::Borrowed(members),
            Self::Written(text) => Cow::Owned(parse(text)),
        }
    }
}

impl PartialEq for Source<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Written(one), Self::Written(other)) if one == other => true,
            _ => self.to_parsed() == other.to_parsed(),
        }
    }
}

pub(in crate::outcome) struct Copies<'a> {
    /// The first one, and what is known of it if it is a receipt.
    first: Option<(Source<'a>, Option<Outline>)>,
    /// The copies differ, or something that should be one can't agree with any: JSON that is no object, or with a member
    /// twice.
    is_spoilt: bool,
    /// A complete receipt in the midst of prose, which is no copy, but may not say anything else either.
    mention: Option<JsonObject>,
}

impl<'a> Copies<'a> {
    pub(super) const fn new() -> Self {
        Self { first: None, is_spoilt: false, mention: None }
    }

    pub(super) const fn spoil(&mut self) {
        self.is_spoilt = true;
    }

    pub(super) fn add(&mut self, copy: Source<'a>, receipt: Option<Outline>) {
        match &self.first {
            None => self.first = Some((copy, receipt)),
            Some((first, _)) => self.is_spoilt |= *first != copy,
        }
    }

    pub(super) fn add_mention(&mut self, receipt: JsonObject) {
        match &self.mention {
            None => self.mention = Some(receipt),
            Some(mention) => self.is_spoilt |= *mention != receipt,
        }
    }

    /// The one object that all copies are.
    fn agreed(self) -> Option<(Source<'a>, Option<Outline>)> {
        let (copy, receipt) = self.first?;
        let is_sound = !self.is_spoilt && self.mention.is_none_or(|mention| mention == *copy.to_parsed());
        is_sound.then_some((copy, receipt))
    }

    /// The receipt that every copy in the result agrees on.
    pub(in crate::outcome) fn into_receipt(self) -> Result<ExecutionReceipt, NotAReceipt> {
        let (copy, receipt) = self.agreed().ok_or(NotAReceipt::ABSENT)?;
        match (copy, receipt) {
            (Source::Written(text), Some(outline)) => Ok(ExecutionReceipt::new(outline, Kept::written(&text))),
            (Source::Parsed(members), Some(outline)) => {
                Ok(ExecutionReceipt::new(outline, Kept::parsed(members.into_owned())))
            }
            (copy, None) => ExecutionReceipt::from_object(copy.to_parsed().into_owned()),
        }
    }

    /// The status of the error envelope that `result` is as a whole, if it proves that the call did not run.
    pub(in crate::outcome) fn into_client_error(self, result: &CallToolResult) -> Option<u16> {
        // The text itself has to be the envelope: prose beside structured content may say that the call did run.
        let [ContentBlock::Text(text)] = &*result.content else { return None };
        let written: JsonObject = serde_json::from_str(text.text.trim()).ok()?;
        let (envelope, _) = self.agreed()?;
        let envelope = envelope.to_parsed();
        if written != *envelope || !envelope.keys().all(|key| matches!(key.as_str(), ERROR | BESIDE_ERROR)) {
            return None;
        }
        let status = envelope.get(ERROR)?.get(STATUS_CODE)?.as_u64()?;
        let proves = (400..=499).contains(&status) && !UNCERTAIN.contains(&status);
        proves.then(|| u16::try_from(status).ok()).flatten()
    }
}

/// Whether no object in `text`, which was read into `object`, has two members of one name, at any depth.
pub(super) fn has_distinct_members(text: &str, object: &JsonObject) -> bool {
    // A repeated name takes the place of the earlier one, so what was read then has fewer members than the text.
    let mut parser = serde_json::Deserializer::from_str(text);
    Members.deserialize(&mut parser).is_ok_and(|written| written == members_of(object))
}

/// How many members an object of limited depth has, with those of what is in it.
fn members_of(object: &JsonObject) -> usize {
    object.iter().filter(|(key, _)| !is_private(key)).map(|(_, value)| 1 + members_in(value)).sum()
}

fn members_in(value: &Value) -> usize {
    match value {
        Value::Object(object) => members_of(object),
        Value::Array(items) => items.iter().map(members_in).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Counts the members of a JSON text, with those of what is in it.
#[derive(Clone, Copy)]
struct Members;

impl<'de> DeserializeSeed<'de> for Members {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_str<E>(self, _: &str) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while let Some(members) = items.next_element_seed(self)? {
            count += members;
        }
        Ok(count)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while let Some(counts) = members.next_key_seed(Counts)? {
            // Under `arbitrary_precision` the parser presents every number as a map with one private key.
            count += usize::from(counts) + members.next_value_seed(self)?;
        }
        Ok(count)
    }
}

/// Whether a key counts: all do but `serde_json`'s private ones.
struct Counts;

impl<'de> DeserializeSeed<'de> for Counts {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Counts {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(!is_private(key))
    }
}
