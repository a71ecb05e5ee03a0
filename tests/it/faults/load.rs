//! Ends in the middle of work: of a gateway, of an engine, of a server.

use std::time::Duration;

use futures::future::join_all;
use rmcp::ServiceExt as _;
use tokio::time::timeout;
use tower::ServiceBuilder;
use tower_algenta::{Endpoint, EngineClient, GovernanceLayer, Profile, StubEngine, ToolServer};

use super::{Outcome, SOON, eventually, execute, executing};
use crate::{
    gateway::process::{Gateway, SOON as END},
    real_servers::Generation,
};

const CALLS: usize = 64;
const CLIENTS: usize = 8;

/// That many executions under way, by clients of both generations.
struct Load {
    calls: Vec<tokio::task::JoinHandle<Outcome>>,
}

impl Load {
    async fn on(url: &str, engine: &StubEngine) -> Self {
        let clients = join_all((0..CLIENTS).map(|index| async move {
            if index.is_multiple_of(2) {
                Generation::Initialize.connect(url).await
            } else {
                EngineClient::connect(Endpoint::new(url).unwrap()).await.unwrap()
            }
        }));
        let clients = timeout(SOON, clients).await.expect("they connect");
        let calls = (clients.iter().cycle().take(CALLS).enumerate())
            .map(|(index, client)| {
                let tools = executing(client);
                tokio::spawn(async move { Outcome::of(&execute(&tools, &format!("decision-{index}")).await) })
            })
            .collect();
        eventually("all of them run", || engine.executions().len() == CALLS).await;
        Self { calls }
    }

    async fn end(self) -> Vec<Outcome> {
        join_all(self.calls).await.into_iter().map(Result::unwrap).collect()
    }
}

fn once_each(engine: &StubEngine) {
    for index in 0..CALLS {
        assert_eq!(engine.executed(&format!("decision-{index}")), 1, "{index}");
    }
    assert_eq!(engine.received().len(), CALLS, "nothing was sent twice");
}

#[tokio::test]
async fn a_gateway_that_is_told_to_stop() {
    let engine = StubEngine::builder().delay(Duration::from_millis(1500)).start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute"]).await;
    let load = Load::on(&gateway.url, &engine).await;
    gateway.signal("-TERM");
    assert_eq!(load.end().await, [Outcome::Receipt; CALLS]);
    assert!(timeout(END, gateway.ended()).await.expect("it ends").success());
    once_each(&engine);
}

#[tokio::test]
async fn an_engine_that_is_shut_down() {
    let engine = StubEngine::builder().delay(Duration::from_secs(60)).start().await.unwrap();
    let load = Load::on(&engine.url(), &engine).await;
    once_each(&engine);
    timeout(SOON, engine.shutdown()).await.expect("it shuts down");
    assert_eq!(load.end().await, [Outcome::Unknown; CALLS]);
}

/// Behind a gateway it is the same, and what the gateway says is an error, not a result.
#[tokio::test]
async fn an_engine_that_is_shut_down_behind_a_gateway() {
    let engine = StubEngine::builder().delay(Duration::from_secs(60)).start().await.unwrap();
    let gateway = Gateway::before(&engine, &["--profile", "execute"]).await;
    let load = Load::on(&gateway.url, &engine).await;
    once_each(&engine);
    timeout(SOON, engine.shutdown()).await.expect("it shuts down");
    assert_eq!(load.end().await, [Outcome::Unknown; CALLS]);
    gateway.signal("-TERM");
    assert!(timeout(END, gateway.ended()).await.expect("it ends").success());
}

#[tokio::test]
async fn a_client_that_is_closed() {
    for generation in Generation::BOTH {
        let engine = StubEngine::builder().delay(Duration::from_secs(60)).start().await.unwrap();
        let client = generation.connect(&engine.url()).await;
        let tools = executing(&client);
        let calls: Vec<_> = (0..CALLS)
            .map(|index| {
                let tools = tools.clone();
                tokio::spawn(async move { Outcome::of(&execute(&tools, &format!("decision-{index}")).await) })
            })
            .collect();
        // Of a plain rmcp client, 16 requests are under way at a time.
        let at_least = if generation == Generation::Stateless { CALLS } else { 16 };
        eventually("they run", || engine.executions().len() >= at_least).await;
        timeout(SOON, client.close()).await.expect("it closes").unwrap();
        let outcomes = join_all(calls).await.into_iter().map(Result::unwrap);
        let unknown = outcomes.filter(|outcome| *outcome == Outcome::Unknown).count();
        assert!(unknown >= at_least, "{generation:?}: {unknown}");
        assert_eq!(Outcome::of(&execute(&tools, "decision-later").await), Outcome::NotSent);
        assert!(engine.received().len() <= CALLS);
    }
}

/// A server over a pipe, whose owner ends it.
#[tokio::test]
async fn a_server_that_is_ended() {
    let engine = StubEngine::builder().delay(Duration::from_secs(60)).start().await.unwrap();
    let upstream = EngineClient::connect(Endpoint::new(engine.url()).unwrap()).await.unwrap();
    let stack = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(upstream);
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = tokio::spawn(async move { Box::pin(ToolServer::new(stack).serve(far)).await.unwrap() });
    let tools = executing(&EngineClient::serve(near).await.unwrap());
    let server = server.await.unwrap();
    let calls: Vec<_> = (0..CALLS)
        .map(|index| {
            let tools = tools.clone();
            tokio::spawn(async move { Outcome::of(&execute(&tools, &format!("decision-{index}")).await) })
        })
        .collect();
    eventually("they run", || engine.executions().len() == CALLS).await;
    timeout(SOON, server.cancel()).await.expect("it ends").unwrap();
    let outcomes: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes, [Outcome::Unknown; CALLS]);
    once_each(&engine);
}
