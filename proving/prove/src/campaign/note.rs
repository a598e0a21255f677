//! What a campaign notes beside its decisions: warnings, targets, files.
//!
//! Invariant: the words are those of report.json, and stay.
//! Not here: decisions (`experiment::campaign::EventKind`).

use crate::report::document::Event;

/// Kinds of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoteKind {
    /// Of what was found before the load, or of how far figures can be trusted.
    Warning,
    /// A file of ours is not whole.
    File,
    /// A target did not answer.
    Silent,
    /// It answers again.
    Heard,
    /// Lines of a page could not be read.
    Unread,
    /// Looks at targets were left out, or samples lost.
    Scrape,
    /// The load failed.
    Load,
    /// The gateway's own time could not be had, or not all of it.
    Overhead,
}

impl NoteKind {
    /// The word for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::File => "file",
            Self::Silent => "silent",
            Self::Heard => "heard",
            Self::Unread => "unread",
            Self::Scrape => "scrape",
            Self::Load => "load",
            Self::Overhead => "overhead",
        }
    }

    /// A note of what was before the load or after it.
    pub(super) fn outside(self, says: String) -> Event {
        Event {
            at_s: 0.0,
            kind: self.word().to_owned(),
            users: 0,
            says,
        }
    }
}
