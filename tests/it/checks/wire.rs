//! What of a message off the wire reaches an engine.

use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use serde_json::json;
use tower_algenta::{Profile, ToolRequest};

use super::{Finding, ask, ensure};
use crate::support::empty_result;

/// A gateway: of each request, what it passes on.
pub(crate) type Gateway<'a> = &'a dyn Fn(ClientRequest) -> Option<ClientRequest>;

/// The way that the crate offers: what is no tool request does not get in.
pub(crate) fn real(request: ClientRequest) -> Option<ClientRequest> {
    let request = ToolRequest::try_from(request).ok()?;
    let (_, received) = ask(&super::real, Profile::Execute, request, |_: &ToolRequest| Ok(empty_result()));
    received.into_iter().next().map(ClientRequest::from)
}

/// No message gets a switch, an unread call or another method past the gateway.
pub(crate) fn nothing_unread_passes(gateway: Gateway<'_>) -> Finding {
    let arguments = json!({"decision_id": "d", "webhook_url": "w", "force": true});
    let calls = [
        json!({"name": "execute_decision", "arguments": arguments}),
        json!({"name": "execute_decision", "arguments": arguments, "force": true, "task": {"ttl": 1}}),
        json!({"name": "execute_decision", "arguments": arguments, "_meta": {"force": true, "x/override_safety": 1}}),
        json!({"name": "execute_decision", "arguments": arguments, "requestState": 5}),
        json!({"name": "execute_decision", "arguments": arguments, "inputResponses": []}),
        json!({"name": "execute_decision", "arguments": [arguments]}),
        json!({"name": ["execute_decision"], "arguments": arguments}),
        json!({"Name": "execute_decision", "Arguments": arguments}),
        json!({"name": "query_batch", "arguments": arguments}),
    ];
    let calls = calls.into_iter().map(|params| ("tools/call", params));
    let others = [
        ("Tools/Call", json!({"name": "execute_decision", "arguments": arguments})),
        ("tools/call ", json!({"name": "execute_decision", "arguments": arguments})),
        ("resources/read", json!({"uri": "u", "force": true})),
        ("prompts/get", json!({"name": "p", "arguments": {"force": "true"}})),
        ("tasks/update", json!({"taskId": "t", "inputResponses": {"force": true}})),
        ("anything/else", json!({"force": true})),
    ];
    for (method, params) in calls.chain(others) {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let Ok(ClientJsonRpcMessage::Request(message)) = serde_json::from_str(&text) else { continue };
        let Some(passed) = gateway(message.request) else { continue };
        let written = serde_json::to_string(&passed).map_err(|error| error.to_string())?;
        ensure(matches!(passed, ClientRequest::CallToolRequest(_)), || format!("{text} passed as {written}"))?;
        ensure(!written.contains("force") && !written.contains("override"), || format!("{text} passed as {written}"))?;
    }
    Ok(())
}
