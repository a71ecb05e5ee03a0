//! The fastest batch of each piece of work. What else runs on the machine makes a batch slower and none faster, so these
//! can be compared where means can't.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Pieces of work that take turns, so that all see the same machine.
pub(crate) struct Minima {
    /// Inputs of a batch, made before the clock starts. Few enough for the cache, where a request that was just read is.
    batch: u32,
    works: Vec<Work>,
}

struct Work {
    name: String,
    run: Box<dyn FnMut(u32) -> Duration>,
}

impl Minima {
    pub(crate) const fn of_batches(batch: u32) -> Self {
        Self { batch, works: Vec::new() }
    }

    /// `work` on what `make` makes. What it returns is dropped while the clock runs.
    pub(crate) fn add<I, O>(
        &mut self,
        name: impl Into<String>,
        mut make: impl FnMut() -> I + 'static,
        mut work: impl FnMut(I) -> O + 'static,
    ) {
        let run = Box::new(move |batch| {
            let inputs: Vec<I> = (0..batch).map(|_| make()).collect();
            let begun = Instant::now();
            for input in inputs {
                drop(black_box(work(input)));
            }
            begun.elapsed()
        });
        self.works.push(Work { name: name.into(), run });
    }

    /// The nanoseconds of each in its fastest of `rounds` batches, or in one where the benches are only tested.
    pub(crate) fn measure(self, rounds: usize) -> Vec<(String, f64)> {
        let Self { batch, mut works } = self;
        let mut fastest = vec![Duration::MAX; works.len()];
        for _ in 0..if super::is_test() { 1 } else { rounds } {
            for (work, fastest) in works.iter_mut().zip(&mut fastest) {
                *fastest = (work.run)(batch).min(*fastest);
            }
        }
        let nanos = fastest.into_iter().map(|fastest| fastest.as_secs_f64() * 1e9 / f64::from(batch));
        works.into_iter().map(|work| work.name).zip(nanos).collect()
    }
}
