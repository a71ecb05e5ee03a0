//! The configurations of `examples/deploy`, as they are but for the ports: replicas of the gateway behind real load
//! balancers.
//!
//! `.ci/balancers` and `.ci/python` install them. Without one these tests pass and say, past the test runner's capture,
//! what they skipped.

mod balancer;
mod drained;
mod limits;
mod load;
mod manifest;
mod repeats;
mod replica;

use std::time::Duration;

use rmcp::object;
use tower_algenta::{Endpoint, Profile, StubEngine, Toolset};

use balancer::{Balancer, Kind};
use load::Load;
use replica::Replica;

/// An engine that answers each call so late, and runs a decision as often as it is told to: what keeps it from a second
/// execution must be what stands before it.
async fn engine(delay: Duration) -> StubEngine {
    let engine = StubEngine::builder().delay(delay).start().await.unwrap();
    let operator = Toolset::builder().profile(Profile::Full).endpoint(Endpoint::new(engine.url()).unwrap());
    let operator = operator.connect().await.unwrap();
    operator.call("update_execution_policy", object!({"allow_reexecution": true})).await.unwrap();
    engine
}
