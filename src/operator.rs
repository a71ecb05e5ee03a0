//! The human's repeat of a denied execution.
//!
//! An [`Operator`] wraps the *inner* service, so it is made beside the governed stack and never inside it: nothing that an
//! agent holds can produce one.
//!
//! # Example
//!
//! ```
//! use rmcp::{model::{CallToolResult, ContentBlock}, object};
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//! use tower_algenta::{BoxError, Error, GovernanceLayer, Operator, Profile, ToolRequest, ToolResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let engine = service_fn(|request: ToolRequest| async move {
//! #     let ToolRequest::Call(call) = request else { unreachable!() };
//! #     let released = call.params.arguments.is_some_and(|arguments| arguments.contains_key("force"));
//! #     let text = if released {
//! #         r#"{"decision_id": "d", "webhook_url": "w", "execution_status": "delivered", "executed_at": "now"}"#
//! #     } else {
//! #         r#"{"error": {"code": "execution_blocked_idempotency", "gate": "idempotency"}}"#
//! #     };
//! #     Ok::<_, BoxError>(ToolResponse::from(CallToolResult::success(vec![ContentBlock::text(text)])))
//! # });
//! let operator = Operator::new(engine.clone());
//! let governed = ServiceBuilder::new().layer(GovernanceLayer::new(Profile::Execute)).service(engine);
//!
//! let call = ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"}));
//! let error = Error::from(governed.oneshot(call).await.unwrap_err());
//! let denial = error.denial().expect("the gate said no");
//!
//! // A human has looked at the denial and decides to release this one call.
//! let receipt = operator.override_denial(denial).await?;
//! assert!(receipt.is_delivered());
//! assert!(operator.override_denial(denial).await.is_err(), "once");
//! # Ok(())
//! # }
//! ```

use std::{fmt, future::poll_fn, pin::pin, task::Poll, time::Duration};

use tower::ServiceExt as _;
use tower_service::Service;

use crate::{
    BoxError, Denial, Error, ExecutionReceipt, ToolRequest, ToolResponse,
    error::{InvalidArguments, InvalidReason},
    receipt_mapping::{Governed, Rules},
    toolset::{not_ready, receipt_of},
};

/// Repeats denied executions for a human.
///
/// See the [module docs](self) for an example.
#[derive(Clone)]
pub struct Operator<S> {
    inner: S,
    rules: Rules,
}

impl<S> Operator<S> {
    /// Wraps the service that the governed stack wraps, not the stack.
    pub const fn new(inner: S) -> Self {
        Self { inner, rules: Rules::new() }
    }

    /// Sets how long an execution may take before its outcome counts as unknown. Needs a tokio runtime with time.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.rules.deadline = Some(deadline);
        self
    }

    /// Repeats the denied call, with the one switch set that its gate allows.
    ///
    /// It sends what the [`Denial`] keeps of the call and nothing else. A denial can be used once, its clones included,
    /// whatever comes of it. If the repeat meets the next gate, the new denial remembers what was granted, so that a
    /// second human decision can release a call that two gates block.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArguments`] if the denial was used, or the contract has no override for its gate; otherwise as a
    /// governed call, and [`Error::Rejected`] for a 4xx.
    pub async fn override_denial(&self, denial: &Denial) -> Result<ExecutionReceipt, Error>
    where
        S: Service<ToolRequest, Response = ToolResponse> + Clone,
        S::Error: Into<BoxError>,
    {
        let refuse = |reason| Err(Error::InvalidArguments(InvalidArguments::new(reason)));
        let granted = match denial.gate().allowed_override() {
            Some(switch) if denial.granted().and(switch) != denial.granted() => denial.granted().and(switch),
            _ => return refuse(InvalidReason::NoOverride),
        };
        if !denial.use_up() {
            return refuse(InvalidReason::OverrideUsed);
        }
        let decision = denial.decision();
        let mut arguments = decision.to_arguments();
        for switch in granted.names() {
            arguments.insert(switch.to_owned(), true.into());
        }
        let request = ToolRequest::call(denial.wire_name().clone(), arguments);

        let mut inner = self.inner.clone();
        let ready = inner.ready().await.map_err(|error| not_ready(error.into()))?;
        let mut answer = pin!(ready.call(request));
        let mut governed = pin!(Governed::new(decision.clone(), denial.wire_name().clone(), granted, self.rules));
        let answer = poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer.map_err(|error| Error::from(error.into())))),
            Poll::Pending => governed.as_mut().poll_deadline(cx).map(Err),
        })
        .await?;
        match governed.settle(answer)? {
            ToolResponse::Call(outcome) => receipt_of(outcome, decision),
            ToolResponse::List(_) => unreachable!("a list is no outcome"),
        }
    }
}

impl<S> fmt::Debug for Operator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").finish_non_exhaustive()
    }
}
