//! One session being walked, turn by turn.
//!
//! Invariant: turns come in order, and each once.
//! Not here: when a turn is due (`user`, `open`).

use std::time::Duration;

use crate::arrivals::Due;

/// The sessions of a profile, as far as their order and time need them.
pub trait Sessions {
    /// How many there are.
    fn count(&self) -> u64;

    /// Turns of a session; 0 is taken for 1.
    fn turns(&self, session: u64) -> u32;

    /// The recorded pause between the answer before and this turn, where there is one.
    fn think(&self, session: u64, turn: u32) -> Option<Duration>;
}

/// Sessions that are all alike and have no recorded pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// How many.
    pub sessions: u64,
    /// Turns of each.
    pub turns: u32,
}

impl Plain {
    /// One session of one turn: the same request over and over.
    pub const ONE: Self = Self {
        sessions: 1,
        turns: 1,
    };
}

impl Sessions for Plain {
    fn count(&self) -> u64 {
        self.sessions
    }

    fn turns(&self, _session: u64) -> u32 {
        self.turns
    }

    fn think(&self, _session: u64, _turn: u32) -> Option<Duration> {
        None
    }
}

/// A turn that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which session.
    pub session: u64,
    /// How often the session had come before in the profile.
    pub repeat: u64,
    /// Which turn of it, from 0.
    pub turn: u32,
    /// Whether it is the last of the session.
    pub last: bool,
    /// When.
    pub due: Due,
}

/// A place in a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    pub(super) session: u64,
    pub(super) repeat: u64,
    next: u32,
    turns: u32,
}

impl Walk {
    pub(super) fn new(session: u64, repeat: u64, sessions: &impl Sessions) -> Self {
        let turns = sessions.turns(session).max(1);
        Self {
            session,
            repeat,
            next: 0,
            turns,
        }
    }

    /// Turns that have not been taken.
    pub(super) const fn left(&self) -> u32 {
        self.turns - self.next
    }

    /// The pause that is recorded before the next turn.
    pub(super) fn think(&self, sessions: &impl Sessions) -> Option<Duration> {
        sessions.think(self.session, self.next)
    }

    /// Takes the next turn; there has to be one left.
    pub(super) const fn take(&mut self, due: Due) -> Turn {
        let turn = self.next;
        self.next += 1;
        Turn {
            session: self.session,
            repeat: self.repeat,
            turn,
            last: self.next == self.turns,
            due,
        }
    }
}
