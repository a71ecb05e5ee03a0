//! Two requests and two responses; every other message of the protocol is refused, unread.

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerResult};
use serde_json::{Value, json};
use tower_algenta::{CallOutcome, ToolRequest, ToolResponse};

/// A request off the wire, as rmcp decodes it.
#[track_caller]
fn request(method: &str, params: &Value) -> ClientRequest {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    match serde_json::from_str(&message.to_string()) {
        Ok(ClientJsonRpcMessage::Request(request)) => request.request,
        other => panic!("{method}: {other:?}"),
    }
}

#[test]
fn only_well_formed_tool_requests_enter_the_stack() {
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/list", json!({"cursor": "c"})),
        ("tools/call", json!({"name": "simulate"})),
        ("tools/call", json!({"name": "simulate", "arguments": {}, "_meta": {"traceparent": "t"}})),
    ] {
        let before = serde_json::to_value(request(method, &params)).unwrap();
        let request = ToolRequest::try_from(request(method, &params)).unwrap();
        assert_eq!(serde_json::to_value(ClientRequest::from(request)).unwrap(), before, "there and back");
    }
    let implementation = json!({"name": "n", "version": "1"});
    let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": implementation});
    for (method, params) in [
        ("ping", json!({})),
        ("initialize", initialize),
        ("server/discover", json!({})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}}),
        ),
        ("logging/setLevel", json!({"level": "info"})),
        ("prompts/get", json!({"name": "p"})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "u"})),
        ("subscriptions/listen", json!({"notifications": {}})),
        ("resources/subscribe", json!({"uri": "u"})),
        ("resources/unsubscribe", json!({"uri": "u"})),
        ("tasks/get", json!({"taskId": "t"})),
        ("tasks/update", json!({"taskId": "t", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "t"})),
        ("Tools/Call", json!({"name": "execute_decision", "arguments": {"force": true}})),
        ("tools/call ", json!({"name": "execute_decision"})),
        ("anything/else", json!({})),
    ] {
        let refusal = ToolRequest::try_from(request(method, &params)).unwrap_err();
        assert!(!refusal.is_malformed(), "{method}");
        assert_eq!(refusal.into_request().method(), method, "nothing is lost");
    }
}

/// What rmcp's untagged decoding lets slide into a custom request, with the switch in it.
#[test]
fn a_tool_request_with_one_unreadable_member_is_refused() {
    let arguments = json!({"decision_id": "d", "webhook_url": "w", "force": true});
    for params in [
        json!({"name": "execute_decision", "arguments": arguments, "requestState": 5}),
        json!({"name": "execute_decision", "arguments": arguments, "inputResponses": []}),
        json!({"name": "execute_decision", "arguments": [arguments]}),
        json!({"name": "execute_decision", "arguments": "force"}),
        json!({"name": 5, "arguments": arguments}),
        json!({"Name": "execute_decision", "Arguments": arguments}),
    ] {
        let refusal = ToolRequest::try_from(request("tools/call", &params)).unwrap_err();
        assert!(refusal.is_malformed(), "{params}");
        assert!(!format!("{refusal} {refusal:?}").contains("force"));
    }
    // These don't even decode.
    for params in [json!({"name": "execute_decision", "arguments": arguments, "_meta": 5}), json!([])] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        assert!(serde_json::from_str::<ClientJsonRpcMessage>(&message).is_err(), "{message}");
    }
    // rmcp drops an unreadable cursor before anybody can see it: the first page is asked for, and governed.
    let list = ToolRequest::try_from(request("tools/list", &json!({"cursor": 5}))).unwrap();
    assert!(matches!(list, ToolRequest::List(list) if list.params.is_none()));
}

#[test]
fn only_answers_to_tool_requests_leave_it() {
    let read = |result: Value| ToolResponse::try_from(serde_json::from_value::<ServerResult>(result).unwrap());
    let tool = json!({"name": "simulate", "inputSchema": {"type": "object"}});
    assert!(matches!(read(json!({"tools": [tool]})), Ok(ToolResponse::List(_))));
    for result in [
        json!({"content": []}),
        json!({"structuredContent": 5}),
        json!({"resultType": "task", "taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null}),
        json!({"resultType": "input_required", "requestState": "s"}),
    ] {
        match read(result.clone()) {
            Ok(ToolResponse::Call(outcome)) => assert!(outcome.receipt().is_none()),
            other => panic!("{result}: {other:?}"),
        }
    }
    for result in [
        json!({}),
        json!({"resultType": "complete"}),
        json!({"contents": [], "content": []}),
        json!({"prompts": []}),
        json!({"resources": []}),
        // One odd tool makes the whole list unreadable.
        json!({"tools": [tool, {"name": 5, "inputSchema": {}}]}),
        json!({"tools": [tool, {"name": "odd", "inputSchema": []}]}),
        json!({"content": [], "isError": "true"}),
        json!(5),
    ] {
        let refusal = read(result.clone()).unwrap_err();
        let kept = serde_json::to_value(refusal.into_result()).unwrap();
        assert!(kept == result || result == json!({"contents": [], "content": []}), "{result} became {kept}");
    }
}

#[test]
fn an_outcome_gives_back_what_it_was_made_of() {
    let result = rmcp::model::CallToolResult::success(vec![]);
    let outcome = CallOutcome::from(result.clone());
    assert_eq!(outcome.result(), Some(&result));
    let ServerResult::CallToolResult(back) = ServerResult::from(ToolResponse::from(outcome)) else { panic!() };
    assert_eq!(back, result);
}
