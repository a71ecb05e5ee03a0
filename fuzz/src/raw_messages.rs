//! P9 and the rest through the whole stack: raw messages, decoded as rmcp decodes them, in both directions.

use std::collections::BTreeSet;

use rmcp::{
    model::{CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, JsonObject, ListToolsResult},
    object,
};
use tower_algenta::{BoxError, Error, HiddenFields, NotAToolRequest, Profile, ToolRequest, ToolResponse};

use crate::{
    checks::{ask, real},
    execution,
    model::{
        arguments::{scrubbed, scrubbed_meta},
        names::allowed,
    },
    schema_scrub, silence,
    support::{empty_result, object},
    wire::{self, Answer},
};

/// Checks a client's message and, on the next line, the server's answer; either may be missing or broken.
#[must_use]
pub fn check(data: &[u8]) -> bool {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let request = lines.next().and_then(wire::request);
    let answer = lines.next().and_then(Answer::read);
    if request.is_none() && answer.is_none() {
        return false;
    }
    let requests = match request {
        Some(request) => vec![request],
        None => vec![
            ToolRequest::list().into(),
            ToolRequest::call("simulate", JsonObject::new()).into(),
            ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"})).into(),
        ],
    };
    for request in requests {
        let is_typed = matches!(request, ClientRequest::ListToolsRequest(_) | ClientRequest::CallToolRequest(_));
        match ToolRequest::try_from(request) {
            Ok(request) => {
                assert!(is_typed, "P9: {request:?}");
                for profile in [Profile::Observe, Profile::Execute, Profile::Full] {
                    governed(profile, &request, answer.as_ref());
                }
            }
            Err(refused @ NotAToolRequest { .. }) => {
                assert!(!is_typed, "P9: {refused:?}");
                assert!(refused.to_string().len() < 64 && format!("{refused:?}").len() < 64, "P5");
            }
        }
    }
    true
}

fn governed(profile: Profile, request: &ToolRequest, answer: Option<&Answer>) {
    let given = answer.cloned();
    let engine = move |request: &ToolRequest| -> Result<ToolResponse, BoxError> {
        match (&given, request) {
            (Some(answer), _) => answer.give(),
            (None, ToolRequest::List(_)) => Ok(ListToolsResult::default().into()),
            (None, ToolRequest::Call(_)) => Ok(empty_result()),
        }
    };
    let (outcome, received) = ask(&real, profile, request.clone(), engine);
    assert!(received.len() <= 1, "P7: {} calls", received.len());
    for received in &received {
        was_read(profile, received);
    }
    match request {
        ToolRequest::List(_) => listed(profile, answer, outcome),
        ToolRequest::Call(call) => {
            let params = &call.params;
            if !allowed(profile.as_str(), "", &params.name) {
                let error = outcome.expect_err("P2");
                assert!(matches!(error, Error::ToolNotAllowed(_)) && received.is_empty(), "P2: {error:?}");
                silence::check(&error);
            } else if params.name == "execute_decision" {
                executed(params, answer, &outcome, &received);
            } else if received.is_empty() {
                let error = outcome.expect_err("P7");
                assert!(matches!(error, Error::InvalidArguments(_)), "{error:?}");
                silence::check(&error);
            } else if let Some(answer) = answer {
                execution::check_other(answer, &outcome);
            }
        }
    }
}

/// P9, P2 and P1a of what the engine received, as it would be written for it.
fn was_read(profile: Profile, received: &ToolRequest) {
    let passed = serde_json::to_value(ClientRequest::from(received.clone())).unwrap();
    let params = passed.get("params").cloned().unwrap_or_default();
    let keys: BTreeSet<&str> =
        params.as_object().into_iter().flat_map(|params| params.keys().map(String::as_str)).collect();
    if matches!(received, ToolRequest::List(_)) {
        assert_eq!(passed["method"], "tools/list");
        assert!(keys.iter().all(|key| ["cursor", "_meta"].contains(key)), "P9: {passed}");
        return;
    }
    assert_eq!(passed["method"], "tools/call");
    let tool = params["name"].as_str().unwrap();
    assert!(allowed(profile.as_str(), "", tool), "P2: {passed}");
    let known = ["name", "arguments", "_meta", "requestState", "inputResponses"];
    assert!(keys.iter().all(|key| known.contains(key)), "P9: {passed}");
    if tool == "execute_decision" {
        assert!(!keys.contains("requestState") && !keys.contains("inputResponses"), "P9: {passed}");
    }
    if let Some(arguments) = params.get("arguments") {
        let arguments = object(arguments);
        let again = scrubbed(tool, &arguments).map(|forwarded| forwarded.arguments);
        assert_eq!(again, Some(arguments), "P1a: {passed}");
    }
    if let Some(meta) = params.get("_meta") {
        let meta = object(meta);
        assert_eq!(scrubbed_meta(&meta), meta, "P1a: {passed}");
    }
}

/// P2 and P3 of what a caller sees of a list.
fn listed(profile: Profile, answer: Option<&Answer>, outcome: Result<ToolResponse, Error>) {
    let (given, list) = match (answer, outcome) {
        (Some(Answer::Response(ToolResponse::List(given))), Ok(ToolResponse::List(list))) => (given, list),
        (None, Ok(ToolResponse::List(_)))
        | (Some(Answer::Response(ToolResponse::Call(_))), Err(Error::UnexpectedResponse(_)))
        | (Some(Answer::Failure(_) | Answer::Unread), Err(Error::Upstream(_))) => return,
        (_, outcome) => panic!("a list ended in {outcome:?}"),
    };
    assert_eq!((&list.next_cursor, list.ttl_ms), (&given.next_cursor, given.ttl_ms), "P2");
    assert!(schema_scrub::no_switch_in_meta(list.meta.as_ref()), "{:?}", list.meta);
    let mut seen = BTreeSet::new();
    let mut listed = list.tools.iter();
    for tool in &given.tools {
        if !allowed(profile.as_str(), "", &tool.name) || !seen.insert(&tool.name) {
            continue;
        }
        if HiddenFields::new().scrub_tool(&tool.name, &mut tool.clone()).is_err() {
            schema_scrub::is_refused(&tool.name, tool);
            continue;
        }
        let shown = listed.next().unwrap_or_else(|| panic!("P2: {:?} is not listed", tool.name));
        schema_scrub::holds(&tool.name, tool, shown, &[]);
    }
    assert_eq!(listed.next(), None, "P2: a tool that can't be called is listed");
}

/// P4, P5 and P7 of an execution, and what the engine may quote of it.
fn executed(
    params: &CallToolRequestParams,
    answer: Option<&Answer>,
    outcome: &Result<ToolResponse, Error>,
    received: &[ToolRequest],
) {
    let arguments = params.arguments.clone().unwrap_or_default();
    let empty = Answer::Response(empty_result());
    execution::check(&arguments, answer.unwrap_or(&empty), outcome, received.len());
    let [ToolRequest::Call(arrived)] = received else { return };
    for text in execution::quotations(&arrived.params.arguments.clone().unwrap_or_default()) {
        let failed = CallToolResult::error(vec![ContentBlock::text(text.clone())]);
        let again = ToolRequest::from(params.clone());
        let (outcome, _) = ask(&real, Profile::Execute, again, move |_: &ToolRequest| Ok(failed.clone().into()));
        let is_open = matches!(outcome, Err(Error::OutcomeUnknown(_) | Error::ExecutionFailed(_)));
        assert!(is_open, "{outcome:?} after {text}");
    }
}
