//! The whole stack over HTTP, against every wire shape of the stub: what the agent gets, and what the engine received.

use rmcp::{model::JsonObject, object};
use serde_json::{Value, json};
use tower_algenta::{
    BearerToken, Endpoint, EngineClient, Error, ExecuteDecision, Gate, NEVER_MODEL_FACING, Operator, Profile,
    StubEngine, ToolNames, Toolset,
    error::InvalidReason,
    stub::{Received, Wire},
};

const HOOK: &str = "https://hooks.example/algenta";

fn decision(id: &str) -> ExecuteDecision {
    ExecuteDecision::new(id, HOOK).unwrap()
}

/// A call of the model's, with every switch it could think of.
fn smuggled(id: &str) -> JsonObject {
    object!({
        "decision_id": id, "webhook_url": HOOK, "timeout_seconds": 5, "metadata": {"force": "data", "note": "n"},
        "force": true, "override_safety": "yes", "Force": 1, "overrideSafety": true, "--force": null,
        "options": {"override-safety": true}
    })
}

async fn connect(engine: &StubEngine, profile: Profile) -> (Toolset, Operator<EngineClient>) {
    let endpoint = Endpoint::new(engine.url()).unwrap();
    Toolset::builder().profile(profile).endpoint(endpoint).connect_with_operator().await.unwrap()
}

/// No hidden name, in any spelling that the scrub knows, stands in what the engine received, the metadata apart.
#[track_caller]
fn nothing_hidden_arrived(calls: &[Received]) {
    assert!(!calls.is_empty());
    for call in calls {
        let mut arguments = call.arguments.clone().unwrap_or_default();
        assert_eq!(
            arguments.remove("metadata"),
            Some(json!({"force": "data", "note": "n"})),
            "the webhook's data stays"
        );
        let text = Value::Object(arguments).to_string().to_lowercase();
        for word in ["force", "override"] {
            assert!(!text.contains(word), "{text}");
        }
    }
}

#[tokio::test]
async fn every_gate_is_typed_in_every_wire_shape() {
    for wire in Wire::ALL {
        let engine = StubEngine::builder().wire(wire).start().await.unwrap();
        let (tools, operator) = connect(&engine, Profile::Execute).await;

        let receipt = tools.execute(decision("decision-hold")).await.unwrap();
        assert!(receipt.is_delivered());

        for (id, gate) in [
            ("decision-hold", Gate::Idempotency),
            ("decision-low-confidence", Gate::Confidence),
            ("decision-low-risk-floor", Gate::RiskFloor),
        ] {
            let (before, seen) = (engine.executed(id), engine.received().len());
            let error = tools.call("execute_decision", smuggled(id)).await.unwrap_err();
            let Error::Denied(denial) = error else { panic!("{wire:?}, {id}: {error:?}") };
            assert_eq!(*denial.gate(), gate, "{wire:?}");
            assert!(denial.blocked().untrusted_message().is_some(), "{wire:?}");
            assert!(denial.blocked().untrusted_override_hint().is_some(), "{wire:?}");
            assert_eq!(engine.executed(id), before, "{wire:?}: a denied call runs nothing");
            nothing_hidden_arrived(&engine.received()[seen..]);

            // The human's repeat, once: that very call, and the one switch.
            let receipt = operator.override_denial(&denial).await.unwrap();
            assert!(receipt.is_delivered());
            assert_eq!(engine.executed(id), before + 1);
            let repeat = engine.received().pop().unwrap().arguments.unwrap();
            let switch = NEVER_MODEL_FACING[usize::from(gate != Gate::Idempotency)];
            assert_eq!(
                Value::Object(repeat),
                json!({
                    "decision_id": id, "webhook_url": HOOK, "timeout_seconds": 5,
                    "metadata": {"force": "data", "note": "n"}, switch: true
                })
            );
            let again = operator.override_denial(&denial.clone()).await.unwrap_err();
            assert!(
                matches!(again, Error::InvalidArguments(refusal) if refusal.reason() == InvalidReason::OverrideUsed)
            );
            assert_eq!(engine.executed(id), before + 1);
        }

        let malformed = tools.execute(decision("decision-malformed-receipt")).await.unwrap_err();
        assert!(matches!(malformed, Error::ExecutionFailed(_)), "{wire:?}: {malformed:?}");
        tools.close().await.unwrap();
    }
}

#[tokio::test]
async fn two_gates_need_two_human_decisions() {
    let engine = StubEngine::start().await.unwrap();
    let (tools, operator) = connect(&engine, Profile::Execute).await;
    let first = tools.execute(decision("decision-two-gates")).await.unwrap_err();
    let first = first.denial().unwrap();
    assert_eq!(*first.gate(), Gate::Idempotency);

    let second = operator.override_denial(first).await.unwrap_err();
    let second = second.denial().unwrap();
    assert_eq!(*second.gate(), Gate::Confidence);
    assert_eq!(engine.executed("decision-two-gates"), 0);

    let receipt = operator.override_denial(second).await.unwrap();
    assert!(receipt.safety_overridden());
    assert_eq!(engine.executed("decision-two-gates"), 1);
    let repeat = engine.received().pop().unwrap().arguments.unwrap();
    assert!(NEVER_MODEL_FACING.iter().all(|name| repeat[*name] == true));
}

#[tokio::test]
async fn each_profile_lists_and_calls_its_own() {
    let engine = StubEngine::builder().page_size(3).start().await.unwrap();
    for (profile, count) in Profile::ALL.into_iter().zip([4, 6, 7, 9]) {
        let (tools, _) = connect(&engine, profile).await;
        let listed = tools.list().await.unwrap();
        assert_eq!(listed.len(), count, "{profile}, over all pages");
        let shown = serde_json::to_string(&listed).unwrap();
        for name in NEVER_MODEL_FACING {
            assert!(!shown.contains(&format!("\"{name}\"")), "{profile}: {shown}");
            assert!(!shown.contains(&format!("{name}=")) && !shown.contains(&format!("{name}:")), "{profile}: {shown}");
        }
        let before = engine.received().len();
        let refused = tools.call("execute_decision", object!({"decision_id": "x", "webhook_url": HOOK})).await;
        match refused {
            Err(Error::ToolNotAllowed(_)) => assert_eq!(engine.received().len(), before, "{profile}"),
            _ => assert!(profile >= Profile::Execute),
        }
    }
}

#[tokio::test]
async fn the_answers_of_the_other_tools_pass_as_they_are() {
    let engine = StubEngine::start().await.unwrap();
    let (tools, _) = connect(&engine, Profile::Govern).await;
    for (tool, arguments, expected) in [
        (
            "get_contract",
            json!({}),
            json!({"capabilities": ["query", "simulate", "recommend"], "engine_version": "1.4.0"}),
        ),
        ("query_data", json!({"dataset": "d"}), json!({"dataset": "d", "rows": [{"value": 1}, {"value": 2}]})),
        // What is nested is data in the tools without gates.
        ("simulate", json!({"scenario": {"force": 9.8}}), json!({"scenario": {"force": 9.8}, "expected_value": 42.0})),
        (
            "recommend",
            json!({"scenario": "s"}),
            json!({"scenario": "s", "recommended_action": "hold", "confidence": 0.87}),
        ),
        ("plan_decision", json!({"scenario": "s"}), json!({"scenario": "s", "rationale": "looks fine"})),
    ] {
        let outcome = tools.call(tool, arguments.as_object().unwrap().clone()).await.unwrap();
        let result = outcome.result().unwrap();
        let text = &result.content[0].as_text().unwrap().text;
        if tool == "simulate" && result.is_error == Some(true) {
            // The stub takes a text for a scenario; that it refused says that the object arrived.
            let arrived = engine.received().pop().unwrap().arguments.unwrap();
            assert_eq!(Value::Object(arrived), json!({"scenario": {"force": 9.8}}));
            continue;
        }
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected, "{tool}");
        assert!(outcome.receipt().is_none());
    }
}

#[tokio::test]
async fn an_upstream_that_prefixes_its_names_is_governed_alike() {
    let engine = StubEngine::builder().prefix("eu__").start().await.unwrap();
    let builder = Toolset::builder().profile(Profile::Execute).tool_names(ToolNames::prefixed("eu__"));
    let (tools, operator) =
        builder.endpoint(Endpoint::new(engine.url()).unwrap()).connect_with_operator().await.unwrap();
    assert_eq!(tools.list().await.unwrap().len(), 7);
    assert!(matches!(tools.call("simulate", object!({})).await, Err(Error::ToolNotAllowed(_))));

    let error = tools.execute(decision("decision-low-confidence")).await.unwrap_err();
    let receipt = operator.override_denial(error.denial().unwrap()).await.unwrap();
    assert!(receipt.safety_overridden());
    assert!(engine.received().iter().all(|call| call.name == "eu__execute_decision"));

    // Without the prefix nothing is reachable, and no execution goes unmapped.
    let (tools, _) = connect(&engine, Profile::Full).await;
    let before = engine.received().len();
    let error = tools.call("eu__execute_decision", smuggled("decision-hold")).await.unwrap_err();
    assert!(matches!(error, Error::ToolNotAllowed(_)));
    assert_eq!(engine.received().len(), before);
}

#[tokio::test]
async fn a_traversing_decision_id_never_leaves() {
    let engine = StubEngine::start().await.unwrap();
    let (tools, _) = connect(&engine, Profile::Execute).await;
    for id in ["../decisions/plan?x=", "a/b", "", "..", "%2e%2e"] {
        let error = tools.call("execute_decision", smuggled(id)).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArguments(_)), "{id}: {error:?}");
    }
    assert!(engine.received().is_empty());
    assert!(engine.received_raw().iter().all(|request| !String::from_utf8_lossy(&request.body).contains("tools/call")));
}

#[tokio::test]
async fn the_token_is_sent_and_never_shown() {
    const TOKEN: &str = "s3cret-t0ken";
    let engine = StubEngine::builder().token(TOKEN).start().await.unwrap();
    let endpoint = Endpoint::new(engine.url()).unwrap().token(BearerToken::new(TOKEN).unwrap());
    let shown = format!("{endpoint:?} {endpoint:#?}");
    assert!(!shown.contains(TOKEN), "{shown}");
    let builder = Toolset::builder().endpoint(endpoint);
    assert!(!format!("{builder:?}").contains(TOKEN));
    let (tools, operator) = builder.connect_with_operator().await.unwrap();
    assert_eq!(tools.list().await.unwrap().len(), 4);
    assert!(!format!("{tools:?} {operator:?}").contains(TOKEN));

    let wrong = Endpoint::new(engine.url()).unwrap().token(BearerToken::new("wr0ng-t0ken").unwrap());
    let error = Toolset::builder().endpoint(wrong).connect().await.unwrap_err();
    let shown = crate::support::everything_printed(&error);
    assert!(!shown.contains("wr0ng-t0ken"), "{shown}");
    assert!(shown.contains("401") && shown.contains("ALGENTA_API_KEY"), "{shown}");
}
