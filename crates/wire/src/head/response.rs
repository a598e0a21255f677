//! The head of a response, whichever protocol it came by.
//!
//! Not here: the reason phrase, which carries no meaning and is not kept.

use super::{Head, Version};

/// The head of a response. Reusable: `clear` keeps the memory.
#[derive(Debug, Default, Clone)]
pub struct ResponseHead {
    /// The status code, 100 to 599 once parsed; 0 before.
    pub status: u16,
    /// The protocol version.
    pub version: Version,
    /// The fields.
    pub fields: Head,
}

impl ResponseHead {
    /// An empty head that holds no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.status = 0;
        self.version = Version::default();
        self.fields.clear();
    }

    /// Whether this is an interim answer (1xx), to be followed by another head.
    #[must_use]
    pub fn is_informational(&self) -> bool {
        (100..200).contains(&self.status)
    }
}
