//! Futures that are dropped, at every point, and services that panic.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
};

use rmcp::object;
use serde_json::json;
use tokio_test::{assert_pending, assert_ready, assert_ready_ok, task};
use tower::{Layer, Service, service_fn};
use tower_algenta::{AuditLayer, BoxError, GovernanceLayer, Profile, ToolRequest, ToolResponse};
use tower_test::mock;

use super::{HOOK, Kept};
use crate::support::empty_result;

const STEPS: usize = 4;

/// Polls a call `polls` times and drops it.
fn dropped_after(polls: usize, tool: &'static str, is_governed: bool) -> serde_json::Value {
    let kept = Kept::default();
    let engine = service_fn(|_: ToolRequest| {
        let mut steps = 0;
        poll_fn(move |_| {
            steps += 1;
            if steps > STEPS { Poll::Ready(Ok::<_, BoxError>(empty_result())) } else { Poll::Pending }
        })
    });
    let request = ToolRequest::call(tool, object!({"decision_id": "d", "webhook_url": HOOK}));
    let layer = AuditLayer::new(kept.clone());
    let call: Pin<Box<dyn Future<Output = Result<ToolResponse, BoxError>>>> = if is_governed {
        Box::pin(layer.layer(GovernanceLayer::new(Profile::Execute).layer(engine)).call(request))
    } else {
        Box::pin(layer.layer(engine).call(request))
    };
    let mut call = task::spawn(call);
    (0..polls).for_each(|_| assert_pending!(call.poll()));
    assert!(kept.take().is_empty());
    drop(call);
    kept.one()
}

#[test]
fn a_future_that_is_dropped_at_any_point_is_cancelled() {
    for polls in 0..=STEPS {
        for is_governed in [false, true] {
            let record = dropped_after(polls, "execute_decision", is_governed);
            assert_eq!(record["algenta.outcome"], "cancelled", "after {polls}");
            assert_eq!(record["algenta.may_have_run"], true);
            let record = dropped_after(polls, "simulate", is_governed);
            assert_eq!(record["algenta.outcome"], "cancelled", "after {polls}");
            assert_eq!(record.get("algenta.may_have_run"), None);
        }
    }
}

#[test]
fn a_future_that_has_answered_is_not_recorded_again() {
    let kept = Kept::default();
    let mut service =
        AuditLayer::new(kept.clone()).layer(service_fn(|_: ToolRequest| async { Ok::<_, BoxError>(empty_result()) }));
    let mut call = task::spawn(service.call(ToolRequest::call("simulate", object!({}))));
    assert_ready_ok!(call.poll());
    assert_eq!(kept.one()["algenta.outcome"], "allowed");
    drop(call);
    assert!(kept.take().is_empty());
}

#[test]
fn a_panic_below_leaves_a_record() {
    let in_call = service_fn(|_: ToolRequest| -> std::future::Ready<Result<ToolResponse, BoxError>> { panic!("call") });
    let in_poll = service_fn(|_: ToolRequest| poll_fn(|_| -> Poll<Result<ToolResponse, BoxError>> { panic!("poll") }));
    let kept = Kept::default();
    let request = || ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": HOOK}));
    let layer = AuditLayer::new(kept.clone());
    let mut services = (layer.layer(in_call), layer.layer(in_poll));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(services.0.call(request())))).is_err());
    assert_eq!(kept.one()["algenta.outcome"], "cancelled");
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let mut call = task::spawn(services.1.call(request()));
        let _ = call.poll();
    }));
    assert!(unwound.is_err());
    assert_eq!(kept.one()["algenta.may_have_run"], true);
}

#[test]
fn readiness_is_the_inner_services_and_leaves_no_record() {
    let kept = Kept::default();
    let (mut service, mut handle) = mock::spawn_layer::<ToolRequest, ToolResponse, _>(AuditLayer::new(kept.clone()));
    handle.allow(0);
    assert_pending!(service.poll_ready());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut answer = task::spawn(service.call(ToolRequest::list()));
    assert_pending!(answer.poll());
    let mut request = task::spawn(handle.next_request());
    let Some((_, respond)) = assert_ready!(request.poll()) else { panic!("the list never arrived") };
    assert!(kept.take().is_empty());
    respond.send_error("gone");
    assert_eq!(assert_ready!(answer.poll()).unwrap_err().to_string(), "gone");
    assert_eq!(
        kept.one(),
        json!({"mcp.method.name": "tools/list", "algenta.outcome": "failed", "error.type": "upstream"})
    );
    drop(request);
    handle.send_error("closed");
    assert!(assert_ready!(service.poll_ready()).is_err());
    assert!(kept.take().is_empty());
}
