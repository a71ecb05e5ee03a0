//! Wrong layers, each with one mistake that somebody made or would make, in a stack that is right otherwise. The checks
//! that the real stack passes have to find each of them out: this tests the tests.

mod layers;
mod services;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::model::ClientRequest;
use tower::layer::layer_fn;

use crate::checks::{self, Finding, Stack, arguments, bounds, contract, outcomes, reach, schemas, wire};

/// A check that has to fail, and what it says then.
#[track_caller]
fn caught(finding: Finding, because: &str) {
    let found = finding.expect_err("the check lets a wrong stack pass");
    assert!(found.contains(because), "caught, but for another reason: {found}");
}

/// The checks that a wrong stack passes show that its mistake is the only one.
#[track_caller]
fn is_right_otherwise(stack: Stack<'_>, passed: &[fn(Stack<'_>) -> Finding]) {
    for check in passed {
        check(stack).expect("nothing else is wrong with it");
    }
}

#[test]
fn a_filter_of_lists_alone_is_caught() {
    let stack = layers::filters_lists_alone;
    caught(reach::listed_exactly_if_callable(&stack), "reached the engine 1 times");
    is_right_otherwise(&stack, &[arguments::no_switch_arrives, schemas::no_switch_is_listed]);
}

#[test]
fn a_match_of_suffixes_is_caught() {
    let stack = layers::matches_suffixes;
    caught(reach::listed_exactly_if_callable(&stack), "\"server__get_contract\" under observe reached the engine");
    is_right_otherwise(&stack, &[arguments::no_switch_arrives, outcomes::denials_are_denied]);
}

#[test]
fn a_pass_through_arm_is_caught() {
    let gateway = |request| match request {
        ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_) => wire::real(request),
        other => Some(other),
    };
    caught(wire::nothing_unread_passes(&gateway), "\"requestState\":5");
}

#[test]
fn a_scan_from_the_first_brace_is_caught() {
    let stack = layers::scans_from_the_first_brace;
    caught(outcomes::denials_are_denied(&stack), "{execute_decision}");
    is_right_otherwise(&stack, &[reach::listed_exactly_if_callable, outcomes::other_tools_are_untouched]);
}

#[test]
fn denials_under_the_error_flag_alone_are_caught() {
    let stack = layers::looks_at_errors_alone;
    caught(outcomes::denials_are_denied(&stack), "ended in Ok");
    is_right_otherwise(&stack, &[reach::one_call_at_the_most, outcomes::other_tools_are_untouched]);
}

#[test]
fn a_pop_at_the_top_of_schemas_is_caught() {
    let stack = layers::pops_at_the_top_of_schemas;
    caught(schemas::no_switch_is_listed(&stack), "overrideSafety");
    is_right_otherwise(&stack, &[reach::listed_exactly_if_callable, arguments::no_switch_arrives]);
}

#[test]
fn a_kept_one_of_is_caught() {
    let stack = layers::keeps_one_of;
    caught(schemas::no_call_is_wrongly_rejected(&stack), "oneOf");
    is_right_otherwise(&stack, &[reach::listed_exactly_if_callable, schemas::no_switch_is_listed]);
}

#[test]
fn a_hint_in_display_is_caught() {
    let stack = layers::prints_the_hint;
    caught(outcomes::denials_are_silent(&stack), "override");
    is_right_otherwise(&stack, &[reach::one_call_at_the_most, outcomes::other_tools_are_untouched]);
}

/// `RunningService::call_tool` answers a request for input by calling again; `call_tool_once` does not.
#[test]
fn a_client_that_goes_on_by_itself_is_caught() {
    let stack = layers::answers_requests_for_input;
    caught(reach::one_call_at_the_most(&stack), "\"requestState\":\"s\"");
    is_right_otherwise(&stack, &[outcomes::denials_are_denied, outcomes::only_bound_receipts_succeed]);
}

#[test]
fn a_retry_inside_is_caught() {
    let stack = layers::retries_inside;
    caught(reach::one_call_at_the_most(&stack), "2 calls after an error");
    is_right_otherwise(&stack, &[outcomes::denials_are_denied, outcomes::only_bound_receipts_succeed]);
}

#[test]
fn a_pop_at_the_top_of_arguments_is_caught() {
    let stack = layers::pops_at_the_top_of_arguments;
    caught(arguments::no_switch_arrives(&stack), "execute_decision received");
    is_right_otherwise(&stack, &[arguments::data_arrives, schemas::no_switch_is_listed]);
}

#[test]
fn a_strip_at_every_depth_is_caught() {
    let stack = layers::strips_at_every_depth;
    caught(arguments::data_arrives(&stack), "simulate received");
    is_right_otherwise(&stack, &[arguments::no_switch_arrives, schemas::no_switch_is_listed]);
}

#[test]
fn a_receipt_of_any_call_is_caught() {
    let stack = layers::takes_any_receipt;
    caught(outcomes::only_bound_receipts_succeed(&stack), "\\\"decision_id\\\":\\\"d2\\\"");
    is_right_otherwise(&stack, &[outcomes::denials_are_denied, outcomes::denials_are_silent]);
}

#[test]
fn a_second_call_is_caught() {
    let stack = layers::asks_twice;
    caught(reach::one_call_at_the_most(&stack), "2 calls after");
    is_right_otherwise(&stack, &[outcomes::only_bound_receipts_succeed, outcomes::other_tools_are_untouched]);
}

#[test]
fn an_error_flag_on_other_tools_is_caught() {
    let stack = layers::marks_errors;
    caught(outcomes::other_tools_are_untouched(&stack), "of simulate became Ok");
    is_right_otherwise(&stack, &[reach::one_call_at_the_most, outcomes::denials_are_denied]);
}

#[test]
fn an_error_of_other_tools_in_other_words_is_caught() {
    let stack = layers::wraps_errors;
    caught(outcomes::other_tools_are_untouched(&stack), "the error \"reset\" of simulate became Err");
    is_right_otherwise(&stack, &[reach::one_call_at_the_most, outcomes::denials_are_denied]);
}

#[test]
fn a_call_of_a_fresh_clone_is_caught() {
    caught(contract::is_kept_in_short(&layer_fn(services::CallsAClone)), "called without being polled ready");
}

#[test]
fn a_readiness_of_its_own_is_caught() {
    caught(contract::is_kept_in_short(&layer_fn(services::AlwaysReady)), "called without being polled ready");
    caught(contract::is_kept_in_short(&layer_fn(services::WaitsOutErrors)), "Pending of Ready(Err");
}

#[test]
fn a_strip_without_a_bound_is_caught() {
    let stack = layers::strips_without_a_bound;
    caught(bounds::depth_is_bounded(&stack), "levels of arguments to simulate: Ok");
    is_right_otherwise(&stack, &[reach::one_call_at_the_most, outcomes::other_tools_are_untouched]);
}

/// It would take minutes to count to the end.
#[test]
fn a_scan_in_quadratic_time_is_caught() {
    let stop = Arc::new(AtomicBool::new(false));
    let stack = layers::counts_objects(stop.clone());
    caught(bounds::hostile_arguments_are_read_within(Duration::from_secs(1), &stack), "still reading after 1s");
    caught(bounds::hostile_answers_are_read_within(Duration::from_secs(1), &stack), "still reading after 1s");
    stop.store(true, Ordering::Relaxed);
    let stack = layers::counts_objects(Arc::default());
    is_right_otherwise(&stack, &[reach::one_call_at_the_most, outcomes::denials_are_denied, bounds::depth_is_bounded]);
}

#[test]
fn a_stack_of_nothing_is_caught_by_every_check() {
    let stack = |_, engine: checks::Boxed| engine;
    caught(reach::listed_exactly_if_callable(&stack), "reached the engine");
    caught(arguments::no_switch_arrives(&stack), "received");
    caught(schemas::no_switch_is_listed(&stack), "is listed as");
    caught(outcomes::denials_are_denied(&stack), "ended in Ok");
    caught(outcomes::denials_are_silent(&stack), "passed as");
    caught(outcomes::only_bound_receipts_succeed(&stack), "ended in");
    caught(wire::nothing_unread_passes(&Some), "passed as");
}
