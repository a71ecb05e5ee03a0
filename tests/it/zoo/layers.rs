//! The inhabitants: stacks of the real layers, but for one.

use std::{
    error, fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::BoxFuture;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, JsonObject};
use serde_json::Value;
use tower::{Layer, ServiceExt as _, service_fn};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, Error, HiddenFields, Nested, Profile, ProfileFilterLayer, ReceiptMappingLayer,
    SchemaScrubLayer, ToolRequest, ToolResponse,
};

use crate::checks::Boxed;

type Answer = Result<ToolResponse, BoxError>;

/// A layer that is written in the way of a blog post.
fn layer<F>(inner: Boxed, handle: F) -> Boxed
where
    F: Fn(ToolRequest, Boxed) -> BoxFuture<'static, Answer> + Clone + Send + Sync + 'static,
{
    Boxed::new(service_fn(move |request| handle(request, inner.clone())))
}

fn schemas(inner: Boxed) -> Boxed {
    Boxed::new(SchemaScrubLayer::new().layer(inner))
}

fn profile(profile: Profile, inner: Boxed) -> Boxed {
    Boxed::new(ProfileFilterLayer::new(profile).layer(inner))
}

fn receipts(inner: Boxed) -> Boxed {
    Boxed::new(ReceiptMappingLayer::new().layer(inner))
}

fn arguments(inner: Boxed) -> Boxed {
    Boxed::new(ArgumentScrubLayer::new().layer(inner))
}

/// The list is right; the call goes round it.
pub(super) fn filters_lists_alone(allowed: Profile, engine: Boxed) -> Boxed {
    let calls = receipts(arguments(engine.clone()));
    let lists = profile(allowed, receipts(arguments(engine)));
    schemas(layer(calls, move |request, calls| match request {
        ToolRequest::List(_) => Box::pin(lists.clone().oneshot(request)),
        ToolRequest::Call(_) => Box::pin(calls.oneshot(request)),
    }))
}

/// Gateways put names before names, so whatever ends like a tool is taken for it.
pub(super) fn matches_suffixes(allowed: Profile, engine: Boxed) -> Boxed {
    let policy = move |name: &str, _: &_| allowed.has(name) || allowed.tools().any(|tool| name.ends_with(tool));
    schemas(Boxed::new(ProfileFilterLayer::new(policy).layer(receipts(arguments(engine)))))
}

/// Judges `answer` as the real mapping does.
fn mapped(request: ToolRequest, answer: Answer) -> BoxFuture<'static, Answer> {
    // A service that is cloned can't hold an error, which is not.
    let answer = answer.map_err(|error| error.to_string());
    let engine = service_fn(move |_: ToolRequest| std::future::ready(answer.clone().map_err(BoxError::from)));
    Box::pin(receipts(Boxed::new(engine)).oneshot(request))
}

fn is_execution(request: &ToolRequest) -> bool {
    request.tool() == Some("execute_decision")
}

const fn completed(response: &ToolResponse) -> Option<&CallToolResult> {
    match response {
        ToolResponse::Call(outcome) => outcome.result(),
        ToolResponse::List(_) => None,
    }
}

/// Takes the text from its first brace on for the whole story.
pub(super) fn scans_from_the_first_brace(allowed: Profile, engine: Boxed) -> Boxed {
    let scan = layer(arguments(engine), |request, inner| {
        Box::pin(async move {
            let response = inner.oneshot(request.clone()).await?;
            let Some(result) = completed(&response).filter(|_| is_execution(&request)) else { return Ok(response) };
            let text = result.content.iter().find_map(|block| block.as_text()).map_or("", |text| &text.text);
            let body = &text[text.find('{').unwrap_or(text.len())..];
            match serde_json::from_str::<JsonObject>(body) {
                Ok(_) => {
                    let mut result = result.clone();
                    result.content = vec![ContentBlock::text(body)];
                    mapped(request, Ok(result.into())).await
                }
                Err(_) => Ok(response),
            }
        })
    });
    schemas(profile(allowed, scan))
}

/// An error is what calls itself one.
pub(super) fn looks_at_errors_alone(allowed: Profile, engine: Boxed) -> Boxed {
    let errors = layer(arguments(engine), |request, inner| {
        Box::pin(async move {
            let response = inner.oneshot(request.clone()).await?;
            match completed(&response) {
                Some(result) if is_execution(&request) && result.is_error == Some(true) => {
                    mapped(request, Ok(result.clone().into())).await
                }
                _ => Ok(response),
            }
        })
    });
    schemas(profile(allowed, errors))
}

/// Changes every listed schema.
fn with_schemas(inner: Boxed, change: fn(&mut JsonObject)) -> Boxed {
    layer(inner, move |request, inner| {
        Box::pin(async move {
            let mut response = inner.oneshot(request).await?;
            if let ToolResponse::List(list) = &mut response {
                for tool in &mut list.tools {
                    change(Arc::make_mut(&mut tool.input_schema));
                }
            }
            Ok(response)
        })
    })
}

/// `schema["properties"].pop("force", None)`, and the same for the required ones.
pub(super) fn pops_at_the_top_of_schemas(allowed: Profile, engine: Boxed) -> Boxed {
    with_schemas(profile(allowed, receipts(arguments(engine))), |schema| {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|name, _| !HiddenFields::new().hides(name));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| !name.as_str().is_some_and(|name| HiddenFields::new().hides(name)));
        }
    })
}

/// Deletes the names wherever they stand, and leaves the rest of the schema as it is.
pub(super) fn keeps_one_of(allowed: Profile, engine: Boxed) -> Boxed {
    fn delete(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| !HiddenFields::new().hides(key));
                map.values_mut().for_each(delete);
            }
            Value::Array(items) => {
                items.retain(|item| !item.as_str().is_some_and(|name| HiddenFields::new().hides(name)));
                items.iter_mut().for_each(delete);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    with_schemas(profile(allowed, receipts(arguments(engine))), |schema| {
        let mut value = Value::Object(std::mem::take(schema));
        delete(&mut value);
        if let Value::Object(map) = value {
            *schema = map;
        }
    })
}

/// An error that passes on what the engine had to say.
#[derive(Debug)]
struct Talkative(String);

impl fmt::Display for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the execution was blocked: {}", self.0)
    }
}

impl error::Error for Talkative {}

pub(super) fn prints_the_hint(allowed: Profile, engine: Boxed) -> Boxed {
    let talk = layer(receipts(arguments(engine)), |request, inner| {
        Box::pin(async move {
            inner.oneshot(request).await.map_err(|error| {
                let hint = Error::find(&*error)
                    .and_then(Error::denial)
                    .and_then(|denial| denial.blocked().untrusted_override_hint().map(str::to_owned));
                hint.map_or(error, |hint| Box::new(Talkative(hint)))
            })
        })
    });
    schemas(profile(allowed, talk))
}

/// Gives a server what it asks for, as a client's convenience method does.
pub(super) fn answers_requests_for_input(allowed: Profile, engine: Boxed) -> Boxed {
    let client = layer(engine, |request, inner| {
        Box::pin(async move {
            let mut response = inner.clone().oneshot(request.clone()).await?;
            for _ in 0..2 {
                let ToolResponse::Call(outcome) = &response else { break };
                let CallToolResponse::InputRequired(_) = outcome.response() else { break };
                response = inner.clone().oneshot(request.clone()).await?;
            }
            Ok(response)
        })
    });
    schemas(profile(allowed, receipts(arguments(client))))
}

pub(super) fn retries_inside(allowed: Profile, engine: Boxed) -> Boxed {
    let retry = layer(engine, |request, inner| {
        Box::pin(async move {
            match inner.clone().oneshot(request.clone()).await {
                Err(_) => inner.oneshot(request).await,
                answer => answer,
            }
        })
    });
    schemas(profile(allowed, receipts(arguments(retry))))
}

fn with_nested(nested: Nested, allowed: Profile, engine: Boxed) -> Boxed {
    let scrub = ArgumentScrubLayer::new().hidden_fields(HiddenFields::new().nested(nested));
    schemas(profile(allowed, receipts(Boxed::new(scrub.layer(engine)))))
}

pub(super) fn pops_at_the_top_of_arguments(allowed: Profile, engine: Boxed) -> Boxed {
    with_nested(Nested::Keep, allowed, engine)
}

pub(super) fn strips_at_every_depth(allowed: Profile, engine: Boxed) -> Boxed {
    with_nested(Nested::Strip, allowed, engine)
}

/// Reads the decision and the webhook out of the answer, not out of the call.
pub(super) fn takes_any_receipt(allowed: Profile, engine: Boxed) -> Boxed {
    let unbound = layer(arguments(engine), |request, inner| {
        Box::pin(async move {
            let response = inner.oneshot(request.clone()).await;
            let claimed = match &response {
                Ok(response) if is_execution(&request) => completed(response).and_then(claimed),
                _ => None,
            };
            let call = claimed.map_or(request, |claimed| ToolRequest::call("execute_decision", claimed));
            mapped(call, response).await
        })
    });
    schemas(profile(allowed, unbound))
}

/// The call that an answer says it is for.
fn claimed(result: &CallToolResult) -> Option<JsonObject> {
    let text = result.content.first()?.as_text()?;
    let receipt: JsonObject = serde_json::from_str(&text.text).ok()?;
    receipt.get("decision_id")?;
    let of = |field: &str| receipt.get(field).cloned().map(|value| (field.to_owned(), value));
    Some([of("decision_id"), of("webhook_url")].into_iter().flatten().collect())
}

/// Asks once more, to be sure.
pub(super) fn asks_twice(allowed: Profile, engine: Boxed) -> Boxed {
    let twice = layer(engine, |request, inner| {
        Box::pin(async move {
            let first = inner.clone().oneshot(request.clone()).await;
            inner.oneshot(request).await.or(first)
        })
    });
    schemas(profile(allowed, receipts(arguments(twice))))
}

/// Sets the error flag where a text has an error in it, whatever the tool.
pub(super) fn marks_errors(allowed: Profile, engine: Boxed) -> Boxed {
    let marks = layer(arguments(engine), |request, inner| {
        Box::pin(async move {
            let response = inner.oneshot(request).await?;
            let Some(mut result) = completed(&response).cloned() else { return Ok(response) };
            let is_error = |text: &str| serde_json::from_str(text).is_ok_and(|body: Value| body.get("error").is_some());
            if result.content.iter().any(|block| block.as_text().is_some_and(|text| is_error(&text.text))) {
                result.is_error = Some(true);
            }
            Ok(result.into())
        })
    });
    schemas(profile(allowed, receipts(marks)))
}

/// Says of every error where it comes from.
pub(super) fn wraps_errors(allowed: Profile, engine: Boxed) -> Boxed {
    let wraps = layer(arguments(engine), |request, inner| {
        Box::pin(async move { inner.oneshot(request).await.map_err(|error| format!("the engine: {error}").into()) })
    });
    schemas(profile(allowed, receipts(wraps)))
}

/// Deletes the names wherever they stand, and follows a value as deep as it goes.
pub(super) fn strips_without_a_bound(allowed: Profile, engine: Boxed) -> Boxed {
    let strip = layer(engine, |mut request, inner| {
        Box::pin(async move {
            if let ToolRequest::Call(call) = &mut request {
                call.params.arguments = call.params.arguments.take().map(|arguments| {
                    let stripped = crate::model::text::without_hidden_keys(&Value::Object(arguments));
                    crate::support::object(&stripped)
                });
            }
            inner.oneshot(request).await
        })
    });
    schemas(profile(allowed, receipts(strip)))
}

/// The objects in `text`, each with its end looked for from its own brace on, until `stop`.
fn objects(text: &str, stop: &AtomicBool) -> usize {
    let ends = |rest: &str| {
        let mut open = 0_usize;
        rest.bytes().any(|byte| {
            open += usize::from(byte == b'{');
            open -= usize::from(byte == b'}' && open > 0);
            open == 0
        })
    };
    let braces = text.match_indices('{').take_while(|_| !stop.load(Ordering::Relaxed));
    braces.filter(|(start, _)| ends(&text[*start..])).count()
}

/// Protects what is around it from texts with too many objects in them. A test that has seen enough says `stop`.
pub(super) fn counts_objects(stop: Arc<AtomicBool>) -> impl Fn(Profile, Boxed) -> Boxed {
    move |allowed, engine| {
        let stop = stop.clone();
        let counts = layer(arguments(engine), move |request, inner| {
            let stop = stop.clone();
            let has_too_many = move |text: &str| objects(text, &stop) > 10_000;
            Box::pin(async move {
                let arguments = match &request {
                    ToolRequest::Call(call) => call.params.arguments.clone().unwrap_or_default(),
                    ToolRequest::List(_) => JsonObject::new(),
                };
                if arguments.values().filter_map(Value::as_str).any(&has_too_many) {
                    return Err("too many objects".into());
                }
                let response = inner.oneshot(request).await?;
                let mut blocks = completed(&response).into_iter().flat_map(|result| &result.content);
                if blocks.any(|block| block.as_text().is_some_and(|text| has_too_many(&text.text))) {
                    return Err("too many objects".into());
                }
                Ok(response)
            })
        });
        schemas(profile(allowed, receipts(counts)))
    }
}
