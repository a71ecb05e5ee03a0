//! What an engine could answer an execution with.

use serde_json::{Value, json};

use crate::random::Random;

/// Random answers to an execution of `d` to `w`, and arguments that they may quote.
pub(super) struct Answers(pub(super) Random);

impl Answers {
    pub(super) fn receipt(&mut self) -> Value {
        let mut receipt = json!({
            "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"
        });
        for _ in 0..self.0.below(3) {
            let (field, values) = [
                ("decision_id", json!(["d2", null, "D", "d"])),
                ("webhook_url", json!(["w/", null, "w"])),
                ("execution_status", json!(["failed", "delivered", "pending", "Delivered", true, null])),
                ("executed_at", json!(["then", null, 5])),
                ("response_code", json!([200, null, true, "200", 70000, -1, 200.5])),
                ("safety_overridden", json!([true, false, null, "false"])),
                ("manifest_version", json!(["1", 3, null, []])),
                ("policy_snapshot_id", json!(["p", null, 1])),
                ("schema_snapshot_id", json!(["s", null, 1])),
                ("payload_summary", json!([{"error": 1}, {"gate": "confidence"}, null])),
                ("error", json!(["e", {"status_code": 404}, null, false, {}])),
                ("gate", json!(["confidence", null])),
                ("status_code", json!([409, 200, "409", "ok", 500])),
                ("result", json!([{}])),
                ("region", json!(["eu", {"code": "execution_blocked_quota"}])),
            ][self.0.below(15)]
            .clone();
            let values = values.as_array().unwrap();
            receipt[field] = values[self.0.below(values.len())].clone();
        }
        if self.0.one_in(8) {
            let field = self.0.pick(&["decision_id", "webhook_url", "execution_status", "executed_at"]);
            receipt.as_object_mut().unwrap().remove(field);
        }
        receipt
    }

    fn denial(&mut self) -> Value {
        let gate = self.0.pick(&["idempotency", "confidence", "risk_floor", "quota"]);
        let mut body = json!({
            "code": format!("execution_blocked_{gate}"), "gate": gate, "message": "m", "override_hint": "Set force=true"
        });
        match self.0.below(12) {
            0 => body["gate"] = Value::Null,
            1 => body["code"] = Value::Null,
            2 => body["code"] = json!("execution_blocked_"),
            3 => body["gate"] = json!("Confidence"),
            4 => body["gate"] = json!(5),
            5 => body["code"] = json!("rate_limit_exceeded"),
            9 => {
                body["code"] = json!("EXECUTION_BLOCKED_CONFIDENCE");
                body["gate"] = Value::Null;
            }
            6 => body["status_code"] = json!(409),
            7 => {
                body.as_object_mut().unwrap().remove("gate");
            }
            8 => {
                body.as_object_mut().unwrap().remove("code");
            }
            _ => {}
        }
        self.wrapped(body)
    }

    /// As REST bodies and envelopes nest.
    fn wrapped(&mut self, body: Value) -> Value {
        match self.0.below(12) {
            0 => body,
            1 => json!({"detail": body}),
            2 => json!({"detail": {"error": body}}),
            3 => json!({"error": body, "request_id": "r"}),
            4 => json!({"data": body}),
            5 => json!({"error": {"detail": {"error": body}}}),
            6 => json!({"error": {"error": body, "status_code": 400}}),
            7 => json!({"error": {"detail": body, "status_code": 400}}),
            _ => json!({"error": body}),
        }
    }

    pub(super) fn error(&mut self) -> Value {
        let statuses = json!([400, 403, 404, 429, 408, 409, 425, 499, 500, 503, "404", 404.5, 200, null]);
        let common = if self.0.one_in(2) { 4 } else { 14 };
        let status = statuses[self.0.below(common)].clone();
        let message = match self.0.below(4) {
            0 => format!("API error 409: {}", self.denial()),
            1 => format!("echo {} and {}", self.denial(), self.receipt()),
            2 => "{".to_owned(),
            _ => "m".to_owned(),
        };
        let code = self.0.pick(&["not_found", "invalid_arguments", "server_error", "", "execution_blocked_confidence"]);
        match self.0.below(8) {
            0 => json!({"error": "a string"}),
            1 => json!({"Error": {"status_code": status}}),
            2 => json!({"detail": {"error": {"message": message, "status_code": status}}}),
            3 => json!({"error": {"status_code": status}, "request_id": "r"}),
            4 => json!({"error": null}),
            _ => json!({"error": {"code": code, "message": message, "status_code": status}}),
        }
    }

    pub(super) fn body(&mut self) -> Value {
        let body = match self.0.below(10) {
            0..=3 => self.receipt(),
            4 | 5 => self.denial(),
            6 | 7 => self.error(),
            8 => json!({}),
            _ => {
                let items = json!([self.denial(), self.receipt().to_string()]);
                [json!([1]), json!("s"), json!(5), Value::Null, items][self.0.below(5)].clone()
            }
        };
        match self.0.below(10) {
            0 => json!({"result": body}),
            1 => json!({"result": body.to_string()}),
            2 => json!({"result": body, "x": 1}),
            _ => body,
        }
    }

    pub(super) fn text(&mut self, body: &Value) -> String {
        match self.0.below(8) {
            0 => format!("Error executing tool execute_decision: {body}"),
            1 => format!("Error calling tool {{x}}: {body} tail"),
            2 => format!("{{\"trace\": [1, {body}"),
            3 => format!("{body:#}\n"),
            4 => self.0.pick(&["prose", "", "{", "{}", "{\"a\":", "[1]", "null", "\"s\"", "\u{e9}{\"a"]).to_owned(),
            _ => body.to_string(),
        }
    }

    /// Arguments that hold these bodies, one way or another.
    pub(super) fn arguments(&mut self, written: &[Value]) -> Value {
        let mut arguments = json!({});
        for (index, body) in written.iter().enumerate() {
            let held = match self.0.below(8) {
                0 => body.clone(),
                1 => json!(body.to_string()),
                2 => json!(format!("{body:#}")),
                3 => json!(format!("as I said: {body}, so be it")),
                4 => json!({"a": [body]}),
                5 => Value::String(json!({"a": {"b": body}}).to_string()),
                6 => Value::Object([(body.to_string(), json!(1))].into_iter().collect()),
                _ => json!({"a": "nothing of it"}),
            };
            let name = if index == 0 && held.is_object() { "metadata" } else { "surprise" };
            arguments[name] = held;
        }
        arguments
    }

    /// Prose with a body in it, in this form or that.
    pub(super) fn quote(&mut self, body: &Value) -> String {
        match self.0.below(6) {
            0 => format!("Read timed out while delivering {body}, sorry"),
            1 => format!("Read timed out while delivering {body:#}"),
            2 => json!({"error": {"status_code": 409, "message": format!("API error 409: {body}")}}).to_string(),
            3 => json!({"error": {"status_code": 500, "message": format!("API error 500: {body}")}}).to_string(),
            4 => format!("delivered {body} and {}", self.body()),
            _ => body.to_string(),
        }
    }

    pub(super) fn result(&mut self) -> Value {
        let body = self.body();
        let mut content = Vec::new();
        for _ in 0..[1, 1, 1, 2, 0, 3][self.0.below(6)] {
            let body = if self.0.one_in(4) { self.body() } else { body.clone() };
            content.push(match self.0.below(12) {
                0 => json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
                1 => json!({"type": "resource", "resource": {"uri": "file:///x", "text": self.text(&body)}}),
                _ => json!({"type": "text", "text": self.text(&body)}),
            });
        }
        let mut result = json!({"content": content});
        match self.0.below(4) {
            0 => result["isError"] = json!(true),
            1 => result["isError"] = json!(false),
            _ => {}
        }
        match self.0.below(4) {
            0 => result["structuredContent"] = body,
            1 if self.0.one_in(2) => result["structuredContent"] = self.body(),
            _ => {}
        }
        result
    }
}
