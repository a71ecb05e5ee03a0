//! What may be sent twice, and that an execution is none of it.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, JsonObject, ListToolsRequest, MetaObject, PaginatedRequestParams, RequestMetaObject,
    },
    object,
};
use serde_json::Value;
use tokio::sync::OnceCell;
use tower::{
    Layer as _, Service as _, ServiceBuilder, ServiceExt as _,
    buffer::{Buffer, BufferLayer},
    hedge::Hedge,
    layer::layer_fn,
    limit::ConcurrencyLimit,
    retry::{RetryLayer, budget::TpsBudget},
    service_fn,
    timeout::error::Elapsed,
    util::{BoxCloneService, MapRequest},
};
use tower_algenta::{
    BoxError, Error, GovernanceLayer, Profile, RepeatLayer, RepeatableRequest, RetryPolicy, ToolNames, ToolRequest,
    ToolResponse,
};

use crate::support::{Received, empty_result, recording};

const EXECUTION: &str = "execute_decision";

fn call(tool: &'static str) -> ToolRequest {
    ToolRequest::call(tool, object!({"decision_id": "decision-7", "webhook_url": "https://hooks.example/x"}))
}

/// Whether a layer that keeps every answer for itself sees `request`.
async fn is_seen(request: ToolRequest, names: ToolNames) -> bool {
    let engine = Received::default();
    let seen = Arc::new(AtomicUsize::new(0));
    let cache = layer_fn(|_| {
        let seen = Arc::clone(&seen);
        service_fn(move |_: RepeatableRequest| {
            seen.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<_, BoxError>(empty_result()))
        })
    });
    let stack = RepeatLayer::new(cache).tool_names(names).layer(recording(&engine, |_| Ok(empty_result())));
    stack.oneshot(request).await.unwrap();
    let seen = seen.load(Ordering::Relaxed);
    assert_eq!(seen + engine.len(), 1, "one way or the other");
    seen == 1
}

#[tokio::test]
async fn a_layer_that_repeats_never_sees_an_execution() {
    let bare = ToolNames::bare;
    assert!(is_seen(ToolRequest::list(), bare()).await);
    for tool in ["get_contract", "query_data", "simulate", "log_decision", "query_batch"] {
        assert!(is_seen(call(tool), bare()).await, "{tool}");
    }
    let look_alikes = ["Execute_Decision", "execute-decision", "srv__execute_decision", "ｅxecute_decision"];
    for tool in look_alikes.into_iter().chain([EXECUTION, "", "no such form", "execute_decisi\u{200b}on"]) {
        assert!(!is_seen(call(tool), bare()).await, "{tool:?}");
    }

    let prefixed = || ToolNames::prefixed("eu__");
    assert!(is_seen(call("eu__simulate"), prefixed()).await);
    for tool in ["eu__execute_decision", EXECUTION, "simulate", "us__simulate"] {
        assert!(!is_seen(call(tool), prefixed()).await, "{tool:?}");
    }
    // With names that are not the upstream's, nothing is repeated.
    assert!(!is_seen(call("eu__execute_decision"), bare()).await);
}

#[tokio::test]
async fn what_is_too_deep_to_be_copied_is_sent_once() {
    let deep = |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let request = |levels| {
        let mut arguments = JsonObject::new();
        arguments.insert("scenario".to_owned(), deep(levels));
        ToolRequest::call("simulate", arguments)
    };
    assert!(is_seen(request(128), ToolNames::bare()).await);
    assert!(!is_seen(request(129), ToolNames::bare()).await);
    let answered = |levels| {
        CallToolRequestParams::new("simulate").with_input_responses([("form".to_owned(), deep(levels))].into())
    };
    assert!(is_seen(answered(128).into(), ToolNames::bare()).await);
    assert!(!is_seen(answered(129).into(), ToolNames::bare()).await);

    let meta = || MetaObject(object!({"a": deep(500)}));
    let mut called = CallToolRequestParams::new("simulate");
    called.meta = Some(meta().into());
    let mut listed = ListToolsRequest::with_param(PaginatedRequestParams::default());
    listed.params.as_mut().unwrap().meta = Some(meta().into());
    for request in [called.into(), listed.into()] {
        assert!(!is_seen(request, ToolNames::bare()).await);
    }
    for mut request in [ToolRequest::list(), call("simulate")] {
        request.extensions_mut().insert(meta());
        assert!(!is_seen(request.clone(), ToolNames::bare()).await);
        request.extensions_mut().remove::<MetaObject>();
        request.extensions_mut().insert(RequestMetaObject::from(meta()));
        assert!(!is_seen(request, ToolNames::bare()).await);
    }
}

#[tokio::test]
async fn nobody_waits_for_a_second_place() {
    let engine = service_fn(|_: ToolRequest| async {
        tokio::task::yield_now().await;
        Ok::<_, BoxError>(empty_result())
    });
    let retry = || RepeatLayer::new(RetryLayer::new(RetryPolicy::new()));
    for places in [1, 2, 8] {
        let buffered = retry().layer(Buffer::new(engine, places));
        let limited = retry().layer(ConcurrencyLimit::new(engine, places));
        let requests = (0..64).map(|number| if number % 2 == 0 { call("simulate") } else { call(EXECUTION) });
        let all = requests.map(async |request| {
            limited.clone().oneshot(request.clone()).await?;
            buffered.clone().oneshot(request).await
        });
        let all = tokio::time::timeout(Duration::from_secs(20), futures::future::try_join_all(all));
        assert_eq!(all.await.expect("none waits for ever").unwrap().len(), 64);

        // Nor does one that keeps its service between two calls.
        let (mut kept, mut other) = (limited.clone(), limited);
        for request in [call("simulate"), call(EXECUTION), call("simulate")] {
            let both = async {
                kept.ready().await?.call(request.clone()).await?;
                other.ready().await?.call(request).await
            };
            tokio::time::timeout(Duration::from_secs(20), both).await.expect("neither waits for ever").unwrap();
        }
    }
}

/// How often the engine is called when it fails like this for ever.
async fn attempts<E>(request: ToolRequest, policy: RetryPolicy, error: impl Fn() -> E + Clone + Send + Sync) -> usize
where
    E: Into<BoxError>,
{
    let calls = AtomicUsize::new(0);
    let engine = service_fn(|_: ToolRequest| {
        calls.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Err::<ToolResponse, BoxError>(error().into()))
    });
    let stack = ServiceBuilder::new()
        .layer(GovernanceLayer::new(Profile::Execute))
        .layer(RepeatLayer::new(RetryLayer::new(policy)))
        .service(engine);
    stack.oneshot(request).await.unwrap_err();
    calls.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn only_what_cannot_have_run_is_repeated() {
    let not_sent = || Error::NotSent("connection refused".into());
    let lost = || Error::Upstream("the connection was lost".into());
    let answered = || Error::Upstream(Box::new(ErrorData::internal_error("no", None)));
    let new = RetryPolicy::new;

    assert_eq!(attempts(ToolRequest::list(), new(), not_sent).await, 4);
    assert_eq!(attempts(ToolRequest::list(), new(), lost).await, 4);
    assert_eq!(attempts(ToolRequest::list(), new(), Elapsed::new).await, 4);
    assert_eq!(attempts(ToolRequest::list(), new(), || io::Error::other("of somebody's own")).await, 4);
    assert_eq!(attempts(ToolRequest::list(), new(), answered).await, 1);

    assert_eq!(attempts(call("log_decision"), new(), not_sent).await, 4);
    assert_eq!(attempts(call("log_decision"), new(), lost).await, 1);
    assert_eq!(attempts(call("simulate"), new(), Elapsed::new).await, 1);
    assert_eq!(attempts(call("simulate"), new(), answered).await, 1);

    // Not even where it is certain that it never left.
    assert_eq!(attempts(call(EXECUTION), new(), not_sent).await, 1);
    assert_eq!(attempts(call(EXECUTION), new(), lost).await, 1);

    assert_eq!(attempts(ToolRequest::list(), new().times(0), not_sent).await, 1);
    assert_eq!(attempts(ToolRequest::list(), new().times(7), not_sent).await, 8);
}

#[tokio::test(start_paused = true)]
async fn a_budget_bounds_the_repeats_of_all_clones() {
    let policy = RetryPolicy::new().budget(TpsBudget::new(Duration::from_secs(10), 0, 0.5));
    let not_sent = || Error::NotSent("connection refused".into());
    assert_eq!(attempts(ToolRequest::list(), policy.clone(), not_sent).await, 1, "there is nothing in it");

    let engine = service_fn(|_: ToolRequest| std::future::ready(Ok::<_, BoxError>(empty_result())));
    let stack = RepeatLayer::new(RetryLayer::new(policy.clone())).layer(engine);
    for _ in 0..4 {
        stack.clone().oneshot(ToolRequest::list()).await.unwrap();
    }
    assert_eq!(attempts(ToolRequest::list(), policy.clone(), not_sent).await, 3, "a repeat for every two");
    assert_eq!(attempts(ToolRequest::list(), policy, not_sent).await, 1);
}

#[tokio::test(start_paused = true)]
async fn pauses_double_and_are_bounded() {
    let begun = tokio::time::Instant::now();
    let (min, max) = (Duration::from_secs(1), Duration::from_secs(3));
    let policy = RetryPolicy::new().times(4).pauses(min, max).unwrap();
    attempts(ToolRequest::list(), policy, || Error::NotSent("connection refused".into())).await;
    // 1, 2, 3 and 3 seconds, each up to a half longer.
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(9) && waited <= Duration::from_millis(13_600), "{waited:?}");

    assert!(RetryPolicy::new().pauses(max, min).is_err());
    assert!(RetryPolicy::new().pauses(Duration::ZERO, Duration::ZERO).is_err());
}

/// Hedges all that it is shown.
#[derive(Clone)]
struct Everything;

impl tower::hedge::Policy<RepeatableRequest> for Everything {
    fn clone_request(&self, request: &RepeatableRequest) -> Option<RepeatableRequest> {
        Some(request.clone())
    }

    fn can_retry(&self, _: &RepeatableRequest) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_hedge_sends_reads_twice_and_executions_once() {
    let received = Received::default();
    let record = received.clone();
    let engine = service_fn(move |request: ToolRequest| {
        record.push(request.clone());
        async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            match request.tool() {
                Some(EXECUTION) => Err(Error::NotSent("no".into())),
                _ => Ok(empty_result()),
            }
        }
    });
    let hedge = layer_fn(|inner| {
        Hedge::new_with_mock_latencies(inner, Everything, 1, 0.9, Duration::from_secs(60), &[10, 10, 10])
    });
    let stack = RepeatLayer::new((BufferLayer::new(8), hedge)).layer(engine);

    stack.clone().oneshot(call("query_data")).await.unwrap();
    assert_eq!(received.take().len(), 2);
    // The error type is the hedge's, and the typed error is in it.
    let error = stack.oneshot(call(EXECUTION)).await.unwrap_err();
    assert!(Error::find(&*error).is_some_and(Error::is_retryable), "{error:?}");
    assert_eq!(received.len(), 1);
}

/// Who touched a request last.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Touched {
    Host,
    Layer,
}

#[tokio::test]
async fn a_layer_sees_the_tool_and_what_travels_with_it() {
    let engine = Received::default();
    let seen = Mutex::new(Vec::new());
    let looking = layer_fn(|inner| {
        MapRequest::new(inner, |mut request: RepeatableRequest| {
            let touched = request.extensions().get::<Touched>().copied();
            seen.lock().unwrap().push((request.tool().map(str::to_owned), touched));
            request.extensions_mut().insert(Touched::Layer);
            request
        })
    });
    let stack = RepeatLayer::new(looking).layer(recording(&engine, |_| Ok(empty_result())));
    for mut request in [ToolRequest::list(), call("simulate"), call(EXECUTION)] {
        request.extensions_mut().insert(Touched::Host);
        stack.clone().oneshot(request).await.unwrap();
    }

    let by_host = Some(Touched::Host);
    assert_eq!(*seen.lock().unwrap(), [(None, by_host), (Some("simulate".to_owned()), by_host)]);
    let touched: Vec<_> = engine.take().iter().map(|request| request.extensions().get::<Touched>().copied()).collect();
    assert_eq!(touched, [Some(Touched::Layer), Some(Touched::Layer), by_host]);
}

#[test]
fn a_policy_prints_how_often_it_repeats() {
    let printed = format!("{:?}", RetryPolicy::new().times(7));
    assert!(printed.starts_with("RetryPolicy") && printed.contains("left: 7"), "{printed}");
}

/// Counts how often it is copied.
struct Counted(Arc<AtomicUsize>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_copied_for_its_repeats_only() {
    for times in [0, 1, 3] {
        let copies = Arc::default();
        let mut request = call("simulate");
        request.extensions_mut().insert(Counted(Arc::clone(&copies)));
        let policy = RetryPolicy::new().times(times);
        attempts(request, policy, || Error::NotSent("connection refused".into())).await;
        assert_eq!(copies.load(Ordering::Relaxed), times as usize);
    }
}

/// Two of each at once, through a layer that lets the second one wait for the answer of the first.
#[tokio::test]
async fn what_is_asked_for_twice_at_once_is_sent_once_and_executions_twice() {
    type Answers = Arc<Mutex<HashMap<Option<String>, Arc<OnceCell<ToolResponse>>>>>;
    let received = Received::default();
    let recorded = recording(&received, |_| Ok(empty_result()));
    let engine = service_fn(move |request: ToolRequest| {
        let answer = recorded.clone().oneshot(request);
        async {
            tokio::task::yield_now().await;
            answer.await
        }
    });
    let answers = Answers::default();
    let coalesce = layer_fn(|engine| {
        let (engine, answers) = (BoxCloneService::new(engine), Arc::clone(&answers));
        service_fn(move |request: RepeatableRequest| {
            let tool = request.tool().map(str::to_owned);
            let cell = Arc::clone(answers.lock().unwrap().entry(tool).or_default());
            let engine: BoxCloneService<RepeatableRequest, ToolResponse, BoxError> = engine.clone();
            async move { cell.get_or_try_init(|| engine.oneshot(request)).await.cloned() }
        })
    });
    let stack = ServiceBuilder::new()
        .layer(GovernanceLayer::new(Profile::Execute))
        .layer(RepeatLayer::new(coalesce))
        .service(engine);
    let twice = async |request: fn() -> ToolRequest| {
        drop(tokio::join!(stack.clone().oneshot(request()), stack.clone().oneshot(request())));
        received.take().len()
    };
    assert_eq!(twice(|| call("query_data")).await, 1);
    assert_eq!(twice(ToolRequest::list).await, 1);
    assert_eq!(twice(|| call(EXECUTION)).await, 2);
}
