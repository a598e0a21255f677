//! Why an exchange has no good answer.
//!
//! Invariant: every kind has a number below [`Failure::KINDS`], so that counters need no table.
//! Not here: what a person is told of it (`prove`).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Why an exchange has no good answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// There was nothing to send: the source has no such turn.
    Source,
    /// No connection.
    Connect,
    /// A connection, and no agreement on TLS or on a protocol over it.
    Tls,
    /// The request could not be written whole, and there was no answer to its part.
    Send,
    /// The connection ended before a byte of the response.
    Closed,
    /// The response ended before its body did.
    Truncated,
    /// No complete response in time.
    Timeout,
    /// The bytes were no HTTP response, or more than one.
    Malformed,
    /// A whole response of 2xx with another body than expected.
    Body,
    /// A stream of 2xx that told of an error in an event.
    ErrorEvent,
    /// A stream of 2xx that ended with neither a reason to finish nor an end mark (`[DONE]`, `message_stop`).
    Unfinished,
    /// A whole response with a status other than 2xx.
    Status(u16),
}

const PLAIN: [Failure; 11] = [
    Failure::Source,
    Failure::Connect,
    Failure::Tls,
    Failure::Send,
    Failure::Closed,
    Failure::Truncated,
    Failure::Timeout,
    Failure::Malformed,
    Failure::Body,
    Failure::ErrorEvent,
    Failure::Unfinished,
];

/// A status has three digits.
const STATUSES: usize = 1000;

impl Failure {
    /// How many kinds there are.
    pub const KINDS: usize = PLAIN.len() + STATUSES;

    /// The number of this kind.
    #[must_use]
    pub fn number(self) -> usize {
        match self {
            Self::Status(code) => PLAIN.len() + usize::from(code) % STATUSES,
            plain => PLAIN.iter().position(|kind| *kind == plain).unwrap_or(0),
        }
    }

    /// The kind of this number.
    #[must_use]
    pub fn of_number(number: usize) -> Option<Self> {
        let code = || u16::try_from(number - PLAIN.len()).ok();
        match PLAIN.get(number) {
            Some(plain) => Some(*plain),
            None if number < Self::KINDS => code().map(Self::Status),
            None => None,
        }
    }
}

/// As its number.
impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.number() as u64)
    }
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(from)?;
        let kind = usize::try_from(number).ok().and_then(Self::of_number);
        kind.ok_or_else(|| de::Error::custom(format!("no kind of failure has the number {number}")))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Source => "source",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Send => "send",
            Self::Closed => "closed",
            Self::Truncated => "truncated",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::Body => "body",
            Self::ErrorEvent => "error_event",
            Self::Unfinished => "unfinished",
            Self::Status(code) => return write!(out, "status_{code}"),
        };
        out.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    //! Kinds and their numbers.

    use super::{Failure, PLAIN};

    #[test]
    fn every_kind_has_a_number_of_its_own_and_is_found_by_it() {
        let all = PLAIN.into_iter().chain((100..600).map(Failure::Status));
        let mut seen = std::collections::BTreeSet::new();
        for kind in all {
            assert!(
                kind.number() < Failure::KINDS && seen.insert(kind.number()),
                "{kind}"
            );
            assert_eq!(Failure::of_number(kind.number()), Some(kind));
        }
        assert_eq!(Failure::of_number(Failure::KINDS), None);
        assert_eq!(Failure::Status(429).to_string(), "status_429");
    }
}
