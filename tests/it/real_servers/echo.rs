//! Servers on the Python SDK that say which switches reached them, and calls that do all to bring one there.
//!
//! The stack lets a call through to them or refuses it as the model does; then the server's word counts, not ours. The
//! same calls without the stack are the control: most of them bring a switch there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use futures::{StreamExt as _, stream};
use proptest::{
    prelude::*,
    sample::{Index, select},
    strategy::ValueTree as _,
    test_runner::TestRunner,
};
use rmcp::{
    model::{CallToolResult, JsonObject},
    object,
};
use serde_json::{Value, json};
use tokio::process::Command;
use tower_algenta::{CallOutcome, EngineClient, Error, Profile, ToolNames, Toolset};

use super::{Generation, HOOK, Process, programs, script};
use crate::{
    model,
    properties::{any_key, config, dirty_arguments, object_with, switch},
};

/// Calls of each line of the SDK through the stack, and how many of them are made without it.
const CALLS: usize = 3_000;
const WITHOUT: usize = 1_000;
/// Calls that are under way at a time.
const AT_ONCE: usize = 16;

/// A way to write a tool's signature: the prefix, its logical name, and the profile that reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Signature {
    prefix: &'static str,
    tool: &'static str,
    profile: Profile,
}

const fn execution(prefix: &'static str) -> Signature {
    Signature { prefix, tool: "execute_decision", profile: Profile::Execute }
}

const SIGNATURES: [Signature; 6] = [
    execution("plain__"),
    execution("aliased__"),
    execution("wrapped__"),
    execution("text__"),
    Signature { prefix: "", tool: "simulate", profile: Profile::Observe },
    Signature { prefix: "", tool: "rerun", profile: Profile::Full },
];

#[derive(Clone, Debug)]
struct Call {
    signature: Signature,
    arguments: JsonObject,
    /// What of it is data, so that it has to arrive as it is.
    data: Value,
}

impl Call {
    fn name(&self) -> String {
        format!("{}{}", self.signature.prefix, self.signature.tool)
    }
}

/// A switch, on or off, as something that binds names may take it, or as nothing but a lax reader does.
fn switched() -> BoxedStrategy<(String, Value)> {
    let bound = ["force", "override_safety", "overrideSafety", "Force", "--force", "override-safety"];
    let spelling = prop_oneof![3 => select(bound.map(str::to_owned).to_vec()), 1 => switch()];
    let value = select(vec![json!(true), json!(true), json!(1), json!("true"), json!("on"), json!(false)]);
    (spelling, value).boxed()
}

/// The calls that both lines get: to make them takes longer than to send them.
static MADE: LazyLock<Vec<Call>> = LazyLock::new(|| {
    let (strategy, mut runner) = (call(), TestRunner::new(config()));
    (0..CALLS).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
});

/// A call with switches in all the places that a signature looks at.
fn call() -> BoxedStrategy<Call> {
    let switches = proptest::collection::vec((any::<Index>(), switched()), 1..4);
    let data = proptest::option::of(object_with(any_key));
    let text = proptest::option::of(select(vec!["", " ", "\n\t", "\u{feff}"]));
    (select(&SIGNATURES[..]), dirty_arguments(), object_with(any_key), data, switches, text)
        .prop_map(|(signature, mut arguments, mut params, data, switches, text)| {
            let (mut options, mut item) = (object!({"reason": "r"}), object!({}));
            for (place, (spelling, value)) in switches {
                let objects = [&mut arguments, &mut params, &mut options, &mut item];
                objects.into_iter().nth(place.index(4)).unwrap().insert(spelling, value);
            }
            if signature.prefix == "aliased__" {
                arguments.insert("options".to_owned(), Value::Object(options.clone()));
            }
            params.insert("options".to_owned(), Value::Object(options));
            params.insert("items".to_owned(), json!([item]));
            complete(signature, arguments, Value::Object(params), data, text)
        })
        .boxed()
}

/// Adds what a signature can't do without, with `params` as an object, or as text with this before it.
fn complete(
    signature: Signature,
    mut arguments: JsonObject,
    params: Value,
    data: Option<JsonObject>,
    text: Option<&str>,
) -> Call {
    let as_text = format!("{}{params}", text.unwrap_or_default());
    if signature.prefix == "text__" {
        let documents = [params.clone()];
        arguments.insert("payloads".to_owned(), json!(format!("{}", json!(documents))));
    }
    // The SDK's own reader takes white space before the text, and no byte order mark.
    let is_text = signature.prefix == "text__" || text.is_some_and(|before| before != "\u{feff}");
    arguments.insert("params".to_owned(), if is_text { Value::String(as_text) } else { params });
    arguments.remove("metadata");
    let data = match (signature.tool, data) {
        ("simulate", data) => {
            let scenario = Value::Object(data.unwrap_or_default());
            arguments.insert("scenario".to_owned(), scenario.clone());
            scenario
        }
        ("execute_decision", Some(data)) => {
            arguments.insert("metadata".to_owned(), Value::Object(data.clone()));
            Value::Object(data)
        }
        _ => Value::Null,
    };
    if signature.tool == "execute_decision" {
        arguments.extend(object!({"decision_id": "d", "webhook_url": HOOK}));
    }
    Call { signature, arguments, data }
}

const fn result(outcome: &CallOutcome) -> &CallToolResult {
    outcome.result().expect("an answer")
}

/// What the server says, if it ran.
fn said(result: &CallToolResult) -> Option<Value> {
    let text = &result.content.first()?.as_text()?.text;
    serde_json::from_str::<Value>(text).ok().filter(|_| result.is_error != Some(true))
}

/// Sends `calls` through the stack; how many of them the server ran.
async fn govern(client: &EngineClient, calls: &[Call]) -> usize {
    let stacks: BTreeMap<Signature, Toolset> = SIGNATURES
        .into_iter()
        .map(|signature| {
            let builder = Toolset::builder().profile(signature.profile);
            let builder = builder.tool_names(ToolNames::prefixed(signature.prefix));
            (signature, builder.service(client.clone()).build())
        })
        .collect();
    for (signature, tools) in &stacks {
        let listed = serde_json::to_string(&tools.list().await.unwrap()).unwrap().to_lowercase();
        assert!(listed.contains(signature.tool), "{listed}");
        assert!(!listed.contains("force") && !listed.contains("override"), "{listed}");
    }
    let ran = stream::iter(calls).map(|call| {
        let tools = &stacks[&call.signature];
        async move {
            let outcome = tools.call(call.name(), call.arguments.clone()).await;
            let is_refused = model::arguments::scrubbed(call.signature.tool, &call.arguments).is_none();
            if let (true, Err(Error::InvalidArguments(_))) = (is_refused, &outcome) {
                return 0;
            }
            assert!(!is_refused, "{call:?}: {outcome:?}");
            let outcome = outcome.unwrap_or_else(|error| panic!("{call:?}: {error:?}"));
            assert_eq!(outcome.receipt().is_some(), call.signature.tool == "execute_decision");
            let said = said(result(&outcome)).unwrap_or_else(|| panic!("{call:?}: {outcome:?}"));
            assert_eq!(said["seen"], json!([]), "{call:?}");
            assert_eq!(said["kept"], call.data, "{call:?}");
            1
        }
    });
    ran.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await.into_iter().sum()
}

/// Sends `calls` to the server itself; what reached it, by the signature, and how often.
async fn control(client: &EngineClient, calls: &[Call]) -> (usize, BTreeMap<Signature, BTreeSet<String>>) {
    let tools = Toolset::from_governed_stack(client.clone()).tool_names(ToolNames::prefixed("none of ours"));
    let reached = stream::iter(calls).map(|call| {
        let tools = &tools;
        async move {
            let outcome = tools.call(call.name(), call.arguments.clone()).await.unwrap();
            // A switch that isn't what the server takes for one fails the call, and says nothing.
            let said = said(result(&outcome)).unwrap_or_default();
            let seen = said["seen"].as_array().into_iter().flatten();
            (call.signature, seen.map(|path| path.as_str().unwrap().to_owned()).collect::<Vec<_>>())
        }
    });
    let mut counted = 0;
    let mut paths: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (signature, seen) in reached.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
        counted += usize::from(!seen.is_empty());
        paths.entry(signature).or_default().extend(seen);
    }
    (counted, paths)
}

async fn no_switch_arrives(list: &str, generations: &[Generation]) {
    let Some(programs) = programs(list, "a server on the Python SDK that says which switches reached it") else {
        return;
    };
    let command = |port: u16| {
        let mut command = Command::new(programs.join("python"));
        command.arg(script("echo_server.py")).arg(port.to_string());
        command
    };
    let server = Process::start(command).await;
    let calls = &*MADE;
    let mut clients = Vec::new();
    for generation in generations {
        clients.push(generation.connect(&server.url).await);
    }
    let mut ran = 0;
    for (client, calls) in clients.iter().zip(calls.chunks(CALLS.div_ceil(clients.len()))) {
        ran += govern(client, calls).await;
    }
    let record = Toolset::from_governed_stack(clients[0].clone()).call("get_contract", object!({})).await.unwrap();
    assert_eq!(said(result(&record)), Some(json!({"ran": ran, "reached": 0})), "{list}");

    let (reached, paths) = control(&clients[0], &calls[..WITHOUT]).await;
    println!(
        "{list}: of {CALLS} calls {ran} ran; without the stack {reached} of the first {WITHOUT} bring a switch there"
    );
    assert!(ran * 4 > CALLS * 3, "{list}: few are refused: {ran}");
    assert!(reached * 2 > WITHOUT, "{list}: without the stack most bring a switch there: {reached}");
    for (signature, paths) in paths {
        let bound = match signature.prefix {
            "plain__" | "aliased__" => ["force", "override_safety"],
            "wrapped__" => ["params.options.force", "params.override_safety"],
            "text__" => ["params.force", "payloads.0.items.0.overrideSafety"],
            _ if signature.tool == "rerun" => ["overrideSafety", "params.items.0.force"],
            _ => ["force", "override_safety"],
        };
        assert!(bound.iter().all(|path| paths.contains(*path)), "{list}, {signature:?}: {paths:?}");
    }
}

#[tokio::test]
async fn no_switch_reaches_the_first_line_of_the_sdk() {
    no_switch_arrives("sdk1", &[Generation::Initialize]).await;
}

#[tokio::test]
async fn no_switch_reaches_the_second_line_of_the_sdk() {
    no_switch_arrives("sdk2", &Generation::BOTH).await;
}
