//! The body of a request, in up to four parts.
//!
//! Invariant: `len` is the sum of the parts. No part is ever looked into.
//! Not here: heads (`head`).

use bytes::Bytes;

/// Parts that a payload has at most: what a session's turns have in common before and after, and what is a turn's own.
pub const PARTS: usize = 4;

/// Slices that follow one another; a clone shares their memory.
#[derive(Debug, Clone, Default)]
pub struct Payload {
    parts: [Bytes; PARTS],
    len: u64,
}

/// More than four parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a payload has at most {PARTS} parts, not {0}")]
pub struct TooManyParts(pub usize);

impl Payload {
    /// The given parts in order.
    ///
    /// # Errors
    /// There are more than four.
    pub fn new(given: &[Bytes]) -> Result<Self, TooManyParts> {
        if given.len() > PARTS {
            return Err(TooManyParts(given.len()));
        }
        let mut payload = Self::default();
        for (part, given) in payload.parts.iter_mut().zip(given) {
            payload.len += given.len() as u64;
            *part = given.clone();
        }
        Ok(payload)
    }

    /// The parts, empty ones at the end.
    #[must_use]
    pub const fn parts(&self) -> &[Bytes; PARTS] {
        &self.parts
    }

    /// Bytes of all parts.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl From<Bytes> for Payload {
    fn from(whole: Bytes) -> Self {
        let len = whole.len() as u64;
        let mut parts = <[Bytes; PARTS]>::default();
        parts[0] = whole;
        Self { parts, len }
    }
}

#[cfg(test)]
mod tests {
    //! Parts and their sum.

    use bytes::Bytes;

    use super::{Payload, TooManyParts};

    #[test]
    fn a_payload_is_as_long_as_its_parts_and_has_no_more_than_four() {
        let part = Bytes::from_static(b"abc");
        let payload = Payload::new(&[part.clone(), Bytes::new(), part.clone()]).expect("three");
        assert_eq!((payload.len(), payload.is_empty()), (6, false));
        assert_eq!(payload.parts()[2].as_ptr(), part.as_ptr(), "no copy");
        let five = vec![part; 5];
        assert_eq!(Payload::new(&five).expect_err("five"), TooManyParts(5));
        assert!(Payload::default().is_empty());
    }
}
