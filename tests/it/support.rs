//! What several subjects need.

use std::{
    error::Error as StdError,
    fmt::{self, Write as _},
    sync::{Arc, Mutex},
};

use rmcp::{
    ErrorData,
    model::{CallToolResult, JsonObject},
};
use serde_json::Value;
use tower::{Service, service_fn};
use tower_algenta::{BoxError, Error, ToolRequest, ToolResponse};

/// A file of recorded cases.
#[track_caller]
pub(crate) fn cases(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).expect("the file is JSON");
    file["cases"].as_array().expect("the file has cases").clone()
}

#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is a text in {value}"))
}

#[track_caller]
pub(crate) fn object(value: &Value) -> JsonObject {
    value.as_object().unwrap_or_else(|| panic!("{value} is an object")).clone()
}

/// All that a host can print of an error: `Display`, `Debug`, the chain under it and the JSON-RPC error.
pub(crate) fn everything_printed(error: &Error) -> String {
    let mut printed = format!("{error}\n{error:?}\n{error:#?}\n");
    let mut source = StdError::source(error);
    while let Some(error) = source {
        writeln!(printed, "{error}\n{error:?}").unwrap();
        source = error.source();
    }
    let data = ErrorData::from(error);
    writeln!(printed, "{data}\n{data:?}").unwrap();
    printed
}

/// The requests that an inner service received.
#[derive(Clone, Default)]
pub(crate) struct Received(Arc<Mutex<Vec<ToolRequest>>>);

impl Received {
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn take(&self) -> Vec<ToolRequest> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    pub(crate) fn push(&self, request: ToolRequest) {
        self.0.lock().unwrap().push(request);
    }
}

/// An inner service that keeps what it receives and answers with `answer`.
pub(crate) fn recording<F>(
    received: &Received,
    answer: F,
) -> impl Service<ToolRequest, Response = ToolResponse, Error = BoxError, Future: Send> + Clone + Send + Sync + 'static
where
    F: Fn(&ToolRequest) -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
{
    let received = received.clone();
    service_fn(move |request: ToolRequest| {
        let answer = answer(&request);
        received.push(request);
        std::future::ready(answer)
    })
}

/// A result without anything in it.
pub(crate) fn empty_result() -> ToolResponse {
    CallToolResult::success(vec![]).into()
}

/// A user's error type that holds ours.
#[derive(Debug)]
pub(crate) struct Mine(pub(crate) Error);

impl fmt::Display for Mine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mine")
    }
}

impl StdError for Mine {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self(error)
    }
}
