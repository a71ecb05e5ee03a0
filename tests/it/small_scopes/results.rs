//! `isError` × content × structured content, whole, against the model.

use serde_json::{Value, json};

use crate::differential::outcomes::compare;

fn bodies() -> Vec<Value> {
    let receipt = |id: &str, status: &str| json!({"decision_id": id, "webhook_url": "w", "execution_status": status, "executed_at": "now"});
    let denial = |gate: &str| json!({"code": format!("execution_blocked_{gate}"), "gate": gate});
    let real = json!({"error": {
        "code": "execution_blocked_confidence", "status_code": 409,
        "message": format!("API error 409: {}", json!({"detail": {"error": denial("confidence")}}))
    }});
    vec![
        receipt("d", "delivered"),
        receipt("d", "failed"),
        receipt("d", "pending"),
        receipt("other", "delivered"),
        json!({"result": receipt("d", "delivered")}),
        json!({"result": receipt("d", "delivered").to_string()}),
        json!({"error": denial("confidence")}),
        json!({"error": denial("quota")}),
        json!({"detail": denial("confidence")}),
        denial("confidence"),
        real,
        json!({"error": {"code": "not_found", "status_code": 404}}),
        json!({"error": {"code": "rate_limit_exceeded", "status_code": 429}, "request_id": "r"}),
        json!({"error": {"code": "conflict", "status_code": 409}}),
        json!({"error": {"code": "timeout", "status_code": 408}}),
        json!({"error": {"code": "server_error", "status_code": 500}}),
        json!({"error": "a string"}),
        json!({}),
        json!([1]),
        json!("text"),
        Value::Null,
    ]
}

#[test]
fn all_small_results_end_as_in_the_model() {
    let bodies = bodies();
    let text = |text: String| json!({"type": "text", "text": text});
    let mut contents = vec![json!([]), json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}])];
    for body in &bodies {
        contents.push(json!([text(body.to_string())]));
        contents.push(json!([text(format!("Error executing tool execute_decision: {body}"))]));
        contents.push(json!([text("prose {".to_owned()), text(body.to_string())]));
        contents.push(json!([text(bodies[0].to_string()), text(body.to_string())]));
    }
    let mut cases = 0;
    for content in &contents {
        for structured in bodies.iter().map(Some).chain([None]) {
            for is_error in [None, Some(true), Some(false)] {
                let mut result = json!({"content": content});
                if let Some(structured) = structured {
                    result["structuredContent"] = structured.clone();
                }
                if let Some(is_error) = is_error {
                    result["isError"] = is_error.into();
                }
                compare(&result);
                cases += 1;
            }
        }
    }
    assert_eq!(cases, (2 + 4 * 21) * 22 * 3);
}
