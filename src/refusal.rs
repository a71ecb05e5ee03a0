//! The future of a layer that may refuse: the inner service's, or an error that is ready.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;

/// What a layer waits for.
#[pin_project(project = Projected)]
#[derive(Debug)]
pub(crate) enum Kind<F, E> {
    /// The inner service was called.
    Inner(#[pin] F),
    /// It was not; the error is taken by the first poll.
    Rejected(Option<E>),
}

impl<F, E> Kind<F, E> {
    pub(crate) const fn rejected(error: E) -> Self {
        Self::Rejected(Some(error))
    }
}

impl<F, T, E> Future for Kind<F, E>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Inner(future) => future.poll(cx),
            Projected::Rejected(error) => Poll::Ready(Err(error.take().expect("polled after completion"))),
        }
    }
}
