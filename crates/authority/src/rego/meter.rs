//! What the functions of a decision may still do: steps for what they read, bytes for what they make.
//!
//! Each thread makes one decision at a time, and the interpreter hands functions nothing but their arguments; so the
//! meter is the thread's.
//! Invariant: when a bound is met, every later function of the decision fails: a rule that goes on behind an error has
//! nothing left to spend.

use std::cell::Cell;

/// The most steps that the functions of a decision take.
pub const FUNCTION_STEPS_MAX: usize = 100_000;
/// The most bytes that they make.
pub const BYTES_MADE_MAX: usize = 1 << 20;
/// Bytes that are read, or made, in one step.
pub(super) const BYTES_A_STEP: usize = 16;

/// What a call takes before it does anything: the interpreter looks for the function by its name.
pub(super) const CALL: Cost = Cost { steps: 5, bytes: 0 };

/// What a call of a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    steps: usize,
    bytes: usize,
}

/// Which bound was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    Steps,
    Bytes,
}

impl Cost {
    /// Of reading so many bytes, or doing what takes as long, and of making so many at most.
    pub(super) fn new(reads: usize, makes: usize) -> Self {
        Self {
            steps: reads.saturating_add(makes) / BYTES_A_STEP,
            bytes: makes,
        }
    }

    pub(super) fn of_steps(steps: usize) -> Self {
        Self { steps, bytes: 0 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Left {
    steps: usize,
    bytes: usize,
    spent: Option<Spent>,
}

const ALL: Left = Left {
    steps: FUNCTION_STEPS_MAX,
    bytes: BYTES_MADE_MAX,
    spent: None,
};

thread_local! {
    static LEFT: Cell<Left> = const { Cell::new(ALL) };
}

/// A decision begins.
pub(super) fn begin() {
    LEFT.set(ALL);
}

/// The bound that this decision met.
pub(super) fn spent() -> Option<Spent> {
    LEFT.get().spent
}

/// Takes what a call is about to need.
pub(super) fn take(cost: Cost) -> Result<(), Spent> {
    let mut left = LEFT.get();
    if let Some(spent) = left.spent {
        return Err(spent);
    }
    left.spent = match (
        left.steps.checked_sub(cost.steps),
        left.bytes.checked_sub(cost.bytes),
    ) {
        (Some(steps), Some(bytes)) => {
            (left.steps, left.bytes) = (steps, bytes);
            None
        }
        (None, _) => Some(Spent::Steps),
        (_, None) => Some(Spent::Bytes),
    };
    LEFT.set(left);
    left.spent.map_or(Ok(()), Err)
}

/// Steps and bytes that this decision's functions took.
#[cfg(test)]
pub(super) fn taken() -> (usize, usize) {
    let left = LEFT.get();
    (FUNCTION_STEPS_MAX - left.steps, BYTES_MADE_MAX - left.bytes)
}
