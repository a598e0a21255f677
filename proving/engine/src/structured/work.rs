//! What the structured outputs of one call may cost: a number of steps, and no more.
//!
//! The server has one thread, so that a call which takes long makes all others wait.
//! Invariant: reading a schema, an expression or a grammar and making every text of the call spend of the same steps;
//! when they are spent the call is refused.
//! Not here: what a step is: a few nanoseconds of work, counted where it is done.

use std::cell::Cell;

/// Steps of one call, all choices together.
const MAX_STEPS: u64 = 4_000_000;

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
