//! Who is let in, under which profile, and with whose token the engine is called.

use std::{fmt::Write as _, fs, path::PathBuf};

use sha2::{Digest as _, Sha256};
use tower_algenta::{StubEngine, client::ConnectErrorKind};

use super::{
    process::{Gateway, command, refusal},
    toolset,
};

/// A file under the target folder that is gone with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn hash(token: &str) -> String {
    Sha256::digest(token).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn callers(callers: &[(&str, &str, &str)]) -> String {
    let callers = callers.iter().map(
        |(name, token, profile)| serde_json::json!({"name": name, "token_sha256": hash(token), "profile": profile}),
    );
    serde_json::json!({"callers": callers.collect::<Vec<_>>()}).to_string()
}

/// The tokens that reached the engine with calls or lists.
fn tokens(engine: &StubEngine) -> Vec<Option<String>> {
    let mut tokens: Vec<_> = (engine.received_raw().iter())
        .map(|request| request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()))
        .collect();
    tokens.sort();
    tokens.dedup();
    tokens
}

#[tokio::test]
async fn each_caller_has_a_profile_and_a_token_of_its_own() {
    let engine = StubEngine::start().await.unwrap();
    let file = Scratch::new("each", &callers(&[("reader", "tok-a", "observe"), ("operator", "tok-b", "execute")]));
    let gateway = Gateway::before(&engine, &["--callers", file.path()]).await;
    assert!(gateway.summary.contains("\"operator\", under execute"), "{}", gateway.summary);
    assert!(!gateway.summary.contains("tok-"), "{}", gateway.summary);
    for (token, count) in [("tok-a", 4), ("tok-b", 7)] {
        let tools = toolset(&gateway.url, Some(token)).await.unwrap();
        assert_eq!(tools.list().await.unwrap().len(), count, "{token}");
    }
    assert_eq!(tokens(&engine), [Some("Bearer tok-a".to_owned()), Some("Bearer tok-b".to_owned())]);
    for token in [None, Some("tok-c")] {
        let refused = toolset(&gateway.url, token).await.unwrap_err();
        let tower_algenta::Error::NotSent(refused) = refused else { panic!("{refused:?}") };
        let refused = refused.downcast::<tower_algenta::client::ConnectError>().unwrap();
        assert_eq!(refused.kind(), ConnectErrorKind::Unauthorized, "{token:?}");
    }
}

#[tokio::test]
async fn the_gateways_own_token_is_lent_to_nobody() {
    let engine = StubEngine::start().await.unwrap();
    let mut with_token = command(&["--upstream", &engine.url(), "--listen", "127.0.0.1:0"]);
    with_token.env("ALGENTA_API_KEY", "the-gateways");
    let gateway = Gateway::start(with_token).await;
    toolset(&gateway.url, None).await.unwrap().list().await.unwrap();
    assert_eq!(tokens(&engine), [None]);
    toolset(&gateway.url, Some("the-callers")).await.unwrap().list().await.unwrap();
    assert_eq!(tokens(&engine), [None, Some("Bearer the-callers".to_owned())]);
}

#[tokio::test]
async fn a_single_identity_is_the_gateways() {
    let engine = StubEngine::start().await.unwrap();
    let mut with_token = command(&["--upstream", &engine.url(), "--listen", "127.0.0.1:0", "--single-identity"]);
    with_token.env("ALGENTA_API_KEY", "the-gateways");
    let gateway = Gateway::start(with_token).await;
    assert!(!gateway.summary.contains("the-gateways"), "{}", gateway.summary);
    toolset(&gateway.url, Some("the-callers")).await.unwrap().list().await.unwrap();
    assert_eq!(tokens(&engine), [Some("Bearer the-gateways".to_owned())]);
}

#[tokio::test]
async fn a_file_that_leaves_a_doubt_is_refused() {
    let good = hash("tok");
    for (text, said) in [
        ("", "EOF"),
        ("{}", "missing field `callers`"),
        (r#"{"callers": []}"#, "no caller"),
        (
            &format!(r#"{{"callers": [{{"name": "a", "token_sha256": "{good}", "profile": "Observe"}}]}}"#),
            "unknown variant",
        ),
        (&format!(r#"{{"callers": [{{"name": "a", "token_sha256": "{good}"}}]}}"#), "missing field `profile`"),
        (
            &format!(r#"{{"callers": [{{"name": "a", "token_sha256": "{good}", "profile": "full", "x": 1}}]}}"#),
            "unknown field",
        ),
        (r#"{"callers": [{"name": "a", "token_sha256": "tok", "profile": "full"}]}"#, "64 hexadecimal digits"),
        (&callers(&[("a", "tok", "observe"), ("b", "tok", "full")]), "another caller's"),
    ] {
        let file = Scratch::new("doubt", text);
        let refused = refusal(&["--callers", file.path()]).await;
        assert!(refused.contains(said), "{text}: {refused}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_reload_that_fails_changes_nothing() {
    let engine = StubEngine::start().await.unwrap();
    let file = Scratch::new("reload", &callers(&[("a", "tok", "observe")]));
    let mut gateway = Gateway::before(&engine, &["--callers", file.path()]).await;
    let count = async |gateway: &Gateway| toolset(&gateway.url, Some("tok")).await.unwrap().list().await.unwrap().len();
    assert_eq!(count(&gateway).await, 4);

    fs::write(&file.0, callers(&[("a", "tok", "execute")])).unwrap();
    gateway.signal("-HUP");
    assert!(gateway.line().await.contains("callers: 1"));
    gateway.line().await;
    assert_eq!(count(&gateway).await, 7);

    fs::write(&file.0, r#"{"callers": [{"name": "a", "token_sha256": "#).unwrap();
    gateway.signal("-HUP");
    // It says so on its standard error; what counts is that nothing has changed.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(count(&gateway).await, 7);
}

#[tokio::test]
async fn each_request_is_on_record() {
    let engine = StubEngine::start().await.unwrap();
    let file = Scratch::new("audited", &callers(&[("reader", "tok-a", "observe")]));
    let record = Scratch::new("record", "");
    let gateway = Gateway::before(&engine, &["--callers", file.path(), "--audit", record.path()]).await;
    let tools = toolset(&gateway.url, Some("tok-a")).await.unwrap();
    tools.call("simulate", rmcp::object!({"scenario": "the-scenario"})).await.unwrap();
    tools.call("log_decision", rmcp::object!({})).await.unwrap_err();
    // A kill between two records leaves whole lines.
    drop(gateway);
    let text = fs::read_to_string(&record.0).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<_> = (lines.iter().filter(|line| line["mcp.method.name"] == "tools/call"))
        .map(|line| [&line["enduser.id"], &line["gen_ai.tool.name"], &line["algenta.outcome"]])
        .collect();
    assert_eq!(calls, [["reader", "simulate", "allowed"], ["reader", "log_decision", "not_allowed"]]);
    assert!(!text.contains("the-scenario") && !text.contains("tok-a"), "{text}");
}
