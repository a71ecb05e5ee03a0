//! Servers on the Python SDK, of both its lines, that let a denial out in each way that the SDK has.

use rmcp::object;
use serde_json::{Value, json};
use tokio::process::Command;
use tower_algenta::{Endpoint, EngineClient, Error, ExecuteDecision, NEVER_MODEL_FACING, Profile, Toolset};

use super::{Generation, HOOK, Process, named, programs, script};

/// What becomes of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is typed.
    Typed,
    /// The SDK keeps what the tool said to itself, so nobody knows that it is one.
    Withheld,
}

/// Generations, ways to deny, and what becomes of it.
const SDK_1: [(Generation, &str, Fate); 5] = [
    (Generation::Initialize, "raise", Fate::Typed),
    (Generation::Initialize, "tool-error", Fate::Typed),
    (Generation::Initialize, "return", Fate::Typed),
    // Its decorator makes a text of the error's message, and drops its data.
    (Generation::Initialize, "data", Fate::Withheld),
    (Generation::Initialize, "data-lowlevel", Fate::Typed),
];
const SDK_2: [(Generation, &str, Fate); 8] = [
    (Generation::Initialize, "raise", Fate::Withheld),
    (Generation::Initialize, "tool-error", Fate::Typed),
    (Generation::Initialize, "return", Fate::Typed),
    (Generation::Initialize, "data", Fate::Typed),
    (Generation::Stateless, "raise", Fate::Withheld),
    (Generation::Stateless, "tool-error", Fate::Typed),
    (Generation::Stateless, "return", Fate::Typed),
    (Generation::Stateless, "data", Fate::Typed),
];

async fn start(list: &str, mode: &str) -> Option<Process> {
    let programs = programs(list, &format!("a server on the Python SDK that is to {mode}"))?;
    let command = |port: u16| {
        let mut command = Command::new(programs.join("python"));
        command.arg(script("sdk_server.py")).arg(port.to_string()).arg(mode);
        command
    };
    Some(Process::start(command).await)
}

/// What the server remembers: what ran, and the switches that reached it.
async fn record(client: &EngineClient) -> Value {
    let outcome = Toolset::from_governed_stack(client.clone()).call("get_contract", object!({})).await.unwrap();
    let result = outcome.result().unwrap();
    serde_json::from_str(&result.content[0].as_text().unwrap().text).unwrap()
}

async fn holds(list: &str, cases: &[(Generation, &str, Fate)]) {
    for &(generation, mode, fate) in cases {
        let Some(server) = start(list, mode).await else { continue };
        let client = generation.connect(&server.url).await;
        let tools = Toolset::builder().profile(Profile::Execute).service(client.clone()).build();
        let execute = async |id: &str| tools.execute(ExecuteDecision::new(id, HOOK).unwrap()).await;

        assert!(execute("decision-hold").await.unwrap().is_delivered(), "{list}, {mode}");
        assert!(!execute("decision-failed-delivery").await.unwrap().is_delivered(), "{list}, {mode}");
        for (id, gate) in [
            ("decision-hold", "idempotency"),
            ("decision-low-confidence", "confidence"),
            ("decision-low-risk-floor", "risk_floor"),
        ] {
            let smuggled = object!({
                "decision_id": id, "webhook_url": HOOK, "force": true, "override_safety": true, "Force": true
            });
            let outcome = tools.call("execute_decision", smuggled).await;
            println!("{list} | {generation:?} | {gate} | {mode} | {}", named(&outcome));
            let error = outcome.unwrap_err();
            match fate {
                Fate::Typed => assert_eq!(error.denial().unwrap().gate().to_string(), gate, "{list}, {mode}"),
                Fate::Withheld => assert!(matches!(error, Error::OutcomeUnknown(_)), "{list}, {mode}: {error:?}"),
            }
            assert!(error.is_governed_failure());
        }
        let error = execute("decision-crash").await.unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{list}, {mode}: {error:?}");
        let error = execute("decision-malformed-receipt").await.unwrap_err();
        assert!(matches!(error, Error::ExecutionFailed(_)), "{list}, {mode}: {error:?}");

        let listed = serde_json::to_string(&tools.list().await.unwrap()).unwrap();
        for name in NEVER_MODEL_FACING {
            assert!(!listed.contains(name), "{list}, {mode}: {listed}");
        }
        let ran = json!({"decision-hold": 1, "decision-failed-delivery": 1, "decision-malformed-receipt": 1});
        assert_eq!(record(&client).await, json!({"executed": ran, "switches": []}), "{list}, {mode}");
    }
}

#[tokio::test]
async fn the_first_line_of_the_sdk() {
    holds("sdk1", &SDK_1).await;
}

#[tokio::test]
async fn the_second_line_of_the_sdk() {
    holds("sdk2", &SDK_2).await;
}

/// Its sessions are in its memory.
#[tokio::test]
async fn a_server_that_restarts_has_lost_its_sessions() {
    let Some(programs) = programs("sdk1", "a server on the Python SDK that restarts") else { return };
    let command = |port: u16| {
        let mut command = Command::new(programs.join("python"));
        command.arg(script("sdk_server.py")).arg(port.to_string()).arg("raise");
        command
    };
    let server = Process::start(command).await;
    // The crate's own client, which settles on the handshake here.
    let client = EngineClient::connect(Endpoint::new(&server.url).unwrap()).await.unwrap();
    assert_eq!(client.protocol_version().unwrap().as_str(), "2025-11-25");
    let tools = Toolset::builder().profile(Profile::Execute).service(client.clone()).build();
    let execute = async || tools.execute(ExecuteDecision::new("decision-a", HOOK).unwrap()).await;
    let server = server.restart(command).await;
    let error = execute().await.unwrap_err();
    assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
    let error = tools.list().await.unwrap_err();
    assert!(error.to_string().contains("connect again"), "{error}");

    let client = EngineClient::connect(Endpoint::new(&server.url).unwrap()).await.unwrap();
    let ran = record(&client).await;
    assert_eq!(ran, json!({"executed": {}, "switches": []}), "nothing was sent again");
}
