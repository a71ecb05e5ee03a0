//! One pass over an answer: every JSON object in it, and what each can mean.
//!
//! What grants, a receipt, is read narrowly: only a whole text or the structured content can be one. What restricts, a
//! denial or an error, is looked for everywhere, and compared generously. Only what a verdict needs is kept, so that a
//! text of many small objects doesn't fill the memory.

mod copies;

use std::borrow::Cow;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, ResourceContents};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    echo::{Comparisons, Echoes},
    object::{Item, Object},
    scan::{Found, Objects, Read, TEXT_LIMIT, Unreadable},
    telling::{DETAIL, ERROR, RESULT, STATUS_CODE, is_harmless, is_of_body, read_status, says_failed},
};
use crate::{ExecutionBlocked, ExecutionReceipt, NotADenial, denial, receipt::Outline};
use copies::{BESIDE_ERROR, Copies, Source, has_distinct_members};

const MESSAGE: &str = "message";
const CONFLICT: u64 = 409;

pub(super) struct Reading<'a> {
    echoes: &'a Echoes,
    comparisons: Comparisons,
    /// Bytes of text that may still be read.
    rest: usize,
    denial: Result<Option<ExecutionBlocked>, NotADenial>,
    has_error: bool,
    conflict: Conflict,
    has_receipt: bool,
    copies: Copies<'a>,
}

impl<'a> Reading<'a> {
    const fn new(echoes: &'a Echoes) -> Self {
        Self {
            echoes,
            comparisons: Comparisons::new(),
            rest: TEXT_LIMIT,
            denial: Ok(None),
            has_error: false,
            conflict: Conflict::None,
            has_receipt: false,
            copies: Copies::new(),
        }
    }

    pub(super) fn of_result(result: &'a CallToolResult, echoes: &'a Echoes) -> Result<Self, Unreadable> {
        let mut reading = Self::new(echoes);
        // An explicit null holds nothing; Python servers write it for "no structured content".
        match &result.structured_content {
            None | Some(Value::Null) => {}
            Some(Value::Object(object)) => {
                reading.take_copy(Object::Parsed(object), Source::Parsed(Cow::Borrowed(object)))?;
            }
            Some(other) => {
                reading.copies.spoil();
                reading.search_value(other)?;
            }
        }
        for block in &result.content {
            match block {
                ContentBlock::Text(text) => reading.take_text(text.text.trim())?,
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

    /// Whether `object`, written as `text` in the midst of prose, is quoted from the call.
    #[inline]
    fn is_echo(&mut self, text: &str, object: Object<'_>) -> Result<bool, Unreadable> {
        self.echoes.contain(text, object, &mut self.comparisons)
    }

    /// Reads a trimmed text that may be a copy of the result as a whole.
    fn take_text(&mut self, text: &'a str) -> Result<(), Unreadable> {
        let mut is_whole = false;
        let mut objects = self.objects(text)?;
        while let Some(Found { read, span }) = objects.next_object()? {
            if span == (0..text.len()) {
                is_whole = true;
                match read {
                    Read::Plain(written) => {
                        self.take_copy(Object::Written(written), Source::Written(Cow::Borrowed(text)))?;
                    }
                    // Of two members of one name the parser keeps the last; a reader elsewhere may keep the first.
                    Read::Odd(members) if has_distinct_members(text, &members) => {
                        let copied = self.take(Object::Parsed(&members), true)?;
                        self.add_copy(copied, Source::Parsed(Cow::Owned(members)));
                    }
                    Read::Odd(members) => {
                        self.copies.spoil();
                        self.take(Object::Parsed(&members), false)?;
                    }
                }
            } else if !self.is_echo(&text[span], read.object())? {
                self.take(read.object(), false)?;
            }
        }
        // Asked of what starts like JSON alone, for the error that prose would get is an allocation.
        let may_be_json =
            matches!(text.bytes().next(), Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'));
        if !is_whole && may_be_json && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            self.copies.spoil();
        }
        Ok(())
    }

    /// Looks for what restricts in a text that can't grant anything.
    fn search_text(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut objects = self.objects(text)?;
        while let Some(Found { read, span }) = objects.next_object()? {
            if !self.is_echo(&text[span], read.object())? {
                self.take(read.object(), false)?;
            }
        }
        Ok(())
    }

    /// Looks for what restricts in a value that can't grant anything.
    fn search_value(&mut self, value: &Value) -> Result<(), Unreadable> {
        match value {
            Value::Object(object) => {
                let object = Object::Parsed(object);
                if !self.echoes.contain_object(object, &mut self.comparisons)? {
                    self.take(object, false)?;
                }
                Ok(())
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.search_value(item)),
            Value::String(text) => self.search_text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// Takes in a copy of the result.
    fn take_copy(&mut self, object: Object<'_>, source: Source<'a>) -> Result<(), Unreadable> {
        let status = || object.under(ERROR)?.get(STATUS_CODE).and_then(read_status);
        let is_envelope = || !object.any(|key, _| !matches!(key, ERROR | BESIDE_ERROR));
        // A receipt has nothing to tell, and is not looked through for this.
        if object.may_tell()
            && status() == Some(CONFLICT)
            && is_envelope()
            && !self.echoes.contain_object(object, &mut self.comparisons)?
        {
            self.conflict = Conflict::Whole;
        }
        let copied = self.take(object, true)?;
        self.add_copy(copied, source);
        Ok(())
    }

    fn add_copy(&mut self, copied: Option<Copied>, source: Source<'a>) {
        if let Some(Copied { is_inner, receipt }) = copied {
            self.copies.add(if is_inner { source.unwrapped() } else { source }, receipt);
        }
    }

    /// Takes an object in, and what stands in it under a sole `result`, once. Of a copy it tells which of the two it is;
    /// nothing if it was a text.
    fn take(&mut self, object: Object<'_>, is_copy: bool) -> Result<Option<Copied>, Unreadable> {
        let Some(sole) = object.sole(RESULT) else {
            return Ok(Some(Copied::itself(self.judge(object, is_copy)?)));
        };
        if let Some(inner) = object.under(RESULT) {
            // The unwrapped result stands for its wrapper as a copy.
            let receipt = self.judge(inner, is_copy)?;
            self.judge(object, false)?;
            return Ok(Some(Copied { is_inner: true, receipt }));
        }
        match sole.as_str() {
            Some(text) if is_copy => {
                self.take_wrapped_text(text.trim())?;
                self.judge(object, false)?;
                Ok(None)
            }
            _ => {
                self.search_value(&sole.to_parsed())?;
                Ok(Some(Copied::itself(self.judge(object, is_copy)?)))
            }
        }
    }

    /// A trimmed text under a sole `result`: the copy if it is one object, and no copy at all otherwise.
    fn take_wrapped_text(&mut self, text: &str) -> Result<(), Unreadable> {
        let mut is_whole = false;
        let mut objects = self.objects(text)?;
        while let Some(Found { read, span }) = objects.next_object()? {
            let is_copy = span == (0..text.len())
                && match &read {
                    Read::Plain(_) => true,
                    Read::Odd(members) => has_distinct_members(text, members),
                };
            is_whole |= is_copy;
            if is_copy || !self.is_echo(&text[span], read.object())? {
                let receipt = self.judge(read.object(), is_copy)?;
                if is_copy {
                    let source = match read {
                        Read::Plain(written) => Source::Written(Cow::Owned(written.text().to_owned())),
                        Read::Odd(members) => Source::Parsed(Cow::Owned(members)),
                    };
                    self.copies.add(source, receipt);
                }
            }
        }
        if !is_whole {
            self.copies.spoil();
        }
        Ok(())
    }

    /// What one object says. Tells what is known of it if it is a receipt.
    fn judge(&mut self, object: Object<'_>, is_copy: bool) -> Result<Option<Outline>, Unreadable> {
        if object.is_empty() && !is_copy {
            return Ok(None);
        }
        if object.may_tell() {
            let mut has_bodies = false;
            object.any(|key, value| {
                if !is_harmless(key.as_bytes()) {
                    has_bodies |= is_of_body(key);
                    self.has_error |= says_failed(key, value);
                }
                false
            });
            // For the look-ups cost more than the look.
            if has_bodies {
                bodies(object).try_for_each(|body| self.note_body(body))?;
            }
        }
        let receipt = ExecutionReceipt::outline(object);
        self.has_receipt |= receipt.is_some();
        if receipt.is_some() && !is_copy {
            self.copies.add_mention(object.to_parsed().into_owned());
        }
        Ok(receipt)
    }

    /// What the body of an error says.
    fn note_body(&mut self, body: Object<'_>) -> Result<(), Unreadable> {
        let is_conflict = body.get(STATUS_CODE).and_then(read_status) == Some(CONFLICT);
        if is_conflict {
            self.conflict = self.conflict.max(Conflict::Somewhere);
        }
        // The real server puts the body, gate included, as text into the message of its own envelope. That text is read
        // only under status 409: other messages echo what the model sent. It comes before the envelope's own code, since it
        // says more; the two have to name the same gate.
        if is_conflict && let Some(message) = body.get(MESSAGE).and_then(Item::as_str) {
            let mut objects = self.objects(&message)?;
            while let Some(Found { read, span }) = objects.next_object()? {
                if !self.is_echo(&message[span], read.object())? {
                    bodies(read.object()).for_each(|body| self.note_denial(body));
                }
            }
        }
        self.note_denial(body);
        Ok(())
    }

    fn note_denial(&mut self, body: Object<'_>) {
        let Some(read) = denial::gate_in(body) else { return };
        match (&self.denial, read) {
            (Ok(_), Err(unclear)) => self.denial = Err(unclear),
            (Ok(Some(known)), Ok(gate)) if *known.gate() != gate => self.denial = Err(NotADenial::Ambiguous),
            (Ok(None), Ok(gate)) => self.denial = Ok(Some(ExecutionBlocked::new(gate, body.to_kept()))),
            (Err(_), _) | (Ok(Some(_)), Ok(_)) => {}
        }
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
        !matches!(self.conflict, Conflict::None)
    }

    /// Whether the answer, or a copy of it, is an envelope with status 409 and nothing else, and not quoted from the call.
    pub(super) const fn is_conflict(&self) -> bool {
        matches!(self.conflict, Conflict::Whole)
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

/// Where an answer has a status of 409.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Conflict {
    None,
    Somewhere,
    /// An envelope with it is the answer as a whole, or a copy of it.
    Whole,
}

/// Which object is the copy of the result, and what is known of it if it is a receipt.
#[derive(Clone, Copy)]
struct Copied {
    /// Not the object itself but what stands in it under a sole `result`.
    is_inner: bool,
    receipt: Option<Outline>,
}

impl Copied {
    const fn itself(receipt: Option<Outline>) -> Self {
        Self { is_inner: false, receipt }
    }
}

/// Where the body of an error can stand in an object: at the top, or under `error`, `detail` or two of them.
pub(super) fn bodies<'a>(object: Object<'a>) -> impl Iterator<Item = Object<'a>> {
    let (error, detail) = (object.under(ERROR), object.under(DETAIL));
    let under = |body: Option<Object<'a>>, name| body?.under(name);
    let error_in_detail = under(detail, ERROR);
    let (error_in_error, detail_in_error) = (under(error, ERROR), under(error, DETAIL));
    let deepest = under(detail_in_error, ERROR);
    [Some(object), error, detail, error_in_detail, detail_in_error, error_in_error, deepest].into_iter().flatten()
}
