//! Token counts of short pieces that were counted before.
//!
//! A piece is its own key, so nothing is mistaken for anything else. Of three that share a place the two asked for latest
//! stay, the later one first. (A new one that had to come twice to become the first was tried: names come again soon.)
//! Invariant: what is known says of which vocabulary it is.
//! Not here: counting (`bpe`).

use super::fetch;

/// The longest short piece, bytes.
const SHORT: usize = 14;
/// The longest piece that is remembered: deep indentation, long names.
const LONG: usize = 125;
/// One megabyte of short pieces.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 15;
/// Half a megabyte of long ones.
const LONG_PLACES: usize = 1 << LONG_PLACE_BITS;
const LONG_PLACE_BITS: u32 = 12;
/// Above the text: the vocabulary in eight bits, its tokens in four, its length in four.
const VOCABULARY_SHIFT: u32 = 112;
const COUNT_SHIFT: u32 = 120;
const LENGTH_SHIFT: u32 = 124;
const COUNT: u128 = 0xF << COUNT_SHIFT;

/// Vocabularies of which pieces may be known at once.
pub(super) const VOCABULARIES: usize = 256;

/// What remains of 16 bytes, by the length of a piece.
const LENGTHS: [u128; SHORT + 1] = [
    0,
    first_bytes(1),
    first_bytes(2),
    first_bytes(3),
    first_bytes(4),
    first_bytes(5),
    first_bytes(6),
    first_bytes(7),
    first_bytes(8),
    first_bytes(9),
    first_bytes(10),
    first_bytes(11),
    first_bytes(12),
    first_bytes(13),
    first_bytes(14),
];

const fn first_bytes(length: u32) -> u128 {
    (1 << (8 * length)) - 1
}

/// A short piece of a vocabulary: its bytes, and its length. Zero stands for one that is not short.
#[derive(Clone, Copy, Default)]
pub(super) struct Key(u128);

impl Key {
    const LONG: Self = Self(0);

    /// That of the first `length` of these bytes.
    #[inline(always)]
    pub(super) fn of(bytes: &[u8; 16], length: usize, vocabulary: u8) -> Self {
        match LENGTHS.get(length) {
            Some(mask) => Self(
                u128::from_le_bytes(*bytes) & mask
                    | u128::from(vocabulary) << VOCABULARY_SHIFT
                    | (length as u128) << LENGTH_SHIFT,
            ),
            None => Self::LONG,
        }
    }

    #[inline(always)]
    pub(super) const fn is_long(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "two halves")]
    pub(super) fn place(self) -> Place {
        let (low, high) = (self.0 as u64, (self.0 >> 64) as u64);
        let mixed =
            low.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ high.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        Place((mixed >> (64 - PLACE_BITS)) as u16)
    }

    /// What an entry says of this piece; 0 where it is of another.
    #[inline(always)]
    fn tokens(self, entry: u128) -> u32 {
        let is_it = (entry ^ self.0) & !COUNT == 0;
        if is_it {
            (entry >> COUNT_SHIFT) as u32 & 0xF
        } else {
            0
        }
    }
}

/// Where a short piece is to be found.
#[derive(Clone, Copy, Default)]
pub(super) struct Place(u16);

/// What one thread remembers.
pub(super) struct Known {
    /// From `short_from` on, pairs of entries, each in one line of the processor's cache.
    short: Vec<u128>,
    short_from: usize,
    long: Vec<[u8; LONG + 3]>,
}

/// Places of two short pieces each.
pub(super) type Short = [[u128; 2]; PLACES];

impl Default for Known {
    fn default() -> Self {
        // Zeros, so that memory that was never used is not touched.
        let short = vec![0u128; 2 * PLACES + 1];
        Self {
            short_from: short.as_ptr().addr() / size_of::<u128>() % 2,
            short,
            long: vec![[0; LONG + 3]; LONG_PLACES],
        }
    }
}

impl Known {
    pub(super) fn short(&self) -> Option<&Short> {
        let (pairs, _) = self.short.get(self.short_from..)?.as_chunks();
        pairs.first_chunk()
    }

    #[inline(always)]
    fn at(&mut self, place: Place) -> Option<&mut [u128; 2]> {
        let pairs = self.short.get_mut(self.short_from..)?;
        let (pairs, _) = pairs.as_chunks_mut();
        pairs.get_mut(usize::from(place.0) % PLACES)
    }

    /// Tokens of a short piece that is not the first at its place: remembered, or what `count` says.
    pub(super) fn second(&mut self, key: Key, count: impl FnOnce() -> u64) -> u64 {
        let Some([first, second]) = self.at(key.place()) else {
            return count();
        };
        // It may have become the first since.
        let tokens = key.tokens(*first);
        if tokens != 0 {
            return u64::from(tokens);
        }
        if key.tokens(*second) != 0 {
            std::mem::swap(first, second);
            return u64::from(key.tokens(*first));
        }
        let tokens = count();
        *second = *first;
        *first = key.0 | u128::from(tokens & 0xF) << COUNT_SHIFT;
        tokens
    }

    /// Tokens of a piece that is not short, where they are remembered.
    #[inline]
    pub(super) fn long(&self, piece: &[u8], vocabulary: u8) -> Option<u64> {
        let (text, about) = self
            .long
            .get(long_place(piece))?
            .split_first_chunk::<LONG>()?;
        let &[of, length, tokens] = about else {
            return None;
        };
        let is_it =
            of == vocabulary && usize::from(length) == piece.len() && text.starts_with(piece);
        is_it.then_some(u64::from(tokens))
    }

    /// Remembers them.
    pub(super) fn keep_long(&mut self, piece: &[u8], vocabulary: u8, tokens: u64) {
        let entry = self.long.get_mut(long_place(piece));
        let sizes = (u8::try_from(piece.len()), u8::try_from(tokens));
        if let (Some(entry), (Ok(length), Ok(tokens))) = (entry, sizes)
            && let Some((text, about)) = entry.split_first_chunk_mut::<LONG>()
            && let Some(text) = text.get_mut(..piece.len())
        {
            text.copy_from_slice(piece);
            about.copy_from_slice(&[vocabulary, length, tokens]);
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.short.fill(0);
        self.long.fill([0; LONG + 3]);
    }
}

/// Tokens of a short piece where it is the first at its place, and else 0.
#[inline(always)]
pub(super) fn first(short: &Short, key: Key, place: Place) -> u32 {
    let entry = short.get(usize::from(place.0) % PLACES);
    entry.map_or(0, |[first, _]| key.tokens(*first))
}

/// Brings what is known of a short piece nearer: it will be asked for soon.
#[inline(always)]
pub(super) fn fetch(short: &Short, place: Place) {
    if let Some(entry) = short.get(usize::from(place.0) % PLACES) {
        fetch::nearer(entry);
    }
}

/// By its ends and its length: what differs elsewhere only takes another's place.
fn long_place(piece: &[u8]) -> usize {
    let half = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let first = half(piece.first_chunk()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let last = half(piece.last_chunk()) ^ (piece.len() as u64) << 56;
    let mixed = first ^ last.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    (mixed >> (64 - LONG_PLACE_BITS)) as usize
}
