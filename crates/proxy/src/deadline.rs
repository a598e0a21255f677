//! A timeout that costs nothing to set.
//!
//! Setting stores a duration; when something first has to wait for it, the worker's latest look at its
//! clock becomes the start. The worker looks with every step of an exchange and at each tick. A busy
//! connection thus sets thousands of deadlines and touches the wheel once in a while.
//! Invariant: it is due at most one tick (100 ms) before its time and at most one after it.
//! Not here: how long each phase may take (`policy::snapshot`).

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use policy::clock::Mono;

use crate::wheel::{Waiter, Wheel};

/// A deadline that is moved often and reached rarely.
pub(crate) struct Deadline {
    wheel: Rc<Wheel>,
    waiter: Rc<Waiter>,
    after: Option<Duration>,
    due: Option<Mono>,
}

impl Deadline {
    /// Not due, on this wheel.
    pub(crate) fn new(wheel: &Rc<Wheel>) -> Self {
        Self {
            wheel: Rc::clone(wheel),
            waiter: Waiter::new(),
            after: None,
            due: None,
        }
    }

    /// Due so long after the wait that begins next.
    pub(crate) fn set(&mut self, after: Duration) {
        self.after = Some(after);
        self.due = None;
    }

    /// Never due.
    pub(crate) fn clear(&mut self) {
        self.after = None;
        self.due = None;
        self.waiter.disarm();
    }

    /// Ready when due. Call it last, when everything else is pending.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(after) = self.after else {
            return Poll::Pending;
        };
        let now = self.wheel.clock();
        let due = self.due.unwrap_or_else(|| now.after(after));
        if now >= due {
            self.clear();
            return Poll::Ready(());
        }
        self.due = Some(due);
        self.wheel.arm(&self.waiter, due, cx.waker());
        Poll::Pending
    }
}
