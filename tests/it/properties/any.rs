//! Any JSON, any spelling of a switch, any answer of an engine.

use proptest::prelude::*;
use rmcp::{
    ErrorData,
    model::{ErrorCode, JsonObject, ListToolsResult, ServerResult},
};
use serde_json::{Map, Value, json};
use tower_algenta::{BoxError, ToolResponse};

use crate::model;

/// Strategies are boxed: those of a whole call are so large otherwise that they overflow a test's stack.
pub(crate) type Keys = fn() -> BoxedStrategy<String>;

pub(crate) fn any_key() -> BoxedStrategy<String> {
    prop_oneof![plain_key(), switch()].boxed()
}

/// A key that no rule hides.
pub(super) fn plain_key() -> BoxedStrategy<String> {
    prop_oneof![
        3 => "[a-z_]{0,6}",
        1 => "\\PC{0,5}",
        1 => proptest::sample::select(vec!["metadata", "params", "enforce", "force_majeure", "f\u{43e}rce", "result"])
            .prop_map(str::to_owned),
    ]
    .prop_filter("hidden", |key| !model::is_hidden_in_meta(key))
    .boxed()
}

/// A spelling of one of the switches: letters in any case and width, and between them what no binder counts.
pub(crate) fn switch() -> BoxedStrategy<String> {
    let letters = proptest::sample::select(vec!["force", "overridesafety"]);
    let noise = proptest::sample::select(vec!["", "", "", "", "_", "-", " ", ".", "\0", "\u{200b}", "\u{202e}", "\n"]);
    (letters, proptest::collection::vec((0..5_u32, noise), 15))
        .prop_map(|(name, choices)| {
            let mut key = String::new();
            for (letter, (form, noise)) in name.chars().zip(&choices) {
                let offset = u32::from(letter) - u32::from('a');
                let form = match form {
                    0 => 'A' as u32,
                    1 => 0xff41,
                    2 => 0x1d41a,
                    _ => 'a' as u32,
                };
                key.extend(char::from_u32(form + offset));
                key.push_str(noise);
            }
            key
        })
        .boxed()
}

/// A key that `serde_json` may read as a value, by the features of a build.
fn private() -> BoxedStrategy<String> {
    "\\$serde_json::private::(RawValue|Number|[A-Za-z]{0,3})".boxed()
}

/// A key that the rules hide.
pub(super) fn hidden() -> BoxedStrategy<String> {
    prop_oneof![3 => switch(), 1 => private()].boxed()
}

pub(super) fn dirty_key() -> BoxedStrategy<String> {
    prop_oneof![plain_key(), hidden()].boxed()
}

fn leaf() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(Value::from),
        "[a-z :.]{0,6}".prop_map(Value::from),
        "\\PC{0,6}".prop_filter("JSON to somebody", |text| !text.contains(['{', '['])).prop_map(Value::from),
    ]
    .boxed()
}

/// Any value with these keys.
pub(super) fn value_with(key: Keys) -> BoxedStrategy<Value> {
    leaf()
        .prop_recursive(3, 16, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::vec((key(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
        .boxed()
}

pub(crate) fn object_with(key: Keys) -> BoxedStrategy<JsonObject> {
    let members = (key(), value_with(key));
    proptest::collection::vec(members, 0..4).prop_map(|members| members.into_iter().collect()).boxed()
}

/// Arguments without a switch in them; some hold JSON text, written as this crate would write it.
pub(super) fn arguments() -> BoxedStrategy<JsonObject> {
    (object_with(plain_key), object_with(plain_key), 0..3_u8)
        .prop_map(|(mut arguments, text, texts)| {
            let text = Value::Object(text);
            if texts > 0 {
                arguments.insert("payload".to_owned(), Value::String(text.to_string()));
            }
            if texts > 1 {
                arguments.insert("payloads".to_owned(), Value::String(json!([text, 1, [text]]).to_string()));
            }
            arguments
        })
        .boxed()
}

/// Arguments with anything in them.
pub(crate) fn dirty_arguments() -> BoxedStrategy<JsonObject> {
    let text = prop_oneof![
        object_with(dirty_key).prop_map(|object| Value::Object(object).to_string()),
        "[ \\n]?[\\[{](\"force\"|'force'|\"\\\\u0066orce\"|\"a\"|NaN|:|,|1|\\{|\\}| ){0,6}",
    ];
    (object_with(dirty_key), proptest::option::of(text))
        .prop_map(|(mut arguments, text)| {
            arguments.extend(text.map(|text| ("payload".to_owned(), Value::String(text))));
            arguments
        })
        .boxed()
}

pub(super) fn tool() -> BoxedStrategy<&'static str> {
    proptest::sample::select(vec!["execute_decision", "simulate", "log_decision", "query_batch", "batch"]).boxed()
}

/// With what an execution can't do without.
pub(crate) fn as_execution(mut arguments: JsonObject) -> JsonObject {
    arguments.insert("decision_id".to_owned(), "d".into());
    arguments.insert("webhook_url".to_owned(), "w".into());
    arguments.remove("timeout_seconds");
    arguments
}

/// A body that an engine could answer an execution with, or nearly.
fn body() -> BoxedStrategy<Value> {
    let field = proptest::sample::select(vec![
        "decision_id",
        "webhook_url",
        "execution_status",
        "executed_at",
        "response_code",
        "safety_overridden",
        "x",
    ]);
    let receipt = proptest::option::of((field, leaf())).prop_map(|change| {
        let mut receipt = json!({
            "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"
        });
        if let Some((field, value)) = change {
            receipt[field] = value;
        }
        receipt
    });
    let gate = proptest::sample::select(vec!["confidence", "risk_floor", "idempotency", "quota"]);
    let denial = (gate, "\\PC{0,8}").prop_map(|(gate, message)| {
        json!({"error": {"code": format!("execution_blocked_{gate}"), "gate": gate, "message": message}})
    });
    let status = prop_oneof![300..600_u64, Just(404), Just(409)];
    let error = (status, "\\PC{0,8}")
        .prop_map(|(status, message)| json!({"error": {"code": "c", "message": message, "status_code": status}}));
    let wrapper = proptest::sample::select(vec!["", "", "", "detail", "result", "error", "data"]);
    (prop_oneof![4 => receipt, 2 => denial, 2 => error, 1 => value_with(plain_key)], wrapper)
        .prop_map(|(body, wrapper)| if wrapper.is_empty() { body } else { json!({wrapper: body}) })
        .boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        4 => body().prop_map(|body| body.to_string()),
        1 => ("[a-zA-Z{:' ]{0,12}", body(), "\\PC{0,4}").prop_map(|(before, body, after)| format!("{before}{body}{after}")),
        1 => "[{}\\[\\]\":,a ]{0,24}",
        1 => "\\PC{0,12}",
    ].boxed()
}

/// A result of a call, as it stands on the wire.
pub(crate) fn result() -> BoxedStrategy<Value> {
    let block = prop_oneof![
        6 => text().prop_map(|text| json!({"type": "text", "text": text})),
        1 => Just(json!({"type": "image", "data": "AA==", "mimeType": "image/png"})),
        1 => text().prop_map(|text| json!({"type": "resource", "resource": {"uri": "file:///x", "text": text}})),
    ];
    let structured = proptest::option::of(body());
    (proptest::collection::vec(block, 0..3), structured, proptest::option::of(any::<bool>()))
        .prop_map(|(content, structured, is_error)| {
            let mut result = Map::from_iter([("content".to_owned(), Value::from(content))]);
            result.extend(structured.map(|value| ("structuredContent".to_owned(), value)));
            result.extend(is_error.map(|is_error| ("isError".to_owned(), is_error.into())));
            Value::Object(result)
        })
        .boxed()
}

/// What an inner service comes to. An error can't be cloned, so it is made when it is needed.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Response(ToolResponse),
    RpcError(String, Value),
    Error(String),
}

impl Answer {
    pub(crate) fn give(&self) -> Result<ToolResponse, BoxError> {
        match self {
            Self::Response(response) => Ok(response.clone()),
            Self::RpcError(message, data) => {
                Err(ErrorData::new(ErrorCode(-32000), message.clone(), Some(data.clone())).into())
            }
            Self::Error(message) => Err(message.clone().into()),
        }
    }
}

/// Anything that an inner service can answer a call with.
pub(crate) fn answer() -> BoxedStrategy<Answer> {
    let read = |result: Value| {
        let result: ServerResult = serde_json::from_value(result).expect("it decodes");
        Answer::Response(ToolResponse::try_from(result).expect("it answers a tool request"))
    };
    let odd = proptest::sample::select(vec![
        json!({"resultType": "input_required", "requestState": "s"}),
        json!({
            "resultType": "task", "taskId": "t", "status": "completed", "createdAt": "x", "lastUpdatedAt": "x",
            "ttlMs": null
        }),
    ]);
    prop_oneof![
        8 => result().prop_map(read),
        1 => odd.prop_map(read),
        1 => Just(Answer::Response(ListToolsResult::default().into())),
        1 => (text(), body()).prop_map(|(message, data)| Answer::RpcError(message, data)),
        1 => text().prop_map(Answer::Error),
    ]
    .boxed()
}
