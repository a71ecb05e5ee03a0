//! P7: one call in, one call out at the most. P8: what other tools answer is theirs.

use proptest::{prelude::*, sample::select};
use tower_algenta::{Profile, ToolRequest};

use super::{answer, any, config, result};
use crate::checks::{outcomes, reach, real};

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
        reach::calls(&real, profile, request, move |_: &ToolRequest| answer.give()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn p8_results_of_other_tools_are_untouched(
        tool in select(vec!["get_contract", "query_data", "simulate", "recommend", "log_decision", "query_batch"]),
        result in result(),
    ) {
        let given = serde_json::from_value(result).unwrap();
        outcomes::result_passes(&real, tool, &given).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn p8_errors_of_other_tools_are_untouched(
        tool in select(vec!["get_contract", "simulate", "log_decision", "query_batch"]),
        message in "\\PC{0,12}|\\{\"gate\": \"confidence\"\\}",
    ) {
        outcomes::error_passes(&real, tool, &message).map_err(TestCaseError::fail)?;
    }
}
