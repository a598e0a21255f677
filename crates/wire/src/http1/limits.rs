//! Bounds on a head, and how far one has come.
//!
//! Not here: reading it (`parse`).

/// The most fields that `Limits::fields` can allow.
pub const MAX_FIELDS: usize = 256;

/// The most empty lines before a request line that are skipped.
pub const MAX_EMPTY_LINES: usize = 8;

/// Bounds on a head.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes, from the start line to the empty line, both included.
    pub head_bytes: usize,
    /// Fields; at most `MAX_FIELDS` count.
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 65_536,
            fields: 100,
        }
    }
}

/// How far a head has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The head is not whole yet: read more and parse again from its first byte.
    Partial,
    /// The head is whole.
    Done {
        /// Bytes of the input that the head took.
        consumed: usize,
    },
}
