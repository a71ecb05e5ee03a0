//! Answers past the limits, and answers without an end: nobody keeps what the engine sends.

use std::time::{Duration, Instant};

use serde_json::json;
use tower_algenta::Error;

use super::{ByHand, Outcome, SOON, execute, head};
use crate::{
    client::scripted::{Reply, Request, Step},
    real_servers::Generation,
};

const MIB: usize = 1024 * 1024;
/// Of a JSON answer, and of an event.
const LIMIT: usize = 16 * MIB;
/// What sockets hold that nobody has read.
const UNREAD: usize = 12 * MIB;

/// A result of `length` bytes.
fn result(request: &Request, length: usize) -> String {
    let with = |text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"jsonrpc": "2.0", "id": request.body["id"], "result": {"resultType": "complete", "content": content}})
            .to_string()
    };
    let bare = with("x");
    bare.replacen("\"x\"", &format!("\"{}\"", "x".repeat(length + 1 - bare.len())), 1)
}

#[tokio::test]
async fn an_answer_at_the_limit_and_one_past_it() {
    for generation in Generation::BOTH {
        for (is_event, length, passes) in
            [(false, LIMIT, true), (false, LIMIT + 1, false), (true, LIMIT - 8, true), (true, LIMIT + 1, false)]
        {
            let engine = ByHand::start(generation, SOON, move |request| {
                (request.method() == "tools/call").then(|| {
                    let answer = result(request, length);
                    if is_event {
                        super::stream(format!("data: {answer}\n\n"))
                    } else {
                        Reply::new(200, "application/json", &answer)
                    }
                })
            })
            .await;
            let answer = engine.tools.call("simulate", rmcp::object!({"scenario": "s"})).await;
            assert_eq!(answer.is_ok(), passes, "{generation:?}, {is_event}, {length}");
            if let Err(error) = answer {
                assert!(matches!(error, Error::Upstream(_)), "{error:?}");
            }
            assert_eq!(engine.calls(), 1);
        }
    }
}

/// Bodies that are too large, or have no end: their name, how they begin, and what follows over and over.
fn without_an_end() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let events = |begin: &str| [head("text/event-stream", ""), begin.into()].concat();
    vec![
        ("JSON", [head("application/json", ""), b"{\"a\":\"".to_vec()].concat(), vec![b'x'; MIB]),
        ("JSON of a tebibyte", head("application/json", "content-length: 1099511627776\r\n"), vec![b' '; MIB]),
        ("white space", head("application/json", ""), vec![b' '; MIB]),
        ("a page", head("text/html", ""), vec![b'x'; MIB]),
        ("an error page", b"HTTP/1.1 500 X\r\ncontent-type: text/html\r\n\r\n".to_vec(), vec![b'x'; MIB]),
        ("a JSON error", b"HTTP/1.1 500 X\r\ncontent-type: application/json\r\n\r\n".to_vec(), vec![b'x'; MIB]),
        ("headers", b"HTTP/1.1 200 OK\r\n".to_vec(), b"x-header: x\r\n".repeat(MIB / 13)),
        ("a header", b"HTTP/1.1 200 OK\r\nx-header: ".to_vec(), vec![b'x'; MIB]),
        ("a line of an event", events("data: "), vec![b'x'; MIB]),
        ("lines of an event", events(""), b"data: x\n".repeat(MIB / 8)),
        ("a comment", events(": "), vec![b'x'; MIB]),
        ("a field's name", events(""), vec![b'x'; MIB]),
    ]
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_its_end() {
    for generation in Generation::BOTH {
        for (name, begin, more) in without_an_end() {
            let engine = ByHand::start(generation, SOON, move |request| {
                (request.method() == "tools/call")
                    .then(|| Reply::Steps(vec![Step::Bytes(begin.clone()), Step::Endless(more.clone())]))
            })
            .await;
            let begun = Instant::now();
            let error = execute(&engine.tools, "decision-7").await.unwrap_err();
            assert!(matches!(error, Error::OutcomeUnknown(_)), "{name}, {generation:?}: {error:?}");
            assert!(begun.elapsed() < SOON / 2, "{name}, {generation:?}: long before the timeout");
            let written = engine.server.written();
            assert!(written <= LIMIT + UNREAD, "{name}, {generation:?}: {} MiB were taken", written / MIB);
            assert_eq!(engine.calls(), 1, "{name}, {generation:?}");
            assert!(!error.is_retryable());
        }
    }
}

/// What is skipped has no limit but the call's time. It must not pile up.
#[cfg(target_os = "linux")]
mod skipped {
    use super::{super::memory, *};

    const CASE: &str = "TOWER_ALGENTA_TEST_SKIPPED";
    const PATIENCE: Duration = Duration::from_secs(1);
    /// More than the runtime, the buffers and the allocator's slack come to.
    const GROWTH: usize = 16 * MIB;

    fn events(case: usize) -> (&'static str, String) {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/message",
            "params": {"level": "info", "data": "x".repeat(1000)}});
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 70_000, "progress": 1, "message": "x".repeat(1000)}});
        let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let answer = super::super::receipt_of(&json!(70_000), "decision-7");
        match case {
            0 => ("comments", format!(": {}\n", "x".repeat(1000))),
            1 => ("events that are no JSON", format!("data: {}\n\n", "x".repeat(1000))),
            2 => ("answers to nobody", format!("data: {answer}\n\n")),
            3 => ("notifications", format!("data: {note}\n\n")),
            4 => ("progress of nobody's", format!("data: {progress}\n\n")),
            _ => ("changes of the list", format!("data: {change}\n\n")),
        }
    }

    /// A process of its own, whose size is that of this case alone.
    #[test]
    fn child() {
        let Ok(case) = std::env::var(CASE) else { return };
        let (name, event) = events(case.parse().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let more = event.repeat(65_536 / event.len());
            let engine = ByHand::start(Generation::Stateless, PATIENCE, move |request| {
                (request.method() == "tools/call").then(|| {
                    let more = more.clone().into();
                    Reply::Steps(vec![Step::Bytes(head("text/event-stream", "")), Step::Endless(more)])
                })
            })
            .await;
            let before = memory("self", "VmHWM");
            assert_eq!(engine.execute("decision-7").await, Outcome::Unknown, "{name}");
            let (grown, read) = (memory("self", "VmHWM") - before, engine.server.written());
            println!("{name}: {} KiB more after {} MiB", grown / 1024, read / MIB);
            assert!(read > MIB, "{name}: it was read on");
            assert!(grown < GROWTH, "{name}: {} MiB more after {} MiB", grown / MIB, read / MIB);
        });
    }

    #[tokio::test]
    async fn a_flood_that_is_skipped_leaves_nothing() {
        for case in 0..6 {
            let child = tokio::process::Command::new(std::env::current_exe().unwrap())
                .args(["faults::sizes::skipped::child", "--exact", "--nocapture", "--test-threads=1"])
                .env(CASE, case.to_string())
                .output();
            let output = tokio::time::timeout(SOON, child).await.expect("it ends").unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            println!("{}", said.lines().find(|line| line.contains("KiB more")).unwrap_or_default());
        }
    }
}
