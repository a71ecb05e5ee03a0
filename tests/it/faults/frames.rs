//! Event streams that are not what the protocol says.

use std::{iter::repeat_n, time::Duration};

use serde_json::{Value, json};
use tower_algenta::{
    Error,
    client::{CallError, CallErrorKind},
};

use super::{ByHand, Outcome, SOON, answer, denial_of, execute, receipt, receipt_of, stream};
use crate::{client::scripted::Request, real_servers::Generation};

const MIB: usize = 1024 * 1024;

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// What the stream holds, and how the execution must end.
type Frames = (&'static str, fn(&Request) -> Vec<u8>, Outcome);

/// After each the stream ends, and no call is left to wait for its timeout.
const FRAMES: &[Frames] = &[
    ("an event", |call| event(&receipt(call)).into(), Outcome::Receipt),
    ("nothing", |_| Vec::new(), Outcome::Unknown),
    ("an event without data", |_| b"event: message\n\n".to_vec(), Outcome::Unknown),
    ("data that is empty", |_| b"data:\n\n".to_vec(), Outcome::Unknown),
    ("an event without its end", |call| format!("data: {}\n", receipt(call)).into(), Outcome::Unknown),
    ("half of the JSON", |call| format!("data: {}\n\n", &receipt(call).to_string()[..99]).into(), Outcome::Unknown),
    ("JSON that is no message", |_| b"data: {\"a\": 1}\n\n".to_vec(), Outcome::Unknown),
    ("another call's id", |_| event(&receipt_of(&json!(70_000), "decision-7")).into(), Outcome::Unknown),
    (
        "an error without an id",
        |_| event(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "m"}})).into(),
        Outcome::Unknown,
    ),
    (
        "two JSON texts in one event",
        |call| format!("data: {}\ndata: {}\n\n", receipt(call), receipt(call)).into(),
        Outcome::Unknown,
    ),
    (
        "JSON over two lines",
        |call| {
            let answer = receipt(call).to_string().replacen(',', ",\ndata: ", 1);
            format!("data: {answer}\n\n").into()
        },
        Outcome::Receipt,
    ),
    (
        "a receipt and a denial",
        |call| [event(&receipt(call)), event(&denial_of(&call.body["id"]))].concat().into(),
        Outcome::Receipt,
    ),
    (
        "a denial and a receipt",
        |call| [event(&denial_of(&call.body["id"])), event(&receipt(call))].concat().into(),
        Outcome::Denied,
    ),
    ("another decision's receipt", |call| event(&receipt_of(&call.body["id"], "decision-8")).into(), Outcome::Failed),
    ("no receipt", |call| event(&answer(&call.body["id"], &json!({}))).into(), Outcome::Failed),
    ("a byte order mark", |call| format!("\u{feff}data: {}\n\n", receipt(call)).into(), Outcome::Receipt),
    ("CR alone", |call| format!("data: {}\r\r", receipt(call)).into(), Outcome::Receipt),
    ("CR and LF", |call| format!("data: {}\r\n\r\n", receipt(call)).into(), Outcome::Receipt),
    ("a NUL in the data", |call| format!("data: \0{}\n\n", receipt(call)).into(), Outcome::Unknown),
    ("a NUL in the id", |call| format!("id: a\0b\ndata: {}\n\n", receipt(call)).into(), Outcome::Receipt),
    ("no UTF-8", |_| b"data: \xff\xfe\n\n".to_vec(), Outcome::Unknown),
    ("an id that is no UTF-8", |call| [b"id: \xff\n", event(&receipt(call)).as_bytes()].concat(), Outcome::Unknown),
    ("an unknown field", |call| format!("fields: 1\ndata: {}\n\n", receipt(call)).into(), Outcome::Unknown),
    (
        "a field of a mebibyte",
        |call| [repeat_n(b'x', MIB).collect(), b": 1\n".to_vec(), event(&receipt(call)).into()].concat(),
        Outcome::Unknown,
    ),
    (
        "a mebibyte of comments",
        |call| [b": \n".repeat(MIB / 3), event(&receipt(call)).into()].concat(),
        Outcome::Receipt,
    ),
    ("a mebibyte of empty lines", |call| [b"\n".repeat(MIB), event(&receipt(call)).into()].concat(), Outcome::Receipt),
    (
        "thousands of events that are no JSON",
        |call| [b"data: x\n\n".repeat(20_000), event(&receipt(call)).into()].concat(),
        Outcome::Receipt,
    ),
    ("an event of another type", |call| format!("event: ping\n{}", event(&receipt(call))).into(), Outcome::Unknown),
    (
        "a time to retry past all numbers",
        |call| format!("retry: 99999999999999999999\n{}", event(&receipt(call))).into(),
        Outcome::Unknown,
    ),
    (
        "a time to retry past all times",
        |call| format!("retry: {}\n{}", u64::MAX, event(&receipt(call))).into(),
        Outcome::Receipt,
    ),
    (
        "a question of the engine's before the answer",
        |call| {
            let question = json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage",
            "params": {"messages": [], "maxTokens": 1}});
            [event(&question), event(&receipt(call))].concat().into()
        },
        Outcome::Receipt,
    ),
    (
        "notifications before the answer",
        |call| {
            let note =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
            [event(&note).repeat(100), event(&receipt(call))].concat().into()
        },
        Outcome::Receipt,
    ),
];

#[tokio::test]
async fn streams_that_end_after_something_odd() {
    for generation in Generation::BOTH {
        for (name, frames, expected) in FRAMES {
            let engine = ByHand::start(generation, SOON, move |request| {
                (request.method() == "tools/call").then(|| stream(frames(request)))
            })
            .await;
            assert_eq!(engine.execute("decision-7").await, *expected, "{name}, {generation:?}");
            assert_eq!(engine.calls(), 1, "{name}, {generation:?}");
        }
    }
}

/// What makes the client ask for the rest of a stream, and never lets it have an end.
#[tokio::test]
async fn streams_that_cannot_be_resumed() {
    let patience = Duration::from_millis(300);
    for generation in Generation::BOTH {
        for (name, frames) in [
            ("the engine knows no stream to resume", "id: e1\ndata:\n\n".to_owned()),
            ("an id that fits no header", "id: a\u{1}b\ndata:\n\n".to_owned()),
            ("an id of 64 KiB", format!("id: {}\ndata:\n\n", "x".repeat(65_536))),
            ("a time to retry past all times", format!("id: e1\nretry: {}\ndata:\n\n", u64::MAX)),
            ("a time to retry of none", "id: e1\nretry: 0\ndata:\n\n".to_owned()),
        ] {
            let engine = ByHand::start(generation, patience, move |request| {
                let resumes = request.head.contains("last-event-id:") && frames.contains("retry: 0");
                (request.method() == "tools/call" || resumes).then(|| stream(frames.clone()))
            })
            .await;
            assert_eq!(engine.execute("decision-7").await, Outcome::Unknown, "{name}, {generation:?}");
            assert_eq!(engine.calls(), 1, "{name}, {generation:?}: it asks for the rest, and does not call again");
        }
    }
}

/// A JSON-RPC answer is known by its id, by whatever way it comes. A receipt is known by its decision as well.
#[tokio::test]
async fn answers_to_two_calls_in_each_others_place() {
    for generation in Generation::BOTH {
        let first = std::sync::Arc::new(std::sync::Mutex::new(None::<Request>));
        let engine = ByHand::start(generation, Duration::from_secs(2), move |request| {
            (request.method() == "tools/call").then(|| {
                let other = first.lock().unwrap().replace(request.clone());
                match other {
                    // The receipt of the one decision for the call of the other.
                    Some(other) => {
                        let own = receipt_of(&other.body["id"], "decision-b");
                        let others = receipt_of(&request.body["id"], "decision-a");
                        stream([event(&own), event(&others)].concat())
                    }
                    None => crate::client::scripted::Reply::Silence,
                }
            })
        })
        .await;
        let (a, b) = tokio::join!(execute(&engine.tools, "decision-a"), async {
            super::eventually("the first is under way", || engine.calls() == 1).await;
            execute(&engine.tools, "decision-b").await
        });
        // A stream is read up to its first answer; the other one is never seen.
        let outcomes = (Outcome::of(&a), Outcome::of(&b));
        assert_eq!(outcomes, (Outcome::Failed, Outcome::Unknown), "{generation:?}: {a:?}, {b:?}");
        assert_eq!(engine.calls(), 2);
    }
}

#[tokio::test]
async fn other_tools_and_lists_end_in_typed_errors() {
    for generation in Generation::BOTH {
        let engine = ByHand::start(generation, SOON, |request| {
            matches!(request.method(), "tools/call" | "tools/list").then(|| stream("data: {\n\n"))
        })
        .await;
        let call = engine.tools.call("simulate", rmcp::object!({"scenario": "s"})).await.unwrap_err();
        let list = engine.tools.list().await.unwrap_err();
        for error in [call, list] {
            let Error::Upstream(inner) = &error else { panic!("{generation:?}: {error:?}") };
            let is_typed = inner.downcast_ref::<CallError>().is_some_and(|error| error.kind() == CallErrorKind::Lost)
                || inner.is::<rmcp::ErrorData>();
            assert!(is_typed && !error.is_retryable(), "{generation:?}: {error:?}");
        }
    }
}
