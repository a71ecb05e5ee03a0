//! Callers of a gateway that do nothing, and callers that take no answer.
//!
//! The gateway is a process of its own, whose size can be read.

use std::time::{Duration, Instant};

use futures::future::join_all;
use rmcp::object;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tower_algenta::{Endpoint, Profile, StubEngine, Toolset, stub::Fault};

use super::{SOON, eventually, execute, memory};
use crate::gateway::process::Gateway;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// Opened at a time: the queue of a listener holds no more.
const BATCH: usize = 100;

async fn tools(gateway: &Gateway) -> Toolset {
    let endpoint = Endpoint::new(&gateway.url).unwrap();
    timeout(SOON, Toolset::builder().profile(Profile::Execute).endpoint(endpoint).connect()).await.unwrap().unwrap()
}

fn addr(gateway: &Gateway) -> String {
    gateway.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

/// A connection that has sent nothing, half a head, or a request whose answer it has read.
async fn idle(addr: &str, index: usize) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    match index % 3 {
        0 => {}
        1 => stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: 127").await.unwrap(),
        _ => {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"ok\n") {
                assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "the connection stays open");
            }
        }
    }
    stream
}

/// `IDLE_CLIENTS` in the environment is how many; each takes a file descriptor here and one in the gateway.
#[tokio::test]
async fn callers_that_do_nothing() {
    let count = std::env::var("IDLE_CLIENTS").map_or(1000, |count| count.parse().unwrap());
    let engine = StubEngine::start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute"]).await;
    let tools = tools(&gateway).await;
    execute(&tools, "decision-before").await.unwrap();

    let (before, begun, addr) = (memory(&gateway.id(), "VmRSS"), Instant::now(), addr(&gateway));
    let mut open = Vec::with_capacity(count);
    while open.len() < count {
        let batch = join_all((0..BATCH.min(count - open.len())).map(|index| idle(&addr, index)));
        open.extend(timeout(SOON, batch).await.expect("they connect"));
    }
    let connected = begun.elapsed();
    let each = memory(&gateway.id(), "VmRSS").saturating_sub(before) / count;
    let begun = Instant::now();
    execute(&tools, "decision-after").await.unwrap();
    let answered = begun.elapsed();
    println!("{count} idle clients, connected in {connected:?}: {each} bytes each; a call took {answered:?}");
    assert!(each < 32 * KIB, "{each} bytes each");
    assert!(answered < Duration::from_secs(5), "{answered:?}");

    // They are not kept for ever: the head of a request has ten seconds to come, the first one and the next.
    let closed = join_all(open.iter_mut().map(|stream| async { stream.read(&mut [0; 256]).await }));
    let closed = timeout(Duration::from_secs(40), closed).await.expect("the gateway closes them");
    assert_eq!(closed.len(), count);
    execute(&tools, "decision-at-last").await.unwrap();
}

fn post(body: &serde_json::Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\nmcp-protocol-version: 2025-11-25\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

/// Each sends call after call, whose answers are two mebibytes each, and reads none of them. The next call of a connection
/// is not begun before the last one's answer is on its way, so what a caller can pile up is one answer and two sockets'
/// buffers, however many calls it sends.
#[tokio::test]
async fn callers_that_read_no_answer() {
    const CALLERS: usize = 8;
    const CALLS: usize = 32;
    const ANSWER: usize = 2 * MIB;
    let engine = StubEngine::builder().fault(Fault::HugeText).start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute"]).await;
    let tools = tools(&gateway).await;
    tools.call("simulate", object!({"scenario": "s"})).await.unwrap();

    let (before, mut open) = (memory(&gateway.id(), "VmRSS"), Vec::new());
    let call = simulate_call();
    for _ in 0..CALLERS {
        let mut stream = TcpStream::connect(addr(&gateway)).await.unwrap();
        stream.write_all(&call.repeat(CALLS)).await.unwrap();
        open.push(stream);
    }
    eventually("each has a call begun", || engine.received().len() > CALLERS).await;
    let settled = async {
        let mut last = 0;
        while last != engine.received().len() {
            last = engine.received().len();
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
    };
    timeout(SOON, settled).await.expect("it comes to a stand");
    let begun = engine.received().len() - 1;
    let each = memory(&gateway.id(), "VmRSS").saturating_sub(before) / CALLERS;
    let most = memory(&gateway.id(), "VmHWM").saturating_sub(before) / CALLERS;
    println!(
        "{CALLERS} callers, {begun} of {} calls begun; {} KiB each, {} at the most",
        CALLERS * CALLS,
        each / KIB,
        most / KIB
    );
    assert!(begun < CALLERS * 8, "{begun} calls were begun");
    assert!(most < 6 * ANSWER, "{} KiB each", most / KIB);
    // The others have their answers.
    let begun = Instant::now();
    tools.list().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));

    // What was held for them is free when they have gone.
    drop(open);
    eventually("it is given back", || memory(&gateway.id(), "VmRSS") < before + CALLERS * ANSWER).await;
}

/// And none for ever: a connection of which nothing is read ends, and what was held for it is free.
#[tokio::test]
async fn callers_that_read_no_answer_are_cut_off() {
    const CALLERS: usize = 8;
    let engine = StubEngine::builder().fault(Fault::HugeText).start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute", "--write-timeout", "1"]).await;
    let tools = tools(&gateway).await;
    tools.call("simulate", object!({"scenario": "s"})).await.unwrap();
    let (before, mut open) = (open_files(&gateway.id()), Vec::new());
    for _ in 0..CALLERS {
        let mut stream = TcpStream::connect(addr(&gateway)).await.unwrap();
        stream.write_all(&simulate_call().repeat(4)).await.unwrap();
        open.push(stream);
    }
    eventually("they are connected", || open_files(&gateway.id()) >= before + CALLERS).await;
    eventually("they are cut off", || open_files(&gateway.id()) <= before).await;
    // One that reads slowly is not: each byte is a sign of life.
    let mut slow = TcpStream::connect(addr(&gateway)).await.unwrap();
    slow.write_all(&simulate_call()).await.unwrap();
    let (begun, mut answer) = (Instant::now(), 0);
    let mut some = vec![0; 128 * KIB];
    while answer < 2 * MIB {
        tokio::time::sleep(Duration::from_millis(150)).await;
        match timeout(SOON, slow.read(&mut some)).await.expect("it goes on").unwrap() {
            0 => break,
            read => answer += read,
        }
    }
    assert!(answer >= 2 * MIB, "{answer} bytes");
    assert!(begun.elapsed() > Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// Files and sockets that a process has open.
fn open_files(process: &str) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

fn simulate_call() -> Vec<u8> {
    post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "simulate", "arguments": {"scenario": "s"}}}))
}

/// A client in a session whose stream nobody reads, while the engine has a lot to tell.
#[tokio::test]
async fn a_stream_that_nobody_reads() {
    let engine = StubEngine::start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute", "--single-identity", "--sessions"]).await;
    let tools = tools(&gateway).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let mut first = TcpStream::connect(addr(&gateway)).await.unwrap();
    first.write_all(&post(&initialize)).await.unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("serverInfo") {
        assert_ne!(timeout(SOON, first.read_buf(&mut answer)).await.expect("it answers").unwrap(), 0);
    }
    let head = String::from_utf8_lossy(&answer).to_lowercase();
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    let session = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    let mut second = TcpStream::connect(addr(&gateway)).await.unwrap();
    let initialized =
        String::from_utf8(post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))).unwrap();
    let initialized = initialized.replace("mcp-protocol-version: 2025-11-25\r\n", &session);
    second.write_all(initialized.as_bytes()).await.unwrap();
    let get = format!("GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n{session}\r\n");
    let mut stream = TcpStream::connect(addr(&gateway)).await.unwrap();
    stream.write_all(get.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    timeout(SOON, stream.read_exact(&mut head)).await.expect("the stream begins").unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");

    let before = memory(&gateway.id(), "VmRSS");
    let until = Instant::now() + Duration::from_secs(2);
    let mut told = 0;
    while Instant::now() < until {
        engine.announce_list_change();
        told += 1;
        tokio::task::yield_now().await;
    }
    let grown = memory(&gateway.id(), "VmRSS").saturating_sub(before);
    println!("{told} changes told: {} KiB more", grown / KIB);
    assert!(told > 1000, "{told}");
    assert!(grown < 16 * MIB, "{} KiB", grown / KIB);
    assert!(execute(&tools, "decision-7").await.unwrap().is_delivered());
}
