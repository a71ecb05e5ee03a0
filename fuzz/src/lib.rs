//! What the fuzz targets assert: one module for each, with a `check` that panics where a property of the crate is broken.
//!
//! An input is JSON, in the form of the cases under `tests/vectors`; [`mutate`] keeps it JSON. The second model, the
//! stacks and the judgement of outcomes are those of the integration tests.

#![forbid(unsafe_code)]

pub mod argument_scrub;
pub mod mutate;
pub mod profile_filter;
pub mod raw_messages;
pub mod receipt_mapping;
pub mod schema_scrub;
pub mod webhook_filter;

mod execution;
mod judge;
mod names;
mod silence;
mod wire;
mod words;

// What of these is used here may change with what the integration tests use.
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../../tests/it/checks/mod.rs"]
mod checks;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../../tests/it/model/mod.rs"]
mod model;
#[path = "../../tests/it/random.rs"]
mod random;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../../tests/it/support.rs"]
mod support;

#[doc(hidden)]
pub use libfuzzer_sys;

/// The fuzz target that runs a module's `check` on what [`mutate`] makes.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        use $crate::libfuzzer_sys;

        libfuzzer_sys::fuzz_target!(|data: &[u8]| -> libfuzzer_sys::Corpus {
            // What a target can't read is no base for anything else.
            if $crate::$name::check(data) { libfuzzer_sys::Corpus::Keep } else { libfuzzer_sys::Corpus::Reject }
        });

        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::mutate::mutate(data, size, max_size, seed)
        });

        libfuzzer_sys::fuzz_crossover!(|one: &[u8], other: &[u8], out: &mut [u8], seed: u32| {
            $crate::mutate::cross(one, other, out, seed)
        });
    };
}
