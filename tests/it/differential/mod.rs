//! The crate against the model, on cases that nobody thought of.
//!
//! Seeded, so that every run sees the same. `DIFFERENTIAL_CASES` sets how many cases each subject gets; 3,000 take a few
//! seconds. A hundred thousand take two minutes on two busy cores in a release build, and none differs:
//!
//! ```sh
//! DIFFERENTIAL_CASES=100000 cargo test --release --test it differential::
//! ```

mod answers;
mod arguments;
mod names;
pub(crate) mod outcomes;
mod schemas;
mod webhooks;

use futures::executor::block_on;
use rmcp::model::CallToolRequestParams;
use tower::{Layer, Service, ServiceExt as _};
use tower_algenta::{BoxError, Error, ToolRequest, ToolResponse};

use crate::support::{Received, recording};

const CASES: usize = 3_000;

/// How many cases a subject gets.
fn cases() -> usize {
    std::env::var("DIFFERENTIAL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

/// One call through `layer` around an engine that gives `answer`, and what the engine received of it.
pub(crate) fn through<L>(
    layer: &L,
    request: impl Into<ToolRequest>,
    answer: impl Fn() -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
) -> (Result<ToolResponse, Error>, Vec<ToolRequest>)
where
    L: Layer<crate::checks::Boxed>,
    L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError>,
{
    let received = Received::default();
    let engine = crate::checks::Boxed::new(recording(&received, move |_: &ToolRequest| answer()));
    let outcome = block_on(layer.layer(engine).oneshot(request.into())).map_err(Error::from);
    (outcome, received.take())
}

/// The parameters of the one call that arrived.
#[track_caller]
pub(crate) fn the_call(received: Vec<ToolRequest>) -> CallToolRequestParams {
    match <[ToolRequest; 1]>::try_from(received) {
        Ok([ToolRequest::Call(call)]) => call.params,
        other => panic!("not one call: {other:?}"),
    }
}
