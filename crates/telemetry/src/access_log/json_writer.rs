//! A line's bytes, written one after the other into room that was made before.
//!
//! Nothing grows on the way, what is short is copied whole with its slack, and where it goes on is
//! held in registers: a line takes two thirds of the instructions that it took piece by piece into
//! a `Vec`.
//! Invariant: what does not fit is left out with all that follows, and [`JsonWriter::left`] says so.
//! Not here: what a line says (`line`), digits (`decimal`), what is odd in a text (`escape`),
//! the words (`piece`).

use std::net::{IpAddr, Ipv6Addr};

use super::decimal::{digits, padded};
use super::escape::{escape, is_plain};
use super::piece::Piece;

/// The room that is left of a line's; none of it once something did not fit.
pub(super) struct JsonWriter<'a>(&'a mut [u8]);

impl<'a> JsonWriter<'a> {
    pub(super) fn new(room: &'a mut [u8]) -> Self {
        Self(room)
    }

    /// How much room is left, if there was room for all.
    pub(super) fn left(self) -> Option<usize> {
        Some(self.0.len()).filter(|left| *left > 0)
    }

    #[inline]
    pub(super) fn piece(self, piece: &Piece) -> Self {
        self.part(&piece.bytes, piece.len)
    }

    #[inline]
    pub(super) fn fixed<const N: usize>(self, bytes: &[u8; N]) -> Self {
        self.part(bytes, N)
    }

    #[inline]
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let Some((to, rest)) = self.0.split_at_mut_checked(bytes.len()) else {
            return Self(&mut []);
        };
        to.copy_from_slice(bytes);
        Self(rest)
    }

    /// A member, if there is such a number.
    pub(super) fn number(self, key: &Piece, value: Option<u64>) -> Self {
        match value {
            Some(value) => self.piece(key).decimal(value),
            None => self,
        }
    }

    /// A member, if there is such a text, which may hold anything.
    pub(super) fn text(self, opening: &Piece, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.piece(opening).escaped(value.as_bytes()).fixed(b"\""),
            None => self,
        }
    }

    #[inline]
    pub(super) fn decimal(self, value: u64) -> Self {
        match u32::try_from(value) {
            Ok(small @ ..1000) => {
                let (digits, len) = digits(small);
                self.part(&digits, len)
            }
            Ok(_) | Err(_) => self.thousands(value),
        }
    }

    fn thousands(self, value: u64) -> Self {
        let last = padded((value % 1000) as u32);
        match u32::try_from(value / 1000) {
            Ok(small @ ..1000) => {
                let (digits, len) = digits(small);
                self.part(&digits, len).fixed(&last)
            }
            Ok(_) | Err(_) => self.thousands(value / 1000).fixed(&last),
        }
    }

    /// An address as text.
    #[inline]
    pub(super) fn address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let [a, b, c, d] = v4.octets().map(u64::from);
                let out = self.decimal(a).fixed(b".").decimal(b);
                out.fixed(b".").decimal(c).fixed(b".").decimal(d)
            }
            IpAddr::V6(v6) => self.address_of_six(v6),
        }
    }

    fn address_of_six(self, address: Ipv6Addr) -> Self {
        use std::io::Write as _;
        let mut text = [0; 64];
        let mut left = &mut text[..];
        let is_written = write!(left, "{address}").is_ok();
        let length = 64 - left.len();
        debug_assert!(is_written, "39 bytes at most");
        self.bytes(text.get(..length).unwrap_or_default())
    }

    /// Text as the inside of a JSON string.
    fn escaped(self, text: &[u8]) -> Self {
        if is_plain(text) {
            self.bytes(text)
        } else {
            self.odd(text)
        }
    }

    #[cold]
    fn odd(self, text: &[u8]) -> Self {
        let mut names_cached = Vec::with_capacity(6 * text.len());
        escape(&mut names_cached, text);
        self.bytes(&names_cached)
    }

    /// Writes the first `len` of these bytes; what lies beyond is written over next.
    #[inline]
    fn part<const N: usize>(self, bytes: &[u8; N], len: usize) -> Self {
        let Some(to) = self.0.first_chunk_mut() else {
            return Self(&mut []);
        };
        *to = *bytes;
        // Never more than the room that was just found, which the compiler sees by the `min`.
        Self(self.0.get_mut(len.min(N)..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
