//! P2: a tool is listed exactly if it can be called, whatever was asked before.

use futures::executor::block_on;
use proptest::{prelude::*, sample::select};
use rmcp::{
    model::{ListToolsResult, Tool},
    object,
};
use tower::{Layer as _, ServiceExt as _};
use tower_algenta::{Error, GovernanceLayer, Profile, ToolNames, ToolRequest, ToolResponse};

use super::config;
use crate::{
    checks::Boxed,
    model::names::{CONTRACT, allowed},
    support::{Received, empty_result, recording},
};

fn name() -> impl Strategy<Value = String> {
    let known = select(CONTRACT.to_vec()).prop_map(str::to_owned);
    let prefix = select(vec!["algenta_", "srv__", "", "execute_", "ALGENTA_", " "]);
    let suffix = select(vec!["", "", "_v2", "\n", ".x", "\u{200b}"]);
    prop_oneof![
        2 => known.clone(),
        2 => (prefix, known.clone(), suffix).prop_map(|(prefix, known, suffix)| format!("{prefix}{known}{suffix}")),
        1 => known.prop_map(|known| known.to_uppercase()),
        1 => "[a-z_.-]{0,8}",
        1 => "\\PC{0,8}",
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p2_listed_exactly_if_callable(
        profile in select(Profile::ALL.to_vec()),
        prefix in select(vec!["", "", "algenta_", "srv__", "execute_"]),
        names in prop::collection::vec(name(), 0..8),
        cursor in prop::option::of("[a-z]{1,4}"),
        history in prop::collection::vec(prop::option::of(name()), 0..4),
    ) {
        let tools = names.iter().map(|name| Tool::new(name.clone(), "", object!({"type": "object"}))).collect();
        let mut upstream = ListToolsResult::with_all_items(tools).with_ttl_ms(7);
        upstream.next_cursor = cursor.clone();
        let received = Received::default();
        let engine = recording(&received, move |request: &ToolRequest| Ok(match request {
            ToolRequest::List(_) => upstream.clone().into(),
            ToolRequest::Call(_) => empty_result(),
        }));
        let layer = GovernanceLayer::new(profile).tool_names(ToolNames::prefixed(prefix));
        let stack = Boxed::new(layer.layer(engine));
        let ask = |request: ToolRequest| {
            let answer = block_on(stack.clone().oneshot(request)).map_err(Error::from);
            (answer, received.take())
        };
        let call = |name: &str| {
            let arguments = object!({"decision_id": "d", "webhook_url": "w"});
            ask(ToolRequest::call(name.to_owned(), arguments))
        };
        // What was asked before; it must not count.
        for asked in history {
            let _ = asked.map_or_else(|| ask(ToolRequest::list()), |name| call(&name));
        }

        let mut callable: Vec<&String> = Vec::new();
        for name in &names {
            let (answer, received) = call(name);
            let is_allowed = allowed(profile.as_str(), prefix, name);
            prop_assert_eq!(received.len(), usize::from(is_allowed), "inner calls of {:?}", name);
            prop_assert_eq!(matches!(answer, Err(Error::ToolNotAllowed(_))), !is_allowed, "{:?}: {:?}", name, answer);
            if let [ToolRequest::Call(call)] = &*received {
                prop_assert_eq!(&*call.params.name, name.as_str(), "the wire name is kept");
            }
            if is_allowed && !callable.contains(&name) {
                callable.push(name);
            }
        }
        let (answer, received) = ask(ToolRequest::list_from(Some("page".to_owned())));
        let Ok(ToolResponse::List(list)) = answer else { panic!("no list: {answer:?}") };
        prop_assert_eq!(list.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), callable);
        prop_assert_eq!((list.next_cursor, list.ttl_ms), (cursor, Some(7)));
        let [ToolRequest::List(asked)] = &*received else { panic!("{received:?}") };
        prop_assert_eq!(asked.params.as_ref().and_then(|params| params.cursor.as_deref()), Some("page"));
    }
}
