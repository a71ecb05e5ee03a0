//! The attack cases of arguments, through `ArgumentScrub` and, off the wire, through the whole stack.

use rmcp::model::{CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject};
use serde_json::Value;
use tower::{ServiceBuilder, ServiceExt as _};
use tower_algenta::{ArgumentScrubLayer, Error, GovernanceLayer, Profile, ToolRequest};

use crate::support::{Received, cases, empty_result, recording, text};

/// What the engine receives of a call through `ArgumentScrub` alone.
async fn forwarded(tool: &str, arguments: Option<JsonObject>) -> Result<Option<JsonObject>, Error> {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let service = ServiceBuilder::new().layer(ArgumentScrubLayer::new()).service(engine);
    let mut params = CallToolRequestParams::new(tool.to_owned());
    params.arguments = arguments;
    let answer = service.oneshot(params.into()).await;
    match (answer, received.take().pop()) {
        (Ok(_), Some(ToolRequest::Call(call))) => Ok(call.params.arguments),
        (Err(error), None) => Err(error.into()),
        (answer, request) => panic!("answered {answer:?} after {request:?}"),
    }
}

/// What `raw` says, with `serde_json`'s private keys as keys: with its `raw_value` it would read what stands behind one.
fn parsed(raw: &str) -> Value {
    const PRIVATE: &str = "$serde_json::private::";
    const STAND_IN: &str = "$stand_in::";

    fn restore(value: Value) -> Value {
        match value {
            Value::Object(map) => {
                map.into_iter().map(|(key, value)| (key.replace(STAND_IN, PRIVATE), restore(value))).collect()
            }
            Value::Array(items) => items.into_iter().map(restore).collect(),
            scalar => scalar,
        }
    }

    restore(serde_json::from_str(&raw.replace(PRIVATE, STAND_IN)).unwrap())
}

#[tokio::test]
async fn every_argument_case_arrives_as_it_must() {
    let cases = cases(include_str!("../vectors/arguments.json"));
    assert_eq!(cases.len(), 69);
    let mut ran = 0;
    for case in cases.iter().filter(|case| case["layer"] == "ArgumentScrub") {
        let (id, input, expected) = (text(case, "id"), &case["input"], &case["expected"]);
        let arguments = match input["raw_arguments"].as_str() {
            Some(raw) => parsed(raw),
            None => input["arguments"].clone(),
        };
        let arguments = arguments.as_object().cloned();
        match (forwarded(text(input, "tool"), arguments.clone()).await, expected.get("refused")) {
            (Ok(Some(forwarded)), None) => {
                assert_eq!(Value::Object(forwarded.clone()), expected["forwarded"], "{id}");
                if expected["forwarded"].as_object() == arguments.as_ref() {
                    assert_eq!(
                        serde_json::to_string(&forwarded).unwrap(),
                        serde_json::to_string(&arguments).unwrap(),
                        "{id}: a clean call arrives byte for byte"
                    );
                }
            }
            (Ok(None), None) => assert_eq!(expected["forwarded"], Value::Null, "{id}"),
            (Err(Error::InvalidArguments(_)), Some(_)) => {}
            (outcome, refused) => panic!("{id}: {outcome:?}, refused: {refused:?}"),
        }
        ran += 1;
    }
    assert_eq!(ran, 52);
}

#[tokio::test]
async fn every_wire_case_reaches_the_engine_as_it_must() {
    let cases = cases(include_str!("../vectors/arguments.json"));
    let mut ran = 0;
    for case in cases.iter().filter(|case| case["layer"] == "stack (wire)") {
        let (id, expected) = (text(case, "id"), &case["expected"]);
        let decoded = serde_json::from_str::<ClientJsonRpcMessage>(text(&case["input"], "raw_message"));
        let (kind, request) = match decoded {
            Err(_) => ("decode error", None),
            Ok(ClientJsonRpcMessage::Notification(_)) => ("CustomNotification", None),
            Ok(ClientJsonRpcMessage::Request(request)) => match &request.request {
                ClientRequest::CallToolRequest(_) => ("CallToolRequest", ToolRequest::try_from(request.request).ok()),
                ClientRequest::CustomRequest(_) => ("CustomRequest", ToolRequest::try_from(request.request).ok()),
                other => panic!("{id}: {other:?}"),
            },
            Ok(other) => panic!("{id}: {other:?}"),
        };
        assert_eq!(kind, text(expected, "rmcp_decodes_as"), "{id}");

        let received = Received::default();
        let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
        let stack = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Full)).service(engine);
        if let Some(request) = request {
            // The engine's empty answer is no receipt; what counts here is what it was asked.
            stack.oneshot(request).await.unwrap_err();
        }
        match (text(expected, "stack"), &*received.take()) {
            ("refuse", []) => {}
            ("forward", [request]) => {
                let sent = serde_json::to_value(ClientRequest::from(request.clone())).unwrap();
                let params = sent["params"].as_object().unwrap();
                assert_eq!(params["arguments"], expected["forwarded_arguments"], "{id}");
                if let Some(keys) = expected["forwarded_params_keys"].as_array() {
                    let mut present: Vec<_> = params.keys().map(String::as_str).collect();
                    present.sort_unstable();
                    assert_eq!(&present, keys, "{id}");
                }
                let has = |key: &Value| params.get("_meta").and_then(|meta| meta.get(key.as_str().unwrap())).is_some();
                for key in expected["forwarded_meta_must_not_contain"].as_array().into_iter().flatten() {
                    assert!(!has(key), "{id}: {key}");
                }
                for key in expected["forwarded_meta_must_contain"].as_array().into_iter().flatten() {
                    assert!(has(key), "{id}: {key}");
                }
            }
            (stack, received) => panic!("{id}: {stack}, received {received:?}"),
        }
        ran += 1;
    }
    assert_eq!(ran, 13);
}
