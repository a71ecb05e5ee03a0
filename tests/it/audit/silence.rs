//! No record shows what a call carried, what an engine wrote, or a token.

use std::sync::Arc;

use super::Kept;
use crate::{
    heard::Heard,
    support::{Received, recording},
};
use futures::executor::block_on;
use proptest::{prelude::*, sample::select};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, JsonObject, RequestMetaObject},
    object,
};
use serde_json::{Value, json};
use tower::{ServiceBuilder, ServiceExt as _};
use tower_algenta::{
    AuditLayer, AuditRecord, AuditSink, BoxError, GovernanceLayer, Profile, ToolRequest, ToolResponse,
    audit::{Events, Outcome},
};

/// Asks under both sinks, and gives the record and all that was written of it, and of what the layers found.
fn written(
    request: ToolRequest,
    answer: impl Fn() -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
) -> (AuditRecord, String) {
    let kept = Kept::default();
    let heard = Heard::during(|| {
        let stack = ServiceBuilder::new()
            .layer(AuditLayer::new((Events::new(), kept.clone())))
            .layer(GovernanceLayer::new(Profile::Full))
            .service(recording(&Received::default(), move |_: &ToolRequest| answer()));
        let _ = block_on(stack.oneshot(request));
    });
    let (events, found): (Vec<_>, Vec<_>) = heard.into_iter().partition(|line| line.contains(" tower_algenta::audit "));
    let mut records = kept.take();
    let (Some(record), 0, [event]) = (records.pop(), records.len(), &*events) else {
        panic!("{} records and {events:?}", records.len() + 1)
    };
    let text = format!("{event}\n{found:?}\n{record:?}\n{}", serde_json::to_string(&record).unwrap());
    (record, text)
}

#[test]
fn an_event_has_the_fields_of_the_record() {
    let mut request = ToolRequest::call("simulate", object!({"force": true}));
    request.extensions_mut().insert(tower_algenta::audit::Caller::new("agent-7"));
    let (_, text) = written(request, || Ok(CallToolResult::success(vec![]).into()));
    let event = text.lines().next().unwrap();
    assert!(event.starts_with("INFO "), "{event}");
    for field in [
        r#" mcp.method.name="tools/call""#,
        r#" gen_ai.operation.name="execute_tool""#,
        r#" gen_ai.tool.name="simulate""#,
        r#" enduser.id="agent-7""#,
        r#" algenta.outcome="allowed""#,
        r#" algenta.stripped=["/force"]"#,
        " algenta.stripped.count=1",
        " mcp.client.operation.duration=",
    ] {
        assert!(event.contains(field), "{field} in {event}");
    }
    assert!(!event.contains("error.type") && !event.contains("gate"), "{event}");

    let denial = json!({"error": {"code": "execution_blocked_confidence", "gate": "confidence"}}).to_string();
    let request = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
    let answer = move || Ok(CallToolResult::success(vec![ContentBlock::text(denial.clone())]).into());
    let (_, text) = written(request, answer);
    assert!(text.starts_with("WARN "), "{text}");
    for field in [r#" algenta.gate="confidence""#, r#" error.type="denied""#, r#" algenta.decision.id="d""#] {
        assert!(text.contains(field), "{field} in {text}");
    }
}

/// Arguments that carry `secret` wherever a value can stand.
fn arguments(secret: &str, id: Value, is_execution: bool) -> JsonObject {
    let mut arguments = object!({
        "scenario": secret,
        "force": secret,
        "nested": {"override_safety": [secret], "kept": {"text": secret}},
        "text": (format!(r#"{{"Force": "{secret}", "kept": "{secret}"}}"#)),
        "lax": (format!(r#"{{"a": NaN, "b": "{secret}"}}"#)),
    });
    if is_execution {
        arguments.remove("lax");
        arguments.insert("decision_id".to_owned(), id);
        arguments.insert("webhook_url".to_owned(), format!("https://{secret}.example/{secret}").into());
        arguments.insert("metadata".to_owned(), json!({"force": secret}));
    }
    arguments
}

/// What an engine may answer, with `secret` wherever it can write.
fn answer(secret: &str, shape: usize) -> Result<ToolResponse, BoxError> {
    let blocked = |gate: &str| {
        json!({"error": {
            "code": format!("execution_blocked_{gate}"), "gate": gate,
            "message": secret, "override_hint": secret, "extra": {"token": secret}
        }})
    };
    let text = match shape {
        0 => blocked("confidence").to_string(),
        1 => format!("Error executing tool: {}", blocked("risk_floor")),
        2 => blocked(secret).to_string(),
        3 => json!({"error": {"code": secret, "message": secret, "status_code": 500}}).to_string(),
        4 => json!({"error": {"code": secret, "message": secret, "status_code": 404}}).to_string(),
        5 => return Err(format!("Authorization: Bearer {secret}").into()),
        6 => return Err(ErrorData::new(ErrorCode(-32000), secret.to_owned(), Some(blocked("idempotency"))).into()),
        7 => return Err(ErrorData::new(ErrorCode(-32042), secret.to_owned(), Some(json!(secret))).into()),
        8 => json!({
            "decision_id": "d", "webhook_url": format!("https://{secret}.example/{secret}"),
            "execution_status": "delivered", "executed_at": secret, "payload_summary": secret, "extra": secret,
            "policy_snapshot_id": format!("{secret} {secret}"), "schema_snapshot_id": "ss_1",
        })
        .to_string(),
        _ => secret.to_owned(),
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

proptest! {
    #[test]
    fn no_record_quotes_anybody(
        secret in "[a-z]{12}",
        shape in 0..10_usize,
        tool in select(vec!["execute_decision", "simulate", "query_batch"]),
        id in select(vec![json!("d"), json!("d"), json!("../d?x="), json!(["d"]), Value::Null]),
    ) {
        let is_execution = tool == "execute_decision";
        let mut request = ToolRequest::call(tool, arguments(&secret, id, is_execution));
        if let ToolRequest::Call(call) = &mut request {
            let meta = object!({"traceparent": secret.clone(), "x/force": secret.clone()});
            call.params.meta = serde_json::from_value::<RequestMetaObject>(meta.into()).ok();
        }
        let given = secret.clone();
        let (record, text) = written(request, move || answer(&given, shape));
        prop_assert!(!text.contains(&secret), "{text}");
        prop_assert_eq!(record.outcome() == Outcome::Denied, record.gate().is_some());
        prop_assert!(is_execution || record.decision_id().is_none());
    }

    /// An id that could not be executed is some other value.
    #[test]
    fn only_the_id_of_a_decision_is_shown(secret in "[a-z]{12}", around in select(vec!["{}/x", "../{}", "{}?a", "a#{}"])) {
        let id = around.replace("{}", &secret);
        let request = ToolRequest::call("execute_decision", object!({"decision_id": id, "webhook_url": "w"}));
        let (record, text) = written(request, || Ok(CallToolResult::success(vec![]).into()));
        prop_assert_eq!(record.outcome(), Outcome::Invalid);
        prop_assert!(!text.contains(&secret), "{text}");
    }
}

#[test]
fn a_sink_can_be_shared_behind_a_trait_object() {
    let kept = Kept::default();
    let sink: Arc<dyn AuditSink> = Arc::new(kept.clone());
    let service = ServiceBuilder::new()
        .layer(AuditLayer::new(sink))
        .service(recording(&Received::default(), |_: &ToolRequest| Ok(CallToolResult::success(vec![]).into())));
    block_on(service.oneshot(ToolRequest::call("simulate", object!({})))).unwrap();
    assert_eq!(kept.take().len(), 1);
}
