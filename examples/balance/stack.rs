//! The stack: governance above, tower's balancer below.

use std::{convert::Infallible, time::Duration};

use futures::{Stream, stream};
use tokio::sync::mpsc::UnboundedReceiver;
use tower::{
    BoxError, ServiceBuilder, ServiceExt,
    balance::p2c::Balance,
    discover::Change,
    load::{CompleteOnResponse, PeakEwmaDiscover},
    load_shed::error::Overloaded,
    retry::RetryLayer,
};
use tower_algenta::{
    BoxToolService, Error, GovernanceLayer, Profile, RepeatLayer, RetryPolicy, ToolRequest, client::Reconnect,
};

/// Requests that may wait for the balancer.
const WAITING: usize = 1024;
/// How fast an engine is taken to be that has not answered yet.
const UNMEASURED: Duration = Duration::from_millis(50);
/// How long a slow answer is held against an engine.
const MEMORY: Duration = Duration::from_secs(10);

/// Engines that come and go, under the names that they were given.
pub(crate) type Changes = UnboundedReceiver<Change<String, Reconnect>>;

/// A governed service over `engines`, once one of them is there: with a timeout around it, unless you wait for ever. Send
/// `Change::Insert(name, Reconnect::to(Endpoint::new(url)?))` for each; `Toolset::from_governed_stack` takes the result.
///
/// They must be replicas: they share their book of decisions, or the gate `idempotency` means nothing, and whatever
/// cursors their lists have.
pub(crate) async fn balanced(engines: Changes, profile: Profile) -> Result<BoxToolService, BoxError> {
    // The slowest answer of late, times the requests under way: the lower of two picked at random gets the request. An
    // engine that fails at once would have the lowest, which is why `Reconnect` is not ready then.
    let measured =
        PeakEwmaDiscover::new::<ToolRequest>(discover(engines), UNMEASURED, MEMORY, CompleteOnResponse::default());
    let mut balance = Balance::new(measured);
    balance.ready().await?;

    let stack = ServiceBuilder::new()
        // Out of the boxes that tower's layers have put it into.
        .map_err(Error::from)
        .layer(GovernanceLayer::new(profile))
        // Under governance, and beside the path of executions: they are sent once, whatever happens.
        .layer(RepeatLayer::new(RetryLayer::new(RetryPolicy::new())))
        .buffer(WAITING)
        // With no engine there, a request is refused, and not kept waiting.
        .map_err(|error: BoxError| if error.is::<Overloaded>() { Error::NotSent(error).into() } else { error })
        .load_shed()
        .service(balance);
    Ok(BoxToolService::new(stack))
}

fn discover(mut engines: Changes) -> impl Stream<Item = Result<Change<String, Reconnect>, Infallible>> + Unpin {
    stream::poll_fn(move |cx| engines.poll_recv(cx).map(|change| change.map(Ok)))
}
