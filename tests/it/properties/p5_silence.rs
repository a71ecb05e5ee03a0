//! P5: two denials by one gate can't be told apart by what a host prints of them.

use proptest::{prelude::*, sample::select};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode},
    object,
};
use serde_json::{Value, json};
use tower_algenta::{BoxError, Error, Profile, ToolRequest, ToolResponse};

use super::config;
use crate::{
    checks::{ask, real},
    support::everything_printed,
};

/// What an engine may write beside the gate, and how.
type Written = (String, Option<String>, usize, bool, String);

fn written() -> impl Strategy<Value = Written> {
    let prose = "(Set force=true|override_safety|token=[a-z]{4}|\\PC|[{}\"\\\\]){0,4}";
    (prose, prop::option::of(prose), 0..6_usize, any::<bool>(), "[a-z0-9-]{1,12}")
}

fn answer(gate: &str, (message, hint, shape, is_error, _): &Written) -> Result<ToolResponse, BoxError> {
    let code = format!("execution_blocked_{gate}");
    let body = json!({"code": code, "gate": gate, "message": message, "override_hint": hint});
    let error = json!({"error": body});
    let text = match shape {
        0 => error.to_string(),
        1 => json!({"detail": error}).to_string(),
        2 => format!("Error executing tool execute_decision: {error}"),
        3 => {
            let message = format!("API error 409: {error}");
            json!({"error": {"code": code, "message": message, "status_code": 409}}).to_string()
        }
        4 => return Err(ErrorData::new(ErrorCode(-32000), message.clone(), Some(error)).into()),
        _ => "blocked".to_owned(),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.is_error = Some(*is_error);
    result.structured_content = Some(error).filter(|_| *shape == 5);
    Ok(result.into())
}

fn printed(gate: &str, written: &Written) -> Option<String> {
    let call = ToolRequest::call(
        "execute_decision",
        object!({"decision_id": written.4.clone(), "webhook_url": "https://hooks.example/secret"}),
    );
    let (gate, written) = (gate.to_owned(), written.clone());
    match ask(&real, Profile::Execute, call, move |_: &ToolRequest| answer(&gate, &written)).0 {
        Err(error @ Error::Denied(_)) => Some(everything_printed(&error)),
        _ => None,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p5_denials_by_one_gate_read_alike(
        gate in select(vec!["idempotency", "confidence", "risk_floor"]),
        one in written(),
        other in written(),
    ) {
        let (first, second) = (printed(gate, &one), printed(gate, &other));
        prop_assert!(first.is_some(), "{one:?} is no denial");
        prop_assert_eq!(first, second, "{:?} and {:?}", one, other);
    }

    /// The name of a gate that the contract doesn't know is the engine's text.
    #[test]
    fn p5_an_unknown_gate_is_not_named(gate in "[a-z]{6,9}(force|override)", one in written()) {
        let text = printed(&gate, &one);
        prop_assert!(text.as_ref().is_some_and(|text| !text.contains(&gate)), "{text:?}");
        prop_assert_eq!(text, printed("quotaforce", &one));
    }

    /// Other failures and refusals don't quote the engine or the call either.
    #[test]
    fn p5_no_failure_quotes_anybody(
        secret in "[a-z]{12}",
        shape in 0..5_usize,
    ) {
        let given = secret.clone();
        let url = json!(format!("https://{secret}.example/force"));
        let (id, answer): (Value, _) = match shape {
            0 => (json!("d"), json!({"error": {"code": secret, "message": secret, "status_code": 500}})),
            1 => (json!("d"), json!({"decision_id": secret, "webhook_url": secret, "error": secret})),
            2 => (json!("d"), json!({"decision_id": secret, "execution_status": secret})),
            3 => (json!(format!("../{secret}?force=true")), json!({})),
            _ => (json!([secret]), json!({})),
        };
        let call = ToolRequest::call("execute_decision", object!({"decision_id": id, "webhook_url": url}));
        let (outcome, _) = ask(&real, Profile::Execute, call, move |_: &ToolRequest| {
            let result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
            if shape == 1 { Err(format!("{given} force=true").into()) } else { Ok(result.into()) }
        });
        let error = outcome.expect_err("no receipt");
        let text = everything_printed(&error);
        prop_assert!(![secret.as_str(), "force", "override"].iter().any(|word| text.contains(word)), "{text}");
    }
}
