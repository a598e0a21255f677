//! A timeout that costs nothing to set.
//!
//! Setting stores a duration; the clock is read when something first has to wait for it. One timer
//! per connection is then armed rarely: a later deadline leaves it as it is, and when it fires early
//! it is armed again. A busy connection thus sets thousands of deadlines for each timer operation.
//! The moment a wait begins is the latest that the worker has looked at its clock, which it does
//! with every step of an exchange and ten times a second besides.
//! Invariant: it is due at most 100 ms before its time and at most one timer tick (1 ms) after it.
//! Not here: how long each phase may take (`policy::snapshot`).

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline that is moved often and reached rarely.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// The worker's latest look at its clock.
    clock: Rc<Cell<std::time::Instant>>,
    after: Option<Duration>,
    due: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whom the timer will wake, once it was asked and said not yet.
    armed: Option<Waker>,
}

impl Deadline {
    /// Not due, with this clock.
    pub(crate) fn new(clock: &Rc<Cell<std::time::Instant>>) -> Self {
        Self {
            clock: Rc::clone(clock),
            after: None,
            due: None,
            timer: None,
            armed: None,
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
    }

    /// Ready when due. Call it last, when everything else is pending.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(after) = self.after else {
            return Poll::Pending;
        };
        let begun = || Instant::from_std(self.clock.get()).checked_add(after);
        let Some(due) = self.due.or_else(begun) else {
            return Poll::Pending;
        };
        self.due = Some(due);
        loop {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if timer.deadline() > due {
                timer.as_mut().reset(due);
                self.armed = None;
            }
            let is_armed = |armed: &Waker| armed.will_wake(cx.waker());
            if self.armed.as_ref().is_some_and(is_armed) && !timer.is_elapsed() {
                return Poll::Pending;
            }
            if timer.as_mut().poll(cx).is_pending() {
                self.armed = Some(cx.waker().clone());
                return Poll::Pending;
            }
            self.armed = None;
            if Instant::now() >= due {
                self.clear();
                self.timer = None;
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }
}
