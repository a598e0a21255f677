//! What becomes of an answer whose client left.
//!
//! Invariant: whatever becomes of it, nothing more is forwarded and its exchange is aborted.
//! Not here: noticing that a client left, reading on (`proxy`).

use std::time::Duration;

/// What a route does when its client leaves after the call went upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Abandon {
    /// The upstream is told at once: its connection or its stream is closed.
    #[default]
    Cancel,
    /// The gate reads on, so that the upstream says what the call came to.
    Drain(Drain),
}

/// How long the gate reads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// At most about so many tokens: an event of a stream counts as one, four bytes of another answer too.
    pub tokens: u64,
    /// At most so long.
    pub time: Duration,
}

/// What became of the rest of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The upstream was told at once, as its route says.
    Cancelled,
    /// Read to its end.
    Drained,
    /// The upstream was told when a bound of its route was reached, or it broke off by itself.
    CutShort,
    /// The upstream was told at once: as many drains as are allowed were running.
    NoRoom,
}

impl Rest {
    /// All of them, for metric tables.
    pub const ALL: [Self; 4] = [Self::Cancelled, Self::Drained, Self::CutShort, Self::NoRoom];

    /// The word used in labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Drained => "drained",
            Self::CutShort => "cut_short",
            Self::NoRoom => "no_room",
        }
    }
}
