//! P2 through `ProfileFilter`: a tool is listed exactly if it can be called, whatever was asked before.

use futures::executor::block_on;
use rmcp::{
    model::{ListToolsResult, Tool},
    object,
};
use serde_json::Value;
use tower::{Layer, Service, ServiceExt as _};
use tower_algenta::{
    BoxError, Error, Profile, ProfileFilterLayer, ProfileFromExtensions, ToolNames, ToolRequest, ToolResponse,
};

use crate::{
    checks::Boxed,
    model::names::allowed,
    silence,
    support::{Received, empty_result, recording},
};

/// Checks a case of `names.json`: a profile, a prefix, and the names that are listed and called.
#[must_use]
pub fn check(data: &[u8]) -> bool {
    let Ok(input @ Value::Object(_)) = serde_json::from_slice(data) else { return false };
    let word = input["profile"].as_str().unwrap_or("full");
    let profile = Profile::ALL.into_iter().find(|profile| profile.as_str() == word);
    assert_eq!(word.parse().ok(), profile, "a profile's name is exact");
    let profile = profile.unwrap_or(Profile::Full);
    let prefix = input["configured_prefix"].as_str().unwrap_or_default();
    let names: Vec<&str> = input["upstream_names"]
        .as_array()
        .into_iter()
        .flatten()
        .chain([&input["name"]])
        .filter_map(Value::as_str)
        .collect();
    let cursor = input["upstream_nextCursor"].as_str().map(str::to_owned);

    let tools = ToolNames::prefixed(prefix);
    let fixed = ProfileFilterLayer::new(profile).tool_names(tools.clone());
    let by_caller = ProfileFilterLayer::new(ProfileFromExtensions::default()).tool_names(tools);
    let listed = filtered(&fixed, profile, prefix, &names, cursor.clone());
    assert_eq!(filtered(&by_caller, profile, prefix, &names, cursor), listed, "however the profile is told");
    true
}

/// The descriptions of the tools that are listed, which tell a name's first tool from its second.
fn filtered<L>(layer: &L, profile: Profile, prefix: &str, names: &[&str], cursor: Option<String>) -> Vec<String>
where
    L: Layer<Boxed>,
    L::Service:
        Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + Clone + Send + Sync + 'static,
{
    let tool = |(index, name): (usize, &&str)| {
        Tool::new((*name).to_owned(), index.to_string(), object!({"type": "object", "properties": {"force": {}}}))
    };
    let mut upstream = ListToolsResult::with_all_items(names.iter().enumerate().map(tool).collect()).with_ttl_ms(7);
    upstream.next_cursor = cursor;
    let received = Received::default();
    let given = upstream.clone();
    let engine = recording(&received, move |request: &ToolRequest| {
        Ok(match request {
            ToolRequest::List(_) => given.clone().into(),
            ToolRequest::Call(_) => empty_result(),
        })
    });
    let stack = Boxed::new(layer.layer(Boxed::new(engine)));
    let ask = |mut request: ToolRequest| {
        request.extensions_mut().insert(profile);
        let answer = block_on(stack.clone().oneshot(request)).map_err(Error::from);
        (answer, received.take())
    };
    let list = || match ask(ToolRequest::list_from(Some("page".to_owned()))) {
        (Ok(ToolResponse::List(list)), received) => {
            assert_eq!(received.len(), 1, "P7");
            let ToolRequest::List(asked) = &received[0] else { panic!("a list was asked for") };
            assert_eq!(asked.params.as_ref().and_then(|params| params.cursor.as_deref()), Some("page"));
            list
        }
        (answer, _) => panic!("no list: {answer:?}"),
    };

    let before = list();
    let mut callable: Vec<usize> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let (answer, received) = ask(ToolRequest::call((*name).to_owned(), object!({"force": {"x": 1}})));
        let is_allowed = allowed(profile.as_str(), prefix, name);
        assert_eq!(received.len(), usize::from(is_allowed), "inner calls of {name:?} under {profile}, {prefix:?}");
        match answer {
            Ok(_) => assert!(is_allowed, "{name:?} under {profile}"),
            Err(error @ Error::ToolNotAllowed(_)) => {
                assert!(!is_allowed, "{name:?} under {profile}");
                silence::check(&error);
            }
            Err(error) => panic!("{name:?}: {error:?}"),
        }
        if let [ToolRequest::Call(call)] = &*received {
            assert_eq!(call.params.name, *name, "the name on the wire is kept");
            assert_eq!(call.params.arguments, Some(object!({"force": {"x": 1}})), "arguments are another layer's");
        }
        if is_allowed && !callable.iter().any(|first| names[*first] == *name) {
            callable.push(index);
        }
    }
    let after = list();
    assert_eq!(after, before, "nothing depends on what was asked before");

    let mut expected = upstream.clone();
    expected.tools = callable.iter().map(|index| upstream.tools[*index].clone()).collect();
    assert_eq!(after, expected, "order, cursor and cache hints are kept");
    after.tools.iter().filter_map(|tool| tool.description.as_deref().map(str::to_owned)).collect()
}
