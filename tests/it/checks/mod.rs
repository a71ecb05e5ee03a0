//! What a governed stack owes its user, as checks that take the stack: `zoo` runs them on wrong ones, and each has to
//! find the wrong one out.

pub(crate) mod arguments;
pub(crate) mod bounds;
pub(crate) mod contract;
pub(crate) mod outcomes;
pub(crate) mod reach;
pub(crate) mod schemas;
pub(crate) mod wire;

use futures::executor::block_on;
use tower::{Layer as _, ServiceExt as _, util::BoxCloneSyncService};
use tower_algenta::{BoxError, Error, GovernanceLayer, Profile, ToolRequest, ToolResponse};

use crate::support::{Received, recording};

pub(crate) type Boxed = BoxCloneSyncService<ToolRequest, ToolResponse, BoxError>;

/// What a check found wrong.
pub(crate) type Finding = Result<(), String>;

/// A stack that keeps an agent inside a profile, around an engine.
pub(crate) type Stack<'a> = &'a dyn Fn(Profile, Boxed) -> Boxed;

/// The stack of this crate.
pub(crate) fn real(profile: Profile, engine: Boxed) -> Boxed {
    Boxed::new(GovernanceLayer::new(profile).layer(engine))
}

/// A finding, unless `holds`.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Finding {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// What a caller gets for one request, and what the engine behind the stack received of it.
pub(crate) fn ask(
    stack: Stack<'_>,
    profile: Profile,
    request: ToolRequest,
    answer: impl Fn(&ToolRequest) -> Result<ToolResponse, BoxError> + Clone + Send + Sync + 'static,
) -> (Result<ToolResponse, Error>, Vec<ToolRequest>) {
    let received = Received::default();
    let engine = Boxed::new(recording(&received, answer));
    let outcome = block_on(stack(profile, engine).oneshot(request)).map_err(Error::from);
    (outcome, received.take())
}

#[test]
fn the_real_stack_passes_every_check() {
    reach::listed_exactly_if_callable(&real).unwrap();
    reach::one_call_at_the_most(&real).unwrap();
    arguments::no_switch_arrives(&real).unwrap();
    arguments::data_arrives(&real).unwrap();
    schemas::no_switch_is_listed(&real).unwrap();
    schemas::no_call_is_wrongly_rejected(&real).unwrap();
    outcomes::denials_are_denied(&real).unwrap();
    outcomes::denials_are_silent(&real).unwrap();
    outcomes::only_bound_receipts_succeed(&real).unwrap();
    outcomes::other_tools_are_untouched(&real).unwrap();
    bounds::depth_is_bounded(&real).unwrap();
    contract::is_kept_in_short(&GovernanceLayer::new(Profile::Execute)).unwrap();
    wire::nothing_unread_passes(&wire::real).unwrap();
}
