//! What can go wrong on purpose.

/// A way in which the engine fails every `tools/call`, while it lists tools as ever.
///
/// Where the tool has run although the caller can't know it, the fault is the worst case: what a caller must call an
/// unknown outcome. [`StubEngine::executed`](super::StubEngine::executed) tells which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// The tool runs, and the result is empty: no content, no error.
    EmptyResult,
    /// The tool runs, and the answer is the real server's 503 `mcp_upstream_unavailable`.
    ServerError,
    /// The tool runs, and no answer comes until the caller gives up.
    Hang,
    /// The connection closes before the tool runs.
    DropBefore,
    /// The tool runs, and the connection closes in place of an answer.
    DropAfter,
}
