//! Engines that are killed, SIGKILL, before, during and after a call.
//!
//! What is killed is a process that keeps no log, since its log would die with it: the example `gateway`, behind which
//! the stub runs in this process and remembers what it executed. To the client the gateway is the engine. The last test
//! kills the example `stub_engine`, and reads what its successor says at its end.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};
use tower_algenta::{
    Endpoint, EngineClient, Error, Profile, StubEngine, Toolset,
    client::{CallErrorKind, ChildProcess, Connections},
};

use super::{Outcome, SOON, cause, decision, eventually, execute, executing};
use crate::{
    gateway::process::{Gateway, command, example, program},
    real_servers::Generation,
};

/// A plain rmcp client asks for the rest of a broken stream for as long as it may, so this is how long a call may take.
const PATIENCE: Duration = Duration::from_millis(1500);

async fn connect(generation: Generation, gateway: &Gateway) -> Toolset {
    executing(&generation.connect(&gateway.url).await.call_timeout(PATIENCE))
}

/// A process to kill, in front of `engine`.
async fn process(engine: &StubEngine, port: u16) -> Gateway {
    let (url, listen) = (engine.url(), format!("127.0.0.1:{port}"));
    let args = ["--upstream", &url, "--listen", &listen, "--profile", "execute", "--single-identity", "--sessions"];
    Gateway::start(command(&args)).await
}

fn port(gateway: &Gateway) -> u16 {
    gateway.url.rsplit(':').next().unwrap().trim_end_matches("/mcp").parse().unwrap()
}

async fn kill(gateway: Gateway) -> u16 {
    let port = port(&gateway);
    gateway.signal("-KILL");
    gateway.ended().await;
    port
}

/// One that was killed is not called again by itself when another takes its port.
async fn nothing_follows(engine: &StubEngine, port: u16) {
    let received = engine.received().len();
    let _next = process(engine, port).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(engine.received().len(), received, "a call was sent again");
}

#[tokio::test]
async fn before_a_call() {
    for generation in Generation::BOTH {
        let engine = StubEngine::start().await.unwrap();
        let gateway = process(&engine, 0).await;
        let tools = connect(generation, &gateway).await;
        let port = kill(gateway).await;
        for _ in 0..3 {
            let result = execute(&tools, "decision-7").await;
            // The connection was idle when it died. Whether that was noticed in time is luck.
            assert!(matches!(Outcome::of(&result), Outcome::NotSent | Outcome::Unknown), "{generation:?}: {result:?}");
        }
        assert_eq!(Outcome::of(&execute(&tools, "decision-7").await), Outcome::NotSent, "{generation:?}");
        assert!(engine.received().is_empty());
        nothing_follows(&engine, port).await;
    }
}

#[tokio::test]
async fn during_a_call() {
    for generation in Generation::BOTH {
        let engine = StubEngine::builder().delay(Duration::from_secs(1)).start().await.unwrap();
        let gateway = process(&engine, 0).await;
        let tools = connect(generation, &gateway).await;
        let call = tokio::spawn(async move { execute(&tools, "decision-7").await });
        eventually("it runs", || engine.executed("decision-7") == 1).await;
        let port = kill(gateway).await;
        let result = call.await.unwrap();
        assert_eq!(Outcome::of(&result), Outcome::Unknown, "{generation:?}: {result:?}");
        nothing_follows(&engine, port).await;
        assert_eq!(engine.executed("decision-7"), 1);
    }
}

#[tokio::test]
async fn after_a_call() {
    for generation in Generation::BOTH {
        let engine = StubEngine::start().await.unwrap();
        let gateway = process(&engine, 0).await;
        let tools = connect(generation, &gateway).await;
        assert!(execute(&tools, "decision-7").await.unwrap().is_delivered());
        let port = kill(gateway).await;
        let result = execute(&tools, "decision-8").await;
        assert!(matches!(Outcome::of(&result), Outcome::NotSent | Outcome::Unknown), "{generation:?}: {result:?}");
        nothing_follows(&engine, port).await;
        assert_eq!((engine.executed("decision-7"), engine.executed("decision-8")), (1, 0));
    }
}

/// At moments that nobody chose: microseconds after the call began. `KILLS` in the environment is how many.
#[tokio::test]
async fn at_any_moment_of_a_call() {
    let kills = std::env::var("KILLS").map_or(12, |kills| kills.parse().unwrap());
    let engine = StubEngine::start().await.unwrap();
    let mut outcomes = [0, 0, 0];
    let mut port = 0;
    for index in 0..kills {
        let gateway = process(&engine, port).await;
        let tools = connect(Generation::BOTH[index % 2], &gateway).await;
        let id = format!("decision-{index}");
        let call = tokio::spawn({
            let id = id.clone();
            async move { execute(&tools, &id).await }
        });
        tokio::time::sleep(Duration::from_micros(u64::try_from(index * 30_000 / kills).unwrap())).await;
        port = kill(gateway).await;
        let result = call.await.unwrap();
        let ran = engine.executed(&id);
        assert!(ran <= 1, "{id}: {ran}");
        match Outcome::of(&result) {
            Outcome::Receipt => {
                assert_eq!(ran, 1, "{id}");
                outcomes[0] += 1;
            }
            Outcome::Unknown => outcomes[1] += 1,
            Outcome::NotSent => {
                assert_eq!(ran, 0, "{id}");
                outcomes[2] += 1;
            }
            other => panic!("{id}: {other:?}"),
        }
    }
    println!("{kills} kills: {} receipts, {} unknown, {} not sent", outcomes[0], outcomes[1], outcomes[2]);
    assert!(engine.received().len() <= kills, "a call was sent again");
}

/// A process that stands still is one that does not answer; what it was sent it does when it goes on.
#[tokio::test]
async fn stopped_and_continued() {
    for generation in Generation::BOTH {
        let engine = StubEngine::start().await.unwrap();
        let gateway = process(&engine, 0).await;
        let limit = Duration::from_millis(300);
        let tools = executing(&generation.connect(&gateway.url).await.call_timeout(limit));
        gateway.signal("-STOP");
        let error = execute(&tools, "decision-7").await.unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{generation:?}: {error:?}");
        assert_eq!(cause(&error), CallErrorKind::TimedOut(limit));
        gateway.signal("-CONT");
        tokio::time::sleep(limit).await;
        assert!(engine.received().len() <= 1 && engine.executed("decision-7") <= 1, "{generation:?}");
        let patient = Toolset::builder().profile(Profile::Execute).service(generation.connect(&gateway.url).await);
        assert!(execute(&patient.build(), "decision-8").await.unwrap().is_delivered());
    }
}

/// A child process that says its process id first, and is then the gateway.
fn child(engine: &StubEngine, id: &Arc<Mutex<String>>) -> ChildProcess {
    let id = Arc::clone(id);
    ChildProcess::new("sh")
        .args(["-c", r#"echo "$$" >&2; exec "$0" "$@""#])
        .arg(program())
        .args(["--stdio", "--profile", "execute", "--upstream", &engine.url()])
        .on_stderr(move |line| {
            let mut id = id.lock().unwrap();
            if id.is_empty() {
                line.clone_into(&mut id);
            }
        })
}

#[tokio::test]
async fn as_a_child_before_during_and_after_a_call() {
    let engine = StubEngine::builder().delay(Duration::from_millis(200)).start().await.unwrap();
    for moment in ["before", "during", "after"] {
        let id = Arc::new(Mutex::new(String::new()));
        let client = timeout(SOON, EngineClient::spawn(child(&engine, &id))).await.expect("it starts").unwrap();
        let tools = executing(&client);
        let name = format!("decision-{moment}");
        let kill = || {
            let id = id.lock().unwrap().clone();
            assert!(std::process::Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
        };
        let call = tokio::spawn({
            let name = name.clone();
            let tools = tools.clone();
            if moment == "before" {
                kill();
            }
            async move { execute(&tools, &name).await }
        });
        let result = match moment {
            "during" => {
                eventually("it runs", || engine.executed(&name) == 1).await;
                kill();
                call.await.unwrap()
            }
            "after" => {
                let result = call.await.unwrap();
                kill();
                result
            }
            _ => call.await.unwrap(),
        };
        let (outcome, ran) = (Outcome::of(&result), engine.executed(&name));
        match moment {
            // Nobody knows what a pipe held that broke.
            "before" => assert!(matches!(outcome, Outcome::NotSent | Outcome::Unknown) && ran == 0, "{result:?}"),
            "during" => assert_eq!((outcome, ran), (Outcome::Unknown, 1), "{result:?}"),
            _ => assert_eq!((outcome, ran), (Outcome::Receipt, 1), "{result:?}"),
        }
        eventually("its end is noticed", || client.is_closed()).await;
        assert_eq!(Outcome::of(&execute(&tools, "decision-later").await), Outcome::NotSent, "{moment}");
    }
    assert_eq!(engine.executed("decision-later"), 0);
}

async fn stub_engine(program: &std::path::Path, port: u16) -> (Child, String) {
    let mut child = Command::new(program)
        .args(["--port", &port.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    timeout(SOON, lines.read_line(&mut line)).await.expect("it starts").unwrap();
    child.stdout = Some(lines.into_inner());
    (child, line.trim().rsplit(' ').next().unwrap().to_owned())
}

/// Callers that connect again by themselves go on with the next engine, and never with the last one's calls.
#[tokio::test]
async fn and_started_again() {
    let program = tokio::task::spawn_blocking(|| example("stub_engine")).await.unwrap();
    let (mut engine, url) = stub_engine(&program, 0).await;
    let port = url.rsplit(':').next().unwrap().trim_end_matches("/mcp").parse().unwrap();
    let connections = Connections::shared(Endpoint::new(&url).unwrap());
    let tools = Toolset::builder().profile(Profile::Execute).service(connections).build();
    assert!(execute(&tools, "decision-0").await.unwrap().is_delivered());
    let mut sent = Vec::new();
    for index in 1..=32 {
        let (tools, id) = (tools.clone(), format!("decision-{index}"));
        sent.push(tokio::spawn(async move { execute(&tools, &id).await }));
        if index == 16 {
            // Some have ended, and some are under way.
            while !sent[2].is_finished() {
                tokio::task::yield_now().await;
            }
            engine.start_kill().unwrap();
        }
    }
    engine.wait().await.unwrap();
    let outcomes = futures::future::join_all(sent).await;
    let unanswered: Vec<_> = (outcomes.iter().zip(1..))
        .map(|(result, index)| (Outcome::of(result.as_ref().unwrap()), index))
        .filter(|(outcome, _)| *outcome != Outcome::Receipt)
        .collect();
    assert!(!unanswered.is_empty());

    let (mut engine, _) = stub_engine(&program, port).await;
    let again = async {
        while tools.execute(decision("decision-again")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, again).await.expect("it connects again");
    let id = engine.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    let mut said = String::new();
    timeout(SOON, engine.stdout.as_mut().unwrap().read_to_string(&mut said)).await.expect("it ends").unwrap();
    let executed: Vec<_> = said.lines().filter(|line| line.starts_with("executed: ")).collect();
    assert_eq!(executed, ["executed: decision-again for https://hooks.example/algenta"], "{said}");
}
