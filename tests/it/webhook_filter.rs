//! `WebhookFilter` against the tricks by which a URL says one host and leads to another.

use rmcp::object;
use serde_json::Value;
use tower::{ServiceBuilder, ServiceExt as _};
use tower_algenta::{BoxError, Error, ToolNames, ToolRequest, WebhookFilter, WebhookFilterLayer, error::InvalidReason};

use crate::support::{Received, cases, empty_result, recording, text};

use InvalidReason::{
    WebhookAddressInternal as Internal, WebhookHostNotAllowed as NotAllowed, WebhookNotHttps as NotHttps,
    WebhookUrlMalformed as Malformed,
};

/// URLs, each with what becomes of it, and the list of hosts that they are judged by. On it are also the addresses that
/// must be refused all the same.
const VECTORS: &str = include_str!("../vectors/webhooks.json");

fn layer() -> WebhookFilterLayer {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    WebhookFilterLayer::new(vectors["hosts"].as_array().unwrap().iter().map(|host| host.as_str().unwrap())).unwrap()
}

/// What the layer says of `url`, and that it called the engine exactly if it admitted it.
async fn verdict(layer: WebhookFilterLayer, url: &str) -> Result<(), InvalidReason> {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let arguments = object!({"decision_id": "d", "webhook_url": url});
    let service = ServiceBuilder::new().layer(layer).service(engine);
    let answer = service.oneshot(ToolRequest::call("execute_decision", arguments)).await;
    assert_eq!(received.len(), usize::from(answer.is_ok()), "{url}");
    answer.map(drop).map_err(|error: BoxError| match Error::from(error) {
        Error::InvalidArguments(refusal) => refusal.reason(),
        other => panic!("{url}: {other:?}"),
    })
}

#[tokio::test]
async fn every_trick_gets_the_right_answer() {
    let cases = cases(VECTORS);
    assert_eq!(cases.len(), 89);
    for case in &cases {
        let expected = match text(case, "expected") {
            "admitted" => Ok(()),
            "host_not_allowed" => Err(NotAllowed),
            "internal" => Err(Internal),
            "malformed" => Err(Malformed),
            "not_https" => Err(NotHttps),
            other => panic!("nothing ends in {other}"),
        };
        assert_eq!(verdict(layer(), text(case, "url")).await, expected, "{case}");
    }
}

#[tokio::test]
async fn an_address_on_the_list_is_judged_by_its_block() {
    let alone = |host: &str| WebhookFilterLayer::new([host.to_owned()]).unwrap();
    for host in [
        "100.64.0.1",
        "100.127.255.254",
        "192.0.2.1",
        "198.19.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "[fec0::1]",
        "[2001:db8::1]",
        "[2001::1]",
        "[64:ff9b:1::1]",
        "[64:ff9b::a00:1]",
        "[2002:a00:1::1]",
    ] {
        assert_eq!(verdict(alone(host), &format!("https://{host}/x")).await, Err(Internal), "{host}");
    }
    // Each next to a special block, and in none.
    for host in [
        "100.63.0.1",
        "100.128.0.1",
        "93.100.0.1",
        "192.0.1.1",
        "198.17.0.1",
        "198.20.0.1",
        "93.18.0.1",
        "[2001:db9::1]",
        "[2001:4860::8888]",
        "[64:ff9b::5db8:d822]",
        "[2002:5db8:d822::1]",
    ] {
        assert_eq!(verdict(alone(host), &format!("https://{host}/x")).await, Ok(()), "{host}");
    }
}

#[tokio::test]
async fn a_dangerous_setting_opens_what_it_names() {
    let open = || layer().dangerous_allow_http().dangerous_allow_internal();
    assert_eq!(verdict(open(), "http://127.0.0.1:8080/x").await, Ok(()));
    assert_eq!(verdict(layer().dangerous_allow_http(), "http://127.0.0.1/x").await, Err(Internal));
    assert_eq!(verdict(open(), "http://10.0.0.8/x").await, Err(NotAllowed));
    assert_eq!(verdict(open(), "ftp://hooks.example/x").await, Err(NotHttps));
}

#[tokio::test]
async fn it_judges_executions_alone_and_wants_a_url() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let layer = layer().tool_names(ToolNames::prefixed("eu__"));
    let service = ServiceBuilder::new().layer(layer).service(engine);
    let call = |tool: &'static str, arguments| service.clone().oneshot(ToolRequest::call(tool, arguments));
    assert!(call("eu__simulate", object!({"webhook_url": "http://evil.example"})).await.is_ok());
    assert!(service.clone().oneshot(ToolRequest::list()).await.is_ok());
    for arguments in [object!({}), object!({"webhook_url": 5}), object!({"webhook_url": "https://evil.example"})] {
        assert!(call("eu__execute_decision", arguments).await.is_err());
    }
    assert_eq!(received.len(), 2);
}

/// Where the filter stands above flat names, or the prefix was forgotten, an execution has another name.
#[tokio::test]
async fn what_may_be_an_execution_under_another_name_is_refused() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let service = ServiceBuilder::new().layer(layer()).service(engine);
    for name in ["algenta_execute_decision", "eu__execute_decision", "Execute_Decision", "execute-decision"] {
        let call = ToolRequest::call(name, object!({"decision_id": "d", "webhook_url": "https://evil.example"}));
        let error = Error::from(service.clone().oneshot(call).await.unwrap_err());
        assert!(matches!(error, Error::ToolNotAllowed(_)), "{name}: {error:?}");
    }
    assert_eq!(received.len(), 0);
    assert!(service.oneshot(ToolRequest::call("execute_decision_log", object!({}))).await.is_ok());
}

#[tokio::test]
async fn a_second_spelling_of_the_url_is_refused() {
    let received = Received::default();
    let engine = recording(&received, |_: &ToolRequest| Ok(empty_result()));
    let service = WebhookFilter::new(engine, ["hooks.example"]).unwrap();
    for alias in ["webhookUrl", "WEBHOOK_URL", "webhoo\u{212a}_url", "Webhook-URL"] {
        for url in ["https://evil.example/x", "https://hooks.example/x"] {
            let mut arguments = object!({"decision_id": "d", "webhook_url": "https://hooks.example/x"});
            arguments.insert(alias.to_owned(), url.into());
            let error = service.clone().oneshot(ToolRequest::call("execute_decision", arguments)).await.unwrap_err();
            assert!(error.to_string().contains("is spelled like"), "{alias}: {error}");
        }
    }
    assert_eq!(received.len(), 0);
}

#[test]
fn a_list_entry_is_a_host() {
    for entry in ["", "*", "*.", "a*.example", "*.10.0.0.1", "https://hooks.example", "hooks.example/x", "a b", "[::1"]
    {
        let error = WebhookFilterLayer::new([entry]).unwrap_err();
        assert!(error.to_string().contains("is no host"), "{entry:?}");
    }
}
