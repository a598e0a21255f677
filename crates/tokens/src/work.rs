//! Work that tests count: time is a machine's, and steps are the same on any.
//!
//! Invariant: in a build that is no test's, nothing of this is left.
//! Not here: what is counted (`vocabulary`).

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Notes that so many characters, bytes or pairs of symbols are looked at.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn note(_steps: usize) {}

/// Notes that so many characters, bytes or pairs of symbols are looked at.
#[cfg(test)]
#[inline]
pub(crate) fn note(steps: usize) {
    STEPS.set(STEPS.get() + steps);
}

/// What is noted on this thread while `work` runs.
#[cfg(test)]
pub(crate) fn steps(work: impl FnOnce()) -> usize {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}
