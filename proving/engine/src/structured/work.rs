//! What the structured outputs of one call may cost: a number of steps, and no more.
//!
//! The server has one thread, so that a call which takes long makes all others wait.
//! Invariant: reading a schema, an expression or a grammar and making every text of the call spend of the same steps;
//! when they are spent the call is refused.
//! Not here: what a step is: a few nanoseconds of work, counted where it is done.

use std::cell::Cell;

/// Steps of one call, all choices together.
pub(super) const MAX_STEPS: u64 = 4_000_000;

/// How often steps were asked for.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) paid: u64,
    /// When there were not as many: who is told so is to stop.
    pub(super) in_vain: u64,
}

#[cfg(test)]
thread_local! {
    /// By the tests of this thread.
    pub(super) static ASKED: Cell<Times> = const { Cell::new(Times { paid: 0, in_vain: 0 }) };
}

#[cfg(test)]
impl Times {
    fn and(self, is_paid: bool) -> Self {
        Self {
            paid: self.paid + u64::from(is_paid),
            in_vain: self.in_vain + u64::from(!is_paid),
        }
    }
}

/// The steps that are left.
#[derive(Debug)]
pub(super) struct Work(Cell<u64>);

impl Work {
    pub(super) fn new() -> Self {
        Self(Cell::new(MAX_STEPS))
    }

    /// Takes steps; `None` when there are not as many, and from then on.
    pub(super) fn spend(&self, steps: usize) -> Option<()> {
        let left = self.0.get().saturating_sub(steps as u64);
        self.0.set(left);
        #[cfg(test)]
        ASKED.set(ASKED.get().and(left > 0));
        (left > 0).then_some(())
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// What a call is told that has spent them.
    pub(super) fn refusal() -> String {
        format!(
            "The structured output takes more than {MAX_STEPS} steps to make, all choices together, which is the most \
             of this server. Ask for fewer or shorter texts, or for simpler ones."
        )
    }
}
