//! How executions end, and what is said of it.

use std::{error, fmt};

use rmcp::{model::CallToolResult, object};
use serde_json::{Value, json};
use tower_algenta::{BoxError, Error, Profile, ToolRequest, ToolResponse};

use super::{Finding, Stack, ask, ensure, reach::answer};
use crate::{
    model::outcome::{Asked, Class, of_result},
    support::everything_printed,
};

/// What a caller gets for an execution that the engine answers with `result`.
fn executed(stack: Stack<'_>, result: &Value) -> Result<ToolResponse, Error> {
    let response = answer(result.clone());
    let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
    ask(stack, Profile::Execute, call, move |_: &ToolRequest| Ok(response.clone())).0
}

/// The ways in which engines write down that a gate said no.
fn denials(gate: &str, message: &str, hint: &Value) -> Vec<Value> {
    let code = format!("execution_blocked_{gate}");
    let body = json!({"code": code, "gate": gate, "message": message, "override_hint": hint});
    let error = json!({"error": body});
    let real = |nested: &Value| json!({"error": {"code": code, "message": format!("API error 409: {nested}"), "status_code": 409}});
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    vec![
        text(error.to_string()),
        text(body.to_string()),
        text(real(&error).to_string()),
        text(real(&json!({"detail": error, "request_id": "r"})).to_string()),
        text(real(&json!({"detail": body})).to_string()),
        text(json!({"detail": error}).to_string()),
        text(format!("Error executing tool execute_decision: {error}")),
        text(format!("Error calling tool 'execute_decision': {error}")),
        text(format!("Error executing tool {{execute_decision}}: {error}")),
        text(format!("request {{\"decision_id\":\"d\"}} was answered {error}")),
        text(format!("{{\"trace\": [1, 2, {error}")),
        json!({"content": [{"type": "text", "text": "blocked"}, {"type": "text", "text": error.to_string()}]}),
        json!({"content": [{"type": "text", "text": "blocked"}], "structuredContent": error}),
        json!({"content": [{"type": "text", "text": error.to_string()}], "structuredContent": error}),
    ]
}

/// A denial is one in every shape, whatever `isError` says.
pub(crate) fn denials_are_denied(stack: Stack<'_>) -> Finding {
    for gate in ["idempotency", "confidence", "risk_floor", "quota"] {
        for result in denials(gate, "blocked {x} \"y\"", &json!("Set force=true to proceed.")) {
            for is_error in [None, Some(true), Some(false)] {
                let mut result = result.clone();
                if let Some(is_error) = is_error {
                    result["isError"] = is_error.into();
                }
                let outcome = executed(stack, &result);
                let is_denied = matches!(&outcome, Err(Error::Denied(denial)) if denial.gate().as_str() == gate);
                ensure(is_denied, || format!("{result} ended in {outcome:?}"))?;
            }
        }
    }
    Ok(())
}

/// Whatever the engine wrote, two denials by one gate read alike, and name no switch.
pub(crate) fn denials_are_silent(stack: Stack<'_>) -> Finding {
    for gate in ["idempotency", "confidence", "risk_floor"] {
        let mut printed = Vec::new();
        for (message, hint) in [("m", Value::Null), ("decision dec_7 blocked", json!("Pass override_safety=true."))] {
            for result in denials(gate, message, &hint) {
                match executed(stack, &result) {
                    Ok(response) => return Err(format!("{result} passed as {response:?}")),
                    Err(error) => printed.push(everything_printed(&error)),
                }
            }
        }
        for text in &printed {
            ensure(*text == printed[0], || format!("{text} is not {}", printed[0]))?;
            ensure(!["force", "override", "dec_7"].iter().any(|word| text.contains(word)), || text.clone())?;
        }
    }
    Ok(())
}

/// An execution succeeds with a receipt of this very call, passes a 4xx on, and otherwise fails.
pub(crate) fn only_bound_receipts_succeed(stack: Stack<'_>) -> Finding {
    let receipt = json!({
        "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"
    });
    let with = |field: &str, value: Value| {
        let mut receipt = receipt.clone();
        receipt[field] = value;
        receipt
    };
    let bodies = [
        receipt.clone(),
        with("execution_status", json!("failed")),
        with("execution_status", json!("pending")),
        with("decision_id", json!("d2")),
        with("webhook_url", json!("https://evil.example")),
        with("executed_at", Value::Null),
        json!({"error": {"code": "not_found", "status_code": 404}}),
        json!({"error": {"code": "server_error", "status_code": 500}}),
        json!({"error": {"code": "conflict", "status_code": 409}}),
        json!({"error": {"code": "timeout", "status_code": 408}}),
        json!({"error": "a string"}),
        json!({}),
        json!([]),
        json!("prose"),
    ];
    for body in &bodies {
        for other in &bodies {
            for is_error in [false, true] {
                let text = |body: &Value| json!({"type": "text", "text": body.to_string()});
                let mut results = vec![
                    json!({"content": [text(body)], "isError": is_error}),
                    json!({"content": [text(body), text(other)], "isError": is_error}),
                ];
                if other.is_object() {
                    results.push(json!({"content": [text(body)], "structuredContent": other, "isError": is_error}));
                }
                for result in results {
                    let outcome = executed(stack, &result);
                    let expected = of_result(Asked { decision_id: "d", webhook_url: "w" }, &result);
                    ensure(expected.admits(&class(&outcome)), || format!("{result} ended in {outcome:?}"))?;
                }
            }
        }
    }
    Ok(())
}

/// The class of an outcome; one that no execution may end in counts as none of them.
pub(crate) fn class(outcome: &Result<ToolResponse, Error>) -> Class {
    match outcome {
        Ok(ToolResponse::Call(outcome)) if outcome.receipt().is_some() => Class::Receipt,
        Ok(ToolResponse::Call(outcome)) if outcome.result().is_some_and(|result| result.is_error == Some(true)) => {
            Class::ToolError
        }
        Err(Error::Denied(denial)) => Class::Denied(denial.gate().as_str().to_owned()),
        Err(Error::ExecutionFailed(_)) => Class::Failed,
        Err(Error::OutcomeUnknown(_)) => Class::Unknown,
        Ok(_) | Err(_) => Class::Outlaw,
    }
}

/// What another tool answers passes as it is.
pub(crate) fn result_passes(stack: Stack<'_>, tool: &'static str, given: &CallToolResult) -> Finding {
    let response = ToolResponse::from(given.clone());
    let call = ToolRequest::call(tool, object!({"decision_id": "d", "webhook_url": "w"}));
    let (outcome, _) = ask(stack, Profile::Full, call, move |_: &ToolRequest| Ok(response.clone()));
    let passes = matches!(&outcome, Ok(ToolResponse::Call(outcome))
        if outcome.receipt().is_none() && outcome.result() == Some(given));
    ensure(passes, || format!("{given:?} of {tool} became {outcome:?}"))
}

/// An error of the inner service's own.
#[derive(Debug)]
struct Theirs(String);

impl fmt::Display for Theirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Theirs {}

/// How another tool fails is its own: the error passes, and not one that is made of it.
pub(crate) fn error_passes(stack: Stack<'_>, tool: &'static str, message: &str) -> Finding {
    let given = message.to_owned();
    let call = ToolRequest::call(tool, object!({}));
    let (outcome, _) =
        ask(stack, Profile::Full, call, move |_: &ToolRequest| Err(BoxError::from(Theirs(given.clone()))));
    let passes = matches!(&outcome, Err(Error::Upstream(error))
        if error.downcast_ref::<Theirs>().is_some_and(|error| error.0 == message));
    ensure(passes, || format!("the error {message:?} of {tool} became {outcome:?}"))
}

/// What other tools answer, and how they fail, is theirs.
pub(crate) fn other_tools_are_untouched(stack: Stack<'_>) -> Finding {
    for tool in ["simulate", "query_batch"] {
        for result in denials("confidence", "m", &json!("Set force=true")) {
            let result = serde_json::from_value(result).map_err(|error| error.to_string())?;
            result_passes(stack, tool, &result)?;
        }
        for message in ["reset", "{\"gate\": \"confidence\"}"] {
            error_passes(stack, tool, message)?;
        }
    }
    Ok(())
}
