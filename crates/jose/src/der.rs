//! DER, as far as keys need it: elements one after the other, in their one spelling.
//!
//! Invariant: no length leads past the bytes that are there.

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
/// `[0]`, around the version of a certificate.
pub(crate) const CONTEXT_0: u8 = 0xa0;

/// Reads elements from the front.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    pub(crate) fn new(der: &'d [u8]) -> Self {
        Self(der)
    }

    /// What the next element holds, if it has this tag.
    pub(crate) fn take(&mut self, tag: u8) -> Option<&'d [u8]> {
        let (found, rest) = self.0.split_first()?;
        if *found != tag {
            return None;
        }
        let (length, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }

    pub(crate) fn sequence(&mut self) -> Option<Self> {
        self.take(SEQUENCE).map(Self)
    }

    /// Steps over the next element, whatever it is.
    pub(crate) fn skip(&mut self) -> Option<()> {
        self.take(*self.0.first()?).map(|_| ())
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// A number that is not negative, the most significant byte first.
    pub(crate) fn number(&mut self) -> Option<&'d [u8]> {
        match self.take(INTEGER)? {
            [] | [0, 0..=0x7f, ..] | [0x80..=0xff, ..] => None,
            [0, number @ ..] => Some(number),
            number => Some(number),
        }
    }

    /// Whole bytes.
    pub(crate) fn bits(&mut self) -> Option<&'d [u8]> {
        match self.take(BIT_STRING)? {
            [0, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }
}

fn length(der: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = der.split_first()?;
    if *first < 0x80 {
        return Some((usize::from(*first), rest));
    }
    let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
    let is_shortest = bytes.first().is_some_and(|byte| *byte != 0) && bytes.len() <= 4;
    let length = bytes
        .iter()
        .take(4)
        .fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    (is_shortest && length >= 0x80).then_some((length, rest))
}

#[cfg(test)]
mod tests;
