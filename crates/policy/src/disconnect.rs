//! What becomes of an answer whose client left.
//!
//! Invariant: whatever becomes of it, nothing more is forwarded and its exchange is aborted.
//! Not here: noticing that a client left, reading on (`proxy`).

use std::time::Duration;

/// What a route does when its client leaves after the call went upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDisconnect {
    /// Nothing is said of it: as [`Self::Cancel`], but for a call whose prompt is with its upstream, of which nobody else
    /// knows what it comes to; that is read on within [`OF_UNSEEN_PROMPTS`].
    #[default]
    Unsaid,
    /// The upstream is told at once: its connection or its stream is closed.
    Cancel,
    /// The gate reads on, so that the upstream says what the call came to.
    ReadToEnd(ReadBounds),
}

/// How long the gate reads on for a call whose prompt it has not seen, where its route says nothing.
pub const OF_UNSEEN_PROMPTS: ReadBounds = ReadBounds {
    tokens: 1 << 16,
    time: Duration::from_mins(5),
};

/// How long the gate reads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBounds {
    /// At most about so many tokens: an event of a stream counts as one, four bytes of another answer too.
    pub tokens: u64,
    /// At most so long.
    pub time: Duration,
}

/// What became of the rest of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectOutcome {
    /// The upstream was told at once, as its route says.
    Cancelled,
    /// Read to its end.
    ReadToEnd,
    /// The upstream was told when a bound of its route was reached, or it broke off by itself.
    CutShort,
    /// The upstream was told at once: as many responses as are allowed were being read to their end.
    NoRoom,
}

impl DisconnectOutcome {
    /// All of them, for metric tables.
    pub const ALL: [Self; 4] = [
        Self::Cancelled,
        Self::ReadToEnd,
        Self::CutShort,
        Self::NoRoom,
    ];

    /// The word used in labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::ReadToEnd => "read_to_end",
            Self::CutShort => "cut_short",
            Self::NoRoom => "no_room",
        }
    }
}
