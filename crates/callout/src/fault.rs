//! Why a service gave no answer that can be used.
//!
//! Invariant: no fault repeats a secret, a token, or text that the service wrote, beyond a code of plain letters.
//! Not here: what the gate does then (the host).

use std::time::Duration;

/// Why a service gave no answer that can be used. What it was asked may well have been done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No connection: the name is unknown, nobody listens, or the certificate is not trusted.
    #[error("cannot reach {place}: {why}")]
    Unreachable {
        /// Host and port.
        place: String,
        /// What the system or the TLS library says.
        why: String,
    },
    /// All addresses of the host are such as are never connected to.
    #[error(
        "{place} stands at no address that may be asked (link-local, metadata, multicast or unspecified addresses \
         are refused)"
    )]
    Address {
        /// Host and port.
        place: String,
    },
    /// Its time was over.
    #[error("no {waited_for} within {within:?}")]
    Late {
        /// What was waited for.
        waited_for: &'static str,
        /// For how long.
        within: Duration,
    },
    /// The connection ended before the answer did, or what came is not HTTP.
    #[error("the answer broke off: {0}")]
    Broken(String),
    /// The answer is longer than it may be.
    #[error("the answer is longer than {0} bytes")]
    Large(usize),
    /// A status that says no, or a redirect, which is never followed.
    #[error("it answered {status}{}", code.as_ref().map_or(String::new(), |code| format!(" ({code})")))]
    Status {
        /// The status.
        status: u16,
        /// The provider's code for it, where it has one of plain letters.
        code: Option<String>,
    },
    /// An answer of a good status that is not what was asked for.
    #[error("the answer cannot be used: {0}")]
    Garbage(&'static str),
    /// The gate's own credential for the service is not to be had, or fits nowhere.
    #[error("the gate's own credential cannot be sent: {0}")]
    Credential(&'static str),
    /// The request cannot be sent as it is.
    #[error("it cannot be asked: {0}")]
    Unaskable(&'static str),
    /// It failed again and again a moment ago, and is tried once a second.
    #[error("it is down, and asked again once a second")]
    Down,
    /// As many questions wait or run as may.
    #[error("too many questions wait already")]
    Full,
    /// Too much of this was of no use a moment ago.
    #[error("it is not asked about: {0}")]
    TooMany(&'static str),
    /// The thread that asks has ended, or the question broke on it.
    #[error("nobody asks any more")]
    Closed,
}

impl Fault {
    /// Whether it is an answer about what was asked, of a service that is well: asked again it says the same.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Status {
                status: 400..=499,
                ..
            }
        ) && !self.is_outage()
    }

    /// Whether the service itself is in trouble, whatever it was asked.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Address { .. } | Self::Late { .. } => true,
            Self::Broken(_) => true,
            Self::Status { status, .. } => matches!(status, 429 | 502..=504),
            Self::Large(_) | Self::Garbage(_) | Self::Credential(_) => false,
            Self::Unaskable(_) | Self::Down | Self::Full | Self::TooMany(_) | Self::Closed => false,
        }
    }
}
