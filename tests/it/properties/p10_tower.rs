//! P10: tower's contract, over any order of polls, calls and clones.

use proptest::prelude::*;
use tower_algenta::{
    ArgumentScrubLayer, GovernanceLayer, Profile, ProfileFilterLayer, ReceiptMappingLayer, SchemaScrubLayer,
};

use super::config;
use crate::checks::contract;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn p10_only_an_instance_that_was_polled_ready_is_called(
        says in prop::collection::vec(0..5_u8, 1..6),
        steps in prop::collection::vec((any::<bool>(), 0..7_u8), 0..24),
    ) {
        for found in [
            contract::is_kept(&ProfileFilterLayer::new(Profile::Execute), &says, &steps),
            contract::is_kept(&ArgumentScrubLayer::new(), &says, &steps),
            contract::is_kept(&SchemaScrubLayer::new(), &says, &steps),
            contract::is_kept(&ReceiptMappingLayer::new(), &says, &steps),
            contract::is_kept(&GovernanceLayer::new(Profile::Execute), &says, &steps),
        ] {
            found.map_err(TestCaseError::fail)?;
        }
    }
}
