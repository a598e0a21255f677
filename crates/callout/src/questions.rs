//! What became of the questions to one service, counted.
//!
//! Invariant: counts only rise. Who waits for a question that already runs is counted nowhere: the question is.
//! Not here: what is asked, and who shows the counts (the host).

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one service; they outlive whoever asks.
#[derive(Debug, Default)]
pub struct Questions {
    answered: AtomicU64,
    kept: AtomicU64,
    failed: AtomicU64,
}

/// How many there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuestionCounts {
    /// The service answered.
    pub answered: u64,
    /// An answer that was kept was enough.
    pub kept: u64,
    /// There was no answer, or the question was not even sent.
    pub failed: u64,
}

impl Questions {
    /// A question ended, with an answer or without one.
    pub fn note(&self, is_answered: bool) {
        let count = if is_answered {
            &self.answered
        } else {
            &self.failed
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody had to be asked.
    pub(crate) fn note_kept(&self) {
        self.kept.fetch_add(1, Ordering::Relaxed);
    }

    /// So far.
    #[must_use]
    pub fn counts(&self) -> QuestionCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        QuestionCounts {
            answered: of(&self.answered),
            kept: of(&self.kept),
            failed: of(&self.failed),
        }
    }
}
