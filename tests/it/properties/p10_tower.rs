//! P10: tower's contract, over any order of polls, calls and clones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use proptest::prelude::*;
use rmcp::{model::ListToolsResult, object};
use tokio_test::task;
use tower::{Layer, Service};
use tower_algenta::{
    ArgumentScrubLayer, BoxError, GovernanceLayer, Profile, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer,
    ToolRequest, ToolResponse,
};

use super::config;
use crate::support::empty_result;

/// An inner service that is ready as often as it is told to be, and panics if it is called and wasn't.
#[derive(Debug)]
struct Strict {
    is_ready: bool,
    turn: usize,
    /// What `poll_ready` says, in turn: ready, pending, failed.
    says: Arc<[u8]>,
    calls: Arc<AtomicUsize>,
}

impl Clone for Strict {
    /// Readiness is not cloned, as tower asks.
    fn clone(&self) -> Self {
        Self { is_ready: false, turn: self.turn, says: self.says.clone(), calls: self.calls.clone() }
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
        assert!(std::mem::take(&mut self.is_ready), "called without being polled ready");
        self.calls.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(match request {
            ToolRequest::List(_) => ListToolsResult::default().into(),
            ToolRequest::Call(_) => empty_result(),
        }))
    }
}

/// Which of two instances, and what: poll it, or call it if its last poll said that it is ready.
type Step = (bool, u8);

fn request(kind: u8) -> ToolRequest {
    match kind {
        0 => ToolRequest::list(),
        1 => ToolRequest::call("simulate", object!({"force": true})),
        2 => ToolRequest::call("execute_decision", object!({"decision_id": "d", "webhook_url": "w"})),
        3 => ToolRequest::call("execute_decision", object!({})),
        _ => ToolRequest::call("Execute_Decision", object!({})),
    }
}

fn keeps_the_contract<L>(layer: &L, says: &Arc<[u8]>, steps: &[Step])
where
    L: Layer<Strict>,
    L::Service: Service<ToolRequest, Response = ToolResponse, Error = BoxError> + Clone,
{
    let calls = Arc::new(AtomicUsize::new(0));
    let engine = Strict { is_ready: false, turn: 0, says: says.clone(), calls: calls.clone() };
    // The mirror is polled alike, without the layer: readiness has to be the same.
    let mut mirrors = [engine.clone(), engine.clone()];
    let first = layer.layer(engine);
    let mut services = [first.clone(), first];
    for (which, what) in steps {
        let (service, mirror) = (&mut services[usize::from(*which)], &mut mirrors[usize::from(*which)]);
        let mut polled = task::spawn(());
        let (ready, expected) = polled.enter(|cx, _| (service.poll_ready(cx), mirror.poll_ready(cx)));
        assert_eq!(format!("{ready:?}"), format!("{expected:?}"), "readiness is the inner service's");
        if mirror.is_ready && matches!(ready, Poll::Ready(Ok(()))) && *what < 5 {
            mirror.is_ready = false;
            let before = calls.load(Ordering::Relaxed);
            let mut answer = task::spawn(service.call(request(*what)));
            assert!(answer.poll().is_ready(), "nothing is pending inside");
            let made = calls.load(Ordering::Relaxed) - before;
            assert!(made <= 1, "{made} calls");
            // A refusal leaves the inner service ready. The mirror need not know: it is polled again first.
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p10_only_an_instance_that_was_polled_ready_is_called(
        says in prop::collection::vec(0..5_u8, 1..6),
        steps in prop::collection::vec((any::<bool>(), 0..7_u8), 0..24),
    ) {
        let says: Arc<[u8]> = says.into();
        keeps_the_contract(&ProfileFilterLayer::new(Profile::Execute), &says, &steps);
        keeps_the_contract(&ArgumentScrubLayer::new(), &says, &steps);
        keeps_the_contract(&SchemaScrubLayer::new(), &says, &steps);
        keeps_the_contract(&ReceiptMappingLayer::new(), &says, &steps);
        keeps_the_contract(&GovernanceLayer::new(Profile::Execute), &says, &steps);
    }
}
