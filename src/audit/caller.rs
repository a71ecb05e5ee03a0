//! Who asks.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// Who makes a request. Whatever authenticates callers puts one into the request's extensions.
///
/// It is recorded as it is, so make it a name or an id, and no credential.
///
/// ```
/// # use tower_algenta::{ToolRequest, audit::Caller};
/// let mut request = ToolRequest::list();
/// request.extensions_mut().insert(Caller::new("agent-7"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller(Arc<str>);

impl Caller {
    /// A caller of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The caller's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for Caller {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
