//! Denials: a policy gate said no.

mod gate;

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::model::{CallToolResult, JsonObject};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use gate::Gate;
pub(crate) use gate::{Overrides, code_of};

use crate::{
    ExecuteDecision,
    outcome::{self, Item, Kept, Object},
};

const CODE_PREFIX: &str = "execution_blocked_";

/// What the engine wrote when a gate blocked an execution.
///
/// `Debug` shows the gate alone: the texts in it are the engine's, and a model-chosen `decision_id` can forge them.
#[derive(Clone, PartialEq)]
pub struct ExecutionBlocked {
    gate: Gate,
    body: Kept,
}

/// The value is no denial, or one that is not clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotADenial {
    /// It has neither a gate nor a code of `execution_blocked_<gate>`.
    Absent,
    /// Its code and its gate disagree, or it holds two different denials.
    Ambiguous,
    /// It is longer than 1 MiB, nests more than 128 containers or costs too much to read.
    Unreadable,
}

impl fmt::Display for NotADenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "no denial",
            Self::Ambiguous => "a denial that is not clear",
            Self::Unreadable => "too large or too deep to read",
        })
    }
}

impl std::error::Error for NotADenial {}

impl ExecutionBlocked {
    /// Reads a denial from a value in any of the recorded shapes: the body itself, or under `error` or `detail`.
    ///
    /// ```
    /// # use tower_algenta::{ExecutionBlocked, Gate};
    /// # use serde_json::json;
    /// let body = json!({"detail": {"error": {"code": "execution_blocked_confidence", "gate": "confidence"}}});
    /// assert_eq!(*ExecutionBlocked::from_value(&body)?.gate(), Gate::Confidence);
    /// # Ok::<_, tower_algenta::NotADenial>(())
    /// ```
    pub fn from_value(value: &Value) -> Result<Self, NotADenial> {
        outcome::denial_in_value(value)
    }

    /// Reads the denial out of a result, whatever its `isError` says: for someone who reads a transcript.
    pub fn from_result(result: &CallToolResult) -> Result<Self, NotADenial> {
        outcome::denial_in_result(result)
    }

    pub(crate) const fn new(gate: Gate, body: Kept) -> Self {
        Self { gate, body }
    }

    /// The gate that blocked the execution.
    #[must_use]
    pub const fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The error code: `execution_blocked_` and the gate's name.
    pub fn code(&self) -> Cow<'_, str> {
        match self.untrusted_body().get("code").and_then(Value::as_str) {
            Some(code) => Cow::Borrowed(code),
            None => Cow::Owned([CODE_PREFIX, self.gate.as_str()].concat()),
        }
    }

    /// The engine's message. **Untrusted**: never show it to a model, and to a human only as a quotation.
    pub fn untrusted_message(&self) -> Option<&str> {
        self.untrusted_body().get("message").and_then(Value::as_str)
    }

    /// The engine's hint for an operator. **Untrusted**: never show it to a model.
    pub fn untrusted_override_hint(&self) -> Option<&str> {
        self.untrusted_body().get("override_hint").and_then(Value::as_str)
    }

    /// The body as the engine wrote it, unknown fields included. **Untrusted**.
    #[must_use]
    pub fn untrusted_body(&self) -> &JsonObject {
        self.body.members()
    }

    /// Reads the body into a type of the caller's own, unknown fields included.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(Value::Object(self.untrusted_body().clone()))
    }
}

impl fmt::Debug for ExecutionBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutionBlocked").field("gate", &self.gate).finish_non_exhaustive()
    }
}

/// The gate that `body` itself names; `None` if it has neither a gate nor a denial's code.
pub(crate) fn gate_in(body: Object<'_>) -> Option<Result<Gate, NotADenial>> {
    let set = |name| body.get(name).filter(|item| !item.is_null());
    let (code, gate) = (set("code"), set("gate"));
    if code.is_none() && gate.is_none() {
        return None;
    }
    let written = code.and_then(Item::as_str);
    let named_by_code =
        written.as_deref().and_then(|code| code.strip_prefix(CODE_PREFIX)).filter(|gate| !gate.is_empty());
    Some(match (gate, named_by_code) {
        (None, Some(named)) => Ok(Gate::from(named)),
        // Spelled otherwise it is still a denial's, and then nothing about it is sure.
        (None, None) if written.as_deref().is_some_and(is_denial_code) => Err(NotADenial::Ambiguous),
        (None, None) => return None,
        (Some(gate), named) => match gate.as_str() {
            Some(gate) if !gate.is_empty() && (code.is_none() || named == Some(&*gate)) => Ok(Gate::from(&*gate)),
            _ => Err(NotADenial::Ambiguous),
        },
    })
}

/// Whether `code` starts like that of a denial, whatever its case.
pub(crate) fn is_denial_code(code: &str) -> bool {
    let start = code.as_bytes().get(..CODE_PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(CODE_PREFIX.as_bytes()))
}

/// A denied execution: what blocked it, and the call, so that a human can release that very call.
///
/// `Display` and `Debug` name the gate alone. Clones share one flag: whichever is overridden first uses up all of them.
#[derive(Clone)]
pub struct Denial {
    blocked: ExecutionBlocked,
    decision: ExecuteDecision,
    wire_name: Cow<'static, str>,
    granted: Overrides,
    is_forgeable: bool,
    used: Arc<AtomicBool>,
}

impl Denial {
    pub(crate) fn new(
        blocked: ExecutionBlocked,
        decision: ExecuteDecision,
        wire_name: Cow<'static, str>,
        granted: Overrides,
    ) -> Self {
        Self { blocked, decision, wire_name, granted, is_forgeable: false, used: Arc::default() }
    }

    /// Says that it may have been read from a quotation of the call, which may have run.
    pub(crate) const fn forgeable(mut self, is_forgeable: bool) -> Self {
        self.is_forgeable = is_forgeable;
        self
    }

    /// Whether an operator can override it, once.
    ///
    /// Not where the contract has no override for its gate, and not where the arguments of the call could be what it was
    /// read from: an engine that executed the decision, failed after that and quoted them would read the same. Such a
    /// decision has to be looked at where it is kept.
    #[must_use]
    pub fn can_be_overridden(&self) -> bool {
        !self.is_forgeable && !self.is_used() && self.gate().allowed_override().is_some()
    }

    pub(crate) const fn is_forgeable(&self) -> bool {
        self.is_forgeable
    }

    /// The gate that blocked the execution.
    #[must_use]
    pub const fn gate(&self) -> &Gate {
        self.blocked.gate()
    }

    /// What the engine wrote.
    #[must_use]
    pub const fn blocked(&self) -> &ExecutionBlocked {
        &self.blocked
    }

    /// The call that was denied.
    #[must_use]
    pub const fn decision(&self) -> &ExecuteDecision {
        &self.decision
    }

    /// Whether this denial, or a clone of it, was overridden.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// Marks the denial and its clones as used; `false` if one of them was.
    pub(crate) fn use_up(&self) -> bool {
        !self.used.swap(true, Ordering::AcqRel)
    }

    /// Takes the mark back: the repeat never left.
    pub(crate) fn release(&self) {
        self.used.store(false, Ordering::Release);
    }

    pub(crate) const fn granted(&self) -> Overrides {
        self.granted
    }

    pub(crate) const fn wire_name(&self) -> &Cow<'static, str> {
        &self.wire_name
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gate().known() {
            Some(gate) => write!(f, "execution blocked by the {gate} gate"),
            None => f.write_str("execution blocked by a gate that the contract does not name"),
        }
    }
}

impl fmt::Debug for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denial").field("gate", self.gate()).finish_non_exhaustive()
    }
}

impl std::error::Error for Denial {}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::object;

    fn gate(body: &JsonObject) -> Option<Result<String, NotADenial>> {
        gate_in(Object::Parsed(body)).map(|read| read.map(|gate| gate.as_str().to_owned()))
    }

    #[test]
    fn code_and_gate_have_to_agree() {
        let read = |gate: &str| Some(Ok(gate.to_owned()));
        assert_eq!(gate(&object!({"code": "execution_blocked_confidence", "gate": "confidence"})), read("confidence"));
        assert_eq!(gate(&object!({"code": "execution_blocked_quota"})), read("quota"));
        assert_eq!(gate(&object!({"code": "execution_blocked_quota", "gate": null})), read("quota"));
        assert_eq!(gate(&object!({"gate": "quota"})), read("quota"));
        for body in [
            object!({"code": "execution_blocked_confidence", "gate": "idempotency"}),
            object!({"code": "rate_limit_exceeded", "gate": "confidence"}),
            object!({"code": 5, "gate": "confidence"}),
            object!({"code": "execution_blocked_", "gate": ""}),
            object!({"gate": ""}),
            object!({"code": "execution_blocked_"}),
            object!({"code": "EXECUTION_BLOCKED_CONFIDENCE"}),
            object!({"code": "execution_blocked_confidence", "gate": 5}),
        ] {
            assert_eq!(gate(&body), Some(Err(NotADenial::Ambiguous)));
        }
        assert_eq!(gate(&object!({"code": "not_found"})), None);
    }

    #[test]
    fn clones_share_their_one_use() {
        let blocked = ExecutionBlocked::new(Gate::Confidence, Kept::parsed(object!({"gate": "confidence"})));
        let decision = ExecuteDecision::new("d", "w").unwrap();
        let denial = Denial::new(blocked, decision, "execute_decision".into(), Overrides::NONE);
        let clone = denial.clone();
        assert!(denial.use_up());
        assert!(clone.is_used());
        assert!(!clone.use_up());
    }
}
