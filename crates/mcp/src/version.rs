//! The versions of the protocol that are spoken, by their dates.
//!
//! Not here: what a handshake makes of them (`handshake`).

/// A version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 2025-03-26: of servers alone, to which its batches are never sent.
    V20250326,
    /// 2025-06-18
    V20250618,
    /// 2025-11-25
    V20251125,
}

impl Version {
    /// The newest, which is offered to whoever asks for another.
    pub const LATEST: Self = Self::V20251125;

    /// One that clients speak.
    #[must_use]
    pub fn of_client(text: &str) -> Option<Self> {
        Self::of_server(text).filter(|version| *version > Self::V20250326)
    }

    /// One that servers speak.
    #[must_use]
    pub fn of_server(text: &str) -> Option<Self> {
        match text {
            "2025-03-26" => Some(Self::V20250326),
            "2025-06-18" => Some(Self::V20250618),
            "2025-11-25" => Some(Self::V20251125),
            _ => None,
        }
    }

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
        }
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::V20250326 => 1,
            Self::V20250618 => 2,
            Self::V20251125 => 3,
        }
    }

    pub(crate) const fn numbered(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::V20250326),
            2 => Some(Self::V20250618),
            3 => Some(Self::V20251125),
            _ => None,
        }
    }
}
