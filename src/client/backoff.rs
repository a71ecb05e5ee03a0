//! How long to wait before the next attempt to connect.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

/// After a first failure, and at the most after many.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Pauses that double. Each is cut by up to a half at random, so that those who lost an engine together don't come back
/// to it together.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { next: FIRST }
    }

    /// The pause that is due now.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause.mul_f64(1.0 - random() / 2.0)
    }

    pub(super) const fn reset(&mut self) {
        self.next = FIRST;
    }
}

/// From 0 to 1. The standard library has no other source of it than the keys of its hash maps.
fn random() -> f64 {
    let bits = RandomState::new().hash_one(()) >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_differ() {
        let mut backoff = Backoff::new();
        let mut longest = FIRST;
        for _ in 0..12 {
            let pause = backoff.pause();
            assert!(longest / 2 <= pause && pause <= longest, "{pause:?} of {longest:?}");
            longest = (longest * 2).min(LONGEST);
        }
        assert_eq!(longest, LONGEST);
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
        let pauses: std::collections::HashSet<_> = (0..8).map(|_| Backoff::new().pause()).collect();
        assert!(pauses.len() > 1, "{pauses:?}");
    }
}
