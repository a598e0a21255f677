//! A timeout that costs nothing to set.
//!
//! One timer per connection is armed rarely and looked at lazily: setting a later deadline only
//! stores it; the timer, when it fires early, is armed again for what is stored. A busy connection
//! thus sets thousands of deadlines for each timer operation.
//! Invariant: it is never due before its time, and at most one timer tick (1 ms) after it.
//! Not here: how long each phase may take (`policy::snapshot`).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline that is moved often and reached rarely.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    due: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Due `after` from now.
    pub(crate) fn set(&mut self, after: Duration) {
        self.due = Instant::now().checked_add(after);
    }

    /// Never due.
    pub(crate) fn clear(&mut self) {
        self.due = None;
    }

    /// Ready when due. Call it last, when everything else is pending.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.due else {
            return Poll::Pending;
        };
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if timer.deadline() > due {
                timer.as_mut().reset(due);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= due {
                self.due = None;
                self.timer = None;
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }
}
