//! What of a call's arguments reaches the engine.

use serde_json::{Value, json};
use tower_algenta::{Profile, ToolRequest};

use super::{Finding, Stack, ask, ensure};
use crate::{
    model,
    support::{empty_result, object},
};

const SPELLINGS: [&str; 10] = [
    "force",
    "Force",
    "override_safety",
    "overrideSafety",
    "override-safety",
    " force",
    "force\0",
    "f\u{200b}orce",
    "\u{ff46}orce",
    "override_\u{17f}afety",
];

/// What the engine receives as arguments; `None` if it receives nothing.
fn arriving(stack: Stack<'_>, tool: &str, arguments: &Value) -> Option<Value> {
    let call = ToolRequest::call(tool.to_owned(), object(arguments));
    let (_, received) = ask(stack, Profile::Full, call, |_: &ToolRequest| Ok(empty_result()));
    match received.first() {
        Some(ToolRequest::Call(call)) => Some(call.params.arguments.clone().map_or(Value::Null, Value::Object)),
        _ => None,
    }
}

/// No spelling of a switch arrives, at any depth that the tool reads.
pub(crate) fn no_switch_arrives(stack: Stack<'_>) -> Finding {
    for spelling in SPELLINGS {
        for value in [json!(true), json!(false), json!("yes"), Value::Null] {
            let dirty = json!({spelling: value});
            let places = [
                dirty.clone(),
                json!({"params": dirty}),
                json!({"calls": [{"arguments": dirty}]}),
                json!({"payload": dirty.to_string()}),
                json!({"payload": json!([{"a": dirty}]).to_string()}),
            ];
            for place in places {
                for (tool, own) in [
                    ("execute_decision", json!({"decision_id": "d", "webhook_url": "w"})),
                    ("query_batch", json!({"q": 1})),
                ] {
                    let mut arguments = own.clone();
                    arguments.as_object_mut().unwrap().extend(object(&place));
                    let received = arriving(stack, tool, &arguments);
                    ensure(received.as_ref().is_none_or(|received| !names_a_switch(received)), || {
                        format!("{tool} received {received:?} of {arguments}")
                    })?;
                    ensure(received.is_some(), || format!("{tool} was refused {arguments}"))?;
                }
            }
        }
    }
    Ok(())
}

fn names_a_switch(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| model::is_hidden(key) || names_a_switch(value)),
        Value::Array(items) => items.iter().any(names_a_switch),
        Value::String(text) => model::text::read(text) != model::text::Text::Unchanged,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What is a tool's own data arrives, byte for byte, even if it is called like a switch.
pub(crate) fn data_arrives(stack: Stack<'_>) -> Finding {
    for (tool, arguments) in [
        ("simulate", json!({"scenario": {"force": 9.8, "mass": 1e23}, "text": "{\"force\": 1}"})),
        ("log_decision", json!({"rationale": "[Force majeure] \"force\" is a word", "workforce": 7})),
        (
            "execute_decision",
            json!({"decision_id": "d", "webhook_url": "w", "metadata": {"force": true}, "timeout_seconds": 0.1}),
        ),
        ("execute_decision", json!({"decision_id": "d", "webhook_url": "w", "metadata": "{\"force\": NaN}"})),
        ("query_batch", json!({"": null, "n": u64::MAX, "m": i64::MIN, "enforce": "{ \"a\" : 1.0 }"})),
    ] {
        let received = arriving(stack, tool, &arguments);
        ensure(received.as_ref().map(Value::to_string) == Some(arguments.to_string()), || {
            format!("{tool} received {received:?} of {arguments}")
        })?;
    }
    Ok(())
}
