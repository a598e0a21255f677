//! DER, as far as a certificate's names and its end need it: elements one after the other.
//!
//! Invariant: no length leads past the bytes that are there.
//! Not here: signatures and whether a certificate is good (rustls).

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
/// `[0]`, around the version of a certificate.
pub(super) const CONTEXT_0: u8 = 0xa0;
/// `[3]`, around its extensions.
pub(super) const CONTEXT_3: u8 = 0xa3;

/// Reads elements from the front.
#[derive(Clone, Copy)]
pub(super) struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    pub(super) fn new(der: &'d [u8]) -> Self {
        Self(der)
    }

    /// The next element: its tag, and what it holds.
    pub(super) fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (length, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// What the next element holds, if it has this tag; it is left where it is if not.
    pub(super) fn take(&mut self, tag: u8) -> Option<&'d [u8]> {
        let mut ahead = *self;
        let (found, content) = ahead.next()?;
        (found == tag).then(|| {
            *self = ahead;
            content
        })
    }

    /// The elements of the next one, which is a sequence.
    pub(super) fn sequence(&mut self) -> Option<Self> {
        self.take(SEQUENCE).map(Self)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// A length in its one spelling, of at most three bytes.
fn length(der: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = der.split_first()?;
    if *first < 0x80 {
        return Some((usize::from(*first), rest));
    }
    let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
    let is_shortest = bytes.first().is_some_and(|byte| *byte != 0) && bytes.len() <= 3;
    let bytes = bytes.iter().take(3);
    let length = bytes.fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    (is_shortest && length >= 0x80).then_some((length, rest))
}
