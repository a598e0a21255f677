//! Token counts of short pieces that were counted before.
//!
//! A piece is its own key, so nothing is mistaken for anything else; of three that share a place the two asked for latest stay.
//! Not here: counting (`bpe`).

use std::num::NonZeroU128;

use super::fetch;

/// The longest short piece, bytes.
const SHORT: usize = 15;
/// The longest piece that is remembered: deep indentation, long names.
pub(super) const LONG: usize = 126;
/// One megabyte of short pieces.
const PLACES: usize = 1 << 15;
/// Half a megabyte of long ones.
const LONG_PLACES: usize = 1 << 12;
/// Above the text: its length in four bits, its tokens in four.
const COUNT_SHIFT: u32 = 120;
const LENGTH_SHIFT: u32 = 124;

/// A short piece: its bytes, and its length.
#[derive(Clone, Copy)]
pub(super) struct Key(NonZeroU128);

impl Key {
    /// That of the piece from `from` to `to`, unless it is empty or longer than [`SHORT`].
    #[inline]
    pub(super) fn of(text: &[u8], from: usize, to: usize) -> Option<Self> {
        let length = to.wrapping_sub(from);
        if length == 0 || length > SHORT {
            return None;
        }
        let bytes = match text.get(from..).and_then(<[u8]>::first_chunk::<16>) {
            Some(bytes) => u128::from_le_bytes(*bytes),
            None => ending(text.get(from..).unwrap_or_default()),
        };
        let bytes = bytes & (u128::MAX >> (128 - 8 * length));
        NonZeroU128::new(bytes | (length as u128) << LENGTH_SHIFT).map(Self)
    }

    #[inline]
    fn place(self) -> usize {
        place(self.0.get()) % PLACES
    }

    #[inline]
    const fn is_of(self, known: u128) -> bool {
        (known ^ self.0.get()) & !(0xF << COUNT_SHIFT) == 0
    }

    #[inline]
    fn with(self, tokens: u64) -> u128 {
        self.0.get() | u128::from(tokens & 0xF) << COUNT_SHIFT
    }
}

/// Two short pieces, the one that was asked for later first; in one line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Place([u128; 2]);

/// What one thread remembers.
pub(super) struct Known {
    short: Box<[Place]>,
    long: Box<[Long]>,
}

/// A long piece.
#[derive(Clone, Copy)]
struct Long {
    length: u8,
    tokens: u8,
    text: [u8; LONG],
}

impl Default for Known {
    fn default() -> Self {
        let none = Long {
            length: 0,
            tokens: 0,
            text: [0; LONG],
        };
        Self {
            short: vec![Place([0; 2]); PLACES].into(),
            long: vec![none; LONG_PLACES].into(),
        }
    }
}

impl Known {
    /// Brings what is known of a piece nearer: it will be asked for soon.
    #[inline]
    pub(super) fn fetch(&self, key: Key) {
        if let Some(place) = self.short.get(key.place()) {
            fetch::nearer(place);
        }
    }

    /// Tokens of a short piece: remembered, or what `count` says.
    #[inline]
    pub(super) fn short(&mut self, key: Key, count: impl FnOnce() -> u64) -> u64 {
        let Some(Place([later, earlier])) = self.short.get_mut(key.place()) else {
            return count();
        };
        if !key.is_of(*later) {
            std::mem::swap(later, earlier);
            if !key.is_of(*later) {
                *later = key.with(count());
            }
        }
        (*later >> COUNT_SHIFT) as u64 & 0xF
    }

    /// Tokens of a piece that is longer than [`SHORT`], where it is remembered.
    pub(super) fn long(&self, piece: &[u8]) -> Option<u64> {
        let place = self.long.get(long_place(piece))?;
        let is_it = usize::from(place.length) == piece.len() && place.text.starts_with(piece);
        is_it.then_some(u64::from(place.tokens))
    }

    /// Remembers them.
    pub(super) fn keep_long(&mut self, piece: &[u8], tokens: u64) {
        let place = self.long.get_mut(long_place(piece));
        let sizes = (u8::try_from(piece.len()), u8::try_from(tokens));
        if let (Some(place), (Ok(length), Ok(tokens))) = (place, sizes)
            && let Some(text) = place.text.get_mut(..piece.len())
        {
            text.copy_from_slice(piece);
            (place.length, place.tokens) = (length, tokens);
        }
    }
}

/// By its ends and its length: what differs elsewhere only takes another's place.
fn long_place(piece: &[u8]) -> usize {
    let half = |bytes: Option<&[u8; 16]>| bytes.map_or(0, |bytes| u128::from_le_bytes(*bytes));
    let ends = half(piece.first_chunk()) ^ half(piece.last_chunk()).rotate_left(64);
    place(ends ^ (piece.len() as u128) << 120) % LONG_PLACES
}

#[cold]
fn ending(text: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(text) {
        *to = *from;
    }
    u128::from_le_bytes(bytes)
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "two halves, and sixteen bits"
)]
fn place(key: u128) -> usize {
    let (low, high) = (key as u64, (key >> 64) as u64);
    let mixed = low.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ high.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 48) as usize
}
