//! What a service owes to tower: which instance is called, and who says that it is ready.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use rmcp::{model::ListToolsResult, object};
use tower::{Layer, Service};
use tower_algenta::{BoxError, ToolRequest, ToolResponse};

use super::{Finding, ensure};
use crate::support::empty_result;

/// An inner service that is ready as often as it is told to be, and counts how often it is called.
#[derive(Debug)]
pub(crate) struct Strict {
    is_ready: bool,
    turn: usize,
    /// What `poll_ready` says, in turn: pending, failed, and ready for the rest.
    says: Arc<[u8]>,
    calls: Arc<AtomicUsize>,
    /// Calls of an instance that was not polled ready.
    unready: Arc<AtomicUsize>,
}

impl Strict {
    fn new(says: &[u8]) -> Self {
        Self { is_ready: false, turn: 0, says: says.into(), calls: Arc::default(), unready: Arc::default() }
    }
}

impl Clone for Strict {
    /// Readiness is not cloned, as tower asks.
    fn clone(&self) -> Self {
        let (says, calls, unready) = (self.says.clone(), self.calls.clone(), self.unready.clone());
        Self { is_ready: false, turn: self.turn, says, calls, unready }
    }
}

impl Service<ToolRequest> for Strict {
    type Response = ToolResponse;
    type Error = BoxError;
    type Future = std::future::Ready<Result<ToolResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let says = self.says[self.turn % self.says.len()];
        self.turn += 1;
        match says {
            0 => Poll::Pending,
            1 => Poll::Ready(Err("not ready".into())),
            _ => {
                self.is_ready = true;
                Poll::Ready(Ok(()))
            }
        }
    }

    fn call(&mut self, request: ToolRequest) -> Self::Future {
        if !std::mem::take(&mut self.is_ready) {
            self.unready.fetch_add(1, Ordering::Relaxed);
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(match request {
            ToolRequest::List(_) => ListToolsResult::default().into(),
            ToolRequest::Call(_) => empty_result(),
        }))
    }
}

/// Which of two instances, and what of [`request`] to call it with if its poll says that it is ready.
pub(crate) type Step = (bool, u8);

fn request(kind: u8) -> Option<ToolRequest> {
    Some(match kind {
        0 => ToolRequest::list(),
        1 => ToolRequest::call("simulate", object!({"force": true})),
        2 => ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"})),
        3 => ToolRequest::call("execute_decision", object!({})),
        4 => ToolRequest::call("Execute_Decision", object!({})),
        _ => return None,
    })
}

/// Readiness is the inner service's, and only the instance that was polled ready is called, once at the most.
pub(crate) fn is_kept<L>(layer: &L, says: &[u8], steps: &[Step]) -> Finding
where
    L: Layer<Strict>,
    L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError> + Clone,
{
    let engine = Strict::new(says);
    let (calls, unready) = (engine.calls.clone(), engine.unready.clone());
    // The mirror is polled alike, without the layer: readiness has to be the same.
    let mut mirrors = [engine.clone(), engine.clone()];
    let first = layer.layer(engine);
    let mut services = [first.clone(), first];
    let cx = &mut Context::from_waker(Waker::noop());
    for (which, what) in steps {
        let (service, mirror) = (&mut services[usize::from(*which)], &mut mirrors[usize::from(*which)]);
        let (ready, expected) = (service.poll_ready(cx), mirror.poll_ready(cx));
        ensure(format!("{ready:?}") == format!("{expected:?}"), || format!("{ready:?} of {expected:?}"))?;
        if mirror.is_ready
            && let Some(request) = request(*what)
        {
            // A refusal leaves the inner service ready. The mirror need not know: it is polled again first.
            mirror.is_ready = false;
            let before = calls.load(Ordering::Relaxed);
            let answer = pin!(service.call(request));
            ensure(answer.poll(cx).is_ready(), || "nothing is pending inside".to_owned())?;
            let made = calls.load(Ordering::Relaxed) - before;
            ensure(made <= 1, || format!("{made} calls"))?;
            ensure(unready.load(Ordering::Relaxed) == 0, || "called without being polled ready".to_owned())?;
        }
    }
    Ok(())
}

/// A few orders of polls, calls and clones.
pub(crate) fn is_kept_in_short<L>(layer: &L) -> Finding
where
    L: Layer<Strict>,
    L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError> + Clone,
{
    let steps =
        [(false, 5), (true, 1), (false, 2), (false, 0), (true, 3), (false, 4), (true, 5), (false, 1), (true, 2)];
    for says in [&[2][..], &[0, 2], &[2, 0], &[1, 2], &[2, 2, 1], &[0], &[1]] {
        is_kept(layer, says, &steps)?;
    }
    Ok(())
}
