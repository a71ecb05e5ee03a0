//! P1 through `ArgumentScrub`: what of a call's arguments and `_meta` the engine receives.

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, MetaObject, RequestMetaObject};
use serde_json::Value;
use tower::{Layer, Service, layer::util::Stack as Both};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, Error, HiddenFields, OnHidden, Profile, Stripped, ToolRequest, ToolResponse,
};

use crate::{
    checks::{Boxed, ask},
    model::{self, names::CONTRACT},
    silence,
    support::empty_result,
};

/// Checks a case of `arguments.json`: a call of `tool` with `arguments`, and, unlike there, with `meta`. `switch` is how
/// the switch is spelled that must make no difference, and `value` what it is set to.
#[must_use]
pub fn check(data: &[u8]) -> bool {
    let Ok(input @ Value::Object(_)) = serde_json::from_slice(data) else { return false };
    let raw = input["raw_arguments"].as_str().and_then(|text| serde_json::from_str(text).ok());
    let Some(arguments) = raw.or_else(|| input["arguments"].as_object().cloned()) else { return false };
    let tool = input["tool"].as_str().unwrap_or("execute_decision");
    let call = Call { tool, arguments, meta: input["meta"].as_object().cloned() };

    let arrived = call.arrives(&ArgumentScrubLayer::new());
    arrives_as_in_the_model(&call, arrived.as_ref());
    let twice = Both::new(ArgumentScrubLayer::new(), ArgumentScrubLayer::new());
    assert_eq!(
        call.arrives(&twice).map(|arrived| arrived.bytes),
        arrived.as_ref().map(|arrived| arrived.bytes.clone()),
        "P6: twice is once"
    );
    refuses_what_it_would_strip(&call, arrived.as_ref());
    if let Some(arrived) = &arrived {
        let is_searched = is_searched(tool);
        assert!(no_switch_in(&arrived.arguments, is_searched, tool), "P1a: {:?}", arrived.arguments);
        let (less, more) = (Value::Object(arrived.arguments.clone()), Value::Object(call.arguments.clone()));
        assert!(is_part_of(&less, &more), "P1c: {less} of {more}");
        let switch = input["switch"].as_str().filter(|key| model::is_hidden(key)).unwrap_or("overrideSafety");
        makes_no_difference(&call, arrived, switch, &input["value"]);
    }
    true
}

struct Call<'a> {
    tool: &'a str,
    arguments: JsonObject,
    meta: Option<JsonObject>,
}

/// What the engine received.
struct Arrived {
    arguments: JsonObject,
    metas: Vec<JsonObject>,
    stripped: usize,
    /// As rmcp writes it.
    bytes: String,
}

impl Call<'_> {
    /// With `_meta` in all the places from which rmcp would serialise it.
    fn request(&self) -> ToolRequest {
        let mut params = CallToolRequestParams::new(self.tool.to_owned()).with_arguments(self.arguments.clone());
        params.meta = self.meta.clone().map(|meta| RequestMetaObject(MetaObject(meta)));
        let mut request = CallToolRequest::new(params);
        if let Some(meta) = &self.meta {
            request.extensions.insert(RequestMetaObject(MetaObject(meta.clone())));
            request.extensions.insert(MetaObject(meta.clone()));
        }
        request.into()
    }

    /// `None`: it was refused.
    fn arrives<L>(&self, layer: &L) -> Option<Arrived>
    where
        L: Layer<Boxed>,
        L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let stack = |_, engine| Boxed::new(layer.layer(engine));
        let (answer, mut received) = ask(&stack, Profile::Full, self.request(), |_: &ToolRequest| Ok(empty_result()));
        assert!(received.len() <= 1, "P7");
        match (answer, received.pop()) {
            (Ok(_), Some(ToolRequest::Call(call))) => {
                let metas =
                    call.params.meta.iter().chain(call.extensions.get::<RequestMetaObject>()).map(|meta| &meta.0);
                Some(Arrived {
                    arguments: call.params.arguments.clone().unwrap_or_default(),
                    metas: metas.chain(call.extensions.get::<MetaObject>()).map(|meta| meta.0.clone()).collect(),
                    stripped: call.extensions.get::<Stripped>().map_or(0, |stripped| {
                        assert!(stripped.pointers().all(|pointer| pointer.len() <= 256));
                        stripped.len()
                    }),
                    bytes: serde_json::to_string(&ClientRequest::from(ToolRequest::from(call))).unwrap(),
                })
            }
            (Err(error @ Error::InvalidArguments(_)), None) => {
                silence::check(&error);
                None
            }
            (answer, received) => panic!("{answer:?} after {received:?}"),
        }
    }

    fn bytes(&self) -> String {
        serde_json::to_string(&ClientRequest::from(self.request())).unwrap()
    }
}

fn arrives_as_in_the_model(call: &Call<'_>, arrived: Option<&Arrived>) {
    let meta = call.meta.clone().unwrap_or_default();
    let is_shallow = model::arguments::depth(&Value::Object(meta.clone())) <= 128;
    let expected = model::arguments::scrubbed(call.tool, &call.arguments).filter(|_| is_shallow);
    let (expected, arrived) = match (expected, arrived) {
        (Some(expected), Some(arrived)) => (expected, arrived),
        (None, None) => return,
        (expected, _) => panic!("the model says {expected:?} of {:?}", call.arguments),
    };
    let mut arguments = arrived.arguments.clone();
    for key in &expected.rewritten {
        let text = arguments[key].as_str().unwrap_or_else(|| panic!("{key:?} was a text"));
        arguments[key] = serde_json::from_str(text).unwrap();
    }
    assert_eq!(arguments, expected.arguments, "of {:?}", call.arguments);

    let clean_meta = model::arguments::scrubbed_meta(&meta);
    assert!(arrived.metas.iter().all(|arrived| *arrived == clean_meta), "{:?} of {meta:?}", arrived.metas);
    let is_clean = expected.arguments == call.arguments && expected.rewritten.is_empty() && clean_meta == meta;
    assert_eq!(arrived.stripped == 0, is_clean, "what was stripped is reported");
    if is_clean {
        assert_eq!(arrived.bytes, call.bytes(), "P1b: a clean call arrives unchanged");
    }
}

/// The knob that refuses instead refuses exactly what would have been stripped.
fn refuses_what_it_would_strip(call: &Call<'_>, arrived: Option<&Arrived>) {
    let refuse = HiddenFields::new().on_hidden(OnHidden::Refuse);
    let passed = call.arrives(&ArgumentScrubLayer::new().hidden_fields(refuse));
    assert_eq!(passed.is_some(), arrived.is_some_and(|arrived| arrived.stripped == 0), "{:?}", call.arguments);
}

/// Whether what is nested in the tool's arguments is searched for switches.
fn is_searched(tool: &str) -> bool {
    tool == "execute_decision" || !CONTRACT.contains(&tool)
}

/// Whether `key`, an argument of `tool`, is data whatever the tool.
fn is_data(tool: &str, key: &str) -> bool {
    tool == "execute_decision" && key == "metadata"
}

fn no_switch_in(arguments: &JsonObject, is_searched: bool, tool: &str) -> bool {
    arguments.iter().all(|(key, value)| {
        let is_clean = match value {
            _ if !is_searched || is_data(tool, key) => true,
            Value::String(text) => model::text::read(text) == model::text::Text::Unchanged,
            value => no_switch_in_value(value),
        };
        is_clean && !model::is_hidden(key)
    })
}

fn no_switch_in_value(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().all(|(key, value)| !model::is_hidden(key) && no_switch_in_value(value)),
        Value::Array(items) => items.iter().all(no_switch_in_value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
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
            let read = |text: &str| serde_json::from_str::<Value>(text.trim_start_matches(|c: char| !"{[".contains(c)));
            matches!((read(less), read(more)), (Ok(less), Ok(more)) if is_part_of(&less, &more))
        }
        (less, more) => less == more,
    }
}

/// P1: the same call with a switch in every place that the rules cover arrives as the same bytes.
fn makes_no_difference(call: &Call<'_>, arrived: &Arrived, switch: &str, value: &Value) {
    let mut decorated = Call { tool: call.tool, arguments: call.arguments.clone(), meta: call.meta.clone() };
    for (key, argument) in &mut decorated.arguments {
        if !is_searched(call.tool) || is_data(call.tool, key) || ["decision_id", "webhook_url"].contains(&key.as_str())
        {
            continue;
        }
        match argument {
            // Only a text that this crate would write arrives as the same bytes once it was rewritten.
            Value::String(text) => {
                let Ok(mut document @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) else {
                    continue;
                };
                let written = document.to_string();
                if written == *text {
                    decorate(&mut document, switch, value);
                    *text = document.to_string();
                }
            }
            argument => decorate(argument, switch, value),
        }
    }
    decorated.arguments.insert(switch.to_owned(), value.clone());
    if let Some(meta) = &mut decorated.meta {
        meta.insert(format!("com.example/{switch}"), value.clone());
    }
    if model::arguments::depth(&Value::Object(decorated.arguments.clone())) > 128 {
        return;
    }
    let with = decorated.arrives(&ArgumentScrubLayer::new()).map(|arrived| arrived.bytes);
    assert_eq!(with.as_deref(), Some(arrived.bytes.as_str()), "P1: {:?}", decorated.arguments);
}

fn decorate(value: &mut Value, switch: &str, with: &Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(|value| decorate(value, switch, with));
            map.insert(switch.to_owned(), with.clone());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| decorate(item, switch, with)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
