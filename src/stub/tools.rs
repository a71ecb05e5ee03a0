//! The tools: what is advertised, and what of a call's arguments is checked.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::wire::Answer;

/// As the docstrings of the real Python servers end up in a tool's description, operator switches and all.
const EXECUTE_DECISION: &str = "\
Execute a logged decision by delivering it to a webhook.

Args:
    decision_id: The decision to execute.
    webhook_url: Where the decision is delivered.
    timeout_seconds: How long to wait for the webhook.
    metadata: Data that is sent along.
    force: Re-execute a decision that was already delivered. Overrides the idempotency gate once.
    override_safety: Bypass the confidence and risk_floor gates.

Returns a receipt, or an error that names the gate.";

/// What the real server says of a tool, however odd: `simulate` is not read-only, `execute_decision` is idempotent.
const READS: Hints = Hints { read_only: true, idempotent: true };
const REPEATS: Hints = Hints { read_only: false, idempotent: true };
const WRITES: Hints = Hints { read_only: false, idempotent: false };

#[derive(Clone, Copy)]
struct Hints {
    read_only: bool,
    idempotent: bool,
}

/// All tools, in the order in which they are listed, with `prefix` before each name.
pub(super) fn all(prefix: &str) -> Vec<Tool> {
    let any = json!({"description": "A name, or an object that describes it."});
    let scenario = json!({"type": "object", "properties": {"scenario": any}, "required": ["scenario"]});
    let tool = |name: &str, description: &'static str, hints: Hints, schema: Value| {
        let schema = if let Value::Object(schema) = schema { schema } else { JsonObject::new() };
        let annotations = ToolAnnotations::new()
            .read_only(hints.read_only)
            .destructive(false)
            .idempotent(hints.idempotent)
            .open_world(false);
        Tool::new(format!("{prefix}{name}"), description, Arc::new(schema)).with_annotations(annotations)
    };
    vec![
        tool("get_contract", "What the engine can do.", READS, json!({"type": "object", "properties": {}})),
        tool(
            "query_data",
            "Rows of a dataset.",
            READS,
            json!({"type": "object", "properties": {"dataset": {"type": "string"}}, "required": ["dataset"]}),
        ),
        tool("simulate", "Expected value of a scenario.", WRITES, scenario.clone()),
        tool("recommend", "Recommended action for a scenario.", READS, scenario.clone()),
        tool("plan_decision", "Reasons for a decision on a scenario.", READS, scenario),
        tool(
            "log_decision",
            "Log a decision, so that it can be executed.",
            WRITES,
            json!({
                "type": "object",
                "properties": {
                    "chosen_action": {"type": "string"},
                    "expected_value": {"type": "number", "default": 0.0},
                    "confidence": {"type": "number", "default": 0.9},
                },
                "required": ["chosen_action"],
            }),
        ),
        tool(
            "execute_decision",
            EXECUTE_DECISION,
            REPEATS,
            json!({
                "type": "object",
                "properties": {
                    "decision_id": {"type": "string"},
                    "webhook_url": {"type": "string"},
                    "timeout_seconds": {"type": "number"},
                    "metadata": {"type": "object"},
                    "force": {"type": "boolean"},
                    "override_safety": {"type": "boolean"},
                },
                "required": ["decision_id", "webhook_url"],
                "additionalProperties": false,
            }),
        ),
        tool(
            "query_batch",
            "Several queries at once.",
            READS,
            json!({
                "type": "object",
                "properties": {
                    "queries": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "properties": {"key": {"type": "string"}, "request": {"type": "object"}},
                            "required": ["key", "request"],
                        },
                    },
                },
                "required": ["queries"],
            }),
        ),
        tool(
            "update_execution_policy",
            "Change what the gates of execute_decision let through.",
            REPEATS,
            json!({
                "type": "object",
                "properties": {
                    "min_confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "risk_floor": {"type": "number", "minimum": 0},
                    "allow_reexecution": {"type": "boolean"},
                },
                "additionalProperties": false,
            }),
        ),
    ]
}

/// The real server's answer to arguments that don't fit the schema, if they don't.
///
/// It names the first problem only, and does not mind arguments that the schema lacks, whatever
/// `additionalProperties` says.
pub(super) fn refuse(tool: &Tool, arguments: &JsonObject) -> Option<Answer> {
    let (argument, problem) = missing(tool, arguments).or_else(|| mistyped(tool, arguments))?;
    Some(Answer::Failed {
        code: "invalid_arguments",
        message: format!("Invalid arguments for tool '{}': {problem}.", tool.name),
        status_code: 400,
        details: Some(json!([{"argument": argument, "problem": problem}])),
    })
}

fn missing(tool: &Tool, arguments: &JsonObject) -> Option<(String, String)> {
    let required = tool.input_schema.get("required")?.as_array()?;
    let name = required.iter().filter_map(Value::as_str).find(|name| !arguments.contains_key(*name))?;
    Some((name.to_owned(), format!("missing required argument '{name}'")))
}

fn mistyped(tool: &Tool, arguments: &JsonObject) -> Option<(String, String)> {
    let properties = tool.input_schema.get("properties")?.as_object()?;
    properties.iter().find_map(|(name, schema)| {
        let kind = schema.get("type")?.as_str()?;
        let fits = is_of_type(arguments.get(name)?, kind);
        (!fits).then(|| (name.clone(), format!("argument '{name}' must be of type {kind}")))
    })
}

/// Whether `value` is of a JSON Schema type; only those that the schemas above use.
fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}
