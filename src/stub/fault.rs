//! What can go wrong on purpose.

use serde_json::{Value, json};

/// A way in which the engine fails, every time. Those that fail calls list tools as ever, and the other way round.
///
/// Where the tool has run although the caller can't know it, the fault is the worst case: what a caller must call an
/// unknown outcome. [`StubEngine::executed`](super::StubEngine::executed) tells which it was.
///
/// A slow engine, one that lists in pages and one that wants a token are no faults but settings of the
/// [builder](super::StubEngineBuilder).
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
    /// The call is answered with HTTP 401, before the tool runs. The handshake and lists are not.
    Unauthorized,
    /// The tool runs, and the answer is the handle of a task, which nobody asked for.
    TaskHandle,
    /// The tool runs, and the answer asks for input.
    InputRequired,
    /// The tool runs, and the content of the result is of a type that the protocol does not have.
    UnknownContent,
    /// The tool runs, and its answer has one more member, which is two mebibytes long.
    HugeText,
    /// Lists begin with an empty page, whose cursor leads to the tools.
    EmptyPage,
    /// Every page of a list is empty and has a cursor that leads to another one, a new one each time.
    EndlessCursors,
    /// Lists name every tool twice, the second time with another description.
    DuplicateNames,
    /// Lists hold one tool, the first, whose schema is no object.
    MalformedTool,
}

const HUGE: usize = 2 * 1024 * 1024;

impl Fault {
    /// Whether the message leaves as rmcp's types could not write it, or would not for this caller.
    pub(super) const fn distorts(self) -> bool {
        matches!(
            self,
            Self::TaskHandle | Self::InputRequired | Self::UnknownContent | Self::HugeText | Self::MalformedTool
        )
    }

    /// Makes of the answer to a list or a call what this fault is about. Other answers stay as they are.
    pub(super) fn distort(self, message: &mut Value) {
        let Some(result) = message.get_mut("result") else { return };
        if self == Self::MalformedTool {
            if let Some(tool) = result.get_mut("tools").and_then(|tools| tools.get_mut(0)) {
                tool["inputSchema"] = json!(7);
            }
            return;
        }
        let Some(content) = result.get_mut("content") else { return };
        match self {
            Self::UnknownContent => content[0]["type"] = json!("hologram"),
            Self::HugeText => {
                if let Some(Value::String(text)) = content[0].get_mut("text") {
                    *text = text.replacen('{', &format!("{{\"padding\":\"{}\",", "x".repeat(HUGE)), 1);
                }
            }
            Self::TaskHandle => {
                *result = json!({
                    "resultType": "task",
                    "taskId": "task-1",
                    "status": "working",
                    "createdAt": "2026-11-30T00:00:00Z",
                    "lastUpdatedAt": "2026-11-30T00:00:00Z",
                    "ttlMs": null,
                });
            }
            Self::InputRequired => *result = json!({"resultType": "input_required", "requestState": "state-1"}),
            _ => {}
        }
    }
}
