//! The pure core of both scrubs: which names are hidden, and how they leave arguments, schemas and prose.
//!
//! Nothing here knows of tower. [`ArgumentScrub`](crate::ArgumentScrub) and [`SchemaScrub`](crate::SchemaScrub) are
//! thin layers over [`HiddenFields`]; benches, properties and fuzzers call it directly.

mod arguments;
mod names;
mod prose;
mod schema;
mod stripped;
mod text;

pub(crate) use arguments::strip_private;
pub(crate) use names::{FORCE, OVERRIDE_SAFETY, canonical, is_private, nfkc, spells};
pub(crate) use schema::discard_tool;

pub use names::{Matching, NEVER_MODEL_FACING};
pub use schema::SchemaError;
pub use stripped::Stripped;

use crate::profile::{EXECUTE_DECISION, is_contract_tool};
use names::Names;

/// What happens to a hidden name below the top level of the arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nested {
    /// As the contract has it. In the six tools without gates a nested value is data and stays
    /// (`scenario.force = 9.8` must arrive), as does everything under `execute_decision`'s `metadata`; anywhere else
    /// a hidden name goes at any depth.
    #[default]
    Contract,
    /// Hidden names go at any depth, in every tool, under `metadata` too.
    Strip,
    /// Only the top level is scrubbed, in every tool.
    Keep,
    /// A hidden name below the top level refuses the call, in every tool.
    Refuse,
}

/// What happens to a call that carries a hidden name where the rules look for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnHidden {
    /// The name is removed and the call goes on.
    #[default]
    Strip,
    /// The call is refused.
    Refuse,
}

/// What happens to lines of a description that use a hidden field as an identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prose {
    /// They are dropped.
    #[default]
    Redact,
    /// They stay. Harmless to the other layers, which don't depend on what a model has read.
    Keep,
}

/// The fields that no model may see or set, and how they are recognised and removed.
///
/// The two of the contract ([`NEVER_MODEL_FACING`]) are always among them; more can be added, none taken away.
#[derive(Clone, Debug, Default)]
pub struct HiddenFields {
    names: Names,
    nested: Nested,
    on_hidden: OnHidden,
    prose: Prose,
}

impl HiddenFields {
    /// The fields of the contract, with the default rules.
    #[must_use]
    pub const fn new() -> Self {
        Self { names: Names::new(), nested: Nested::Contract, on_hidden: OnHidden::Strip, prose: Prose::Redact }
    }

    /// Hides `name` as well.
    #[must_use]
    pub fn with_field(mut self, name: &str) -> Self {
        self.names.add(name);
        self
    }

    /// Sets how keys are compared with the hidden names.
    #[must_use]
    pub const fn matching(mut self, matching: Matching) -> Self {
        self.names.matching = matching;
        self
    }

    /// Sets what happens to a hidden name below the top level.
    #[must_use]
    pub const fn nested(mut self, nested: Nested) -> Self {
        self.nested = nested;
        self
    }

    /// Sets what happens to a call that carries a hidden name.
    #[must_use]
    pub const fn on_hidden(mut self, on_hidden: OnHidden) -> Self {
        self.on_hidden = on_hidden;
        self
    }

    /// Sets what happens to descriptions that speak of a hidden field.
    #[must_use]
    pub const fn prose(mut self, prose: Prose) -> Self {
        self.prose = prose;
        self
    }

    /// The hidden names, those of the contract first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter()
    }

    /// Whether `key` names a hidden field.
    ///
    /// ```
    /// # use tower_algenta::HiddenFields;
    /// let fields = HiddenFields::new();
    /// assert!(fields.hides("overrideSafety"));
    /// assert!(!fields.hides("workforce"));
    /// ```
    #[inline]
    #[must_use]
    pub fn hides(&self, key: &str) -> bool {
        self.names.hides(key)
    }

    /// Where in a call of `tool`, a logical name, hidden names are looked for. Both scrubs ask here.
    pub(crate) fn scope(&self, tool: &str) -> Scope {
        match self.nested {
            Nested::Keep => Scope::TopLevel,
            Nested::Contract if tool == EXECUTE_DECISION => Scope::ExceptMetadata,
            Nested::Contract if is_contract_tool(tool) => Scope::TopLevel,
            Nested::Contract | Nested::Strip | Nested::Refuse => Scope::Everywhere,
        }
    }
}

/// How far down a hidden name is a hidden name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In the arguments' own keys; what they hold is data.
    TopLevel,
    /// At any depth, but for what stands under the top-level argument `metadata`.
    ExceptMetadata,
    /// At any depth.
    Everywhere,
}
