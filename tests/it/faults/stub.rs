//! Every fault of the stub against the whole stack, over both generations of the protocol: the right outcome, and at
//! most one execution.

use std::time::{Duration, Instant};

use rmcp::{model::CallToolResponse, object};
use tokio::time::timeout;
use tower_algenta::{
    BearerToken, Endpoint, EngineClient, Error, ExecuteDecision, ExecutionReceipt, Profile, StubEngine, Toolset,
    error::{FailureReason, UnknownReason},
    stub::Fault,
};

use super::{HOOK, SOON};
use crate::real_servers::{Generation, TOKEN};

struct Faulty {
    engine: StubEngine,
    tools: Toolset,
    name: String,
}

impl Faulty {
    async fn start(fault: Fault, generation: Generation) -> Self {
        let engine = StubEngine::builder().fault(fault).start().await.unwrap();
        let patience = if fault == Fault::Hang { Duration::from_millis(300) } else { SOON };
        let client = generation.connect(&engine.url()).await.call_timeout(patience);
        let tools = Toolset::builder().profile(Profile::Execute).service(client).build();
        Self { engine, tools, name: format!("{fault:?}, {generation:?}") }
    }

    /// The outcome of one execution, of which the engine saw one call at the most.
    async fn execute(&self, ran: usize) -> Result<ExecutionReceipt, Error> {
        let decision = ExecuteDecision::new("decision-hold", HOOK).unwrap();
        let outcome = timeout(SOON, self.tools.execute(decision)).await.expect("an execution ends");
        assert_eq!(self.engine.executed("decision-hold"), ran, "{}", self.name);
        assert_eq!(self.engine.executions().len(), ran, "{}", self.name);
        assert!(self.engine.received().len() <= 1, "{}: the call was sent again", self.name);
        if let Err(error) = &outcome {
            assert!(!error.is_retryable(), "{}", self.name);
        }
        outcome
    }

    async fn is_unknown(&self, ran: usize, reason: UnknownReason) {
        match self.execute(ran).await {
            Err(Error::OutcomeUnknown(unknown)) => assert_eq!(unknown.reason(), reason, "{}", self.name),
            other => panic!("{}: {other:?}", self.name),
        }
    }

    async fn is_failed(&self, reason: FailureReason) {
        match self.execute(1).await {
            Err(Error::ExecutionFailed(failure)) => assert_eq!(failure.reason(), reason, "{}", self.name),
            other => panic!("{}: {other:?}", self.name),
        }
    }

    async fn list(&self) -> Result<Vec<String>, Error> {
        let tools = timeout(SOON, self.tools.list()).await.expect("a list ends")?;
        Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
    }
}

#[tokio::test]
async fn faults_after_which_nobody_knows() {
    for generation in Generation::BOTH {
        for (fault, ran, reason) in [
            (Fault::ServerError, 1, UnknownReason::ToolError),
            (Fault::Hang, 1, UnknownReason::InnerError),
            (Fault::DropBefore, 0, UnknownReason::InnerError),
            (Fault::DropAfter, 1, UnknownReason::InnerError),
            (Fault::Unauthorized, 0, UnknownReason::InnerError),
            (Fault::HugeText, 1, UnknownReason::Unreadable),
        ] {
            let faulty = Faulty::start(fault, generation).await;
            faulty.is_unknown(ran, reason).await;
            assert_eq!(faulty.list().await.unwrap().len(), 7, "{}: lists go on", faulty.name);
        }
    }
}

#[tokio::test]
async fn faults_that_are_no_receipt() {
    for generation in Generation::BOTH {
        for (fault, reason) in
            [(Fault::EmptyResult, FailureReason::NoReceipt), (Fault::InputRequired, FailureReason::InputRequired)]
        {
            let faulty = Faulty::start(fault, generation).await;
            faulty.is_failed(reason).await;
            assert_eq!(faulty.list().await.unwrap().len(), 7, "{}: lists go on", faulty.name);
        }
    }
}

#[tokio::test]
async fn a_task_handle() {
    let faulty = Faulty::start(Fault::TaskHandle, Generation::Stateless).await;
    faulty.is_failed(FailureReason::TaskHandle).await;
    let faulty = Faulty::start(Fault::TaskHandle, Generation::Initialize).await;
    faulty.is_failed(FailureReason::TaskHandle).await;
}

#[tokio::test]
async fn content_of_an_unknown_type() {
    for generation in Generation::BOTH {
        let faulty = Faulty::start(Fault::UnknownContent, generation).await;
        let error = faulty.execute(1).await.unwrap_err();
        assert!(error.is_governed_failure(), "{}: {error:?}", faulty.name);
        // Nor does it pass as the result of another tool.
        let error = faulty.tools.call("simulate", object!({"scenario": "s"})).await.unwrap_err();
        assert!(matches!(error, Error::UnexpectedResponse(_) | Error::Upstream(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_huge_text_of_another_tool_passes() {
    for generation in Generation::BOTH {
        let faulty = Faulty::start(Fault::HugeText, generation).await;
        let outcome = faulty.tools.call("simulate", object!({"scenario": "s"})).await.unwrap();
        let result = outcome.result().unwrap();
        assert!(result.content[0].as_text().unwrap().text.len() > 2 * 1024 * 1024);
    }
}

#[tokio::test]
async fn tasks_and_questions_of_other_tools_reach_the_host_as_what_they_are() {
    let faulty = Faulty::start(Fault::TaskHandle, Generation::Stateless).await;
    let outcome = faulty.tools.call("simulate", object!({"scenario": "s"})).await.unwrap();
    assert!(matches!(outcome.response(), CallToolResponse::Task(_)) && outcome.result().is_none());

    let faulty = Faulty::start(Fault::InputRequired, Generation::Stateless).await;
    let outcome = faulty.tools.call("simulate", object!({"scenario": "s"})).await.unwrap();
    assert!(matches!(outcome.response(), CallToolResponse::InputRequired(_)) && outcome.result().is_none());
    assert_eq!(faulty.engine.received().len(), 1, "nobody answered in the caller's place");
}

#[tokio::test]
async fn odd_lists() {
    for generation in Generation::BOTH {
        let faulty = Faulty::start(Fault::EmptyPage, generation).await;
        assert_eq!(faulty.list().await.unwrap().len(), 7, "{}", faulty.name);

        let faulty = Faulty::start(Fault::DuplicateNames, generation).await;
        assert_eq!(faulty.list().await.unwrap().len(), 7, "{}", faulty.name);
        let shown = serde_json::to_string(&faulty.tools.list().await.unwrap()).unwrap();
        assert!(!shown.contains("once more"), "the first of a name wins");

        let faulty = Faulty::start(Fault::MalformedTool, generation).await;
        let error = faulty.list().await.unwrap_err();
        assert!(matches!(error, Error::UnexpectedResponse(_) | Error::Upstream(_)), "{}: {error:?}", faulty.name);

        // Whatever the list is like, calls go on.
        for fault in [Fault::EmptyPage, Fault::DuplicateNames, Fault::MalformedTool] {
            let faulty = Faulty::start(fault, generation).await;
            assert!(faulty.execute(1).await.unwrap().is_delivered(), "{}", faulty.name);
        }
    }
}

#[tokio::test]
async fn a_list_without_end() {
    // This generation reads the list when it connects, which ends all the same.
    let faulty = Faulty::start(Fault::EndlessCursors, Generation::Stateless).await;
    assert_eq!(faulty.engine.lists(), 1000);
    assert!(faulty.execute(1).await.unwrap().is_delivered());

    let faulty = Faulty::start(Fault::EndlessCursors, Generation::Initialize).await;
    let error = faulty.list().await.unwrap_err();
    assert!(error.to_string().contains("no end"), "{error}");
    assert_eq!(faulty.engine.lists(), 1000);
    assert!(faulty.execute(1).await.unwrap().is_delivered());
}

#[tokio::test]
async fn a_list_in_pages() {
    for generation in Generation::BOTH {
        for page_size in [1, 2, 8, 9] {
            let engine = StubEngine::builder().page_size(page_size).start().await.unwrap();
            let tools = generation.tools(&engine.url(), Profile::Execute).await;
            assert_eq!(tools.list().await.unwrap().len(), 7, "{page_size}");
        }
    }
}

#[tokio::test]
async fn a_slow_engine() {
    for generation in Generation::BOTH {
        let engine = StubEngine::builder().delay(Duration::from_millis(120)).start().await.unwrap();
        let client = generation.connect(&engine.url()).await;
        let begun = Instant::now();
        let decision = |id| ExecuteDecision::new(id, HOOK).unwrap();
        let tools = |client: EngineClient| Toolset::builder().profile(Profile::Execute).service(client).build();
        assert!(tools(client.clone()).execute(decision("decision-a")).await.unwrap().is_delivered());
        assert!(begun.elapsed() >= Duration::from_millis(120));

        // Slower than the client's patience, and slower than the stack's.
        let impatient = client.clone().call_timeout(Duration::from_millis(40));
        let error = tools(impatient).execute(decision("decision-b")).await.unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
        let limit = Duration::from_millis(40);
        let strict = Toolset::builder().profile(Profile::Execute).deadline(limit).service(client).build();
        match strict.execute(decision("decision-c")).await.unwrap_err() {
            Error::OutcomeUnknown(unknown) => assert_eq!(unknown.reason(), UnknownReason::DeadlineExceeded(limit)),
            other => panic!("{other:?}"),
        }
        for id in ["decision-a", "decision-b", "decision-c"] {
            assert_eq!(engine.executed(id), 1, "{id}");
        }
        let given_up = async {
            while engine.cancelled() < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(SOON, given_up).await.expect("both were cancelled at the engine");
    }
}

#[tokio::test]
async fn a_token_that_expires() {
    let engine = StubEngine::builder().token(TOKEN).fault(Fault::Unauthorized).start().await.unwrap();
    let endpoint = Endpoint::new(engine.url()).unwrap().token(BearerToken::new(TOKEN).unwrap());
    let tools = Toolset::builder().profile(Profile::Execute).endpoint(endpoint).connect().await.unwrap();
    let error = tools.call("simulate", object!({"scenario": "s"})).await.unwrap_err();
    assert!(error.to_string().contains("401") && !error.to_string().contains(TOKEN), "{error}");
    assert!(engine.received().is_empty());
}
