//! The properties that the crate promises, each under its name, over cases that `proptest` makes.
//!
//! P3, on schemas, is `schema_random`; P6, on orders, is in `orders`. The seed is fixed, so that every run sees the same:
//! `PROPTEST_CASES` sets how many cases each property gets, `PROPTEST_RNG_SEED` draws others. A failure prints its
//! smallest case, which becomes a test of its own.

mod any;
mod p10_tower;
mod p11_bounds;
mod p1_arguments;
mod p2_profile;
mod p4_outcomes;
mod p5_silence;
mod p7_calls;
mod p9_closed_world;

pub(crate) use any::{answer, any_key, as_execution, dirty_arguments, object_with, result, switch};

use proptest::test_runner::{Config, RngSeed};

/// Cases of each property, if the environment doesn't say.
const CASES: u32 = 256;

pub(crate) fn config() -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(0x0a19_e27a);
    }
    config
}
