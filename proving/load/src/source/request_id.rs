//! The id of a request: what its row knows it by, as the text of a header.
//!
//! Invariant: the id that is sent and the row of the exchange give the same text; a text that is read gives itself back.
//! Not here: ids that others give (`Head` sends them as they are).

use std::fmt;
use std::str::FromStr;

use http::{HeaderName, HeaderValue};

use super::head::{HeadError, OWN};

/// A request of a run: no two of a run are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// As counted in the plan.
    pub profile: u32,
    /// User or arrival, by number.
    pub user: u64,
    /// Session of the profile.
    pub session: u64,
    /// Turn of the session.
    pub turn: u32,
    /// When it was to be sent, nanoseconds since the start of the run.
    pub intended_ns: u64,
}

/// The header that carries ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdHeader(HeaderName);

/// No id of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is prove-PROFILE-USER-SESSION-TURN-NANOSECONDS")]
pub struct NotAnId;

const PREFIX: &str = "prove";

impl IdHeader {
    /// A header of this name, such as `x-request-id`.
    ///
    /// # Errors
    /// It is no name, or one that the client writes itself.
    pub fn new(name: &str) -> Result<Self, HeadError> {
        let parsed: HeaderName = name.parse().map_err(|_| HeadError::Name(name.to_owned()))?;
        if OWN.contains(&parsed.as_str()) || parsed == http::header::HOST {
            return Err(HeadError::Own(name.to_owned()));
        }
        Ok(Self(parsed))
    }

    /// Its name, in small letters.
    #[must_use]
    pub const fn name(&self) -> &HeaderName {
        &self.0
    }

    /// Puts the line into a head that [`super::Head::write`] wrote, before the empty line that ends it.
    pub(crate) fn write(&self, id: RequestId, head: &mut Vec<u8>) {
        head.truncate(head.len().saturating_sub(2));
        head.extend_from_slice(self.0.as_str().as_bytes());
        head.extend_from_slice(b": ");
        id.write(head);
        head.extend_from_slice(b"\r\n\r\n");
    }
}

impl RequestId {
    const fn numbers(self) -> [u64; 5] {
        [
            self.profile as u64,
            self.user,
            self.session,
            self.turn as u64,
            self.intended_ns,
        ]
    }

    fn write(self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(PREFIX.as_bytes());
        for number in self.numbers() {
            out.push(b'-');
            out.extend_from_slice(digits.format(number).as_bytes());
        }
    }

    /// The text as the value of a header.
    pub(crate) fn value(self) -> Option<HeaderValue> {
        let mut text = Vec::with_capacity(64);
        self.write(&mut text);
        HeaderValue::from_bytes(&text).ok()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(PREFIX)?;
        let mut numbers = self.numbers().into_iter();
        numbers.try_for_each(|number| write!(out, "-{number}"))
    }
}

impl FromStr for RequestId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let mut words = text.split('-');
        if words.next() != Some(PREFIX) {
            return Err(NotAnId);
        }
        let mut number = || {
            let word = words.next().ok_or(NotAnId)?;
            // As it is written and no other way: neither `+1` nor `01`.
            let is_plain = word == "0" || word.starts_with(|c: char| matches!(c, '1'..='9'));
            let read = word.parse::<u64>().ok().filter(|_| is_plain);
            read.ok_or(NotAnId)
        };
        let small = |number: u64| u32::try_from(number).map_err(|_| NotAnId);
        let id = Self {
            profile: small(number()?)?,
            user: number()?,
            session: number()?,
            turn: small(number()?)?,
            intended_ns: number()?,
        };
        words.next().is_none().then_some(id).ok_or(NotAnId)
    }
}

#[cfg(test)]
mod tests {
    //! Its text, there and back.

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::{IdHeader, NotAnId, RequestId};
    use crate::source::{Head, HeadError};

    const ID: RequestId = RequestId {
        profile: 1,
        user: 2,
        session: 3,
        turn: 4,
        intended_ns: 5_000_000_000,
    };

    #[test]
    fn the_line_stands_in_the_head_before_its_end() {
        let mut out = Vec::new();
        let head = Head::post("/x").expect("a path");
        head.write("", b"there", 2, &mut out);
        let header = IdHeader::new("X-Request-Id").expect("a name");
        header.write(ID, &mut out);
        let expected = "POST /x HTTP/1.1\r\nhost: there\r\ncontent-length: 2\r\nx-request-id: prove-1-2-3-4-5000000000\r\n\r\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
        assert_eq!(ID.value().expect("a value"), ID.to_string().as_str());
    }

    #[test]
    fn a_header_of_the_clients_own_carries_no_ids() {
        for name in ["content-length", "Host", "a b", ""] {
            let refused = IdHeader::new(name).expect_err(name);
            assert!(matches!(refused, HeadError::Own(_) | HeadError::Name(_)));
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "prove",
            "prove-1-2-3-4",
            "prove-1-2-3-4-5-6",
            "prove-01-2-3-4-5",
            "prove-+1-2-3-4-5",
            "prove-4294967296-2-3-4-5",
            "other-1-2-3-4-5",
            "prove-1-2--4-5",
        ] {
            assert_eq!(text.parse::<RequestId>(), Err(NotAnId), "{text}");
        }
    }

    fn seeded() -> ProptestConfig {
        ProptestConfig {
            rng_seed: RngSeed::Fixed(testing::seed("a_text_gives_its_id_back")),
            ..ProptestConfig::default()
        }
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn a_text_gives_its_id_back(profile: u32, user: u64, session: u64, turn: u32, intended_ns: u64) {
            let id = RequestId { profile, user, session, turn, intended_ns };
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}
