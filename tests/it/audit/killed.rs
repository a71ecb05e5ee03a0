//! A process that is killed while it keeps a log: whole lines, and every record that it had made.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use futures::executor::block_on;
use rmcp::object;
use tower::{Layer as _, ServiceExt as _};
use tower_algenta::{AuditLayer, ToolRequest, audit::JsonLines};

use super::{HOOK, plain};
use crate::support::{Received, empty_result, recording};

/// Tells the child where its log is.
const LOG: &str = "TOWER_ALGENTA_TEST_AUDIT_LOG";
const ROUNDS: u64 = 20;

/// The child: it records one execution after the other until it is killed, and says so after each.
#[test]
fn child() {
    let Some(path) = env::var_os(LOG) else { return };
    let layer = AuditLayer::new(JsonLines::append(path).unwrap());
    let service = layer.layer(recording(&Received::default(), |_: &ToolRequest| Ok(empty_result())));
    let mut out = std::io::stdout();
    for count in 0_u64.. {
        let id = format!("{}-{count}", std::process::id());
        let request = ToolRequest::call("execute_decision", object!({"decision_id": id, "webhook_url": HOOK}));
        let _ = block_on(service.clone().oneshot(request));
        if writeln!(out, "done {count}.").is_err() {
            return;
        }
    }
}

#[test]
fn a_kill_leaves_whole_lines() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("audit-killed-{}.jsonl", std::process::id()));
    let _ = fs::remove_file(&path);
    let mut expected = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["audit::killed::child", "--exact", "--nocapture", "--test-threads=1"])
            .env(LOG, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        // How many records it had made when it said so. A word cut short by the kill counts for none.
        let mut made = said.by_ref().map_while(Result::ok).filter_map(|line| {
            let count = line.strip_prefix("done ")?.strip_suffix('.')?.parse::<u64>().ok()?;
            Some(count + 1)
        });
        let mut count = 0;
        for _ in 0..50 {
            count = made.next().expect("it works until it is killed");
        }
        // At another point of a record each time.
        let until = Instant::now() + Duration::from_micros(137 * round);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        expected += made.last().unwrap_or(count);

        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with('\n'), "{:?}", text.lines().last());
        let lines = text.lines().map(plain).count() as u64;
        // The last one may have been recorded and not said.
        assert!((expected..=expected + round + 1).contains(&lines), "{lines} lines, {expected} were made");
    }
    fs::remove_file(path).unwrap();
}
