//! P7: one call in, one call out at the most. P8: what other tools answer is theirs.

use std::{error, fmt};

use proptest::{prelude::*, sample::select};
use rmcp::model::{CallToolResponse, CallToolResult};
use tower_algenta::{BoxError, Error, Profile, ToolRequest, ToolResponse};

use super::{answer, any, config, result};
use crate::checks::{ask, real};

/// An error of the inner service's own.
#[derive(Debug)]
struct Theirs(String);

impl fmt::Display for Theirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Theirs {}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p7_one_inner_call_at_the_most(
        profile in select(Profile::ALL.to_vec()),
        tool in any::tool(),
        arguments in any::dirty_arguments(),
        is_list in prop::bool::weighted(0.1),
        answer in answer(),
    ) {
        let call = ToolRequest::call(tool, any::as_execution(arguments));
        let request = if is_list { ToolRequest::list() } else { call };
        let given = answer.clone();
        let (outcome, received) = ask(&real, profile, request, move |_: &ToolRequest| given.give());
        prop_assert!(received.len() <= 1, "{} calls", received.len());
        let is_refusal = matches!(outcome, Err(Error::ToolNotAllowed(_) | Error::InvalidArguments(_)));
        prop_assert_eq!(received.is_empty(), is_refusal, "{:?} after {:?}", outcome, answer);
    }

    #[test]
    fn p8_results_of_other_tools_are_untouched(
        tool in select(vec!["get_contract", "query_data", "simulate", "recommend", "log_decision", "query_batch"]),
        result in result(),
    ) {
        let given: CallToolResult = serde_json::from_value(result).unwrap();
        let response = CallToolResponse::from(given.clone());
        let call = ToolRequest::call(tool, rmcp::object!({}));
        let (outcome, _) = ask(&real, Profile::Full, call, move |_: &ToolRequest| Ok(response.clone().into()));
        let Ok(ToolResponse::Call(outcome)) = outcome else { panic!("{outcome:?}") };
        prop_assert!(outcome.receipt().is_none());
        prop_assert_eq!(outcome.result(), Some(&given));
    }

    #[test]
    fn p8_errors_of_other_tools_are_untouched(
        tool in select(vec!["get_contract", "simulate", "log_decision", "query_batch"]),
        message in "\\PC{0,12}|\\{\"gate\": \"confidence\"\\}",
    ) {
        let given = message.clone();
        let call = ToolRequest::call(tool, rmcp::object!({}));
        let (outcome, _) =
            ask(&real, Profile::Full, call, move |_: &ToolRequest| Err(BoxError::from(Theirs(given.clone()))));
        let Err(Error::Upstream(error)) = outcome else { panic!("{outcome:?}") };
        prop_assert_eq!(error.downcast_ref::<Theirs>().map(|error| &error.0), Some(&message));
    }
}
