//! The example `tools`, run inside this process: what it prints, and its exit codes.

use serde_json::{Value, json};
use tower_algenta::{
    StubEngine,
    stub::{Fault, Wire},
};

#[path = "../../examples/tools.rs"]
#[expect(dead_code, reason = "its `main` is for the program")]
mod tools;

const TOKEN: &str = "tok-7c1d9e55";
pub(crate) const HOOK: &str = "https://hooks.example/algenta";

/// Runs the command line with the engine at `url` in its environment.
pub(crate) async fn run(url: &str, arguments: &[&str]) -> (u8, String) {
    let environment = |name: &str| match name {
        "ALGENTA_BASE_URL" => Some(url.into()),
        "ALGENTA_API_KEY" => Some(TOKEN.into()),
        _ => None,
    };
    let arguments = arguments.iter().map(ToString::to_string).collect();
    let mut printed = Vec::new();
    let code = tools::run(arguments, environment, &mut printed).await.unwrap();
    let printed = String::from_utf8(printed).unwrap();
    assert!(!printed.contains(TOKEN), "{printed}");
    (code, printed)
}

async fn usage_error(arguments: &[&str]) -> String {
    let arguments = arguments.iter().map(ToString::to_string).collect();
    tools::run(arguments, |_| None, &mut Vec::new()).await.unwrap_err().to_string()
}

/// Calls `execute_decision` and gives the exit code and the JSON that was printed.
pub(crate) async fn execute(url: &str, decision_id: &str, more: &[&str]) -> (u8, Value) {
    let arguments = json!({"decision_id": decision_id, "webhook_url": HOOK, "force": true}).to_string();
    let line = ["call", "execute_decision", &arguments, "--profile", "execute", "--json"];
    let (code, printed) = run(url, &[&line, more].concat()).await;
    (code, serde_json::from_str(&printed).unwrap())
}

#[tokio::test]
async fn without_arguments_it_says_what_it_does() {
    for arguments in [&[] as &[&str], &["--help"], &["--json"]] {
        let (code, printed) = run("http://127.0.0.1:9/mcp", arguments).await;
        assert_eq!(code, 0);
        assert!(printed.contains("tools call NAME [JSON]"), "{printed}");
    }
}

#[tokio::test]
async fn wrong_usage() {
    for (arguments, expected) in [
        (&["list", "--profile", "Execute"] as &[&str], "unknown profile \"Execute\""),
        (&["list", "--profile"], "--profile needs a value"),
        (&["list", "--token", "x"], "unknown option --token"),
        (&["show"], "unknown command show"),
        (&["call"], "call needs the name of a tool"),
        (&["call", "simulate", "[1]"], "the arguments are no JSON object"),
        (&["list", "more"], "one argument too many: more"),
        (&["list", "--url", "nonsense"], "URL"),
    ] {
        let error = usage_error(arguments).await;
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[tokio::test]
async fn the_list() {
    let engine = StubEngine::builder().token(TOKEN).page_size(4).start().await.unwrap();
    let (code, printed) = run(&engine.url(), &["list", "--profile=full"]).await;
    assert_eq!(code, 0);
    let lines: Vec<Vec<_>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["TOOL", "PROFILE", "HIDDEN", "FIELDS"]);
    assert_eq!(lines[1], ["get_contract", "observe", "-"]);
    assert_eq!(lines[5], ["plan_decision", "govern", "-"]);
    assert_eq!(lines[7], ["execute_decision", "execute", "force,", "override_safety"]);
    assert_eq!(lines[9], ["update_execution_policy", "full", "-"]);

    for (profile, count) in [("observe", 4), ("govern", 6), ("execute", 7), ("full", 9)] {
        let (code, printed) = run(&engine.url(), &["list", "--json", "--profile", profile]).await;
        let tools: Vec<Value> = serde_json::from_str(&printed).unwrap();
        assert_eq!((code, tools.len()), (0, count), "{profile}");
        assert!(!printed.contains("force") && !printed.contains("override_safety"), "{printed}");
    }
    // The option wins over the environment.
    assert_eq!(run("http://127.0.0.1:9/mcp", &["list", "--url", &engine.url()]).await.0, 0);
}

#[tokio::test]
async fn each_outcome_has_its_exit_code() {
    let engine = StubEngine::builder().token(TOKEN).start().await.unwrap();
    let url = engine.url();

    let line = ["call", "simulate", r#"{"scenario":"s"}"#];
    assert_eq!(run(&url, &line).await, (0, "{\n  \"expected_value\": 42.0,\n  \"scenario\": \"s\"\n}\n".to_owned()));
    let (code, printed) = run(&url, &[&line[..], &["--json"]].concat()).await;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &printed["outcome"]), (0, &json!("result")));
    assert_eq!(printed["result"]["content"][0]["type"], "text");

    let (code, printed) = execute(&url, "decision-hold", &[]).await;
    assert_eq!((code, &printed["outcome"]), (0, &json!("receipt")));
    assert_eq!(printed["receipt"]["decision_id"], "decision-hold");
    let (code, printed) = execute(&url, "decision-hold", &[]).await;
    assert_eq!((code, &printed["outcome"]), (3, &json!("denied")));
    assert_eq!((&printed["gate"], &printed["code"]), (&json!("idempotency"), &json!("execution_blocked_idempotency")));
    assert_eq!(engine.executed("decision-hold"), 1, "the switch on the command line went nowhere");

    let (code, printed) = execute(&url, "decision-hold", &["--profile", "govern"]).await;
    assert_eq!((code, &printed["outcome"]), (4, &json!("not_allowed")));
    let (code, printed) = execute(&url, "../decisions/plan?x=", &[]).await;
    assert_eq!((code, &printed["outcome"]), (5, &json!("invalid_arguments")));
    let (code, printed) = execute(&url, "decision-malformed-receipt", &[]).await;
    assert_eq!((code, &printed["outcome"]), (6, &json!("execution_failed")));

    for (fault, expected) in [(Fault::ServerError, (7, "outcome_unknown")), (Fault::DropAfter, (7, "outcome_unknown"))]
    {
        let engine = StubEngine::builder().fault(fault).start().await.unwrap();
        let (code, printed) = execute(&engine.url(), "decision-hold", &[]).await;
        assert_eq!((code, printed["outcome"].as_str().unwrap()), expected, "{fault:?}");
    }
    let engine = StubEngine::builder().fault(Fault::DropBefore).start().await.unwrap();
    let (code, printed) = run(&engine.url(), &["call", "get_contract", "--json"]).await;
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains(r#""outcome": "upstream""#), "{printed}");

    engine.shutdown().await;
    let (code, printed) = execute("http://127.0.0.1:9/mcp", "decision-hold", &[]).await;
    assert_eq!((code, &printed["outcome"]), (8, &json!("not_sent")));
}

#[tokio::test]
async fn every_wire_shape_ends_alike() {
    for wire in Wire::ALL {
        let engine = StubEngine::builder().wire(wire).start().await.unwrap();
        for (id, gate) in [("decision-low-confidence", "confidence"), ("decision-low-risk-floor", "risk_floor")] {
            let (code, printed) = execute(&engine.url(), id, &[]).await;
            assert_eq!((code, &printed["gate"]), (3, &json!(gate)), "{wire}");
            assert_eq!(printed["code"], format!("execution_blocked_{gate}"), "{wire}");
        }
    }
}
