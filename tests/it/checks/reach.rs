//! Which tools a model reaches, and how often one call reaches the engine.

use rmcp::{
    model::{ListToolsResult, ServerResult, Tool},
    object,
};
use serde_json::{Value, json};
use tower_algenta::{BoxError, Error, Profile, ToolRequest, ToolResponse};

use super::{Finding, Stack, ask, ensure};
use crate::{
    model::names::{CONTRACT, allowed},
    support::empty_result,
};

const OTHERS: [&str; 18] = [
    "query_batch",
    "server__get_contract",
    "algenta_simulate",
    "get_contract__execute_decision",
    "Execute_Decision",
    "execute-decision",
    "executeDecision",
    "srv__execute_decision",
    "algenta_execute_decision",
    "execute_decision ",
    "execute_decision\n",
    "\u{ff45}xecute_decision",
    "execute_decision_v2",
    "Simulate",
    " simulate",
    "simulat",
    "g\u{435}t_contract",
    "",
];

fn call(name: &str) -> ToolRequest {
    ToolRequest::call(name.to_owned(), object!({"decision_id": "d", "webhook_url": "w"}))
}

/// A tool is listed exactly if it can be called, and that is decided by the profile alone, before any list.
pub(crate) fn listed_exactly_if_callable(stack: Stack<'_>) -> Finding {
    let names: Vec<&str> = CONTRACT.into_iter().chain(OTHERS).collect();
    let tools = names.iter().map(|name| Tool::new((*name).to_owned(), "", object!({"type": "object"}))).collect();
    let upstream = ListToolsResult::with_all_items(tools);
    for profile in Profile::ALL {
        let expected: Vec<&str> = names.iter().copied().filter(|name| allowed(profile.as_str(), "", name)).collect();
        for name in &names {
            let (answer, received) = ask(stack, profile, call(name), |_: &ToolRequest| Ok(empty_result()));
            ensure(expected.contains(name) != received.is_empty(), || {
                format!("{name:?} under {profile} reached the engine {} times", received.len())
            })?;
            ensure(expected.contains(name) || answer.is_err(), || format!("{name:?} under {profile}: {answer:?}"))?;
        }
        let list = upstream.clone();
        let (answer, _) = ask(stack, profile, ToolRequest::list(), move |_: &ToolRequest| Ok(list.clone().into()));
        let Ok(ToolResponse::List(list)) = answer else { return Err(format!("no list: {answer:?}")) };
        let listed: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
        ensure(listed == expected, || format!("{profile} lists {listed:?}"))?;
    }
    Ok(())
}

/// An answer as the engine writes it.
#[track_caller]
pub(crate) fn answer(result: Value) -> ToolResponse {
    let result: ServerResult = serde_json::from_value(result).expect("a result decodes");
    ToolResponse::try_from(result).expect("it answers a tool request")
}

/// How often the engine is asked for one request: once at the most, and never if the request is refused.
pub(crate) fn calls(
    stack: Stack<'_>,
    profile: Profile,
    request: ToolRequest,
    answer: impl Fn(&ToolRequest) -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
) -> Result<usize, String> {
    let (outcome, received) = ask(stack, profile, request, answer);
    ensure(received.len() <= 1, || format!("{} calls", received.len()))?;
    let is_refusal = matches!(outcome, Err(Error::ToolNotAllowed(_) | Error::InvalidArguments(_)));
    ensure(received.is_empty() == is_refusal, || format!("{} calls, and {outcome:?}", received.len()))?;
    Ok(received.len())
}

/// Whatever an execution comes to, the engine is asked once.
pub(crate) fn one_call_at_the_most(stack: Stack<'_>) -> Finding {
    let text = |text: Value, is_error: bool| json!({"content": [{"type": "text", "text": text.to_string()}], "isError": is_error});
    let answers = [
        json!({"content": []}),
        text(json!({"error": {"code": "execution_blocked_confidence", "gate": "confidence"}}), true),
        text(json!({"error": {"code": "mcp_upstream_unavailable", "status_code": 503}}), true),
        text(json!({"error": {"code": "rate_limit_exceeded", "status_code": 429}}), true),
        json!({"resultType": "input_required", "requestState": "s"}),
        json!({
            "resultType": "task", "taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x",
            "ttlMs": null
        }),
    ];
    for given in answers {
        let response = answer(given.clone());
        for tool in ["execute_decision", "simulate"] {
            let response = response.clone();
            let calls = calls(stack, Profile::Execute, call(tool), move |_: &ToolRequest| Ok(response.clone()))
                .map_err(|found| format!("{found} after {given}"))?;
            ensure(calls == 1, || format!("{tool} is refused"))?;
        }
    }
    for tool in ["execute_decision", "simulate"] {
        let calls = calls(stack, Profile::Execute, call(tool), |_: &ToolRequest| Err(BoxError::from("reset")))
            .map_err(|found| format!("{found} after an error"))?;
        ensure(calls == 1, || format!("{tool} is refused"))?;
    }
    Ok(())
}
