//! The human's repeat of a denied execution.
//!
//! An [`Operator`] wraps the *inner* service, so it is made beside the governed stack and never inside it: nothing that an
//! agent holds can produce one. To have its repeats in the stack's log, give [`Operator::audit`] a clone of its
//! [`AuditLayer`].
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

use std::{error, fmt, future::poll_fn, pin::pin, task::Poll, time::Duration};

use tower_service::Service;

use crate::{
    AuditLayer, AuditSink, BoxError, Denial, Error, ExecutionReceipt, HiddenFields, ToolRequest, ToolResponse,
    audit::{Caller, Repeated, Repeats},
    denial::Overrides,
    error::{InvalidArguments, InvalidReason},
    outcome::Echoes,
    profile::EXECUTE_DECISION,
    receipt_mapping::{Governed, Rules},
    toolset::not_ready,
};

/// Repeats denied executions for a human.
///
/// See the [module docs](self) for an example.
#[derive(Clone)]
pub struct Operator<S> {
    inner: S,
    fields: HiddenFields,
    rules: Rules,
    audit: Option<Repeats>,
    caller: Option<Caller>,
}

impl<S> Operator<S> {
    /// Wraps the service that the governed stack wraps, not the stack: that would refuse the repeat, since it takes the
    /// switch for a model's.
    pub const fn new(inner: S) -> Self {
        Self { inner, fields: HiddenFields::new(), rules: Rules::new(), audit: None, caller: None }
    }

    /// Sets the hidden fields and their rules: those of the stack, since they scrub the repeat like the call.
    #[must_use]
    pub fn hidden_fields(mut self, fields: HiddenFields) -> Self {
        self.fields = fields;
        self
    }

    /// Sets how long an execution may take before its outcome counts as unknown. Needs a tokio runtime with time.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.rules.deadline = Some(deadline);
        self
    }

    /// Sets whether a receipt that reports a safety override which nobody granted is a failure. Otherwise it is an event.
    #[must_use]
    pub const fn strict(mut self, strict: bool) -> Self {
        self.rules.strict = strict;
        self
    }

    pub(crate) const fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Records every repeat, also one that is refused, as `audit` records what goes through a stack: to its sink, and
    /// refused while that [is failing](crate::audit::OnSinkFailure). The record names the switches that were granted.
    ///
    /// ```
    /// # use tower_algenta::{AuditLayer, AuditRecord, AuditSink, Operator, audit::Caller};
    /// # #[derive(Clone)]
    /// # struct Sink;
    /// # impl AuditSink for Sink {
    /// #     fn record(&self, _: &AuditRecord) {}
    /// # }
    /// # let (engine, sink) = ((), Sink);
    /// let operator = Operator::new(engine).audit(AuditLayer::new(sink)).caller(Caller::new("alice"));
    /// ```
    #[must_use]
    pub fn audit<K: AuditSink + 'static>(mut self, audit: AuditLayer<K>) -> Self {
        self.audit = Some(audit.into_repeats());
        self
    }

    /// Sets who repeats: for the audit, and for whoever reads the request's extensions below.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Repeats the denied call, with the one switch set that its gate allows.
    ///
    /// It sends what the [`Denial`] keeps of the call and nothing else. A denial can be used once, its clones included,
    /// whatever comes of it; only a repeat that never left, refused or [`Error::NotSent`], leaves it unused. If the
    /// repeat meets the next gate, the new denial remembers what was granted, so that a second human decision can release
    /// a call that two gates block.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArguments`] if the denial was used, the contract has no override for its gate, or the denial may
    /// have been read from the call's own arguments (see [`Denial::can_be_overridden`]); otherwise as a
    /// governed call, and [`Error::Rejected`] for a 4xx.
    pub async fn override_denial(&self, denial: &Denial) -> Result<ExecutionReceipt, Error>
    where
        S: Service<ToolRequest, Response = ToolResponse> + Clone,
        S::Error: Into<BoxError>,
    {
        let granted = denial.gate().allowed_override().map(|switch| denial.granted().and(switch));
        // Another of what was granted already would be the same call again.
        let granted = granted.filter(|granted| *granted != denial.granted());
        let begin = |audit: &Repeats| audit.begin(denial, granted.unwrap_or_default(), self.caller.clone());
        let mut repeated = self.audit.as_ref().map(begin);
        let outcome = match granted {
            Some(_) if denial.is_forgeable() => Err(refused(InvalidReason::DenialForgeable)),
            Some(granted) => self.repeat(denial, granted, repeated.as_mut()).await,
            None => Err(refused(InvalidReason::NoOverride)),
        };
        if let Some(repeated) = repeated {
            repeated.end(&outcome);
        }
        outcome
    }

    async fn repeat(
        &self,
        denial: &Denial,
        granted: Overrides,
        repeated: Option<&mut Repeated>,
    ) -> Result<ExecutionReceipt, Error>
    where
        S: Service<ToolRequest, Response = ToolResponse> + Clone,
        S::Error: Into<BoxError>,
    {
        let (decision, wire_name) = (denial.decision(), denial.wire_name());
        let mut arguments = decision.to_arguments();
        self.fields.scrub_arguments(EXECUTE_DECISION, &mut arguments).map_err(Error::InvalidArguments)?;
        let echoes = Echoes::of(&arguments);
        for switch in granted.names() {
            arguments.insert(switch.to_owned(), true.into());
        }
        let governed = Governed::new(decision.clone(), wire_name.clone(), granted, echoes, self.rules);
        let mut governed = pin!(governed);

        let mut inner = self.inner.clone();
        let ready = poll_fn(|cx| match inner.poll_ready(cx) {
            Poll::Ready(ready) => Poll::Ready(ready.map_err(|error| not_ready(error.into()))),
            Poll::Pending => governed.as_mut().poll_deadline(cx).map(|_| Err(Error::NotSent(Box::new(NotReady(()))))),
        });
        ready.await?;
        self.audit.as_ref().map_or(Ok(()), Repeats::check)?;
        if !denial.use_up() {
            return Err(refused(InvalidReason::OverrideUsed));
        }
        let mut request = ToolRequest::call(wire_name.clone(), arguments);
        request.extensions_mut().insert(OperatorRepeat);
        if let Some(caller) = &self.caller {
            request.extensions_mut().insert(caller.clone());
        }
        if let Some(repeated) = repeated {
            repeated.sent();
        }
        let mut answer = pin!(inner.call(request));
        let answer = poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer.map_err(|error| Error::from(error.into())))),
            Poll::Pending => governed.as_mut().poll_deadline(cx).map(Err),
        })
        .await?;
        let outcome = governed.execution(answer);
        let failure = outcome.as_ref().err().map(Error::typed);
        if let Some(Error::ToolNotAllowed(_) | Error::InvalidArguments(_) | Error::NotSent(_)) = failure {
            // Refused by a layer below, or without a connection: it never left.
            denial.release();
        }
        outcome
    }
}

const fn refused(reason: InvalidReason) -> Error {
    Error::InvalidArguments(InvalidArguments::new(reason))
}

/// The service was not ready before the deadline.
#[derive(Debug)]
struct NotReady(());

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service was not ready before the deadline")
    }
}

impl error::Error for NotReady {}

/// Marks an operator's request, so that a governed stack refuses it instead of stripping what the operator granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperatorRepeat;

impl<S> fmt::Debug for Operator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").finish_non_exhaustive()
    }
}
