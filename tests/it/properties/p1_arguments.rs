//! P1: a switch in the arguments changes nothing of what the engine receives.

use proptest::{prelude::*, sample::Index};
use rmcp::model::{CallToolRequestParams, ClientRequest, JsonObject, MetaObject, RequestMetaObject};
use serde_json::Value;
use tower_algenta::{Profile, ToolRequest};

use super::{any, config};
use crate::{
    checks::{ask, real},
    model,
    support::empty_result,
};

/// The bytes that the engine receives, `None` if nothing.
fn received(params: CallToolRequestParams) -> Option<(String, JsonObject)> {
    let (_, received) = ask(&real, Profile::Full, params.into(), |_: &ToolRequest| Ok(empty_result()));
    let request = received.into_iter().next()?;
    let ToolRequest::Call(call) = &request else { panic!("a list") };
    let arguments = call.params.arguments.clone().unwrap_or_default();
    Some((serde_json::to_string(&ClientRequest::from(request)).unwrap(), arguments))
}

fn call(tool: &'static str, arguments: JsonObject) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(any::as_execution(arguments))
}

/// Hands every object in which the rules of `tool` look for a switch to `visit`.
fn covered(tool: &str, arguments: &mut JsonObject, visit: &mut dyn FnMut(&mut JsonObject)) {
    visit(arguments);
    let only_top = tool != "execute_decision" && model::names::CONTRACT.contains(&tool);
    for (key, value) in arguments.iter_mut() {
        if only_top || (tool == "execute_decision" && key == "metadata") {
            continue;
        }
        match value {
            Value::String(text) if text.starts_with(['{', '[']) => {
                if let Ok(mut document) = serde_json::from_str(text) {
                    objects(&mut document, visit);
                    *text = document.to_string();
                }
            }
            other => objects(other, visit),
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
        switches in prop::collection::vec((any::<Index>(), any::switch(), any::value_with(any::plain_key)), 1..4),
    ) {
        let clean = any::as_execution(arguments);
        let mut dirty = clean.clone();
        let mut dirty_meta = meta.clone();
        for (place, spelling, value) in switches {
            let mut places = 0;
            covered(tool, &mut dirty, &mut |_| places += 1);
            let place = place.index(places);
            let mut at = 0;
            covered(tool, &mut dirty, &mut |object| {
                if at == place {
                    object.insert(spelling.clone(), value.clone());
                }
                at += 1;
            });
            dirty_meta.insert(format!("com.example/{spelling}"), value);
        }
        let with_meta = |arguments, meta| {
            let mut params = call(tool, arguments);
            params.meta = Some(RequestMetaObject(MetaObject(meta)));
            params
        };
        let without = received(with_meta(clean, meta)).expect("a clean call arrives");
        let with = received(with_meta(dirty.clone(), dirty_meta)).expect("a switch is stripped");
        prop_assert_eq!(with.0, without.0, "of {:?}", dirty);
    }

    #[test]
    fn p1a_no_switch_arrives(tool in any::tool(), arguments in any::dirty_arguments()) {
        // A refusal is an answer, too.
        if let Some((_, mut arguments)) = received(call(tool, arguments)) {
            let texts: Vec<Value> = arguments.values().filter(|value| value.is_string()).cloned().collect();
            let mut found = Vec::new();
            covered(tool, &mut arguments, &mut |object| {
                found.extend(object.keys().filter(|key| model::is_hidden(key)).cloned());
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
        number in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
    ) {
        let mut arguments = any::as_execution(arguments);
        arguments.insert("number".to_owned(), serde_json::from_str(&number).unwrap());
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let sent = serde_json::to_string(&ClientRequest::from(ToolRequest::from(params.clone()))).unwrap();
        let (bytes, arguments) = received(params).expect("a clean call arrives");
        prop_assert_eq!(bytes, sent);
        let read: f64 = number.parse().unwrap();
        prop_assert_eq!(arguments["number"].as_f64(), Some(read), "no digit changes");
    }

    #[test]
    fn p1c_what_arrives_was_sent(tool in any::tool(), arguments in any::dirty_arguments()) {
        let sent = any::as_execution(arguments);
        if let Some((_, arguments)) = received(call(tool, sent.clone())) {
            let (arrived, sent) = (Value::Object(arguments), Value::Object(sent));
            prop_assert!(is_part_of(&arrived, &sent), "{arrived} of {sent}");
        }
    }
}
