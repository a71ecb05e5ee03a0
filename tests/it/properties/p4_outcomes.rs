//! P4: an execution succeeds with a receipt of this very call, or passes a 4xx on; whatever else, it fails, and ends.

use std::time::Duration;

use proptest::prelude::*;
use rmcp::object;
use serde_json::Value;
use tokio_test::{assert_pending, task};
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};
use tower_algenta::{BoxError, Error, GovernanceLayer, Profile, ToolRequest, ToolResponse};

use super::{answer, config};
use crate::checks::{ask, bounds, real};

fn execution(decision_id: &str, webhook_url: &str) -> ToolRequest {
    ToolRequest::call("execute_decision", object!({"decision_id": decision_id, "webhook_url": webhook_url}))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p4_an_execution_succeeds_with_its_receipt_alone(
        answer in answer(),
        decision_id in "d|d2|[a-z]{1,3}",
        webhook_url in "w|w2|https://hooks\\.example/x",
    ) {
        let given = answer.clone();
        let call = execution(&decision_id, &webhook_url);
        let (outcome, _) = ask(&real, Profile::Execute, call, move |_: &ToolRequest| given.give());
        match outcome {
            Ok(ToolResponse::Call(outcome)) => {
                let result = outcome.result().expect("a task or a request for input passed");
                if let Some(receipt) = outcome.receipt() {
                    prop_assert_eq!(receipt.decision_id(), decision_id);
                    prop_assert_eq!(receipt.webhook_url(), webhook_url);
                    prop_assert_ne!(result.is_error, Some(true));
                    prop_assert!(!result.content.is_empty() || result.structured_content.is_some());
                } else {
                    prop_assert_eq!(result.is_error, Some(true));
                    let [block] = &*result.content else { panic!("{:?}", result.content) };
                    let envelope: Value = serde_json::from_str(&block.as_text().unwrap().text).unwrap();
                    let status = envelope["error"]["status_code"].as_u64().unwrap();
                    prop_assert!((400..500).contains(&status) && ![408, 409, 425, 499].contains(&status));
                }
            }
            Ok(ToolResponse::List(_)) => prop_assert!(false, "a list answered an execution"),
            Err(error) => prop_assert!(error.is_governed_failure(), "{error:?} after {answer:?}"),
        }
    }
}

#[test]
fn p4_an_answer_that_never_comes_stays_pending() {
    let never = service_fn(|_: ToolRequest| std::future::pending::<Result<ToolResponse, BoxError>>());
    let mut stack = GovernanceLayer::new(Profile::Execute).layer(never);
    let mut answer = task::spawn(stack.call(execution("d", "w")));
    assert_pending!(answer.poll());
    assert_pending!(answer.poll());
    drop(answer);
}

#[test]
fn p4_a_dropped_answer_is_an_unknown_outcome() {
    let (service, mut handle) = tower_test::mock::pair::<ToolRequest, ToolResponse>();
    handle.allow(1);
    let stack = GovernanceLayer::new(Profile::Execute).layer(service);
    let mut answer = task::spawn(stack.oneshot(execution("d", "w")));
    assert_pending!(answer.poll());
    let mut request = task::spawn(handle.next_request());
    let (_, respond) = tokio_test::assert_ready!(request.poll()).expect("the call arrives");
    drop(respond);
    let error = Error::from(tokio_test::assert_ready_err!(answer.poll()));
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
}

/// Read naively, a text of this size that opens objects without end takes minutes.
#[test]
fn p4_a_mebibyte_is_read_in_linear_time() {
    bounds::hostile_answers_are_read_within(Duration::from_secs(30), &real).unwrap();
}
