//! The call of `execute_decision` that a model may make.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::{Number, Value};

use crate::{
    error::{InvalidArguments, InvalidReason},
    hidden_fields::{spells, strip_private},
    json,
};

/// The argument that is the webhook's data.
pub(crate) const METADATA: &str = "metadata";
pub(crate) const DECISION_ID: &str = "decision_id";
pub(crate) const WEBHOOK_URL: &str = "webhook_url";
const TIMEOUT_SECONDS: &str = "timeout_seconds";

/// Bytes of a `decision_id` at the most.
const DECISION_ID_LIMIT: usize = 256;

/// The arguments of `execute_decision` that a model may set, and nothing else.
///
/// What a [`Denial`](crate::Denial) keeps and an operator repeats is this, so neither can carry a smuggled field.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteDecision {
    decision_id: String,
    webhook_url: String,
    timeout_seconds: Option<Number>,
    metadata: Option<Value>,
}

impl ExecuteDecision {
    /// An execution of `decision_id` that delivers to `webhook_url`.
    ///
    /// # Errors
    ///
    /// If `decision_id` is not one path segment of 1 to 256 bytes, which the real server would interpolate into a URL, or
    /// `webhook_url` holds a character that no URL holds.
    pub fn new(decision_id: impl Into<String>, webhook_url: impl Into<String>) -> Result<Self, InvalidArguments> {
        let decision_id = decision_id.into();
        if !is_path_segment(&decision_id) {
            return Err(InvalidArguments::new(InvalidReason::DecisionIdMalformed));
        }
        let webhook_url = webhook_url.into();
        if !is_url_text(&webhook_url) {
            return Err(InvalidArguments::new(InvalidReason::WebhookUrlMalformed));
        }
        Ok(Self { decision_id, webhook_url, timeout_seconds: None, metadata: None })
    }

    /// Sets how long the webhook may take. The contract's unit is the second, so it is sent in seconds.
    ///
    /// This is the engine's limit for its delivery. How long this process waits for the engine is the client's call
    /// timeout and the stack's deadline.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // A whole number where it is one, as people write it.
        self.timeout_seconds = if timeout.subsec_nanos() == 0 {
            Some(timeout.as_secs().into())
        } else {
            Number::from_f64(timeout.as_secs_f64())
        };
        self
    }

    /// Sets the data that the webhook receives.
    ///
    /// # Errors
    ///
    /// If it nests more than 128 containers.
    pub fn metadata(mut self, metadata: JsonObject) -> Result<Self, InvalidArguments> {
        let mut metadata = Value::Object(metadata);
        if !json::is_within(&metadata, json::DEPTH_LIMIT) {
            json::dismantle(metadata);
            return Err(InvalidArguments::new(InvalidReason::TooDeep));
        }
        strip_private(&mut metadata);
        self.metadata = Some(metadata);
        Ok(self)
    }

    /// How long the webhook may take, in the contract's unit, the second.
    #[must_use]
    pub const fn timeout_seconds(&self) -> Option<&Number> {
        self.timeout_seconds.as_ref()
    }

    /// The data that the webhook receives. The model chose it.
    #[must_use]
    pub const fn webhook_data(&self) -> Option<&Value> {
        self.metadata.as_ref()
    }

    /// The decision to execute.
    #[must_use]
    pub fn decision_id(&self) -> &str {
        &self.decision_id
    }

    /// Where the engine delivers to. The model chose it.
    #[must_use]
    pub fn webhook_url(&self) -> &str {
        &self.webhook_url
    }

    /// Reads the four fields out of a call's arguments and leaves the rest.
    ///
    /// # Errors
    ///
    /// If `decision_id` or `webhook_url` is missing, malformed or also there in another spelling, `timeout_seconds` is no
    /// number, or `metadata` nests more than 128 containers.
    pub fn from_arguments(arguments: &JsonObject) -> Result<Self, InvalidArguments> {
        let refuse = |reason| Err(InvalidArguments::new(reason));
        if has_alias(arguments) {
            return refuse(InvalidReason::AmbiguousName);
        }
        let Some(Value::String(decision_id)) = arguments.get(DECISION_ID) else {
            return refuse(InvalidReason::DecisionIdMissing);
        };
        let Some(Value::String(webhook_url)) = arguments.get(WEBHOOK_URL) else {
            return refuse(InvalidReason::WebhookUrlMissing);
        };
        let timeout_seconds = match arguments.get(TIMEOUT_SECONDS) {
            None | Some(Value::Null) => None,
            Some(Value::Number(seconds)) => Some(seconds.clone()),
            Some(_) => return refuse(InvalidReason::TimeoutNotANumber),
        };
        let metadata = arguments.get(METADATA);
        if !metadata.is_none_or(|value| json::is_within(value, json::DEPTH_LIMIT)) {
            return refuse(InvalidReason::TooDeep);
        }
        let mut metadata = metadata.cloned();
        metadata.iter_mut().for_each(strip_private);
        Ok(Self { timeout_seconds, metadata, ..Self::new(decision_id.as_str(), webhook_url.as_str())? })
    }

    /// The arguments of the call.
    #[must_use]
    pub fn to_arguments(&self) -> JsonObject {
        let mut arguments = JsonObject::new();
        arguments.insert(DECISION_ID.to_owned(), self.decision_id.clone().into());
        arguments.insert(WEBHOOK_URL.to_owned(), self.webhook_url.clone().into());
        if let Some(seconds) = &self.timeout_seconds {
            arguments.insert(TIMEOUT_SECONDS.to_owned(), Value::Number(seconds.clone()));
        }
        if let Some(metadata) = &self.metadata {
            arguments.insert(METADATA.to_owned(), metadata.clone());
        }
        arguments
    }
}

/// Whether `url` holds only characters that a URL may hold, or that engines tolerate in one.
///
/// Braces and quotes have to be percent-encoded in a URL. Here they could only dress a URL as JSON, for an engine that
/// decodes arguments, or quotes them in an error.
fn is_url_text(url: &str) -> bool {
    !url.contains(|char: char| matches!(char, '{' | '}' | '"') || char.is_control())
}

/// Whether an argument is spelled like one that names what is executed, and isn't it. An engine that binds generously
/// might take it in the other one's place.
pub(crate) fn has_alias(arguments: &JsonObject) -> bool {
    let is_alias = |key: &str, name: &str, canonical: &str| key != name && spells(key, canonical);
    arguments.keys().any(|key| is_alias(key, DECISION_ID, "decisionid") || is_alias(key, WEBHOOK_URL, "webhookurl"))
}

/// Whether `id` stays one segment of a URL's path, wherever a server puts it.
fn is_path_segment(id: &str) -> bool {
    (1..=DECISION_ID_LIMIT).contains(&id.len())
        && !matches!(id, "." | "..")
        && !id.contains(|char: char| matches!(char, '/' | '\\' | '?' | '#' | '%') || char.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::object;

    #[track_caller]
    fn reason(arguments: &JsonObject) -> InvalidReason {
        ExecuteDecision::from_arguments(arguments).unwrap_err().reason()
    }

    #[test]
    fn a_decision_id_is_one_path_segment() {
        for id in ["dec-1", "decision 7", "ü", "...", "{}", &"x".repeat(256)] {
            assert!(is_path_segment(id), "{id:?}");
        }
        for id in [
            "",
            ".",
            "..",
            "../decisions/plan?x=",
            "a/b",
            "a\\b",
            "a?b",
            "a#b",
            "%2e%2e",
            "a\nb",
            "a\u{0}",
            "a\u{85}",
            &"x".repeat(257),
        ] {
            assert!(!is_path_segment(id), "{id:?}");
        }
    }

    #[test]
    fn a_second_spelling_is_refused() {
        for key in [
            "webhookUrl",
            "WEBHOOK_URL",
            "webhoo\u{212a}_url",
            "webhook-url",
            "decisionId",
            "Decision_ID",
            " decision_id",
        ] {
            let mut arguments = object!({"decision_id": "d", "webhook_url": "w"});
            arguments.insert(key.to_owned(), "w".into());
            assert_eq!(reason(&arguments), InvalidReason::AmbiguousName, "{key}");
        }
        let arguments = object!({"decision_id": "d", "webhook_url": "w", "webhook": 1, "decision": 2, "metadata": {"webhookUrl": 3}});
        assert!(ExecuteDecision::from_arguments(&arguments).is_ok());
    }

    #[test]
    fn only_the_four_fields_are_read() {
        let arguments = object!({
            "decision_id": "d", "webhook_url": "w", "timeout_seconds": 2, "metadata": {"force": 1},
            "force": true, "surprise": 1
        });
        let decision = ExecuteDecision::from_arguments(&arguments).unwrap();
        assert_eq!(
            Value::Object(decision.to_arguments()),
            serde_json::json!({"decision_id": "d", "webhook_url": "w", "timeout_seconds": 2, "metadata": {"force": 1}})
        );
        assert_eq!(decision.timeout_seconds().and_then(Number::as_u64), Some(2));
        assert_eq!(decision.webhook_data(), arguments.get("metadata"));
    }

    #[test]
    fn keys_that_come_alive_when_decoded_go_from_the_metadata() {
        let metadata = object!({"a": [{"$serde_json::private::RawValue": "{}", "force": 1}]});
        let arguments = object!({"decision_id": "d", "webhook_url": "w", "metadata": (metadata.clone())});
        let read = ExecuteDecision::from_arguments(&arguments).unwrap();
        let built = ExecuteDecision::new("d", "w").unwrap().metadata(metadata).unwrap();
        assert_eq!(read, built);
        assert_eq!(read.to_arguments()["metadata"], serde_json::json!({"a": [{"force": 1}]}));
    }

    #[test]
    fn a_timeout_is_sent_in_seconds() {
        let seconds = |timeout| {
            ExecuteDecision::new("d", "w").unwrap().timeout(timeout).to_arguments()["timeout_seconds"].clone()
        };
        assert_eq!(seconds(Duration::from_secs(30)), serde_json::json!(30));
        assert_eq!(seconds(Duration::from_millis(1500)), serde_json::json!(1.5));
    }

    #[test]
    fn each_refusal_names_its_rule() {
        assert_eq!(reason(&object!({"webhook_url": "w"})), InvalidReason::DecisionIdMissing);
        assert_eq!(reason(&object!({"decision_id": 5, "webhook_url": "w"})), InvalidReason::DecisionIdMissing);
        assert_eq!(reason(&object!({"decision_id": "d"})), InvalidReason::WebhookUrlMissing);
        assert_eq!(reason(&object!({"decision_id": "a/b", "webhook_url": "w"})), InvalidReason::DecisionIdMalformed);
        assert_eq!(
            reason(&object!({"decision_id": "d", "webhook_url": "w", "timeout_seconds": "5"})),
            InvalidReason::TimeoutNotANumber
        );
    }
}
