//! P11: depth, size and time have bounds.

use std::time::Duration;

use proptest::{prelude::*, sample::select};
use rmcp::{
    model::{CallToolResult, ContentBlock},
    object,
};
use serde_json::json;
use tower_algenta::{Error, Profile, ToolRequest};

use super::{any::plain_key, config};
use crate::checks::{ask, bounds, real};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p11_depth_is_bounded_at_128(
        tool in select(vec!["execute_decision", "simulate", "query_batch"]),
        key in plain_key(),
        levels in 1..260_usize,
        is_array: bool,
    ) {
        prop_assume!(!["decision_id", "webhook_url", "timeout_seconds"].contains(&&*key));
        let value = bounds::nested(levels, is_array);
        let mut arguments = json!({"decision_id": "d", "webhook_url": "w"});
        arguments[key] = value.clone();
        for found in [
            bounds::arguments_are_bounded(&real, tool, &arguments),
            bounds::meta_is_bounded(&real, &value),
            bounds::receipts_are_bounded(&real, &value),
            bounds::schemas_are_bounded(&real, levels),
        ] {
            found.map_err(TestCaseError::fail)?;
        }
    }
}

#[test]
fn p11_a_text_of_more_than_a_mebibyte_is_not_read() {
    let receipt = |padding: usize| {
        json!({
            "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now",
            "payload_summary": "x".repeat(padding)
        })
        .to_string()
    };
    let fits = (1 << 20) - receipt(0).len();
    for (padding, is_read) in [(fits, true), (fits + 1, false)] {
        let result = CallToolResult::success(vec![ContentBlock::text(receipt(padding))]);
        let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
        let (outcome, _) = ask(&real, Profile::Execute, call, move |_: &ToolRequest| Ok(result.clone().into()));
        assert_eq!(outcome.is_ok(), is_read, "{:?}", outcome.err());
        assert!(is_read || matches!(outcome, Err(Error::OutcomeUnknown(_))));
    }
}

/// Read in quadratic time, one of them takes minutes.
#[test]
fn p11_hostile_arguments_are_read_in_linear_time() {
    bounds::hostile_arguments_are_read_within(Duration::from_secs(30), &real).unwrap();
}
