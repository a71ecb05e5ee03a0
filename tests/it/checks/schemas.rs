//! What a model reads of a tool's arguments.

use rmcp::model::{ListToolsResult, Tool};
use serde_json::{Value, json};
use tower_algenta::{Profile, ToolRequest, ToolResponse};

use super::{Finding, Stack, ask, ensure};
use crate::support::object;

/// Schemas of `execute_decision`, each with a call that it accepts and that names no switch.
fn schemas() -> Vec<(Value, Value)> {
    let id = || json!({"type": "string"});
    let flag = || json!({"type": "boolean"});
    vec![
        (
            json!({
                "type": "object", "properties": {"decision_id": id(), "force": flag(), "override_safety": flag()},
                "required": ["decision_id"]
            }),
            json!({"decision_id": "d"}),
        ),
        // A wrapper model: what counts is one level down.
        (
            json!({
                "type": "object",
                "properties": {"params": {
                    "type": "object", "properties": {"decision_id": id(), "overrideSafety": flag()},
                    "required": ["decision_id", "overrideSafety"]
                }}
            }),
            json!({"params": {"decision_id": "d", "overrideSafety": true}}),
        ),
        (
            json!({"type": "object", "properties": {"decision_id": id()}, "required": ["decision_id", "force"]}),
            json!({"decision_id": "d", "force": true}),
        ),
        // Without the switch the two are one, and `oneOf` takes exactly one.
        (
            json!({
                "type": "object",
                "properties": {"decision_id": id(), "force": flag()},
                "oneOf": [
                    {"required": ["decision_id"], "not": {"required": ["force"]}},
                    {"required": ["decision_id", "force"]}
                ]
            }),
            json!({"decision_id": "d"}),
        ),
        (
            json!({
                "type": "object",
                "oneOf": [
                    {"properties": {"decision_id": id(), "force": {"const": true}}, "required": ["force"]},
                    {"properties": {"decision_id": id()}, "required": ["decision_id"]}
                ]
            }),
            json!({"decision_id": "d"}),
        ),
        (
            json!({
                "type": "object", "properties": {"decision_id": id(), "force": flag()}, "minProperties": 2
            }),
            json!({"decision_id": "d", "force": false}),
        ),
    ]
}

/// A call as it arrives.
fn stripped(call: &Value) -> Value {
    crate::model::text::without_hidden_keys(call)
}

/// The schema as the stack lists it.
fn listed(stack: Stack<'_>, schema: &Value) -> Result<Value, String> {
    let tool = Tool::new("execute_decision", "", object(schema));
    let list = ListToolsResult::with_all_items(vec![tool]);
    let (answer, _) = ask(stack, Profile::Execute, ToolRequest::list(), move |_: &ToolRequest| Ok(list.clone().into()));
    match answer {
        Ok(ToolResponse::List(list)) if list.tools.len() == 1 => {
            Ok(Value::Object(list.tools[0].input_schema.as_ref().clone()))
        }
        other => Err(format!("{schema} is listed as {other:?}")),
    }
}

/// No listed schema has a switch among its properties or its required ones, at any depth.
pub(crate) fn no_switch_is_listed(stack: Stack<'_>) -> Finding {
    for (schema, _) in schemas() {
        let listed = listed(stack, &schema)?;
        let text = listed.to_string().to_lowercase();
        ensure(!text.contains("force") && !text.contains("override"), || format!("{schema} is listed as {listed}"))?;
    }
    Ok(())
}

/// What the engine's own schema accepts, the listed one accepts too, once the switches are off.
pub(crate) fn no_call_is_wrongly_rejected(stack: Stack<'_>) -> Finding {
    for (schema, call) in schemas() {
        if !jsonschema::is_valid(&schema, &call) {
            return Err(format!("{schema} rejects {call}"));
        }
        let listed = listed(stack, &schema)?;
        let call = stripped(&call);
        ensure(jsonschema::is_valid(&listed, &call), || format!("{schema} is listed as {listed}, rejecting {call}"))?;
    }
    Ok(())
}
