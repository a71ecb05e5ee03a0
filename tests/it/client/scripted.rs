//! Servers that answer as a test wants.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// One HTTP request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// A JSON-RPC response to this request.
    pub(crate) fn result(&self, result: &Value) -> Reply {
        Reply::json(&json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }

    /// A JSON-RPC error in answer to this request.
    pub(crate) fn error(&self, code: i32, message: &str, data: &Value) -> Reply {
        let error = json!({"code": code, "message": message, "data": data});
        Reply::json(&json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error}))
    }

    /// What an engine of 2026-07-28 answers to `server/discover`.
    pub(crate) fn discovered(&self) -> Reply {
        self.result(&json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }))
    }

    /// What an engine of that version answers to `initialize`.
    pub(crate) fn initialized(&self, version: &str) -> Reply {
        self.result(&json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }))
    }

    pub(crate) fn tools(&self, tools: &Value) -> Reply {
        self.result(&json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}))
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Http {
        status: u16,
        headers: String,
        body: String,
    },
    HangUp,
    Silence,
    /// What is written byte for byte. Unless the last step ends the connection, it waits for the next request.
    Steps(Vec<Step>),
}

/// A piece of what is written, or the end of the connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Bytes(Vec<u8>),
    /// Byte by byte, with this pause before each.
    Slowly(Vec<u8>, Duration),
    /// Over and over, until the client goes.
    Endless(Vec<u8>),
    /// The end that TCP announces.
    Close,
    /// The end that loses what is on its way: RST.
    Reset,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: &str) -> Self {
        Self::Http { status, headers: format!("content-type: {content_type}\r\n"), body: body.to_owned() }
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::new(200, "application/json", &body.to_string())
    }

    pub(crate) fn html(status: u16) -> Self {
        Self::new(status, "text/html", "<html><body>It works!</body></html>")
    }

    pub(crate) fn header(mut self, line: &str) -> Self {
        if let Self::Http { headers, .. } = &mut self {
            headers.push_str(line);
            headers.push_str("\r\n");
        }
        self
    }
}

/// A server on a real socket. It stops when it is dropped.
pub(crate) struct Scripted {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Request>>>,
    connections: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
    _server: JoinSet<()>,
}

impl Scripted {
    pub(crate) async fn start(answer: impl Fn(&Request) -> Reply + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let mut server = JoinSet::new();
        let record = Arc::clone(&received);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let written = Arc::new(AtomicUsize::new(0));
        let bytes = Arc::clone(&written);
        server.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                open.spawn(serve(stream, answer.clone(), Arc::clone(&record), Arc::clone(&bytes)));
            }
        });
        Self { url, received, connections, written, _server: server }
    }

    /// How many bytes the clients took of what was written step by step.
    pub(crate) fn written(&self) -> usize {
        self.written.load(Ordering::SeqCst)
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// All requests, in order.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.received.lock().unwrap().clone()
    }

    /// The requests with this JSON-RPC method.
    pub(crate) fn received(&self, method: &str) -> Vec<Request> {
        let received = self.received.lock().unwrap();
        received.iter().filter(|request| request.method() == method).cloned().collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: impl Fn(&Request) -> Reply,
    record: Arc<Mutex<Vec<Request>>>,
    written: Arc<AtomicUsize>,
) {
    let _ = stream.set_nodelay(true);
    while let Some(request) = read(&mut stream).await {
        record.lock().unwrap().push(request.clone());
        match answer(&request) {
            Reply::Http { status, headers, body } => {
                let length = body.len();
                let answer = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::HangUp => return,
            Reply::Silence => std::future::pending().await,
            Reply::Steps(steps) => {
                for step in steps {
                    if !matches!(take(&mut stream, step, &written).await, Ok(true)) {
                        return;
                    }
                }
            }
        }
    }
}

/// Takes a step, and says whether the connection goes on.
async fn take(stream: &mut TcpStream, step: Step, written: &AtomicUsize) -> io::Result<bool> {
    match step {
        Step::Bytes(bytes) => {
            stream.write_all(&bytes).await?;
            written.fetch_add(bytes.len(), Ordering::SeqCst);
            Ok(true)
        }
        Step::Slowly(bytes, pause) => {
            for byte in bytes {
                tokio::time::sleep(pause).await;
                stream.write_all(&[byte]).await?;
                written.fetch_add(1, Ordering::SeqCst);
            }
            Ok(true)
        }
        Step::Endless(bytes) => loop {
            stream.write_all(&bytes).await?;
            written.fetch_add(bytes.len(), Ordering::SeqCst);
        },
        Step::Close => Ok(false),
        Step::Reset => {
            stream.set_zero_linger()?;
            Ok(false)
        }
    }
}

/// The next request; `None` when the connection is closed. A client sends one only after the answer to the last.
async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let body = &bytes[end + 4..];
            if body.len() >= length.unwrap_or(0) {
                return Some(Request { body: serde_json::from_slice(body).unwrap_or_default(), head });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
