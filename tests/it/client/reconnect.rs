//! An engine that is ready while it is there.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use rmcp::object;
use tokio::{net::TcpListener, time::timeout};
use tower::{MakeService, Service, ServiceBuilder, ServiceExt as _, service_fn};
use tower_algenta::{
    BoxError, Endpoint, EngineClient, Error, StubEngine, ToolRequest, ToolResponse,
    client::{CallErrorKind, ChildProcess, Connector, Reconnect},
};

use crate::{
    faults::dropped::{at_every_turn, run},
    heard::Heard,
};

use super::{
    SOON, endpoint, eventually, not_sent,
    scripted::{Reply, Request, Scripted},
    simulate, upstream,
};

async fn send(engine: &mut Reconnect, request: ToolRequest) -> Result<ToolResponse, Error> {
    let ready = timeout(SOON, engine.ready()).await.expect("it becomes ready")?;
    timeout(SOON, ready.call(request)).await.expect("a request ends")
}

/// Whether it is ready now.
async fn is_ready(engine: &mut Reconnect) -> bool {
    poll_fn(|cx| Poll::Ready(engine.poll_ready(cx).is_ready())).await
}

fn execution() -> ToolRequest {
    ToolRequest::call(
        "execute_decision",
        object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"}),
    )
}

#[tokio::test]
async fn a_connector_is_a_make_service() {
    fn is_make_service<T, M: MakeService<T, ToolRequest, Service = EngineClient, Error = Error>>(_: &M) {}
    let connector = Connector::new();
    is_make_service::<Endpoint, _>(&connector);
    is_make_service::<ChildProcess, _>(&connector);

    let engine = StubEngine::start().await.unwrap();
    let client = connector.oneshot(endpoint(engine.url())).await.unwrap();
    client.oneshot(simulate()).await.unwrap();
    engine.shutdown().await;
}

#[tokio::test]
async fn it_is_ready_while_the_engine_is_there_and_sends_nothing_twice() {
    let engine = StubEngine::start().await.unwrap();
    let (port, url) = (engine.addr().port(), engine.url());
    let mut service = Reconnect::to(endpoint(url));
    assert!(!service.is_connected(), "nobody has asked");
    send(&mut service, simulate()).await.unwrap();
    assert!(service.is_connected());
    engine.shutdown().await;

    // Nobody has told it yet.
    let error = send(&mut service, execution()).await.unwrap_err();
    assert!(matches!(error, Error::NotSent(_) | Error::Upstream(_)), "{error:?}");
    assert!(!service.is_connected());
    assert!(!is_ready(&mut service).await);

    // It looks for the engine, though nobody asks.
    let engine = StubEngine::builder().port(port).start().await.unwrap();
    eventually("it lists the tools", || engine.lists() > 0).await;
    let calls = || engine.received().len();
    assert_eq!(calls(), 0, "what failed was not sent again");
    send(&mut service, execution()).await.unwrap();
    assert_eq!((calls(), engine.executed("decision-7")), (1, 1));
}

#[tokio::test]
async fn without_a_connection_a_call_is_not_sent() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut service = Reconnect::to(endpoint(format!("http://{}/mcp", silent.local_addr().unwrap())));
    for _ in 0..2 {
        assert_eq!(not_sent(&service.call(simulate()).await.unwrap_err()), CallErrorKind::Closed);
        assert!(!is_ready(&mut service).await);
    }
}

/// An engine that answers calls with these, one after the other and over again, and lists as it should.
async fn answers_calls_with(answers: &'static [u16]) -> Scripted {
    let number = Arc::new(AtomicUsize::new(0));
    Scripted::start(move |request: &Request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&serde_json::json!([])),
        "tools/call" => match answers[number.fetch_add(1, Ordering::Relaxed) % answers.len()] {
            200 => request.result(&serde_json::json!({"resultType": "complete", "content": []})),
            201 => request.error(-32000, "an answer, too", &serde_json::Value::Null),
            status => Reply::html(status),
        },
        _ => Reply::html(404),
    })
    .await
}

#[tokio::test]
async fn three_failures_in_a_row_take_the_engine_out() {
    let cases: [(&[u16], usize); 10] = [
        (&[401], 3),
        (&[403], 3),
        (&[404], 3),
        (&[429], 3),
        (&[500], 3),
        (&[503], 3),
        (&[403, 500, 504], 3),
        (&[401, 200], 20),
        (&[504, 504, 200], 20),
        (&[429, 201], 20),
    ];
    for (answers, calls) in cases {
        let engine = answers_calls_with(answers).await;
        let mut service = Reconnect::to(endpoint(&engine.url));
        let mut sent = 0;
        for _ in 0..20 {
            let _ = send(&mut service, simulate()).await;
            sent += 1;
            if !service.is_connected() {
                break;
            }
        }
        assert_eq!(sent, calls, "{answers:?}");
        assert_eq!(engine.received("tools/call").len(), sent, "{answers:?}: nothing is sent twice");
    }
}

#[tokio::test]
async fn an_engine_that_only_connects_is_tried_less_and_less() {
    let engine = answers_calls_with(&[401]).await;
    let mut service = Reconnect::to(endpoint(&engine.url));
    let begun = tokio::time::Instant::now();
    for _ in 0..5 * 3 {
        upstream(&send(&mut service, simulate()).await.unwrap_err());
    }
    // Four pauses, of half of 100, 200, 400 and 800 ms at the least.
    assert!(begun.elapsed() >= Duration::from_millis(750), "{:?}", begun.elapsed());
}

/// The tools may be everybody's to see, and the calls nobody's.
#[tokio::test]
async fn lists_that_are_answered_do_not_hide_that_no_call_is() {
    let engine = answers_calls_with(&[401]).await;
    let mut service = Reconnect::to(endpoint(&engine.url));
    let begun = tokio::time::Instant::now();
    for _ in 0..5 {
        for _ in 0..3 {
            assert!(send(&mut service, ToolRequest::list()).await.is_ok());
            upstream(&send(&mut service, simulate()).await.unwrap_err());
        }
        assert!(!service.is_connected());
    }
    // As above.
    assert!(begun.elapsed() >= Duration::from_millis(750), "{:?}", begun.elapsed());
}

/// Something behind an engine may say of one call what the engine says of a token.
#[tokio::test]
async fn a_token_that_is_really_refused_takes_the_engine_out_until_it_is_taken_again() {
    let refusing = Arc::new(AtomicBool::new(false));
    let at_server = Arc::clone(&refusing);
    let engine = Scripted::start(move |request: &Request| match request.method() {
        _ if at_server.load(Ordering::Relaxed) => Reply::html(401),
        "server/discover" => request.discovered(),
        "tools/list" => request.tools(&serde_json::json!([])),
        "tools/call" => request.result(&serde_json::json!({"resultType": "complete", "content": []})),
        _ => Reply::html(404),
    })
    .await;
    let mut service = Reconnect::to(endpoint(&engine.url));
    send(&mut service, simulate()).await.unwrap();
    refusing.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(service.is_connected());
        assert_eq!(upstream(&send(&mut service, simulate()).await.unwrap_err()), CallErrorKind::Unauthorized);
    }
    for _ in 0..20 {
        assert!(!is_ready(&mut service).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    refusing.store(false, Ordering::Relaxed);
    send(&mut service, simulate()).await.unwrap();
}

#[tokio::test]
async fn an_engine_that_cannot_list_is_not_ready() {
    let heals = Arc::new(AtomicUsize::new(0));
    let lists = Arc::clone(&heals);
    let engine = Scripted::start(move |request: &Request| match request.method() {
        "server/discover" => request.discovered(),
        "tools/list" if lists.load(Ordering::Relaxed) == 0 => Reply::html(503),
        "tools/list" => request.error(-32603, "an answer, too", &serde_json::Value::Null),
        _ => Reply::html(404),
    })
    .await;
    let mut service = Reconnect::to(endpoint(&engine.url));
    for _ in 0..20 {
        assert!(!is_ready(&mut service).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    heals.store(1, Ordering::Relaxed);
    timeout(SOON, service.ready()).await.expect("it becomes ready").unwrap();
}

#[tokio::test]
async fn what_makes_the_connection_may_fail_for_a_while() {
    let engine = Arc::new(StubEngine::start().await.unwrap());
    let tries = Arc::new(AtomicUsize::new(0));
    let make = service_fn({
        let (engine, tries) = (Arc::clone(&engine), Arc::clone(&tries));
        move |_: &'static str| {
            let number = tries.fetch_add(1, Ordering::Relaxed);
            let url = engine.url();
            async move {
                if number < 2 {
                    Err(BoxError::from("not yet"))
                } else {
                    Ok(EngineClient::connect(endpoint(url)).await?)
                }
            }
        }
    });
    let mut service = Reconnect::new(make, "engine");
    send(&mut service, simulate()).await.unwrap();
    assert_eq!(tries.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn dropped_it_stops_trying() {
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = held.local_addr().unwrap().port();
    drop(held);
    let mut service = Reconnect::to(endpoint(format!("http://127.0.0.1:{port}/mcp")));
    assert!(!is_ready(&mut service).await);
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(service);
    let engine = StubEngine::builder().port(port).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(engine.received_raw().is_empty(), "nobody connects");
}

#[tokio::test]
async fn an_engine_in_a_panic_is_given_up() {
    let make = service_fn(|()| async {
        assert!(std::env::args().count() == 0, "what connects panics");
        Err::<EngineClient, Error>(Error::NotSent("no".into()))
    });
    let mut service = Reconnect::new(make, ());
    for _ in 0..2 {
        let error = timeout(SOON, service.ready()).await.expect("it ends").err().unwrap();
        assert!(error.is_retryable(), "{error:?}");
    }
}

#[test]
fn why_it_is_not_ready_is_told() {
    let told = Heard::during(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let tries = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&tries);
            let make = service_fn(move |endpoint| {
                counted.fetch_add(1, Ordering::Relaxed);
                EngineClient::connect(endpoint)
            });
            let mut service = Reconnect::new(make, endpoint("http://127.0.0.1:1/mcp?key=s3cr3t"));
            assert!(!is_ready(&mut service).await);
            eventually("it is tried twice", || tries.load(Ordering::Relaxed) > 1).await;
        });
    });
    assert!(!told.is_empty());
    for told in told {
        assert!(told.contains("http://127.0.0.1:1/mcp cannot be reached"), "{told}");
        assert!(!told.contains("s3cr3t"), "{told}");
    }
}

/// `engine`, for several owners.
fn shared(
    engine: Reconnect,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = Error, Future: Send> + Clone + Send + Sync + 'static {
    ServiceBuilder::new().map_err(|error: BoxError| Error::from(error)).buffer(1).service(engine)
}

#[test]
fn callers_that_leave_at_every_turn() {
    run(async {
        let engine = StubEngine::start().await.unwrap();
        let endpoint = endpoint(engine.url()).max_concurrent_requests(1);
        let service = shared(Reconnect::to(endpoint.clone()));
        at_every_turn("an engine that is there", || service.clone(), |id| engine.executed(id)).await;
        // The call waits for the connection first, which goes on being made without it.
        let anew = || shared(Reconnect::to(endpoint.clone()));
        at_every_turn("an engine not yet connected to", anew, |id| engine.executed(id)).await;
    });
}
