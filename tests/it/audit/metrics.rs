//! The metrics of an audit, as a recorder gets them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::executor::block_on;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use rmcp::{ErrorData, model::ErrorCode, object};
use tower::{Layer as _, ServiceBuilder, ServiceExt as _, service_fn};
use tower_algenta::{AuditLayer, BoxError, GovernanceLayer, Profile, ToolRequest, ToolResponse, audit::Metrics};

use super::HOOK;
use crate::support::{Received, empty_result, recording};

/// What was recorded, by name and labels: the sum of a counter, or how many values a histogram has.
#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<BTreeMap<String, u64>>>);

struct One(Recorded, String);

impl Recorded {
    fn one(&self, key: &Key) -> Arc<One> {
        let mut labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        labels.sort();
        Arc::new(One(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }
}

impl One {
    fn add(&self, value: u64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.add(value);
    }

    fn absolute(&self, _: u64) {
        unreachable!("nothing is set")
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        assert!((0.0..60.0).contains(&value), "{value} seconds");
        self.add(1);
    }
}

impl Recorder for Recorded {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        assert_eq!((name.as_str(), unit), ("mcp.client.operation.duration", Some(Unit::Seconds)));
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        unreachable!("there is no gauge")
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

#[test]
fn requests_are_counted_and_timed_under_a_bounded_number_of_names() {
    let recorded = Recorded::default();
    with_local_recorder(&recorded, || {
        let engine = recording(&Received::default(), |_: &ToolRequest| Ok(empty_result()));
        let stack = ServiceBuilder::new()
            .layer(AuditLayer::new(Metrics::new()))
            .layer(GovernanceLayer::new(Profile::Full))
            .service(engine);
        let ask = |request: ToolRequest| drop(block_on(stack.clone().oneshot(request)));
        ask(ToolRequest::call("simulate", object!({"force": 1, "override_safety": 1})));
        ask(ToolRequest::call("simulate", object!({})));
        ask(ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": HOOK})));
        (0..100).for_each(|count| ask(ToolRequest::call(format!("chosen_by_a_model_{count}"), object!({}))));
        (0..100).for_each(|count| ask(ToolRequest::call(format!("not allowed {count}"), object!({}))));
        ask(ToolRequest::list());
        // An engine that makes up a code for every call.
        let failing = service_fn(|request: ToolRequest| {
            let code = request.tool().and_then(|name| name.strip_prefix("code")?.parse().ok()).unwrap();
            std::future::ready(Err::<ToolResponse, BoxError>(ErrorData::new(ErrorCode(code), "no", None).into()))
        });
        let stack = AuditLayer::new(Metrics::new()).layer(failing);
        let ask =
            |code: i32| drop(block_on(stack.clone().oneshot(ToolRequest::call(format!("code{code}"), object!({})))));
        (1..=50).for_each(ask);
        ask(-32602);
    });
    let call = "mcp.method.name=tools/call";
    let executes = "gen_ai.operation.name=execute_tool";
    let expected = [
        (format!("algenta.requests algenta.outcome=allowed gen_ai.tool.name=simulate {call}"), 2),
        (format!("algenta.requests algenta.outcome=allowed gen_ai.tool.name=_OTHER {call}"), 100),
        (format!("algenta.requests algenta.outcome=not_allowed gen_ai.tool.name=_OTHER {call}"), 100),
        (format!("algenta.requests algenta.outcome=failed gen_ai.tool.name=execute_decision {call}"), 1),
        ("algenta.requests algenta.outcome=failed mcp.method.name=tools/list".to_owned(), 1),
        ("algenta.stripped_fields gen_ai.tool.name=simulate".to_owned(), 2),
        (format!("mcp.client.operation.duration {executes} gen_ai.tool.name=simulate {call}"), 2),
        (format!("mcp.client.operation.duration {executes} gen_ai.tool.name=_OTHER {call}"), 100),
        (
            format!("mcp.client.operation.duration error.type=not_allowed {executes} gen_ai.tool.name=_OTHER {call}"),
            100,
        ),
        (
            format!(
                "mcp.client.operation.duration error.type=execution_failed {executes} gen_ai.tool.name=execute_decision {call}"
            ),
            1,
        ),
        (format!("algenta.requests algenta.outcome=failed gen_ai.tool.name=_OTHER {call}"), 51),
        (format!("mcp.client.operation.duration error.type=_OTHER {executes} gen_ai.tool.name=_OTHER {call}"), 50),
        (format!("mcp.client.operation.duration error.type=-32602 {executes} gen_ai.tool.name=_OTHER {call}"), 1),
        ("mcp.client.operation.duration error.type=unexpected_response mcp.method.name=tools/list".to_owned(), 1),
    ];
    assert_eq!(*recorded.0.lock().unwrap(), BTreeMap::from(expected));
}
