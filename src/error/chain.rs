//! The errors under an error, through the wrappers that hide one.

use std::{error, io, iter, sync::Arc};

use rmcp::model::ErrorData;

use super::Error;

/// Links that are followed at the most: a `source()` may lead in a circle.
const LIMIT: usize = 128;

type Link<'a> = &'a (dyn error::Error + 'static);

/// `error` and what is under it.
pub(crate) fn links(error: Link<'_>) -> impl Iterator<Item = Link<'_>> {
    iter::successors(Some(error), |error| next(*error)).take(LIMIT)
}

/// What is under `error`. An `Arc`, a `Box` and an `io::Error` pass over what they hold, and name its source instead.
fn next(error: Link<'_>) -> Option<Link<'_>> {
    if let Some(shared) = error.downcast_ref::<Arc<Error>>() {
        return Some(&**shared);
    }
    if let Some(boxed) = error.downcast_ref::<Box<Error>>() {
        return Some(&**boxed);
    }
    if let Some(shared) = error.downcast_ref::<Arc<ErrorData>>() {
        return Some(&**shared);
    }
    if let Some(boxed) = error.downcast_ref::<Box<ErrorData>>() {
        return Some(&**boxed);
    }
    if let Some(held) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return Some(held);
    }
    // rmcp's client errors show the engine's error and don't name it as their source.
    #[cfg(any(feature = "client", feature = "stub"))]
    if let Some(rmcp::ServiceError::McpError(data)) = error.downcast_ref() {
        return Some(data);
    }
    error.source()
}
