//! Several calls in one turn, and several runs of one set of tools.

use std::time::Duration;

use tower_algenta::{Gate, StubEngine};

use super::{MEDIA, Turn, agent, assert_asked_once, drive, execution, gate, run, scripted, tools};

#[tokio::test]
async fn of_two_calls_side_by_side_one_is_denied() {
    for medium in MEDIA {
        for calls in [["decision-7", "decision-low-confidence"], ["decision-low-confidence", "decision-7"]] {
            // So that neither is answered before the other is called.
            let engine = StubEngine::builder().delay(Duration::from_millis(200)).start().await.unwrap();
            let turns = [Turn::Calls(calls.map(execution).to_vec()), Turn::Text("Another way.")];
            let (outcome, model) = run(medium, &engine, &turns, 2).await;
            let error = outcome.unwrap_err();
            assert_eq!(gate(&error), &Gate::Confidence);
            assert_asked_once(&model);
            // What went through beside it is not lost, though rig drops the results of the turn.
            let executed: Vec<_> = error.receipts().iter().map(|receipt| receipt.decision_id().to_owned()).collect();
            assert_eq!(executed, ["decision-7"], "{calls:?}");
            assert_eq!((engine.received().len(), engine.executed("decision-7")), (2, 1));
        }
    }
}

#[tokio::test]
async fn both_denials_of_a_turn_reach_the_caller() {
    for medium in MEDIA {
        let engine = StubEngine::builder().delay(Duration::from_millis(200)).start().await.unwrap();
        let calls = ["decision-low-risk-floor", "decision-low-confidence"];
        let turns = [Turn::Calls(calls.map(execution).to_vec()), Turn::Text("Another way.")];
        let (outcome, model) = run(medium, &engine, &turns, 2).await;
        let error = outcome.unwrap_err();
        let mut gates: Vec<_> = error.failures().iter().map(|error| error.denial().unwrap().gate().clone()).collect();
        gates.sort_by_key(ToString::to_string);
        assert_eq!(gates, [Gate::Confidence, Gate::RiskFloor]);
        assert_asked_once(&model);
    }
}

#[tokio::test]
async fn one_after_the_other_the_calls_after_a_denial_are_not_made() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let calls = ["decision-low-confidence", "decision-7"];
        let turns = [Turn::Calls(calls.map(execution).to_vec()), Turn::Text("Another way.")];
        let (outcome, model) = run(medium, &engine, &turns, 1).await;
        assert_eq!(gate(&outcome.unwrap_err()), &Gate::Confidence);
        assert_asked_once(&model);
        assert_eq!((engine.received().len(), engine.executions().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_run_does_not_end_for_the_denial_of_another() {
    for medium in MEDIA {
        let engine = StubEngine::start().await.unwrap();
        let tools = tools(&engine).await;
        let script = |decision| scripted(medium, &[Turn::Calls(vec![execution(decision)]), Turn::Text("Done.")]);
        let (denied, allowed) = (script("decision-low-confidence"), script("decision-7"));
        let (denied, allowed) = (agent(&denied, &tools), agent(&allowed, &tools));
        let (denied, allowed) = tokio::join!(drive(medium, &denied, 1), drive(medium, &allowed, 1));
        assert_eq!(gate(&denied.unwrap_err()), &Gate::Confidence);
        assert_eq!(allowed.unwrap(), "Done.");
        assert_eq!(engine.executed("decision-7"), 1);
    }
}
