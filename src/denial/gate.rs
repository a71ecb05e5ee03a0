//! Gates, and the operator switch that each allows: the only copy of that table.

use std::fmt;

use crate::hidden_fields::{FORCE, OVERRIDE_SAFETY};

/// The policy gate that blocked an execution.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gate {
    /// The decision was already delivered.
    Idempotency,
    /// The decision's confidence is below the policy's minimum.
    Confidence,
    /// The decision's risk is below the policy's floor.
    RiskFloor,
    /// A gate that the contract does not name. Still a denial; no override exists for it.
    Unknown(Box<str>),
}

impl Gate {
    const KNOWN: [(Self, &'static str, &'static str); 3] = [
        (Self::Idempotency, "idempotency", "execution_blocked_idempotency"),
        (Self::Confidence, "confidence", "execution_blocked_confidence"),
        (Self::RiskFloor, "risk_floor", "execution_blocked_risk_floor"),
    ];

    /// The gate's name. That of an unknown gate is the engine's text: never show it to a model.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unknown(name) => name,
            known => known.known().unwrap_or_default(),
        }
    }

    /// The gate's name if the contract has it.
    #[must_use]
    pub fn known(&self) -> Option<&'static str> {
        Self::KNOWN.iter().find(|(gate, ..)| gate == self).map(|&(_, name, _)| name)
    }

    /// The one override that the gate allows an operator.
    pub(crate) const fn allowed_override(&self) -> Option<Overrides> {
        match self {
            Self::Idempotency => Some(Overrides { force: true, override_safety: false }),
            Self::Confidence | Self::RiskFloor => Some(Overrides { force: false, override_safety: true }),
            Self::Unknown(_) => None,
        }
    }
}

/// The error code of a gate that the contract names.
pub(crate) fn code_of(gate: &str) -> &'static str {
    Gate::KNOWN.iter().find(|(_, name, _)| *name == gate).map_or("execution_blocked", |&(_, _, code)| code)
}

impl From<&str> for Gate {
    /// Reads a gate's exact name; any other is [`Gate::Unknown`].
    fn from(name: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|(_, known, _)| *known == name);
        known.map_or_else(|| Self::Unknown(name.into()), |(gate, ..)| gate)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.known().unwrap_or("unknown"))
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.known().unwrap_or("unknown"))
    }
}

/// The operator switches that humans granted for one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    force: bool,
    override_safety: bool,
}

impl Overrides {
    pub(crate) const NONE: Self = Self { force: false, override_safety: false };

    pub(crate) const fn and(self, other: Self) -> Self {
        Self { force: self.force || other.force, override_safety: self.override_safety || other.override_safety }
    }

    /// The names of the granted switches.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        [(self.force, FORCE), (self.override_safety, OVERRIDE_SAFETY)]
            .into_iter()
            .filter_map(|(granted, name)| granted.then_some(name))
    }

    /// Whether a receipt may rightly say that the safety gates were overridden.
    pub(crate) const fn overrides_safety(self) -> bool {
        self.override_safety
    }
}
