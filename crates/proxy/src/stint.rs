//! How long a task works before it lets others run.
//!
//! A body whose bytes are always there would be read and scanned in one go: 30 MB of odd JSON hold a worker
//! for a third of a second, and everybody else on it.
//! Invariant: between two turns of the worker's loop a task works on little more than [`STINT_BYTES`].
//! Not here: waiting for somebody (`deadline`).

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

use tokio::task::yield_now;

/// Bytes that are scanned in one go: a millisecond's work when they are as costly as they can be.
pub(crate) const STINT_BYTES: usize = 64 << 10;

/// What a task has worked on since it last let others run.
#[derive(Debug, Default)]
pub(crate) struct Stint(usize);

impl Stint {
    /// Counts work.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    /// Counts so much work, if it can be done before others run.
    #[inline]
    pub(crate) fn takes(&mut self, bytes: usize) -> bool {
        let is_within = self.0 + bytes <= STINT_BYTES;
        if is_within {
            self.0 += bytes;
        }
        is_within
    }

    /// Whether it is the turn of others.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.0 >= STINT_BYTES
    }

    /// Lets others run when it is their turn.
    #[inline]
    pub(crate) async fn pass(&mut self) {
        if self.0 >= STINT_BYTES {
            self.0 = 0;
            yield_now().await;
        }
    }

    /// The same by poll: pending, and woken once the others have run.
    #[inline]
    pub(crate) fn poll_pass(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 < STINT_BYTES {
            return Poll::Ready(());
        }
        self.0 = 0;
        // Its first poll arranges for the task to be woken; nothing else is in it.
        pin!(yield_now()).poll(cx)
    }
}
