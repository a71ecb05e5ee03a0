//! The cases of names, through `ProfileFilter`, and the agreement of lists and calls.

use rmcp::{
    model::{ListToolsResult, Tool},
    object,
};
use serde_json::Value;
use tower::{ServiceBuilder, ServiceExt as _};
use tower_algenta::{
    BoxError, Error, Profile, ProfileFilterLayer, ReceiptMappingLayer, ToolNames, ToolRequest, ToolResponse,
};

use crate::support::{Received, cases, empty_result, recording, text};

fn tools(names: &[&str]) -> Vec<Tool> {
    names.iter().map(|name| Tool::new((*name).to_owned(), "", object!({"type": "object"}))).collect()
}

fn names_of(case: &Value) -> ToolNames {
    case["input"]["configured_prefix"].as_str().map_or_else(ToolNames::bare, ToolNames::prefixed)
}

async fn call(profile: Profile, names: ToolNames, tool: &str) -> (Result<ToolResponse, Error>, Vec<ToolRequest>) {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let layer = ProfileFilterLayer::new(profile).tool_names(names);
    let answer =
        ServiceBuilder::new().layer(layer).service(engine).oneshot(ToolRequest::call(tool.to_owned(), object!({})));
    (answer.await.map_err(Error::from), received.take())
}

async fn list(profile: Profile, upstream: ListToolsResult) -> ListToolsResult {
    let engine = recording(&Received::default(), move |_: &ToolRequest| Ok(upstream.clone().into()));
    let service = ServiceBuilder::new().layer(ProfileFilterLayer::new(profile)).service(engine);
    match service.oneshot(ToolRequest::list()).await {
        Ok(ToolResponse::List(list)) => list,
        other => panic!("{other:?}"),
    }
}

/// Whether `ReceiptMapping` takes a call of `tool` for an execution: it refuses one without a decision.
async fn is_mapped(names: ToolNames, tool: &str) -> bool {
    let engine = recording(&Received::default(), |_: &ToolRequest| Ok(empty_result()));
    let service = ServiceBuilder::new().layer(ReceiptMappingLayer::new().tool_names(names)).service(engine);
    service.oneshot(ToolRequest::call(tool.to_owned(), object!({}))).await.is_err()
}

#[tokio::test]
async fn every_name_case_is_decided_as_it_must() {
    let cases = cases(include_str!("../vectors/names.json"));
    assert_eq!(cases.len(), 47);
    let mut ran = 0;
    for case in &cases {
        let (id, input, expected) = (text(case, "id"), &case["input"], &case["expected"]);
        if id == "seq-001" {
            let (answer, received) = call(Profile::Observe, ToolNames::bare(), "execute_decision").await;
            assert!(matches!(answer, Err(Error::ToolNotAllowed(_))));
            assert!(received.is_empty());
            ran += 1;
            continue;
        }
        let profile: Profile = text(input, "profile").parse().unwrap();
        if input["op"] == "tools/list" {
            let names: Vec<_> = input["upstream_names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let mut upstream = ListToolsResult::with_all_items(tools(&names)).with_ttl_ms(7);
            upstream.next_cursor = input["upstream_nextCursor"].as_str().map(str::to_owned);
            let listed = list(profile, upstream).await;
            let names: Vec<_> = listed.tools.iter().map(|tool| &*tool.name).collect();
            assert_eq!(Value::from(names), expected["listed"], "{id}");
            assert_eq!(listed.next_cursor.as_deref(), expected["nextCursor"].as_str(), "{id}");
            assert_eq!(listed.ttl_ms, Some(7), "{id}: the cache hint is kept");
            ran += 1;
            continue;
        }
        let name = text(input, "name");
        let (answer, received) = call(profile, names_of(case), name).await;
        if id == "seq-004" {
            let display = answer.unwrap_err().to_string();
            assert!(!display.chars().any(char::is_control), "{display}");
            assert!(!display.contains("simulate"), "{display}");
            assert!(display.chars().count() < 160, "{display}");
        } else if expected["forwarded"] == true {
            assert!(answer.is_ok(), "{id}: {answer:?}");
            assert_eq!(received[0].tool(), expected["forwarded_name"].as_str(), "{id}");
            assert_eq!(Value::Bool(is_mapped(names_of(case), name).await), expected["receipt_mapping_applies"], "{id}");
        } else {
            assert!(matches!(answer, Err(Error::ToolNotAllowed(_))), "{id}: {answer:?}");
            assert_eq!(Value::from(received.len()), expected["inner_calls"], "{id}");
        }
        ran += 1;
    }
    assert_eq!(ran, 47);
}

/// Over the recorded list, a tool is listed exactly if it can be called.
#[tokio::test]
async fn a_recorded_tool_is_listed_exactly_if_it_can_be_called() {
    let recorded: Value = serde_json::from_str(include_str!("../data/tools_list.json")).unwrap();
    let recorded: ListToolsResult = serde_json::from_value(recorded).unwrap();
    assert_eq!(recorded.tools.len(), 140);
    for (profile, count) in Profile::ALL.into_iter().zip([4, 6, 7, 140]) {
        let listed = list(profile, recorded.clone()).await;
        assert_eq!(listed.tools.len(), count, "{profile}");
        for tool in &recorded.tools {
            let is_listed = listed.tools.iter().any(|other| other.name == tool.name);
            let (answer, received) = call(profile, ToolNames::bare(), &tool.name).await;
            assert_eq!(answer.is_ok(), is_listed, "{} under {profile}", tool.name);
            assert_eq!(received.len(), usize::from(is_listed));
        }
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_refused() {
    let engine = recording(&Received::default(), |request: &ToolRequest| {
        Ok::<_, BoxError>(match request {
            ToolRequest::List(_) => empty_result(),
            ToolRequest::Call(_) => ListToolsResult::with_all_items(tools(&["execute_decision"])).into(),
        })
    });
    let service = ServiceBuilder::new().layer(ProfileFilterLayer::new(Profile::Observe)).service(engine);
    for request in [ToolRequest::list(), ToolRequest::call("simulate", object!({}))] {
        let error = Error::from(service.clone().oneshot(request).await.unwrap_err());
        assert!(matches!(error, Error::UnexpectedResponse(_)), "{error:?}");
    }
}
