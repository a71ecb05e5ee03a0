//! `JsonLines`: whole lines, in one write each, and what happens when they can't be written.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use futures::executor::block_on;
use rmcp::object;
use tower::{Layer as _, ServiceExt as _};
use tower_algenta::{
    AuditLayer, AuditSink, Error, ToolRequest,
    audit::{AuditUnavailable, JsonLines, OnSinkFailure},
};

use super::{HOOK, Kept, plain};
use crate::support::{Received, empty_result, recording};

/// A writer that does what it is told, one word for each write, and remembers.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    words: Vec<Word>,
    writes: usize,
    flushes: usize,
    written: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Word {
    Fail,
    Interrupt,
    Write(usize),
    Nothing,
}

impl Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut script = self.0.lock().unwrap();
        script.writes += 1;
        let word = if script.words.is_empty() { Word::Write(usize::MAX) } else { script.words.remove(0) };
        match word {
            Word::Fail => Err(io::Error::other("the disk is full")),
            Word::Interrupt => Err(io::ErrorKind::Interrupted.into()),
            Word::Nothing => Ok(0),
            Word::Write(most) => {
                let length = bytes.len().min(most);
                script.written.extend(&bytes[..length]);
                Ok(length)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().flushes += 1;
        Ok(())
    }
}

impl Scripted {
    fn then(&self, words: &[Word]) {
        self.0.lock().unwrap().words = words.to_vec();
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().written.clone()).unwrap();
        text.split_terminator('\n').map(str::to_owned).collect()
    }
}

/// Makes one record in `sink`: of an execution, or else of another call. Says whether it reached the engine.
fn ask<K: AuditSink + Clone>(layer: &AuditLayer<K>, is_execution: bool) -> Result<(), Error> {
    let received = Received::default();
    let service = layer.layer(recording(&received, |_: &ToolRequest| Ok(empty_result())));
    let tool = if is_execution { "execute_decision" } else { "simulate" };
    let request = ToolRequest::call(tool, object!({"decision_id": "d", "webhook_url": HOOK}));
    let answer = block_on(service.oneshot(request)).map_err(Error::from);
    assert_eq!(received.len(), usize::from(answer.is_ok()));
    answer.map(drop)
}

#[test]
fn a_record_is_one_write_and_one_flush() {
    let writer = Scripted::default();
    let layer = AuditLayer::new(JsonLines::new(writer.clone()));
    for count in 1..=3 {
        ask(&layer, false).unwrap();
        let script = writer.0.lock().unwrap();
        assert_eq!((script.writes, script.flushes), (count, count));
    }
    let lines = writer.lines();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| plain(line)["algenta.outcome"] == "allowed"));
}

#[test]
fn a_short_or_interrupted_write_goes_on() {
    let writer = Scripted::default();
    let lines = JsonLines::new(writer.clone());
    let layer = AuditLayer::new(lines.clone());
    writer.then(&[Word::Interrupt, Word::Write(7), Word::Interrupt, Word::Write(1)]);
    ask(&layer, false).unwrap();
    assert_eq!((writer.lines().len(), lines.failures()), (1, 0));
    plain(&writer.lines()[0]);
}

#[test]
fn while_records_are_lost_executions_are_refused() {
    let writer = Scripted::default();
    let lines = JsonLines::new(writer.clone());
    let layer = AuditLayer::new(lines.clone());
    writer.then(&[Word::Fail, Word::Fail, Word::Nothing]);
    ask(&layer, true).unwrap(); // what it loses is known only afterwards
    assert_eq!(lines.failures(), 1);
    ask(&layer, false).unwrap(); // nothing is executed
    let Err(Error::NotSent(error)) = ask(&layer, true) else { panic!("not refused") };
    assert!(error.is::<AuditUnavailable>());
    assert_eq!((lines.failures(), writer.lines().len()), (3, 0));

    // The disk has room again: the refusal itself is recorded, and ends the refusals.
    let Err(Error::NotSent(_)) = ask(&layer, true) else { panic!("not refused") };
    let refused = plain(&writer.lines()[0]);
    assert_eq!((&refused["algenta.outcome"], &refused["error.type"]), (&"failed".into(), &"not_sent".into()));
    assert_eq!(refused.get("algenta.may_have_run"), None);
    ask(&layer, true).unwrap();
    assert_eq!((lines.failures(), writer.lines().len()), (3, 2));
}

/// Whoever wrote last knows whether records are lost: after a failure, no success that came before it.
#[test]
fn threads_agree_on_whether_records_are_lost() {
    for _ in 0..200 {
        let writer = Scripted::default();
        let lines = JsonLines::new(writer.clone());
        writer.then(&[&[Word::Write(100_000); 20][..], &[Word::Fail; 100]].concat());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10).for_each(|_| drop(ask(&AuditLayer::new(lines.clone()), false))));
            }
        });
        assert!(lines.is_failing());
    }
}

#[test]
fn they_go_on_if_so_set() {
    let writer = Scripted::default();
    let lines = JsonLines::new(writer.clone());
    let layer = AuditLayer::new(lines.clone()).on_sink_failure(OnSinkFailure::Continue);
    writer.then(&[Word::Fail, Word::Fail]);
    ask(&layer, true).unwrap();
    ask(&layer, true).unwrap();
    assert_eq!(lines.failures(), 2);
}

#[test]
fn either_of_two_sinks_may_fail() {
    let (writer, kept) = (Scripted::default(), Kept::default());
    let layer = AuditLayer::new((Arc::new(kept.clone()), JsonLines::new(writer.clone())));
    writer.then(&[Word::Fail]);
    ask(&layer, true).unwrap();
    assert!(ask(&layer, true).is_err());
    assert_eq!((kept.take().len(), writer.lines().len()), (2, 1));
}

#[test]
fn what_is_left_of_a_line_spoils_no_other() {
    for left in [1, 30, 100] {
        let writer = Scripted::default();
        let layer = AuditLayer::new(JsonLines::new(writer.clone()));
        writer.then(&[Word::Write(left), Word::Fail, Word::Fail]);
        for _ in 0..4 {
            ask(&layer, false).unwrap();
        }
        // Torn, lost, and two whole ones.
        let lines = writer.lines();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0].len(), left);
        lines[1..].iter().for_each(|line| drop(plain(line)));
    }
}

/// A path that no other test has, and no file at it.
fn path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("audit-{}-{}.jsonl", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

#[test]
fn a_file_is_appended_to() {
    let path = path();
    for count in 1..=3 {
        ask(&AuditLayer::new(JsonLines::append(&path).unwrap()), false).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().map(plain).count(), count);
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    // Power was lost within a line.
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(br#"{"timestamp": "20"#).unwrap();
    ask(&AuditLayer::new(JsonLines::append(&path).unwrap()), false).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines.len(), lines[3]), (5, r#"{"timestamp": "20"#));
    plain(lines[4]);
    fs::remove_file(path).unwrap();
}

#[test]
fn two_logs_of_one_file_keep_their_lines_apart() {
    let path = path();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let layer = AuditLayer::new(JsonLines::append(&path).unwrap());
                (0..200).for_each(|_| ask(&layer, false).unwrap());
            });
        }
    });
    assert_eq!(fs::read_to_string(&path).unwrap().lines().map(plain).count(), 800);
    fs::remove_file(path).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_no_silent_one() {
    let lines = JsonLines::append("/dev/full").unwrap();
    let layer = AuditLayer::new(lines.clone());
    ask(&layer, true).unwrap();
    assert_eq!(lines.failures(), 1);
    assert!(ask(&layer, true).is_err());
}
