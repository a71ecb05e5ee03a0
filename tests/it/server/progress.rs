//! Reports of progress, on their way to whoever called.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, RoleClient, ServiceExt as _,
    model::{
        CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, NumberOrString, ProgressNotificationParam,
        ProgressToken,
    },
    object,
    service::{NotificationContext, PeerRequestOptions},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    time::timeout,
};
use tower::{ServiceBuilder, service_fn};
use tower_algenta::{BoxError, ProgressSink, ToolRequest, ToolServer};

use super::{Generation, SOON, Served, call, config};
use crate::support::empty_result;

/// A client that keeps the reports of progress.
#[derive(Clone)]
struct Watching {
    config: ClientConfig,
    reports: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl ClientHandler for Watching {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.reports.lock().unwrap().push(progress);
    }
}

/// Four reports, of which two tell nothing more than the first, then the answer.
fn reporting(request: &ToolRequest) {
    let progress = request.extensions().get::<ProgressSink>().expect("the caller wants to know");
    for done in [0.25, 0.125, 0.25, 0.5] {
        let mut report = ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(0)), done);
        report.message = Some("force=true would help".to_owned());
        progress.report(report);
    }
}

#[tokio::test]
async fn progress_goes_to_the_callers_token() {
    for generation in Generation::ALL {
        for (tool, with_message) in [("simulate", true), ("execute_decision", false)] {
            let stack = service_fn(|request: ToolRequest| async move {
                reporting(&request);
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<_, BoxError>(empty_result())
            });
            let server = Served::start(ToolServer::new(stack), false).await;
            let handler = Watching { config: config(), reports: Arc::default() };
            let client = server.client_with(generation, handler.clone()).await;
            let request = CallToolRequest::new(CallToolRequestParams::new(tool));
            let request = ClientRequest::CallToolRequest(request);
            let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
            let token = handle.progress_token.clone();
            let _ = timeout(SOON, handle.await_response()).await.expect("the call ends");
            let reports = handler.reports.lock().unwrap().clone();
            let told: Vec<_> = reports.iter().map(|report| report.progress).collect();
            assert_eq!(told, [0.25, 0.5], "{generation:?} {tool}");
            for report in &reports {
                assert_eq!(report.progress_token, token);
                assert_eq!(report.message.is_some(), with_message, "{tool}");
            }
        }
    }
}

/// More than a pipe of these tests holds.
const LONG: usize = 64 * 1024;

/// Over a pipe, a caller who asks for progress and reads no more once the call has been sent.
async fn call_and_read_no_more(server: impl FnOnce(tokio::io::DuplexStream)) -> tokio::io::DuplexStream {
    let (near, far) = tokio::io::duplex(LONG / 16);
    server(far);
    let mut stream = BufReader::new(near);
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    stream.write_all(format!("{initialize}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "simulate", "arguments": {"reports": true}, "_meta": {"progressToken": 7}}});
    stream.write_all(format!("{initialized}\n{call}\n").as_bytes()).await.unwrap();
    stream.into_inner()
}

#[tokio::test]
async fn a_caller_who_reads_no_reports_holds_nothing_of_the_stack() {
    for ends in [false, true] {
        let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let engine = service_fn(move |request: ToolRequest| {
            let begun = begun.clone();
            async move {
                let ToolRequest::Call(call) = &request else { unreachable!("a list") };
                if call.params.arguments.as_ref().is_some_and(|arguments| arguments.contains_key("reports")) {
                    let progress = request.extensions().get::<ProgressSink>().expect("the caller wants to know");
                    for done in [0.25, 0.5] {
                        let mut report = ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(0)), done);
                        report.message = Some("x".repeat(LONG));
                        progress.report(report);
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    begun.send(()).unwrap();
                    if !ends {
                        pending::<()>().await;
                    }
                }
                Ok::<_, BoxError>(empty_result())
            }
        });
        // One call at a time, for half a second at the most.
        let stack = ServiceBuilder::new().concurrency_limit(1).timeout(Duration::from_millis(500)).service(engine);
        let server = ToolServer::new(stack);
        let stalled = server.clone();
        let unread = call_and_read_no_more(|far| {
            tokio::spawn(async move { Box::pin(stalled.serve(far)).await.unwrap().waiting().await });
        })
        .await;
        timeout(SOON, begins.recv()).await.expect("the engine goes on while nobody reads").unwrap();

        let socket = Served::start(server, false).await;
        let other = socket.client(Generation::Handshake).await;
        call(&other, "simulate", object!({})).await.expect("the next call gets its turn");

        // Who reads again finds the answer.
        let mut lines = BufReader::new(unread).lines();
        let answered = async { while !lines.next_line().await.unwrap().expect("an answer").contains("\"id\":2") {} };
        timeout(SOON, answered).await.expect("it comes");
    }
}

#[tokio::test]
async fn of_more_reports_than_can_be_sent_the_newest_are_told() {
    let stack = service_fn(|request: ToolRequest| async move {
        let progress = request.extensions().get::<ProgressSink>().expect("the caller wants to know");
        for done in 1..=1000_u16 {
            progress.report(ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(0)), f64::from(done)));
            if done % 8 == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok::<_, BoxError>(empty_result())
    });
    let server = Served::start(ToolServer::new(stack), false).await;
    for generation in Generation::ALL {
        let handler = Watching { config: config(), reports: Arc::default() };
        let client = server.client_with(generation, handler.clone()).await;
        call(&client, "simulate", object!({})).await.unwrap();
        let reports = handler.reports.lock().unwrap().clone();
        let told: Vec<_> = reports.iter().map(|report| report.progress).collect();
        assert!(told.is_sorted() && told.last() == Some(&1000.0), "{generation:?}: {told:?}");
    }
}
