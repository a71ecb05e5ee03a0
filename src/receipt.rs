//! Receipts: an execution was completed.

use std::{borrow::Cow, error, fmt};

use rmcp::model::{CallToolResult, JsonObject};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use crate::{
    decision::{DECISION_ID, WEBHOOK_URL},
    json,
    outcome::{self, Item, Kept, Object, Span},
};

const EXECUTION_STATUS: &str = "execution_status";
pub(crate) const EXECUTED_AT: &str = "executed_at";
const RESPONSE_CODE: &str = "response_code";
const POLICY_SNAPSHOT_ID: &str = "policy_snapshot_id";
const SCHEMA_SNAPSHOT_ID: &str = "schema_snapshot_id";
const MANIFEST_VERSION: &str = "manifest_version";
const PAYLOAD_SUMMARY: &str = "payload_summary";
const SAFETY_OVERRIDDEN: &str = "safety_overridden";

/// How the delivery to the webhook went. A failed delivery is still a completed call with a real receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutionStatus {
    /// The webhook took it.
    Delivered,
    /// The webhook did not.
    Failed,
}

impl ExecutionStatus {
    /// The status as the engine writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    fn read(name: &str) -> Option<Self> {
        [Self::Delivered, Self::Failed].into_iter().find(|status| status.as_str() == name)
    }
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The engine's record of a completed execution.
///
/// Complete means that `decision_id`, `webhook_url`, `execution_status` and `executed_at` are there, and that every
/// field of the contract has its type. Fields that the contract doesn't name are kept.
#[derive(Clone)]
pub struct ExecutionReceipt {
    outline: Outline,
    fields: Kept,
}

/// What is known of a receipt without reading its fields again. Those that stand in a text as they are, are found there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    status: ExecutionStatus,
    safety_overridden: bool,
    decision_id: Span,
    webhook_url: Span,
    executed_at: Span,
}

/// The value is no complete receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAReceipt {
    field: Option<&'static str>,
}

impl NotAReceipt {
    pub(crate) const ABSENT: Self = Self { field: None };

    const fn at(field: &'static str) -> Self {
        Self { field: Some(field) }
    }

    /// The first field of the contract that is missing or has another type.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        self.field
    }
}

impl fmt::Display for NotAReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            None => f.write_str("no receipt"),
            Some(field) => write!(f, "an incomplete receipt: `{field}` is missing or has another type"),
        }
    }
}

impl error::Error for NotAReceipt {}

impl ExecutionReceipt {
    pub(crate) const fn new(outline: Outline, fields: Kept) -> Self {
        Self { outline, fields }
    }

    /// Reads a receipt from the engine's JSON.
    pub fn from_value(value: &Value) -> Result<Self, NotAReceipt> {
        match value {
            Value::Object(fields) if json::is_within(value, json::DEPTH_LIMIT) => {
                Self::outline_or_misfit(fields).map(|outline| Self::new(outline, Kept::parsed(fields.clone())))
            }
            _ => Err(NotAReceipt::ABSENT),
        }
    }

    /// Reads the receipt out of a result, for someone who reads a transcript: not bound to any call, but every copy in
    /// the result has to agree, and nothing in it may say that the call failed.
    pub fn from_result(result: &CallToolResult) -> Result<Self, NotAReceipt> {
        outcome::receipt_in_result(result)
    }

    pub(crate) fn from_object(fields: JsonObject) -> Result<Self, NotAReceipt> {
        Self::outline_or_misfit(&fields).map(|outline| Self::new(outline, Kept::parsed(fields)))
    }

    /// What is known of `fields` if it is a complete receipt. One pass: a look-up compares half of the names, and there are
    /// nine.
    pub(crate) fn outline(fields: Object<'_>) -> Option<Outline> {
        if !fields.may_be_receipt() {
            return None;
        }
        let mut outline = Outline {
            status: ExecutionStatus::Failed,
            safety_overridden: false,
            decision_id: Span::NONE,
            webhook_url: Span::NONE,
            executed_at: Span::NONE,
        };
        let mut required = 0;
        let has_misfit = fields.any(|field, value| {
            let fits = match field {
                DECISION_ID => note(value, &mut outline.decision_id, &mut required),
                WEBHOOK_URL => note(value, &mut outline.webhook_url, &mut required),
                EXECUTED_AT => note(value, &mut outline.executed_at, &mut required),
                EXECUTION_STATUS => match value.as_str().and_then(|name| ExecutionStatus::read(&name)) {
                    None => false,
                    Some(status) => {
                        outline.status = status;
                        required += 1;
                        true
                    }
                },
                RESPONSE_CODE => fits_response_code(value),
                POLICY_SNAPSHOT_ID | SCHEMA_SNAPSHOT_ID => value.is_string(),
                MANIFEST_VERSION => fits_manifest_version(value),
                SAFETY_OVERRIDDEN => match value.as_bool() {
                    None => false,
                    Some(overridden) => {
                        outline.safety_overridden = overridden;
                        true
                    }
                },
                _ => true,
            };
            !fits
        });
        (!has_misfit && required == 4).then_some(outline)
    }

    fn outline_or_misfit(fields: &JsonObject) -> Result<Outline, NotAReceipt> {
        let fields = Object::Parsed(fields);
        Self::outline(fields).ok_or_else(|| Self::first_misfit(fields))
    }

    /// What is missing or has another type, in the order of the contract.
    #[cold]
    fn first_misfit(fields: Object<'_>) -> NotAReceipt {
        let fits = |field: &&str| match (*field, fields.get(field)) {
            (DECISION_ID | WEBHOOK_URL | EXECUTED_AT, value) => value.is_some_and(Item::is_string),
            (EXECUTION_STATUS, value) => {
                value.and_then(Item::as_str).is_some_and(|name| ExecutionStatus::read(&name).is_some())
            }
            (_, None) => true,
            (RESPONSE_CODE, Some(value)) => fits_response_code(value),
            (MANIFEST_VERSION, Some(value)) => fits_manifest_version(value),
            (SAFETY_OVERRIDDEN, Some(value)) => value.as_bool().is_some(),
            (_, Some(value)) => value.is_string(),
        };
        [
            DECISION_ID,
            WEBHOOK_URL,
            EXECUTION_STATUS,
            EXECUTED_AT,
            RESPONSE_CODE,
            POLICY_SNAPSHOT_ID,
            SCHEMA_SNAPSHOT_ID,
            MANIFEST_VERSION,
            SAFETY_OVERRIDDEN,
        ]
        .into_iter()
        .find(|field| !fits(field))
        .map_or(NotAReceipt::ABSENT, NotAReceipt::at)
    }

    /// The decision that was executed.
    #[must_use]
    pub fn decision_id(&self) -> &str {
        self.required(self.outline.decision_id, DECISION_ID)
    }

    /// Where the engine delivered to.
    #[must_use]
    pub fn webhook_url(&self) -> &str {
        self.required(self.outline.webhook_url, WEBHOOK_URL)
    }

    /// How the delivery went.
    #[must_use]
    pub const fn status(&self) -> ExecutionStatus {
        self.outline.status
    }

    /// Whether the webhook took the delivery.
    #[must_use]
    pub const fn is_delivered(&self) -> bool {
        matches!(self.outline.status, ExecutionStatus::Delivered)
    }

    /// The webhook's HTTP status; `None` if there was no answer.
    pub fn response_code(&self) -> Option<u16> {
        self.fields().get(RESPONSE_CODE).and_then(|code| http_status(Item::Parsed(code)))
    }

    /// When it was executed, as the engine wrote it (RFC 3339).
    #[must_use]
    pub fn executed_at(&self) -> &str {
        self.required(self.outline.executed_at, EXECUTED_AT)
    }

    /// The policy under which it was executed.
    #[must_use]
    pub fn policy_snapshot_id(&self) -> Option<&str> {
        self.text(POLICY_SNAPSHOT_ID)
    }

    /// The schema under which it was executed.
    #[must_use]
    pub fn schema_snapshot_id(&self) -> Option<&str> {
        self.text(SCHEMA_SNAPSHOT_ID)
    }

    /// The manifest's version; engines write a string or a number.
    #[must_use]
    pub fn manifest_version(&self) -> Option<Cow<'_, str>> {
        match self.fields().get(MANIFEST_VERSION)? {
            Value::String(version) => Some(Cow::Borrowed(version)),
            Value::Number(version) => Some(Cow::Owned(version.to_string())),
            _ => None,
        }
    }

    /// What was delivered, in brief.
    #[must_use]
    pub fn payload_summary(&self) -> Option<&Value> {
        self.fields().get(PAYLOAD_SUMMARY)
    }

    /// Whether an operator overrode the safety gates; `false` where an older engine doesn't say.
    #[must_use]
    pub const fn safety_overridden(&self) -> bool {
        self.outline.safety_overridden
    }

    /// All fields as the engine wrote them, unknown ones included. A receipt that came as text is parsed when this or an
    /// optional field is first asked for.
    #[must_use]
    pub fn fields(&self) -> &JsonObject {
        self.fields.members()
    }

    /// Reads the receipt into a type of the caller's own, unknown fields included.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.fields().clone()))
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.fields().get(field).and_then(Value::as_str)
    }

    fn required(&self, span: Span, field: &str) -> &str {
        self.fields.text_at(span).or_else(|| self.text(field)).unwrap_or_default()
    }
}

impl PartialEq for ExecutionReceipt {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl fmt::Debug for ExecutionReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionReceipt").field("status", &self.outline.status).field("fields", &self.fields).finish()
    }
}

impl Serialize for ExecutionReceipt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ExecutionReceipt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(D::Error::custom)
    }
}

/// Notes where a required string stands; whether it is one.
fn note(value: Item<'_>, span: &mut Span, required: &mut usize) -> bool {
    *span = value.plain_string();
    *required += 1;
    value.is_string()
}

fn fits_response_code(value: Item<'_>) -> bool {
    value.is_null() || http_status(value).is_some()
}

fn fits_manifest_version(value: Item<'_>) -> bool {
    value.is_string() || value.is_number()
}

fn http_status(value: Item<'_>) -> Option<u16> {
    value.as_u64().and_then(|code| u16::try_from(code).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn receipt() -> Value {
        json!({
            "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "response_code": 200,
            "executed_at": "2026-11-30T00:00:00Z", "manifest_version": 3, "region": "eu"
        })
    }

    #[test]
    fn a_receipt_keeps_what_it_does_not_know() {
        #[derive(serde::Deserialize)]
        struct Mine {
            region: String,
        }
        let read = ExecutionReceipt::from_value(&receipt()).unwrap();
        assert!(read.is_delivered());
        assert_eq!(read.response_code(), Some(200));
        assert_eq!(read.manifest_version().as_deref(), Some("3"));
        assert!(!read.safety_overridden());
        assert_eq!(read.deserialize::<Mine>().unwrap().region, "eu");
        assert_eq!(serde_json::to_value(&read).unwrap(), receipt());
        assert_eq!(serde_json::from_value::<ExecutionReceipt>(receipt()).unwrap(), read);
        assert!(serde_json::from_value::<ExecutionReceipt>(json!({})).is_err());
    }

    #[test]
    fn a_field_of_another_type_is_named() {
        for (field, value) in [
            ("decision_id", Value::Null),
            ("webhook_url", json!(5)),
            ("execution_status", json!("DELIVERED")),
            ("executed_at", Value::Null),
            ("response_code", json!(true)),
            ("response_code", json!(70000)),
            ("policy_snapshot_id", Value::Null),
            ("manifest_version", json!([])),
            ("safety_overridden", Value::Null),
        ] {
            let mut broken = receipt();
            broken[field] = value;
            let error = ExecutionReceipt::from_value(&broken).unwrap_err();
            assert_eq!(error.field(), Some(field));
        }
    }
}
