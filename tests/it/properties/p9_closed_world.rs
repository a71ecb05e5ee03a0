//! P9: of all messages that rmcp can decode, lists of tools and calls of tools alone get through, and read.

use std::collections::BTreeSet;

use proptest::{prelude::*, sample::select};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerResult};
use serde_json::{Value, json};
use tower_algenta::{ToolRequest, ToolResponse};

use super::{any, config, result};
use crate::{checks::wire, model, support::object};

/// What the crate does with a kind of message.
#[derive(Debug, PartialEq)]
enum Fate {
    Understood,
    Refused,
}
use Fate::{Refused, Understood};

/// Names the arms of an enum that is open, so that none is left to a wildcard in silence.
macro_rules! fates {
    ($name:ident, $all:ident, $enum:ident: $($variant:ident => $fate:expr,)*) => {
        const $all: &[&str] = &[$(stringify!($variant)),*];

        #[track_caller]
        fn $name(message: &$enum) -> (&'static str, Fate) {
            match message {
                $($enum::$variant(_) => (stringify!($variant), $fate),)*
                other => panic!("nobody has decided what becomes of {other:?}"),
            }
        }
    };
}

fates! { fate_of_request, REQUESTS, ClientRequest:
    PingRequest => Refused,
    InitializeRequest => Refused,
    DiscoverRequest => Refused,
    CompleteRequest => Refused,
    SetLevelRequest => Refused,
    GetPromptRequest => Refused,
    ListPromptsRequest => Refused,
    ListResourcesRequest => Refused,
    ListResourceTemplatesRequest => Refused,
    ReadResourceRequest => Refused,
    SubscriptionsListenRequest => Refused,
    SubscribeRequest => Refused,
    UnsubscribeRequest => Refused,
    CallToolRequest => Understood,
    ListToolsRequest => Understood,
    GetTaskRequest => Refused,
    UpdateTaskRequest => Refused,
    CancelTaskRequest => Refused,
    ListSkillsRequest => Refused,
    GetSkillRequest => Refused,
    ReadResourceDirectoryRequest => Refused,
    CustomRequest => Refused,
}

fates! { fate_of_result, RESULTS, ServerResult:
    DiscoverResult => Refused,
    InitializeResult => Refused,
    CompleteResult => Refused,
    GetPromptResult => Refused,
    ListPromptsResult => Refused,
    ListResourcesResult => Refused,
    ListResourceTemplatesResult => Refused,
    ReadResourceResult => Refused,
    SubscriptionsListenResult => Refused,
    ListToolsResult => Understood,
    ListSkillsResult => Refused,
    GetSkillResult => Refused,
    ElicitResult => Refused,
    CreateTaskResult => Understood,
    GetTaskResult => Refused,
    CallToolResult => Understood,
    InputRequiredResult => Understood,
    TaskAckResult => Refused,
    EmptyResult => Refused,
    CustomResult => Refused,
}

/// The enums are open, so a variant that a later rmcp adds compiles. It is refused; but somebody should know.
#[test]
fn p9_the_variants_are_those_of_the_rmcp_that_was_read() {
    let lock = include_str!("../../../Cargo.lock");
    let (_, entry) = lock.split_once("name = \"rmcp\"\nversion = \"").expect("rmcp is locked");
    let version = entry.split('"').next();
    assert_eq!(version, Some("3.11.0"), "compare `ClientRequest` and `ServerResult` with the tables above");
}

#[test]
fn p9_every_kind_of_request_is_understood_or_refused() {
    let client = json!({"name": "n", "version": "1"});
    let samples = [
        ("ping", json!({})),
        ("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})),
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
        ("tools/call", json!({"name": "simulate"})),
        ("tools/list", json!({})),
        ("tasks/get", json!({"taskId": "t"})),
        ("tasks/update", json!({"taskId": "t", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "t"})),
        ("skills/list", json!({})),
        ("skills/get", json!({"uri": "u"})),
        ("resources/directory/read", json!({"uri": "u"})),
        ("tools/call", json!({"name": "execute_decision", "requestState": 5})),
    ];
    let mut seen = BTreeSet::new();
    for (method, params) in samples {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let Ok(ClientJsonRpcMessage::Request(message)) = serde_json::from_str(&message) else { panic!("{message}") };
        let (variant, fate) = fate_of_request(&message.request);
        seen.insert(variant);
        assert_eq!(ToolRequest::try_from(message.request).is_ok(), fate == Understood, "{method} is a {variant}");
    }
    assert_eq!(seen, REQUESTS.iter().copied().collect(), "each kind is tried");
}

#[test]
fn p9_every_kind_of_result_is_understood_or_refused() {
    let server = json!({"name": "n", "version": "1"});
    let task = json!({"taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null});
    let with = |mut value: Value, kind: &str| {
        value["resultType"] = kind.into();
        value
    };
    let samples = [
        json!({
            "resultType": "complete", "supportedVersions": ["2025-11-25"], "capabilities": {}, "serverInfo": server,
            "ttlMs": 0, "cacheScope": "public"
        }),
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server}),
        json!({"completion": {"values": ["v"]}}),
        json!({"messages": []}),
        json!({"prompts": []}),
        json!({"resources": []}),
        json!({"resourceTemplates": []}),
        json!({"contents": []}),
        json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}),
        json!({"tools": []}),
        json!({"skills": []}),
        json!({"skill": {
            "uri": "skill://x/SKILL.md", "frontmatter": {"name": "x", "description": "d"}, "resources": []
        }}),
        json!({"action": "decline"}),
        with(task.clone(), "task"),
        with(task, "complete"),
        json!({"content": []}),
        json!({"resultType": "input_required", "requestState": "s"}),
        json!({"resultType": "complete"}),
        json!({}),
        json!({"tools": [{"name": 5}]}),
        json!({"content": [], "isError": "true"}),
    ];
    let mut seen = BTreeSet::new();
    for sample in samples {
        let result: ServerResult = serde_json::from_value(sample.clone()).unwrap();
        let (variant, fate) = fate_of_result(&result);
        seen.insert(variant);
        assert_eq!(ToolResponse::try_from(result).is_ok(), fate == Understood, "{sample} is a {variant}");
    }
    assert_eq!(seen, RESULTS.iter().copied().collect(), "each kind is tried");
}

/// All methods that rmcp has a name for, requests of servers and notifications among them, and some that it has none for.
const METHODS: [&str; 44] = [
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/elicitation/response",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged",
    "notifications/tasks",
    "notifications/tools/list_changed",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/directory/read",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tasks/list",
    "tasks/result",
    "tools/execute",
    "tools/call/v2",
    "tools/",
    "tools",
    "call",
    "x/anything",
    "",
];

/// JSON with its members written in this order, twice if they are there twice.
fn written(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
    format!("{{{}}}", members.join(","))
}

/// Members that may stand in the parameters of a request, right and wrong.
fn member() -> BoxedStrategy<(&'static str, String)> {
    let switches = "\\{\"force\":true,\"a\":\\[\\{\"overrideSafety\":1\\}\\]\\}";
    let any_value = || any::value_with(any::any_key).prop_map(|value| value.to_string());
    let name = select(vec!["execute_decision", "simulate", "query_batch", "Execute_Decision", ""]);
    prop_oneof![
        6 => name.prop_map(|name| ("name", json!(name).to_string())),
        6 => any::dirty_arguments().prop_map(|arguments| ("arguments", Value::Object(arguments).to_string())),
        4 => any::dirty_arguments()
            .prop_map(|arguments| ("arguments", Value::Object(any::as_execution(arguments)).to_string())),
        2 => (select(vec!["arguments", "_meta", "task", "force"]), switches),
        2 => any::object_with(any::switch).prop_map(|meta| ("_meta", Value::Object(meta).to_string())),
        1 => (select(vec!["name", "arguments", "_meta", "requestState", "inputResponses", "cursor"]), any_value()),
        1 => (select(vec!["Name", "Arguments", "ARGUMENTS", "arguments ", "force", "uri"]), any_value()),
    ]
    .boxed()
}

/// Members that tell the kinds of results apart, right and wrong.
fn result_members() -> BoxedStrategy<Value> {
    let key = select(vec![
        "content",
        "structuredContent",
        "isError",
        "resultType",
        "tools",
        "taskId",
        "status",
        "requestState",
        "inputRequests",
        "prompts",
        "contents",
        "completion",
        "_meta",
        "nextCursor",
    ]);
    let value = select(vec![
        json!([]),
        json!({}),
        json!(null),
        json!(true),
        json!("task"),
        json!("complete"),
        json!("input_required"),
        json!("x"),
        json!(5),
        json!([{"type": "text", "text": "t"}]),
        json!([{"name": "a", "inputSchema": {}}]),
        json!([{"name": 5}]),
    ]);
    prop::collection::vec((key, value), 0..5)
        .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        .boxed()
}

proptest! {
    #![proptest_config(config())]

    /// Whatever comes with it. What rmcp doesn't know today it may know tomorrow, and no arm is waiting for it.
    #[test]
    fn p9_no_other_method_enters(
        method in prop_oneof![3 => select(&METHODS[..]).prop_map(str::to_owned), 1 => "[a-zA-Z/_]{0,12}", 1 => "\\PC{0,8}"],
        params in prop::collection::vec(member(), 0..6),
    ) {
        prop_assume!(!["tools/call", "tools/list"].contains(&&*method));
        let message = written(&[
            ("jsonrpc", "\"2.0\"".to_owned()),
            ("id", "1".to_owned()),
            ("method", json!(method).to_string()),
            ("params", written(&params)),
        ]);
        let Ok(ClientJsonRpcMessage::Request(decoded)) = serde_json::from_str(&message) else { return Ok(()) };
        prop_assert_eq!(fate_of_request(&decoded.request).1, Refused, "{}", message);
        let refusal = ToolRequest::try_from(decoded.request);
        prop_assert!(refusal.is_err_and(|refusal| !refusal.is_malformed()), "{message}");
    }

    /// What rmcp reads as none of its kinds of results, or as another one, is passed on by nobody.
    #[test]
    fn p9_a_result_of_another_kind_is_refused(
        given in prop_oneof![any::object_with(any::any_key).prop_map(Value::Object), result(), result_members()],
    ) {
        let Ok(decoded) = serde_json::from_value::<ServerResult>(given.clone()) else { return Ok(()) };
        let (variant, fate) = fate_of_result(&decoded);
        let before = serde_json::to_value(&decoded).unwrap();
        match ToolResponse::try_from(decoded) {
            Ok(read) => {
                prop_assert_eq!(fate, Understood, "{} is a {}", given, variant);
                prop_assert_eq!(serde_json::to_value(ServerResult::from(read)).unwrap(), before);
            }
            Err(refusal) => {
                prop_assert_eq!(fate, Refused, "{} is a {}", given, variant);
                prop_assert_eq!(serde_json::to_value(refusal.into_result()).unwrap(), before);
            }
        }
    }

    #[test]
    fn p9_what_gets_through_was_read(
        method in prop_oneof![
            8 => Just("tools/call"),
            2 => Just("tools/list"),
            2 => select(vec!["Tools/Call", "tools/call ", "tools\\/call", "resources/read", "tasks/update", "x"]),
        ],
        params in prop::collection::vec(member(), 0..6),
        name in "execute_decision|simulate|query_batch|execute_decision\\.",
    ) {
        // Most messages have a name; of two, the decoder refuses the second.
        let mut params = params;
        if !params.iter().any(|(key, _)| *key == "name") {
            params.push(("name", json!(name).to_string()));
        }
        let message = written(&[
            ("jsonrpc", "\"2.0\"".to_owned()),
            ("id", "1".to_owned()),
            ("method", format!("\"{method}\"")),
            ("params", written(&params)),
        ]);
        let Ok(ClientJsonRpcMessage::Request(decoded)) = serde_json::from_str(&message) else { return Ok(()) };
        fate_of_request(&decoded.request);
        let Some(passed) = wire::real(decoded.request) else { return Ok(()) };
        let passed = serde_json::to_value(passed).unwrap();
        if passed["method"] == "tools/list" {
            prop_assert!(passed["params"].get("arguments").is_none(), "{message} passed as {passed}");
            return Ok(());
        }
        prop_assert_eq!(&passed["method"], "tools/call");
        let tool = passed["params"]["name"].as_str().unwrap();
        prop_assert!(model::names::allowed("execute", "", tool), "{message} passed as {passed}");
        if let Some(arguments) = passed["params"].get("arguments") {
            let arguments = object(arguments);
            let again = model::arguments::scrubbed(tool, &arguments).map(|forwarded| forwarded.arguments);
            prop_assert_eq!(again, Some(arguments), "{} passed as {}", message, passed);
        }
        if let Some(meta) = passed["params"].get("_meta") {
            let meta = object(meta);
            prop_assert_eq!(model::arguments::scrubbed_meta(&meta), meta, "{} passed as {}", message, passed);
        }
        let known = ["name", "arguments", "_meta", "requestState", "inputResponses"];
        let unknown = passed["params"].as_object().unwrap().keys().find(|key| !known.contains(&&***key));
        prop_assert_eq!(unknown, None, "{} passed as {}", message, passed);
        if tool == "execute_decision" {
            prop_assert!(passed["params"].get("requestState").is_none());
            prop_assert!(passed["params"].get("inputResponses").is_none());
        }
    }
}
