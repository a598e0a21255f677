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
    /// 2026-07-28: without sessions; each request says who asks, in which version, and what its client can do.
    V20260728,
}

impl Version {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::V20250326,
        Self::V20250618,
        Self::V20251125,
        Self::V20260728,
    ];
    /// The newest with a handshake, which is offered to whoever begins one and asks for another.
    pub const LATEST: Self = Self::V20251125;
    /// What the gate speaks with clients, the newest first.
    pub const OF_CLIENTS: [Self; 3] = [Self::V20260728, Self::V20251125, Self::V20250618];

    /// Whether it has neither a handshake nor sessions. The specification calls such versions *modern*, and the others *legacy*.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V20260728)
    }

    /// One that clients agree on by a handshake.
    #[must_use]
    pub fn of_client(text: &str) -> Option<Self> {
        Self::of_server(text).filter(|version| *version > Self::V20250326)
    }

    /// One that servers agree on by a handshake.
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
            Self::V20260728 => "2026-07-28",
        }
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::V20250326 => 1,
            Self::V20250618 => 2,
            Self::V20251125 => 3,
            Self::V20260728 => 4,
        }
    }

    pub(crate) const fn numbered(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::V20250326),
            2 => Some(Self::V20250618),
            3 => Some(Self::V20251125),
            4 => Some(Self::V20260728),
            _ => None,
        }
    }
}
