//! Values that no parser would let in: a hundred thousand levels deep, built in memory, on a thread with a 2 MiB stack.

use rmcp::{
    model::{
        CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ListToolsResult, MetaObject,
        RequestMetaObject, Tool,
    },
    object,
};
use serde_json::Value;
use tower::{Layer as _, Service as _, service_fn};
use tower_algenta::{
    BoxError, Error, ExecutionBlocked, ExecutionReceipt, GovernanceLayer, Profile, ToolRequest, ToolResponse,
};

use crate::support::{Received, cases, empty_result, recording};

const LEVELS: usize = 100_000;

fn deep() -> Value {
    let mut value = Value::Object(object!({"force": true}));
    for _ in 0..LEVELS {
        let mut members = JsonObject::new();
        members.insert("a".to_owned(), value);
        value = Value::Object(members);
    }
    value
}

fn with_deep(key: &str) -> JsonObject {
    let mut arguments = object!({"decision_id": "d", "webhook_url": "w"});
    arguments.insert(key.to_owned(), deep());
    arguments
}

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

/// Sends `request` through the whole stack, which must refuse it.
fn refused(profile: Profile, request: ToolRequest) {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let mut stack = GovernanceLayer::new(profile).layer(engine);
    let answer = futures::executor::block_on(stack.call(request)).map_err(Error::from);
    assert!(matches!(answer, Err(Error::InvalidArguments(_) | Error::ToolNotAllowed(_))), "{answer:?}");
    assert_eq!(received.len(), 0);
}

#[test]
fn arguments_deeper_than_the_stack_are_refused() {
    on_a_small_stack(|| {
        for profile in [Profile::Observe, Profile::Execute, Profile::Full] {
            for tool in ["execute_decision", "simulate", "query_batch"] {
                refused(profile, ToolRequest::call(tool, with_deep("a")));
            }
        }
        for key in ["metadata", "force", "override-safety", "timeout_seconds"] {
            refused(Profile::Execute, ToolRequest::call("execute_decision", with_deep(key)));
        }
    });
}

#[test]
fn meta_deeper_than_the_stack_is_refused_wherever_rmcp_keeps_it() {
    on_a_small_stack(|| {
        let meta = || {
            let mut meta = JsonObject::new();
            meta.insert("com.example/x".to_owned(), deep());
            meta
        };
        let call = || CallToolRequestParams::new("simulate").with_arguments(object!({}));
        let mut params = call();
        params.meta = Some(RequestMetaObject(MetaObject(meta())));
        refused(Profile::Observe, params.into());

        let mut request = ToolRequest::from(call());
        request.extensions_mut().insert(RequestMetaObject(MetaObject(meta())));
        refused(Profile::Observe, request);

        let mut request = ToolRequest::from(call());
        request.extensions_mut().insert(MetaObject(meta()));
        refused(Profile::Observe, request);

        let mut answers = std::collections::BTreeMap::new();
        answers.insert("approve".to_owned(), deep());
        refused(Profile::Execute, CallToolRequestParams::new("execute_decision").with_input_responses(answers).into());
    });
}

#[test]
fn an_answer_deeper_than_the_stack_is_no_receipt() {
    on_a_small_stack(|| {
        let engine = service_fn(|_: ToolRequest| async {
            let mut result = CallToolResult::success(vec![ContentBlock::text("{}")]);
            result.structured_content = Some(deep());
            Ok::<_, BoxError>(ToolResponse::from(result))
        });
        let mut stack = GovernanceLayer::new(Profile::Execute).layer(engine);
        let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
        let error = Error::from(futures::executor::block_on(stack.call(call)).unwrap_err());
        assert!(matches!(error, Error::ExecutionFailed(_)), "{error:?}");
    });
}

#[test]
fn the_public_parsers_refuse_what_is_too_deep() {
    on_a_small_stack(|| {
        let mut receipt = object!({
            "decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"
        });
        receipt.insert("payload_summary".to_owned(), deep());
        let receipt = Value::Object(receipt);
        assert!(ExecutionReceipt::from_value(&receipt).is_err());
        assert!(ExecutionBlocked::from_value(&receipt).is_err());
        // `Value`'s own drop would overflow this stack.
        std::mem::forget(receipt);
    });
}

#[test]
fn a_schema_deeper_than_the_stack_drops_its_tool_alone() {
    on_a_small_stack(|| {
        let engine = service_fn(|_: ToolRequest| async {
            let tool = |name: &'static str, schema| Tool::new(name, "", schema);
            let Value::Object(schema) = deep() else { unreachable!() };
            let tools = vec![tool("simulate", schema), tool("recommend", object!({"type": "object"}))];
            Ok::<_, BoxError>(ToolResponse::from(ListToolsResult::with_all_items(tools)))
        });
        let mut stack = GovernanceLayer::new(Profile::Observe).layer(engine);
        let Ok(ToolResponse::List(list)) = futures::executor::block_on(stack.call(ToolRequest::list())) else {
            panic!("no list")
        };
        assert_eq!(list.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["recommend"]);
    });
}

/// The cases of this kind are written out here and in `layers` and `composition`; none may drop out.
#[test]
fn the_cases_in_process_are_those_that_are_tested() {
    let cases = cases(include_str!("../vectors/arguments.json"));
    let ids: Vec<_> =
        cases.iter().filter(|case| case["layer"] == "stack (in process)").map(|case| case["id"].clone()).collect();
    assert_eq!(ids, ["proc-001", "proc-003", "proc-004", "proc-006"]);
}
