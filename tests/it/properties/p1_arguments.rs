//! P1: a switch in the arguments changes nothing of what the engine receives.

use proptest::{prelude::*, sample::Index};
use rmcp::model::{CallToolRequest, ClientRequest, JsonObject, MetaObject, RequestMetaObject};
use serde_json::Value;
use tower_algenta::{Profile, ToolRequest};

use super::{any, config};
use crate::{
    checks::{ask, real},
    model,
    support::empty_result,
};

/// What the engine receives, `None` if nothing.
fn received(request: ToolRequest) -> Option<CallToolRequest> {
    let (_, received) = ask(&real, Profile::Full, request, |_: &ToolRequest| Ok(empty_result()));
    received.into_iter().next().map(|request| match request {
        ToolRequest::Call(call) => call,
        ToolRequest::List(_) => panic!("a list"),
    })
}

fn bytes(call: CallToolRequest) -> String {
    serde_json::to_string(&ClientRequest::CallToolRequest(call)).unwrap()
}

fn call(tool: &'static str, arguments: JsonObject) -> ToolRequest {
    ToolRequest::call(tool, any::as_execution(arguments))
}

/// Which of the three places for `_meta` have it: the parameters, and in the extensions what decoding puts there, and what
/// older callers do.
type Places = [bool; 3];

fn with_meta(mut request: ToolRequest, meta: &JsonObject, places: Places) -> ToolRequest {
    let meta = || MetaObject(meta.clone());
    if let ToolRequest::Call(call) = &mut request {
        call.params.meta = places[0].then(|| RequestMetaObject(meta()));
    }
    if places[1] {
        request.extensions_mut().insert(RequestMetaObject(meta()));
    }
    if places[2] {
        request.extensions_mut().insert(meta());
    }
    request
}

/// What of `_meta` is in each of its places.
fn metas(call: &CallToolRequest) -> [Option<&JsonObject>; 3] {
    let typed = call.extensions.get::<RequestMetaObject>();
    [
        call.params.meta.as_ref().map(|meta| &meta.0.0),
        typed.map(|meta| &meta.0.0),
        call.extensions.get::<MetaObject>().map(|meta| &meta.0),
    ]
}

/// Hands every object in which the rules of `tool` hide `key` to `visit`.
fn covered(tool: &str, key: &str, arguments: &mut JsonObject, visit: &mut dyn FnMut(&mut JsonObject)) {
    visit(arguments);
    let is_private = model::is_private(key);
    let only_top = tool != "execute_decision" && model::names::CONTRACT.contains(&tool);
    for (name, value) in arguments.iter_mut() {
        let is_data = only_top || tool == "execute_decision" && name == "metadata";
        match value {
            Value::String(text) if !is_data && text.starts_with(['{', '[']) => {
                if let Ok(mut document) = serde_json::from_str::<Value>(text) {
                    objects(&mut document, visit);
                    let written = document.to_string();
                    // A build that takes a private key for a value of its own refuses the call.
                    if serde_json::from_str::<Value>(&written).is_ok_and(|read| read == document) {
                        *text = written;
                    }
                }
            }
            // The private ones are hidden in data, too.
            other if !is_data || is_private => objects(other, visit),
            _ => {}
        }
    }
}

fn objects(value: &mut Value, visit: &mut dyn FnMut(&mut JsonObject)) {
    match value {
        Value::Object(map) => {
            visit(map);
            map.values_mut().for_each(|value| objects(value, visit));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| objects(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether `less` is `more` with nothing added and nothing changed.
fn is_part_of(less: &Value, more: &Value) -> bool {
    match (less, more) {
        (Value::Object(less), Value::Object(more)) => {
            less.iter().all(|(key, value)| more.get(key).is_some_and(|more| is_part_of(value, more)))
        }
        (Value::Array(less), Value::Array(more)) => {
            less.len() == more.len() && less.iter().zip(more).all(|(less, more)| is_part_of(less, more))
        }
        (Value::String(less), Value::String(more)) if less != more => {
            let read = |text: &str| serde_json::from_str::<Value>(text.trim());
            matches!((read(less), read(more)), (Ok(less), Ok(more)) if is_part_of(&less, &more))
        }
        (less, more) => less == more,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p1_a_switch_makes_no_difference(
        tool in any::tool(),
        arguments in any::arguments(),
        meta in any::object_with(any::plain_key),
        places: Places,
        hidden in prop::collection::vec((any::<Index>(), any::hidden(), any::value_with(any::plain_key)), 1..4),
    ) {
        let clean = any::as_execution(arguments);
        let mut dirty = clean.clone();
        let mut dirty_meta = meta.clone();
        for (place, key, value) in hidden {
            let mut places = 0;
            covered(tool, &key, &mut dirty, &mut |_| places += 1);
            let place = place.index(places);
            let mut at = 0;
            covered(tool, &key, &mut dirty, &mut |object| {
                if at == place {
                    object.insert(key.clone(), value.clone());
                }
                at += 1;
            });
            dirty_meta.insert(format!("com.example/{key}"), value.clone());
            dirty_meta.insert(key, value);
        }
        let without = received(with_meta(call(tool, clean), &meta, places)).expect("a clean call arrives");
        let with = received(with_meta(call(tool, dirty.clone()), &dirty_meta, places)).expect("what is hidden is stripped");
        prop_assert_eq!(metas(&with), metas(&without), "of {:?}", dirty_meta);
        prop_assert_eq!(bytes(with), bytes(without), "of {:?}", dirty);
    }

    #[test]
    fn p1a_no_switch_arrives(
        tool in any::tool(),
        arguments in any::dirty_arguments(),
        meta in any::object_with(any::dirty_key),
        places: Places,
    ) {
        // A refusal is an answer, too.
        if let Some(call) = received(with_meta(call(tool, arguments), &meta, places)) {
            let expected = model::arguments::scrubbed_meta(&meta);
            for (arrived, is_there) in metas(&call).into_iter().zip(places) {
                prop_assert_eq!(arrived, Some(&expected).filter(|_| is_there), "of {:?}", meta);
            }
            let mut arguments = call.params.arguments.unwrap_or_default();
            let texts: Vec<Value> = arguments.values().filter(|value| value.is_string()).cloned().collect();
            let mut found = Vec::new();
            covered(tool, "force", &mut arguments, &mut |object| {
                found.extend(object.keys().filter(|key| model::is_hidden(key)).cloned());
            });
            covered(tool, "$serde_json::private::", &mut arguments, &mut |object| {
                found.extend(object.keys().filter(|key| model::is_private(key)).cloned());
            });
            prop_assert!(found.is_empty(), "{found:?}");
            let is_searched = tool == "execute_decision" || !model::names::CONTRACT.contains(&tool);
            for text in texts.iter().filter(|_| is_searched && !arguments.contains_key("metadata")) {
                let text = text.as_str().unwrap();
                prop_assert_eq!(model::text::read(text), model::text::Text::Unchanged, "{}", text);
            }
        }
    }

    #[test]
    fn p1b_a_clean_call_arrives_unchanged(
        tool in any::tool(),
        arguments in any::arguments(),
        meta in any::object_with(any::plain_key),
        places: Places,
        number in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
    ) {
        let mut arguments = any::as_execution(arguments);
        arguments.insert("number".to_owned(), serde_json::from_str(&number).unwrap());
        let request = with_meta(ToolRequest::call(tool, arguments), &meta, places);
        let sent = serde_json::to_string(&ClientRequest::from(request.clone())).unwrap();
        let arrived = received(request).expect("a clean call arrives");
        let read: f64 = number.parse().unwrap();
        let arguments = arrived.params.arguments.as_ref().unwrap();
        prop_assert_eq!(arguments["number"].as_f64(), Some(read), "no digit changes");
        prop_assert_eq!(bytes(arrived), sent);
    }

    #[test]
    fn p1c_what_arrives_was_sent(tool in any::tool(), arguments in any::dirty_arguments()) {
        let sent = any::as_execution(arguments);
        if let Some(call) = received(call(tool, sent.clone())) {
            let (arrived, sent) = (Value::Object(call.params.arguments.unwrap()), Value::Object(sent));
            prop_assert!(is_part_of(&arrived, &sent), "{arrived} of {sent}");
        }
    }
}
