//! What became of sessions.
//!
//! Invariant: counts only ever grow.
//! Not here: what became of requests (`load`).

use serde::{Deserialize, Serialize};

/// Counts of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    /// Begun.
    pub sessions: u64,
    /// Of them, such as had come before.
    pub repeated: u64,
    /// Of them, given up after a failed turn.
    pub abandoned: u64,
    /// Turns that were left out with them.
    pub skipped_turns: u64,
}

impl SessionCounts {
    /// Adds up.
    pub const fn absorb(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.repeated += other.repeated;
        self.abandoned += other.abandoned;
        self.skipped_turns += other.skipped_turns;
    }

    /// Counts a session that comes for the `repeat`th time after its first.
    pub(super) fn begin(&mut self, repeat: u64) {
        self.sessions += 1;
        self.repeated += u64::from(repeat > 0);
    }

    /// Counts a session that was given up with so many turns left.
    pub(super) fn abandon(&mut self, turns: u32) {
        self.abandoned += 1;
        self.skipped_turns += u64::from(turns);
    }
}
