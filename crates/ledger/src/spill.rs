//! What waits in memory while the disk is away.
//!
//! Invariant: bounded; what finds no room is counted, and a settlement is counted apart, because
//! that is a loss. Checkpoints are not kept: they only tighten bounds.
//! Not here: when the disk is tried again (`writer`).

use std::collections::VecDeque;

use crate::stats::{Counters, add, set};
use crate::store::Note;

#[derive(Debug)]
pub(crate) struct Spill {
    waiting: VecDeque<Note>,
    room: usize,
}

impl Spill {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            room,
        }
    }

    pub(crate) fn push(&mut self, note: Note, counters: &Counters) {
        let has_room = self.waiting.len() < self.room;
        match note {
            Note::Progress(_) => add(&counters.lost_notes, 1),
            note if has_room => self.waiting.push_back(note),
            Note::Settle(_) => add(&counters.lost_settlements, 1),
            Note::Admit(_) | Note::Withdraw(_) | Note::Prices(_) => add(&counters.lost_notes, 1),
        }
        set(&counters.spilled, self.waiting.len() as u64);
    }

    /// The oldest, at most `n`.
    pub(crate) fn front(&self, n: usize) -> impl Iterator<Item = &Note> + Clone {
        self.waiting.iter().take(n)
    }

    /// Forgets the oldest `n`, which are on disk now.
    pub(crate) fn settle(&mut self, n: usize, counters: &Counters) {
        self.waiting.drain(..n.min(self.waiting.len()));
        set(&counters.spilled, self.waiting.len() as u64);
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
