//! The engine's book of decisions, and the gates before it.

use std::collections::HashMap;

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Gate, NEVER_MODEL_FACING};

use super::{record::Execution, wire::Denial};

const FORCE: &str = NEVER_MODEL_FACING[0];
const OVERRIDE_SAFETY: &str = NEVER_MODEL_FACING[1];

/// What the receipts of the real server were recorded with; fixed, so that a run can be compared with the last one.
const EXECUTED_AT: &str = "2026-11-30T00:00:00Z";
const POLICY_SNAPSHOT: &str = "ps_1";

/// The low values of the recorded denials.
const LOW_CONFIDENCE: f64 = 0.41;
const LOW_RISK_P5: f64 = -0.42;

/// What is known of one decision.
#[derive(Clone, Copy, Debug)]
struct Decision {
    confidence: f64,
    risk_p5: f64,
    delivered: bool,
    webhook_fails: bool,
    status_missing: bool,
}

impl Decision {
    const SOUND: Self =
        Self { confidence: 0.9, risk_p5: 0.0, delivered: false, webhook_fails: false, status_missing: false };
}

/// All decisions, and the policy that the gates apply.
#[derive(Debug)]
pub(super) struct Decisions {
    known: HashMap<String, Decision>,
    min_confidence: f64,
    risk_floor: f64,
    allow_reexecution: bool,
}

impl Decisions {
    pub(super) fn new() -> Self {
        let sound = Decision::SOUND;
        let known = [
            ("decision-low-confidence", Decision { confidence: LOW_CONFIDENCE, ..sound }),
            ("decision-low-risk-floor", Decision { risk_p5: LOW_RISK_P5, ..sound }),
            ("decision-two-gates", Decision { confidence: LOW_CONFIDENCE, delivered: true, ..sound }),
            ("decision-failed-delivery", Decision { webhook_fails: true, ..sound }),
            ("decision-malformed-receipt", Decision { status_missing: true, ..sound }),
        ];
        Self {
            known: known.map(|(id, decision)| (id.to_owned(), decision)).into(),
            min_confidence: 0.6,
            risk_floor: 0.25,
            allow_reexecution: false,
        }
    }

    /// Logs a decision under an id that its action gives. One that is known already stays as it is.
    pub(super) fn log(&mut self, chosen_action: &str, confidence: f64) -> String {
        let id = format!("decision-{chosen_action}");
        self.known.entry(id.clone()).or_insert(Decision { confidence, ..Decision::SOUND });
        id
    }

    /// Changes what the arguments name, and tells the whole policy.
    pub(super) fn update_policy(&mut self, arguments: &JsonObject) -> Value {
        let number = |name, old| arguments.get(name).and_then(Value::as_f64).unwrap_or(old);
        self.min_confidence = number("min_confidence", self.min_confidence);
        self.risk_floor = number("risk_floor", self.risk_floor);
        self.allow_reexecution =
            arguments.get("allow_reexecution").and_then(Value::as_bool).unwrap_or(self.allow_reexecution);
        json!({
            "min_confidence": self.min_confidence,
            "risk_floor": self.risk_floor,
            "allow_reexecution": self.allow_reexecution,
            "policy_snapshot_id": POLICY_SNAPSHOT,
        })
    }

    /// Runs a decision, unless a gate objects.
    pub(super) fn execute(&mut self, arguments: &JsonObject) -> Result<(Receipt, Execution), Denial> {
        let text = |name| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (decision_id, webhook_url) = (text("decision_id"), text("webhook_url"));
        let (forced, safety_overridden) = (flag(arguments, FORCE), flag(arguments, OVERRIDE_SAFETY));

        let decision = self.known.get(&decision_id).copied().unwrap_or(Decision::SOUND);
        if decision.delivered && !self.allow_reexecution && !forced {
            return Err(Denial::new(
                &Gate::Idempotency,
                format!("decision {decision_id} has already been delivered"),
                format!("Pass {FORCE}=true to override the idempotency gate for one re-execution."),
            ));
        }
        if !safety_overridden {
            self.ask_safety_gates(decision)?;
        }

        let delivered = !decision.webhook_fails;
        self.known.insert(decision_id.clone(), Decision { delivered, ..decision });
        let status = if delivered { "delivered" } else { "failed" };
        let receipt = Receipt {
            decision_id: decision_id.clone(),
            webhook_url: webhook_url.clone(),
            execution_status: (!decision.status_missing).then_some(status),
            response_code: if delivered { 200 } else { 500 },
            executed_at: EXECUTED_AT,
            policy_snapshot_id: POLICY_SNAPSHOT,
            schema_snapshot_id: "ss_1",
            manifest_version: "1",
            payload_summary: json!({"bytes": 10}),
            safety_overridden,
        };
        Ok((receipt, Execution { decision_id, webhook_url, forced, safety_overridden }))
    }

    fn ask_safety_gates(&self, decision: Decision) -> Result<(), Denial> {
        let (confidence, min_confidence) = (decision.confidence, self.min_confidence);
        let (risk_p5, floor) = (decision.risk_p5, -self.risk_floor);
        let hint = || format!("Pass {OVERRIDE_SAFETY}=true to bypass.");
        if confidence < min_confidence {
            let message = format!("decision confidence {confidence} is below policy.min_confidence {min_confidence}");
            return Err(Denial::new(&Gate::Confidence, message, hint()));
        }
        if risk_p5 < floor {
            let message = format!("risk_p5 {risk_p5} is below -policy.risk_floor {floor}");
            return Err(Denial::new(&Gate::RiskFloor, message, hint()));
        }
        Ok(())
    }
}

impl Denial {
    fn new(gate: &Gate, message: String, override_hint: String) -> Self {
        Self { code: format!("execution_blocked_{gate}"), gate: gate.to_string(), message, override_hint }
    }
}

/// A receipt, with its fields in the order in which the real server writes them.
#[derive(Debug, Serialize)]
pub(super) struct Receipt {
    decision_id: String,
    webhook_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_status: Option<&'static str>,
    response_code: u16,
    executed_at: &'static str,
    policy_snapshot_id: &'static str,
    schema_snapshot_id: &'static str,
    manifest_version: &'static str,
    payload_summary: Value,
    safety_overridden: bool,
}

fn flag(arguments: &JsonObject, name: &str) -> bool {
    arguments.get(name).and_then(Value::as_bool).unwrap_or_default()
}
