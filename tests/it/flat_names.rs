//! Flat names: what is listed, what can be called, and what the engine, an operator and a gateway's client see of it.

use std::collections::HashSet;

use futures::executor::block_on;
use proptest::{prelude::*, sample::select};
use rmcp::{
    ServiceError, ServiceExt as _,
    model::{CallToolRequestParams, ListToolsResult, Tool},
    object,
};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer as _, Service, ServiceBuilder, ServiceExt as _};
use tower_algenta::{
    BoxError, EngineClient, Error, ExecuteDecision, FlatNamesLayer, GovernanceLayer, Operator, Profile, StubEngine,
    ToolNames, ToolRequest, ToolResponse, ToolServer, Toolset,
};
use tower_test::mock;

use crate::{
    checks::Boxed,
    real_servers::Generation,
    support::{Received, empty_result, everything_printed, recording},
};

const HOOK: &str = "https://hooks.example/algenta";

/// An engine that lists `names` and answers every call.
fn engine(
    received: &Received,
    names: &[&str],
) -> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + Clone + Send + Sync + 'static
{
    let tools = names.iter().map(|name| Tool::new((*name).to_owned(), "", object!({"type": "object"}))).collect();
    let list = ListToolsResult::with_all_items(tools);
    recording(received, move |request| {
        Ok(match request {
            ToolRequest::List(_) => list.clone().into(),
            ToolRequest::Call(_) => empty_result(),
        })
    })
}

fn listed(answer: Result<ToolResponse, impl Into<BoxError>>) -> Vec<String> {
    match answer.map_err(Into::into) {
        Ok(ToolResponse::List(list)) => list.tools.into_iter().map(|tool| tool.name.into_owned()).collect(),
        other => panic!("no list: {other:?}"),
    }
}

/// What the inner service receives as the tool's name, or the refusal.
fn called(names: &ToolNames, name: &str) -> Result<String, String> {
    let received = Received::default();
    let service = FlatNamesLayer::new().tool_names(names.clone()).layer(engine(&received, &[]));
    let answer = block_on(service.oneshot(ToolRequest::call(name.to_owned(), object!({}))));
    match (answer.map_err(Error::from), &*received.take()) {
        (Ok(ToolResponse::Call(_)), [ToolRequest::Call(call)]) => Ok(call.params.name.to_string()),
        (Err(error @ Error::ToolNotAllowed(_)), []) => Err(error.to_string()),
        (answer, received) => panic!("{answer:?}, {received:?}"),
    }
}

#[test]
fn a_name_that_gives_no_flat_one_of_its_own_is_neither_listed_nor_callable() {
    let (longest, too_long) = ("x".repeat(120), "x".repeat(121));
    let flat = ["simulate", "query_batch", "v2", "_", "__x", "algenta", &longest];
    let others =
        ["Simulate", "a-b", "a.b", "größe", "", "a b", "a\n", "algenta_simulate", "algenta_", "algenta__x", &too_long];
    let names: Vec<&str> = flat.iter().chain(&others).copied().collect();
    let service = FlatNamesLayer::new().layer(engine(&Received::default(), &names));
    let list = listed(block_on(service.oneshot(ToolRequest::list())));
    for name in names {
        let asked = format!("algenta_{name}");
        let is_flat = flat.contains(&name);
        assert_eq!(list.contains(&asked), is_flat, "{name:?}");
        assert_eq!(called(&ToolNames::bare(), &asked).ok().as_deref(), is_flat.then_some(name), "{name:?}");
    }
    assert_eq!(list.len(), flat.len());
    // The engine's `algenta__x` is out of reach, so this is the flat name of `_x` alone.
    assert_eq!(called(&ToolNames::bare(), "algenta__x").as_deref(), Ok("_x"));
}

#[test]
fn a_name_without_the_prefix_reads_like_one_that_does_not_exist() {
    for name in ["simulate", "Algenta_simulate", "ALGENTA_simulate", " algenta_simulate", "algenta-simulate", "", "a"] {
        assert_eq!(called(&ToolNames::bare(), name), Err(format!("unknown tool \"{name}\"")));
    }
}

#[test]
fn the_prefix_of_the_upstream_is_no_part_of_the_flat_name() {
    let eu = ToolNames::prefixed("eu__");
    assert_eq!(called(&eu, "algenta_simulate").as_deref(), Ok("eu__simulate"));
    // That one is `eu__eu__simulate` below.
    assert_eq!(called(&eu, "algenta_eu__simulate").as_deref(), Ok("eu__eu__simulate"));
    let service =
        FlatNamesLayer::new().tool_names(eu).layer(engine(&Received::default(), &["eu__simulate", "simulate"]));
    assert_eq!(listed(block_on(service.oneshot(ToolRequest::list()))), ["algenta_simulate"]);

    // An upstream that calls them by their flat names already keeps them, byte for byte.
    let flat = ToolNames::flat();
    assert_eq!(called(&flat, "algenta_simulate").as_deref(), Ok("algenta_simulate"));
    let service = FlatNamesLayer::new().tool_names(flat).layer(engine(&Received::default(), &["algenta_simulate"]));
    assert_eq!(listed(block_on(service.oneshot(ToolRequest::list()))), ["algenta_simulate"]);
}

#[test]
fn it_keeps_the_contract_of_tower() {
    let (mut service, mut handle) = mock::spawn_layer::<ToolRequest, ToolResponse, _>(FlatNamesLayer::new());
    handle.allow(0);
    assert_pending!(service.poll_ready());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut answer = task::spawn(service.call(ToolRequest::call("algenta_simulate", object!({}))));
    assert_pending!(answer.poll());
    let mut request = task::spawn(handle.next_request());
    let Some((_, respond)) = tokio_test::assert_ready!(request.poll()) else { panic!("the call never arrived") };
    respond.send_error("the engine is gone");
    assert_eq!(assert_ready_err!(answer.poll()).to_string(), "the engine is gone");
}

#[test]
fn an_answer_to_another_request_is_refused() {
    for (request, answer) in [
        (ToolRequest::list(), empty_result()),
        (ToolRequest::call("algenta_simulate", object!({})), ListToolsResult::default().into()),
    ] {
        let service =
            FlatNamesLayer::new().layer(recording(&Received::default(), move |_: &ToolRequest| Ok(answer.clone())));
        let error = Error::from(block_on(service.oneshot(request)).unwrap_err());
        assert!(matches!(error, Error::UnexpectedResponse(_)), "{error:?}");
    }
}

fn name() -> impl Strategy<Value = String> {
    let prefix = select(vec!["", "", "algenta_", "eu__", "execute_", "ALGENTA_"]);
    let known = select(vec!["simulate", "execute_decision", "query_batch", "log_decision", "_", "x"]);
    prop_oneof![
        3 => (prefix.clone(), prefix, known).prop_map(|(one, other, known)| format!("{one}{other}{known}")),
        1 => "[a-zA-Z_.-]{0,8}",
        1 => "\\PC{0,6}",
    ]
}

proptest! {
    #[test]
    fn listed_exactly_if_callable(
        profile in select(Profile::ALL.to_vec()),
        upstream in select(vec!["", "eu__", "algenta_"]),
        wire in prop::collection::vec(name(), 0..8),
        asked in prop::collection::vec(name(), 0..8),
    ) {
        let wire: Vec<&str> = wire.iter().map(String::as_str).collect::<HashSet<_>>().into_iter().collect();
        let received = Received::default();
        let names = ToolNames::prefixed(upstream);
        let stack = ServiceBuilder::new()
            .layer(FlatNamesLayer::new().tool_names(names.clone()))
            .layer(GovernanceLayer::new(profile).tool_names(names))
            .service(engine(&received, &wire));
        let stack = Boxed::new(stack);
        let mut reached = HashSet::new();
        let flat: HashSet<String> = wire
            .iter()
            .flat_map(|name| [format!("algenta_{name}"), format!("algenta_{}", name.strip_prefix(upstream).unwrap_or(name))])
            .chain(wire.iter().map(|name| (*name).to_owned()))
            .chain(asked)
            .collect();
        let mut callable = HashSet::new();
        for name in flat {
            let arguments = object!({"decision_id": "d", "webhook_url": "w"});
            let answer = block_on(stack.clone().oneshot(ToolRequest::call(name.clone(), arguments)));
            match &*received.take() {
                // One engine tool for one flat name, and one flat name for one engine tool.
                [ToolRequest::Call(call)] => {
                    prop_assert!(reached.insert(call.params.name.to_string()), "{} twice", call.params.name);
                    if wire.contains(&&*call.params.name) {
                        callable.insert(name);
                    }
                }
                [] => prop_assert!(matches!(answer.map_err(Error::from), Err(Error::ToolNotAllowed(_))), "{name:?}"),
                other => prop_assert!(false, "{other:?}"),
            }
        }
        let list = listed(block_on(stack.oneshot(ToolRequest::list())));
        let is_flat = |name: &String| name.strip_prefix("algenta_").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        });
        prop_assert!(list.iter().all(is_flat), "{list:?}");
        prop_assert_eq!(list.len(), callable.len());
        prop_assert_eq!(list.into_iter().collect::<HashSet<_>>(), callable);
    }
}

/// A governed stack over an engine that prefixes, under flat names.
fn flat_stack(
    client: EngineClient,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = Error, Future: Send> + Clone + Send + Sync + 'static {
    let eu = ToolNames::prefixed("eu__");
    ServiceBuilder::new()
        .layer(FlatNamesLayer::new().tool_names(eu.clone()))
        .layer(GovernanceLayer::new(Profile::Execute).tool_names(eu))
        .service(client)
}

#[tokio::test]
async fn an_execution_is_denied_and_released_through_flat_names() {
    for generation in Generation::BOTH {
        let engine = StubEngine::builder().prefix("eu__").start().await.unwrap();
        let client = generation.connect(&engine.url()).await;
        let tools = Toolset::from_governed_stack(flat_stack(client.clone())).tool_names(ToolNames::flat());
        let listed: HashSet<String> = tools.list().await.unwrap().into_iter().map(|tool| tool.name.into()).collect();
        assert_eq!(listed, Profile::Execute.tools().map(|tool| format!("algenta_{tool}")).collect());
        tools.call("algenta_simulate", object!({"scenario": "s"})).await.unwrap();

        let decision = ExecuteDecision::new("decision-7", HOOK).unwrap();
        assert!(tools.execute(decision.clone()).await.unwrap().is_delivered());
        let denied = tools.execute(decision).await.unwrap_err();
        // The denial keeps the engine's name, so that the operator's repeat needs no flat ones.
        let denial = denied.denial().expect("a denial");
        assert!(Operator::new(client).override_denial(denial).await.unwrap().is_delivered());
        assert_eq!(engine.executed("decision-7"), 2);
        assert!(engine.received().iter().all(|call| call.name.starts_with("eu__")));
    }
}

#[tokio::test]
async fn an_error_from_below_says_what_it_says_without_flat_names() {
    let engine = StubEngine::start().await.unwrap();
    let client = Generation::Stateless.connect(&engine.url()).await;
    let governed = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(client);
    let flat = FlatNamesLayer::new().layer(governed.clone());
    for (tool, arguments) in [
        ("execute_decision", object!({"decision_id": "decision-low-confidence", "webhook_url": HOOK})),
        ("execute_decision", object!({"decision_id": "decision-two-gates", "webhook_url": HOOK})),
        ("execute_decision", object!({"decision_id": "../x", "webhook_url": HOOK})),
        ("query_batch", object!({})),
    ] {
        let bare = governed.clone().oneshot(ToolRequest::call(tool, arguments.clone())).await.unwrap_err();
        let named = flat.clone().oneshot(ToolRequest::call(format!("algenta_{tool}"), arguments)).await.unwrap_err();
        assert_eq!(everything_printed(&bare), everything_printed(&named));
    }
}

#[tokio::test]
async fn a_gateways_client_sees_flat_names_alone() {
    let engine = StubEngine::builder().prefix("eu__").start().await.unwrap();
    let server = ToolServer::new(flat_stack(Generation::Stateless.connect(&engine.url()).await));
    let server = server.tool_names(ToolNames::flat());
    let (near, far) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move { Box::pin(server.serve(far)).await });
    let client = ().serve(near).await.unwrap();

    let listed = client.list_all_tools().await.unwrap();
    assert_eq!(listed.len(), 7);
    assert!(listed.iter().all(|tool| tool.name.starts_with("algenta_") && !tool.name.contains("eu__")));
    let decision = object!({"decision_id": "decision-low-confidence", "webhook_url": HOOK});
    let call = |name: &'static str| client.call_tool(CallToolRequestParams::new(name).with_arguments(decision.clone()));
    let Err(ServiceError::McpError(denied)) = call("algenta_execute_decision").await else { panic!("no denial") };
    assert_eq!(denied.data.unwrap()["error"]["gate"], "confidence");
    for name in ["execute_decision", "eu__execute_decision", "algenta_eu__execute_decision", "algenta_no_such_tool"] {
        let Err(ServiceError::McpError(unknown)) = call(name).await else { panic!("{name} is called") };
        assert_eq!(unknown.code, rmcp::model::ErrorCode::INVALID_PARAMS, "{name}");
        assert!(unknown.message.starts_with("unknown tool \""), "{unknown:?}");
    }
    assert_eq!(engine.received().len(), 1);
    client.cancel().await.unwrap();
    serving.await.unwrap().unwrap().cancel().await.unwrap();
}
