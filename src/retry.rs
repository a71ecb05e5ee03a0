//! A policy for tower's `Retry` that repeats lists, and of calls only those that cannot have run.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::CallToolResult, object};
//! use tower::{ServiceBuilder, ServiceExt as _, retry::RetryLayer, service_fn};
//! use tower_algenta::{
//!     Error, GovernanceLayer, Profile, RepeatLayer, RetryPolicy, ToolRequest, ToolResponse,
//! };
//! # use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # static CALLS: AtomicUsize = AtomicUsize::new(0);
//! # let engine = service_fn(|_: ToolRequest| async {
//! #     match CALLS.fetch_add(1, Ordering::Relaxed) {
//! #         0 => Err(Error::NotSent("connection refused".into())),
//! #         _ => Ok(ToolResponse::from(CallToolResult::success(vec![]))),
//! #     }
//! # });
//! let service = ServiceBuilder::new()
//!     .layer(GovernanceLayer::new(Profile::Observe))
//!     .layer(RepeatLayer::new(RetryLayer::new(RetryPolicy::new())))
//!     .service(engine); // refuses the connection, the first time
//!
//! service.oneshot(ToolRequest::call("simulate", object!({"scenario": "expand-to-eu"}))).await.unwrap();
//! # assert_eq!(CALLS.load(Ordering::Relaxed), 2);
//! # }
//! ```
//!
//! # What it repeats
//!
//! | failure | a list | a call |
//! |---|---|---|
//! | [`Error::NotSent`] | yes | yes |
//! | any other of the inner service: lost, timed out, HTTP 5xx | yes | no |
//! | a JSON-RPC error, a refusal, a governed failure, an answer of the wrong kind | no | no |
//!
//! An execution never comes here: this is a policy for [`RepeatableRequest`]s alone.
//!
//! What an error is says [`Error::find`], which looks at the sources of an error of your own, too. One that tells of two
//! attempts must not have the [`Error::NotSent`] of the second in its chain if the first may have run.

use std::{error, fmt, sync::Arc, time::Duration};

use rmcp::model::ErrorData;
use tower::retry::{
    Policy,
    backoff::{Backoff as _, ExponentialBackoff, ExponentialBackoffMaker, InvalidBackoff, MakeBackoff as _},
    budget::{Budget, TpsBudget},
};
use tower::util::rng::HasherRng;

use crate::{Error, RepeatableRequest, ToolRequest, error::links};

/// Repeats of one request at the most.
const TIMES: u32 = 3;
/// Before the first repeat, and before any other at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// By how much a pause may be longer, at random.
const JITTER: f64 = 0.5;

/// A tower `Policy` that repeats lists, and calls that cannot have run, within a budget.
///
/// See the [module docs](self) for an example. Up to 3 repeats of a request, after pauses that double from 50 ms to 2 s.
/// The budget is tower's default: one repeat for every five answers of the last 10 seconds, and 10 a second besides.
/// Clones share it, so one policy belongs to one upstream.
///
/// It goes into a [`RepeatLayer`](crate::RepeatLayer). Around a whole stack it does not compile, since that sees
/// executions:
///
/// ```compile_fail,E0277
/// # use tower::{ServiceBuilder, ServiceExt as _, service_fn};
/// # use tower_algenta::{Error, RetryPolicy, ToolRequest, ToolResponse};
/// # async fn call(engine: tower::util::BoxCloneService<ToolRequest, ToolResponse, Error>) {
/// let service = ServiceBuilder::new().retry(RetryPolicy::new()).service(engine);
/// let _ = tower::ServiceExt::oneshot(service, ToolRequest::list()).await;
/// # }
/// ```
///
/// The stack's error is [`Error`], [`BoxError`](crate::BoxError), or implements
/// `AsRef<dyn std::error::Error + Send + Sync>`.
#[derive(Clone)]
pub struct RetryPolicy {
    budget: Arc<dyn Budget + Send + Sync>,
    backoff: ExponentialBackoff,
    left: u32,
}

impl RetryPolicy {
    /// Creates the policy.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "the pauses are constants")]
    pub fn new() -> Self {
        let backoff = backoff(PAUSES.0, PAUSES.1).expect("these pauses make a backoff");
        Self { budget: Arc::new(TpsBudget::default()), backoff, left: TIMES }
    }

    /// Sets how often a request is repeated at the most. 3 by default.
    #[must_use]
    pub const fn times(mut self, times: u32) -> Self {
        self.left = times;
        self
    }

    /// Sets the budget that all clones draw on.
    #[must_use]
    pub fn budget(mut self, budget: impl Budget + Send + Sync + 'static) -> Self {
        self.budget = Arc::new(budget);
        self
    }

    /// Sets the pause before the first repeat, and the longest one; each is up to a half longer at random.
    ///
    /// # Errors
    ///
    /// When `min` is longer than `max`, or `max` is zero.
    pub fn pauses(mut self, min: Duration, max: Duration) -> Result<Self, InvalidBackoff> {
        self.backoff = backoff(min, max)?;
        Ok(self)
    }
}

fn backoff(min: Duration, max: Duration) -> Result<ExponentialBackoff, InvalidBackoff> {
    Ok(ExponentialBackoffMaker::new(min, max, JITTER, HasherRng::new())?.make_backoff())
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy").field("left", &self.left).field("backoff", &self.backoff).finish_non_exhaustive()
    }
}

impl<T, E> Policy<RepeatableRequest, T, E> for RetryPolicy
where
    E: AsRef<dyn error::Error + Send + Sync>,
{
    type Future = tokio::time::Sleep;

    fn retry(&mut self, request: &mut RepeatableRequest, result: &mut Result<T, E>) -> Option<Self::Future> {
        let Err(error) = result else {
            self.budget.deposit();
            return None;
        };
        let is_list = matches!(request.get_ref(), ToolRequest::List(_));
        if !may_repeat(error.as_ref(), is_list) || self.left == 0 || !self.budget.withdraw() {
            return None;
        }
        self.left -= 1;
        Some(self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &RepeatableRequest) -> Option<RepeatableRequest> {
        (self.left > 0).then(|| request.clone())
    }
}

fn may_repeat(error: &(dyn error::Error + 'static), is_list: bool) -> bool {
    match Error::find(error) {
        Some(Error::NotSent(_)) => true,
        Some(Error::Upstream(_)) | None => is_list && !links(error).any(<dyn error::Error>::is::<ErrorData>),
        Some(_) => false,
    }
}
