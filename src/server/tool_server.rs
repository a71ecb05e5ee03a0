//! The server and its settings.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use rmcp::model::Implementation;
use tokio::sync::watch;

use super::OnDenial;
use crate::{ToolNames, Toolset};

/// An rmcp server over a governed stack. See the [module docs](super) for an example.
///
/// **The stack must be governed**: nothing is added to it. Every request goes through a clone of the stack.
#[derive(Clone)]
#[must_use = "a server does nothing until it is served"]
pub struct ToolServer<S> {
    pub(super) tools: Toolset<S>,
    pub(super) names: ToolNames,
    pub(super) implementation: Implementation,
    pub(super) instructions: Option<String>,
    pub(super) on_denial: OnDenial,
    pub(super) merges_pages: bool,
    pub(super) list_changes: Option<watch::Receiver<u64>>,
    pub(super) tells: Tells,
    #[cfg(feature = "client")]
    pub(super) passed: super::pass_through::Passed,
}

/// Whether this session is told of changes already. A clone serves another one.
#[derive(Debug, Default)]
pub(super) struct Tells(AtomicBool);

impl Tells {
    pub(super) fn already(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }
}

impl Clone for Tells {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<S> ToolServer<S> {
    /// Serves `stack`.
    pub fn new(stack: S) -> Self {
        Self {
            tools: Toolset::from_governed_stack(stack),
            names: ToolNames::bare(),
            implementation: Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            instructions: None,
            on_denial: OnDenial::default(),
            merges_pages: true,
            list_changes: None,
            tells: Tells::default(),
            #[cfg(feature = "client")]
            passed: super::pass_through::Passed::default(),
        }
    }

    /// Sets how the stack spells the tools' names, as a client of this server sees them.
    pub fn tool_names(mut self, names: ToolNames) -> Self {
        self.tools = self.tools.tool_names(names.clone());
        self.names = names;
        self
    }

    /// Sets what the server calls itself.
    pub fn implementation(mut self, implementation: Implementation) -> Self {
        self.implementation = implementation;
        self
    }

    /// Sets what clients are told about using the server. The engine's own instructions are never passed on: they may
    /// speak of tools that a profile excludes.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the form in which a governed failure reaches the client; a JSON-RPC error unless set.
    pub const fn on_denial(mut self, on_denial: OnDenial) -> Self {
        self.on_denial = on_denial;
        self
    }

    /// Sets whether all pages of a list are read and answered as one; they are unless this is set to false.
    pub const fn merge_pages(mut self, merge: bool) -> Self {
        self.merges_pages = merge;
        self
    }

    /// Tells clients that the list has changed whenever the value in `changes` does.
    ///
    /// `client::Connections::watch_list_changes` gives such a receiver, for what the engine tells.
    pub fn list_changes(mut self, changes: watch::Receiver<u64>) -> Self {
        self.list_changes = Some(changes);
        self
    }

    /// Passes the methods that `methods` names through to `engine`, ungoverned, whoever asks: with the token of `engine`,
    /// or without one if it has one per caller.
    ///
    /// Of what completion offers, values that name a tool outside the caller's list, or an operator's switch, are left
    /// out. Prompts and resources pass unread.
    #[cfg(feature = "client")]
    pub fn pass_through(
        mut self,
        engine: impl Into<crate::client::Connections>,
        methods: impl IntoIterator<Item = super::PassThrough>,
    ) -> Self {
        self.passed = super::pass_through::Passed::new(engine.into(), methods);
        self
    }
}

impl<S> fmt::Debug for ToolServer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer")
            .field("implementation", &self.implementation.name)
            .field("on_denial", &self.on_denial)
            .finish_non_exhaustive()
    }
}
