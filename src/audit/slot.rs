//! What `ArgumentScrub` tells a layer above it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Stripped;

/// A place in a request's extensions for what was stripped below. Without an audit there is none, and nothing is copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct StrippedSlot(Arc<Mutex<Vec<Stripped>>>);

impl StrippedSlot {
    pub(crate) fn add(&self, stripped: &Stripped) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A layer in between may repeat a request.
        if !all.contains(stripped) {
            all.push(stripped.clone());
        }
    }

    pub(super) fn all(&self) -> Vec<Stripped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
