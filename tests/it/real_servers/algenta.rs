//! `algenta-mcp` with a REST server behind it that answers as its own documents say.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use rmcp::object;
use serde_json::{Value, json};
use tokio::process::Command;
use tower_algenta::{
    BearerToken, Endpoint, Error, ExecuteDecision, Gate, NEVER_MODEL_FACING, Profile, Toolset,
    error::{FailureReason, UnknownReason},
};

use super::{Generation, HOOK, Process, TOKEN, named, programs};
use crate::{
    client::scripted::{Reply, Request, Scripted},
    support::everything_printed,
};

pub(super) const GATES: [&str; 3] = ["idempotency", "confidence", "risk_floor"];
/// How the body of a 409 may be nested.
pub(super) const FORMS: [&str; 4] = ["error", "error-request-id", "detail-error", "detail"];

fn nested(form: &str, denial: &Value) -> Value {
    match form {
        "error" => json!({"error": denial}),
        "error-request-id" => json!({"error": denial, "request_id": "req_123"}),
        "detail-error" => json!({"detail": {"error": denial}}),
        "detail" => json!({"detail": denial}),
        _ => unreachable!("{form}"),
    }
}

fn answer(status: u16, body: &Value) -> Reply {
    Reply::new(status, "application/json", &body.to_string())
}

/// What the REST server says to `POST /v1/decisions/{id}/execute`; the id says what it is to be.
fn execute(id: &str, request: &Request, delivered: &Mutex<HashSet<String>>) -> Reply {
    let denied = |gate: &str, form: &str| {
        let switch = NEVER_MODEL_FACING[usize::from(gate != "idempotency")];
        let denial = json!({
            "code": format!("execution_blocked_{gate}"),
            "gate": gate,
            "message": format!("decision {id} is held"),
            "override_hint": format!("Pass {switch}=true to override the gate."),
        });
        answer(409, &nested(form, &denial))
    };
    if let Some((gate, form)) = id.split_once('.') {
        return denied(gate, form);
    }
    if let Some((form, status)) = id.rsplit_once("-status-") {
        let status = status.parse().unwrap();
        let error = json!({"code": "a_code", "message": "what went wrong"});
        return match form {
            "typed" => answer(status, &json!({"error": error, "request_id": "req_123"})),
            "detail" => answer(status, &json!({"detail": "what went wrong"})),
            "plain" => Reply::new(status, "text/plain", "what went wrong"),
            _ => unreachable!("{form}"),
        };
    }
    match id {
        "drop" => return Reply::HangUp,
        "silence" => return Reply::Silence,
        "empty" => return answer(200, &json!({})),
        "no-json" => return Reply::new(200, "text/html", "<html></html>"),
        _ => {}
    }
    let fails = id == "failed-delivery";
    let repeated = !delivered.lock().unwrap().insert(id.to_owned());
    if repeated && !fails {
        return denied("idempotency", "error-request-id");
    }
    let receipt = json!({
        "decision_id": id,
        "webhook_url": request.body["webhook_url"],
        "execution_status": if fails { "failed" } else { "delivered" },
        "response_code": if fails { json!(null) } else { json!(200) },
        "executed_at": "2026-11-30T00:00:00Z",
        "policy_snapshot_id": "ps_1",
        "schema_snapshot_id": "ss_1",
        "manifest_version": 3,
        "payload_summary": {"bytes": 10},
        "safety_overridden": false,
    });
    answer(200, &receipt)
}

/// The REST server.
pub(super) async fn rest() -> Scripted {
    let delivered = Arc::new(Mutex::new(HashSet::new()));
    Scripted::start(move |request| {
        let path = request.head.split(' ').nth(1).unwrap();
        let id = path.strip_prefix("/v1/decisions/").and_then(|path| path.strip_suffix("/execute"));
        match id {
            Some(id) => execute(id, request, &delivered),
            None => answer(200, &json!({"path": path})),
        }
    })
    .await
}

/// The server, and the REST server behind it.
pub(super) struct Engine {
    pub(super) rest: Scripted,
    pub(super) server: Process,
}

impl Engine {
    pub(super) async fn start(test: &str) -> Option<Self> {
        let programs = programs("algenta", test)?;
        let rest = rest().await;
        let base = rest.url.strip_suffix("/mcp").unwrap().to_owned();
        let server = Process::start(|port| {
            let mut command = Command::new(programs.join("algenta-mcp"));
            command.args(["--mode", "http", "--port", &port.to_string()]);
            command.env("ALGENTA_BASE_URL", &base).env("ALGENTA_MCP_TIMEOUT", "1").env_remove("ALGENTA_API_KEY");
            command
        })
        .await;
        Some(Self { rest, server })
    }

    /// How often the REST server was asked to execute this decision.
    fn executions(&self, id: &str) -> usize {
        let line = format!("post /v1/decisions/{id}/execute ");
        self.rest.all().iter().filter(|request| request.head.starts_with(&line)).count()
    }

    async fn execute(&self, tools: &Toolset, id: &str) -> Result<tower_algenta::ExecutionReceipt, Error> {
        let before = self.executions(id);
        let outcome = tools.execute(ExecuteDecision::new(id, HOOK).unwrap()).await;
        assert_eq!(self.executions(id), before + 1, "{id}: one call is one request");
        outcome
    }
}

#[tokio::test]
async fn every_gate_is_typed_in_every_form() {
    let Some(engine) = Engine::start("the gates of algenta-mcp").await else { return };
    for generation in Generation::BOTH {
        let tools = generation.tools(&engine.server.url, Profile::Execute).await;
        for gate in GATES {
            for form in FORMS {
                let outcome = engine.execute(&tools, &format!("{gate}.{form}")).await;
                println!("algenta-mcp | {generation:?} | {gate} | {form} | {}", named(&outcome));
                let error = outcome.unwrap_err();
                let Error::Denied(denial) = &error else { panic!("{gate}, {form}: {error:?}") };
                assert_eq!(denial.gate().to_string(), gate);
                assert!(denial.blocked().untrusted_message().unwrap().contains("is held"), "{form}");
                assert!(denial.blocked().untrusted_override_hint().is_some(), "{form}");
                let printed = everything_printed(&error);
                assert!(!printed.contains("is held") && !printed.contains("override"), "{printed}");
            }
        }
    }
}

#[tokio::test]
async fn a_receipt_then_a_denial() {
    let Some(engine) = Engine::start("the receipts of algenta-mcp").await else { return };
    for generation in Generation::BOTH {
        let tools = generation.tools(&engine.server.url, Profile::Execute).await;
        let id = format!("sound-{generation:?}").to_lowercase();
        let receipt = engine.execute(&tools, &id).await.unwrap();
        assert!(receipt.is_delivered());
        assert_eq!((receipt.decision_id(), receipt.webhook_url()), (id.as_str(), HOOK));
        let error = engine.execute(&tools, &id).await.unwrap_err();
        assert_eq!(error.denial().map(|denial| denial.gate().clone()), Some(Gate::Idempotency));

        // A delivery that failed is a receipt all the same, each time.
        for _ in 0..2 {
            let receipt = engine.execute(&tools, "failed-delivery").await.unwrap();
            assert!(!receipt.is_delivered());
            assert_eq!(receipt.response_code(), None);
        }
    }
}

#[tokio::test]
async fn what_the_rest_server_says_otherwise() {
    let Some(engine) = Engine::start("the errors of algenta-mcp").await else { return };
    for generation in Generation::BOTH {
        let tools = generation.tools(&engine.server.url, Profile::Execute).await;
        for form in ["typed", "detail", "plain"] {
            for status in [400, 401, 403, 404, 422, 429] {
                let id = format!("{form}-status-{status}");
                let outcome = engine.execute(&tools, &id).await;
                println!("algenta-mcp | {generation:?} | {status} | {form} | {}", named(&outcome));
                let error = outcome.unwrap_err();
                assert!(matches!(&error, Error::Rejected(rejected) if rejected.status() == status), "{id}: {error:?}");
                assert!(!error.is_governed_failure());

                // To an agent it is the tool error that it is.
                let arguments = object!({"decision_id": (id.as_str()), "webhook_url": HOOK});
                let outcome = tools.call("execute_decision", arguments).await.unwrap();
                assert_eq!(outcome.result().unwrap().is_error, Some(true));
                assert!(outcome.receipt().is_none());
            }
            for status in [408, 425, 500, 502, 503, 504] {
                let id = format!("{form}-status-{status}");
                let outcome = engine.execute(&tools, &id).await;
                println!("algenta-mcp | {generation:?} | {status} | {form} | {}", named(&outcome));
                assert_unknown(&outcome.unwrap_err(), &id);
            }
            let conflict = engine.execute(&tools, &format!("{form}-status-409")).await;
            println!("algenta-mcp | {generation:?} | none | {form} 409 | {}", named(&conflict));
            let Err(Error::ExecutionFailed(failure)) = conflict else { panic!("{form}: {conflict:?}") };
            assert_eq!(failure.reason(), FailureReason::UnreadableConflict);
        }
        for id in ["drop", "silence"] {
            let outcome = engine.execute(&tools, id).await;
            println!("algenta-mcp | {generation:?} | none | {id} | {}", named(&outcome));
            assert_unknown(&outcome.unwrap_err(), id);
        }
        for id in ["empty", "no-json"] {
            let outcome = engine.execute(&tools, id).await;
            println!("algenta-mcp | {generation:?} | none | {id} | {}", named(&outcome));
            let Err(Error::ExecutionFailed(failure)) = outcome else { panic!("{id}: {outcome:?}") };
            assert_eq!(failure.reason(), FailureReason::NoReceipt, "{id}");
        }
    }
}

#[track_caller]
fn assert_unknown(error: &Error, id: &str) {
    let Error::OutcomeUnknown(unknown) = error else { panic!("{id}: {error:?}") };
    assert_eq!(unknown.reason(), UnknownReason::ToolError, "{id}");
    assert!(!error.is_retryable() && error.is_governed_failure());
}

#[tokio::test]
async fn seven_tools_and_no_switch() {
    let Some(engine) = Engine::start("the list of algenta-mcp").await else { return };
    for generation in Generation::BOTH {
        for (profile, count) in [(Profile::Observe, 4), (Profile::Govern, 6), (Profile::Execute, 7)] {
            let listed = generation.tools(&engine.server.url, profile).await.list().await.unwrap();
            assert_eq!(listed.len(), count, "{profile}");
        }
        let listed = generation.tools(&engine.server.url, Profile::Full).await.list().await.unwrap();
        assert_eq!(listed.len(), 140);
        let advertised = generation.connect(&engine.server.url).await;
        let raw = Toolset::from_governed_stack(advertised).list().await.unwrap();
        let shown = serde_json::to_string(&raw).unwrap();
        for name in NEVER_MODEL_FACING {
            assert!(shown.contains(&format!("\"{name}\"")), "the server itself advertises {name}");
            let shown = serde_json::to_string(&listed).unwrap();
            assert!(!shown.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}

#[tokio::test]
async fn nothing_smuggled_reaches_the_rest_server() {
    let Some(engine) = Engine::start("smuggling through algenta-mcp").await else { return };
    for generation in Generation::BOTH {
        let tools = generation.tools(&engine.server.url, Profile::Execute).await;
        let id = format!("smuggled-{generation:?}").to_lowercase();
        let before = engine.rest.all().len();
        let arguments = object!({
            "decision_id": (id.as_str()), "webhook_url": HOOK, "timeout_seconds": 5,
            "metadata": {"force": "data", "note": "n"},
            "force": true, "override_safety": true, "Force": 1, "overrideSafety": true, "--force": null,
            "options": {"override-safety": true}
        });
        let outcome = tools.call("execute_decision", arguments).await.unwrap();
        assert!(outcome.receipt().is_some());
        let requests = &engine.rest.all()[before..];
        assert_eq!(requests.len(), 1);
        let expected = json!({"webhook_url": HOOK, "timeout_seconds": 5, "metadata": {"force": "data", "note": "n"}});
        assert_eq!(requests[0].body, expected);
        assert!(requests[0].head.contains(&format!("authorization: bearer {TOKEN}")));

        // This tool forwards whatever it is given.
        let before = engine.rest.all().len();
        tools.call("plan_decision", object!({"scenario": "s", "force": true, "OverrideSafety": 1})).await.unwrap();
        assert_eq!(engine.rest.all()[before].body, json!({"scenario": "s"}));
    }
}

#[tokio::test]
async fn a_traversing_decision_id_never_leaves() {
    let Some(engine) = Engine::start("traversal through algenta-mcp").await else { return };
    for generation in Generation::BOTH {
        let tools = generation.tools(&engine.server.url, Profile::Execute).await;
        for id in ["../decisions/plan?x=", "a/../b", "a?b", "a#b", "%2e%2e%2fplan", "..", ".", "", "a\nb", "a\\b"] {
            let arguments = object!({"decision_id": id, "webhook_url": HOOK});
            let error = tools.call("execute_decision", arguments).await.unwrap_err();
            assert!(matches!(error, Error::InvalidArguments(_)), "{id:?}: {error:?}");
        }
    }
    assert_eq!(engine.rest.all().len(), 0);

    // What the refusal is for: the server itself takes it to another endpoint.
    let raw = Toolset::from_governed_stack(Generation::Stateless.connect(&engine.server.url).await);
    let arguments = object!({"decision_id": "../decisions/plan?x=", "webhook_url": HOOK});
    raw.call("execute_decision", arguments).await.unwrap();
    let head = &engine.rest.all()[0].head;
    assert!(head.starts_with("post /v1/decisions/plan?x="), "{head}");
}

#[tokio::test]
async fn the_token_is_asked_for_calls_only() {
    let Some(engine) = Engine::start("the token of algenta-mcp").await else { return };
    let endpoint = Endpoint::new(&engine.server.url).unwrap();
    let tools = Toolset::builder().profile(Profile::Execute).endpoint(endpoint.clone()).connect().await.unwrap();
    assert_eq!(tools.list().await.unwrap().len(), 7, "its list is open");
    // The 401 is of HTTP, and something behind the server may have said it: it proves nothing.
    let error = tools.execute(ExecuteDecision::new("sound", HOOK).unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    let error = tools.call("simulate", object!({})).await.unwrap_err();
    assert!(error.to_string().contains("ALGENTA_API_KEY"), "{error}");
    assert_eq!(engine.rest.all().len(), 0);

    let endpoint = endpoint.token(BearerToken::new(TOKEN).unwrap());
    let tools = Toolset::builder().profile(Profile::Execute).endpoint(endpoint).connect().await.unwrap();
    assert!(tools.execute(ExecuteDecision::new("sound", HOOK).unwrap()).await.unwrap().is_delivered());
}
