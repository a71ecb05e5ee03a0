//! One call after the other: what the model reads, and what ends the run.

use rig_agent::completion::PromptError;
use serde_json::json;
use tower_algenta::{
    Error, Gate, StubEngine,
    stub::{Fault, Wire},
};

use super::{
    EXECUTE, MEDIA, Turn, agent, assert_asked_once, drive, execution, gate, read, run, scripted, simulation, tools,
};

#[tokio::test]
async fn an_allowed_run_goes_to_its_end() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let turns =
            [Turn::Calls(vec![simulation()]), Turn::Calls(vec![execution("decision-7")]), Turn::Text("Delivered.")];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(outcome.unwrap(), "Delivered.");
        assert_eq!((model.request_count(), engine.executed("decision-7")), (3, 1));
        let read = read(&model);
        assert!(read.contains("expected_value") && read.contains("executed_at"), "{read}");
        let offered = serde_json::to_string(&model.requests()[0].tools).unwrap();
        assert!(offered.contains(EXECUTE) && !offered.contains("override_safety") && !offered.contains("\"force\""));
    }
}

#[tokio::test]
async fn a_denial_ends_the_run_and_reaches_its_caller_typed() {
    for medium in MEDIA {
        for wire in [Wire::Algenta, Wire::Algenta1_0_27, Wire::JsonRpcError] {
            for (decision, expected) in [
                ("decision-low-confidence", Gate::Confidence),
                ("decision-low-risk-floor", Gate::RiskFloor),
                ("decision-two-gates", Gate::Idempotency),
            ] {
                let engine = StubEngine::builder().wire(wire).start().await.unwrap();
                let turns = [Turn::Calls(vec![execution(decision)]), Turn::Text("Another way.")];
                let (outcome, model) = run(medium, &engine, &turns, 1).await;
                let error = outcome.unwrap_err();
                assert_eq!(gate(&error), &expected);
                assert_eq!((error.failures().len(), error.receipts().len()), (1, 0));
                assert!(matches!(error.rig(), Some(PromptError::Cancelled { .. })), "{:?}", error.rig());
                assert_asked_once(&model);
                assert_eq!((engine.received().len(), engine.executions().len()), (1, 0));
            }
        }
    }
}

#[tokio::test]
async fn a_failure_and_an_unknown_outcome_end_the_run_too() {
    for medium in MEDIA {
        for (fault, kind) in [
            (Fault::EmptyResult, "execution_failed"),
            (Fault::TaskHandle, "execution_failed"),
            (Fault::ServerError, "outcome_unknown"),
            (Fault::DropAfter, "outcome_unknown"),
        ] {
            let engine = StubEngine::builder().fault(fault).start().await.unwrap();
            let turns = [Turn::Calls(vec![execution("decision-7")]), Turn::Text("Once more.")];
            let (outcome, model) = run(medium, &engine, &turns, 1).await;
            let error = outcome.unwrap_err();
            assert_eq!(Error::find(&error).unwrap().kind(), kind, "{fault:?}");
            assert!(error.failures()[0].is_governed_failure());
            assert_asked_once(&model);
            assert_eq!((engine.received().len(), engine.executed("decision-7")), (1, 1), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn a_tools_own_error_is_the_models_to_read() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let turns =
            [Turn::Calls(vec![("simulate", json!({}))]), Turn::Calls(vec![simulation()]), Turn::Text("It pays.")];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(outcome.unwrap(), "It pays.");
        let answers = read(&model);
        assert!(answers.contains("invalid_arguments") && answers.contains("\"is_error\":true"), "{answers}");
        assert_eq!((model.request_count(), engine.received().len()), (3, 2));
    }
}

#[tokio::test]
async fn a_refusal_is_told_in_plain_words_and_nothing_was_called() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let turns = [
            Turn::Calls(vec![execution("../decisions/plan?x=")]),
            Turn::Calls(vec![execution("decision-7")]),
            Turn::Text("Delivered."),
        ];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(outcome.unwrap(), "Delivered.");
        let answers = read(&model);
        assert!(answers.contains("decision_id") && answers.contains("\"is_error\":true"), "{answers}");
        assert_eq!((engine.received().len(), engine.executed("decision-7")), (1, 1));
    }
}

#[tokio::test]
async fn a_network_error_of_another_tool_keeps_its_text_from_the_model() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let (url, tools) = (engine.url(), tools(&engine).await);
        engine.shutdown().await;
        let model = scripted(medium, &[Turn::Calls(vec![simulation()]), Turn::Text("It is away.")]);
        assert_eq!(drive(medium, &agent(&model, &tools), 1).await.unwrap(), "It is away.");
        let answers = read(&model);
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        assert!(answers.contains("\"is_error\":true") && !answers.contains(address), "{answers}");
    }
}
