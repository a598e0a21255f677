//! The classes of 64 bytes of ASCII text at once, a bit a byte.
//!
//! Not here: what follows from them (`pieces`).

/// Bytes that are looked at together.
pub(super) const BYTES: usize = 64;

/// One bit for each byte, the first lowest. What is in no mask is a sign or a control character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) letter: u64,
    pub(super) upper: u64,
    pub(super) digit: u64,
    /// `' '`.
    pub(super) space: u64,
    /// Space, tab, vertical tab, form feed.
    pub(super) blank: u64,
    /// `\r` and `\n`.
    pub(super) newline: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// Not ASCII.
    pub(super) beyond: u64,
}

impl Masks {
    #[inline(always)]
    #[cfg(target_feature = "sse2")]
    #[expect(unsafe_code, reason = "the instructions are asked for by name")]
    pub(super) fn of(bytes: &[u8; BYTES]) -> Self {
        // SAFETY: all that is asked of the caller is a processor with SSE2, and this is compiled for such ones alone.
        unsafe { sse2::masks(bytes) }
    }

    #[cfg(not(target_feature = "sse2"))]
    pub(super) fn of(bytes: &[u8; BYTES]) -> Self {
        Self::one_by_one(bytes)
    }

    #[cfg(any(test, not(target_feature = "sse2")))]
    fn one_by_one(bytes: &[u8; BYTES]) -> Self {
        let mut masks = Self::default();
        for (at, byte) in bytes.iter().enumerate() {
            let bit = |is: bool| u64::from(is) << at;
            masks.letter |= bit(byte.is_ascii_alphabetic());
            masks.upper |= bit(byte.is_ascii_uppercase());
            masks.digit |= bit(byte.is_ascii_digit());
            masks.space |= bit(*byte == b' ');
            masks.blank |= bit(matches!(byte, b' ' | b'\t' | 0x0B | 0x0C));
            masks.newline |= bit(matches!(byte, b'\r' | b'\n'));
            masks.apostrophe |= bit(*byte == b'\'');
            masks.slash |= bit(*byte == b'/');
            masks.beyond |= bit(!byte.is_ascii());
        }
        masks
    }
}

/// SSE2, which every x86-64 has. One by one the same takes a third of all counting.
#[cfg(target_feature = "sse2")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set_epi64x, _mm_set1_epi8,
    };

    use super::{BYTES, Masks};

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn masks(bytes: &[u8; BYTES]) -> Masks {
        let mut masks = Masks::default();
        let (quarters, _) = bytes.as_chunks::<16>();
        for (index, quarter) in quarters.iter().enumerate() {
            let shift = 16 * index;
            let whole = u128::from_le_bytes(*quarter);
            #[expect(clippy::cast_possible_truncation, reason = "two halves")]
            let text = _mm_set_epi64x((whole >> 64) as i64, whole as i64);
            // Signed: a byte beyond ASCII is below all of them.
            let lower = within(_mm_or_si128(text, all(0x20)), b'a', b'z');
            let upper = within(text, b'A', b'Z');
            let space = _mm_cmpeq_epi8(text, all(b' '));
            let newline = _mm_or_si128(
                _mm_cmpeq_epi8(text, all(b'\n')),
                _mm_cmpeq_epi8(text, all(b'\r')),
            );
            let controls = within(text, b'\t', b'\r');
            masks.letter |= bits(lower) << shift;
            masks.upper |= bits(upper) << shift;
            masks.digit |= bits(within(text, b'0', b'9')) << shift;
            masks.space |= bits(space) << shift;
            masks.blank |= (bits(_mm_or_si128(space, controls)) & !bits(newline)) << shift;
            masks.newline |= bits(newline) << shift;
            masks.apostrophe |= bits(_mm_cmpeq_epi8(text, all(b'\''))) << shift;
            masks.slash |= bits(_mm_cmpeq_epi8(text, all(b'/'))) << shift;
            masks.beyond |= bits(text) << shift;
        }
        masks
    }

    #[expect(clippy::cast_possible_wrap, reason = "bytes are bytes")]
    #[inline]
    #[target_feature(enable = "sse2")]
    fn all(byte: u8) -> __m128i {
        _mm_set1_epi8(byte as i8)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn within(text: __m128i, first: u8, last: u8) -> __m128i {
        _mm_and_si128(
            _mm_cmpgt_epi8(text, all(first - 1)),
            _mm_cmpgt_epi8(all(last + 1), text),
        )
    }

    #[expect(clippy::cast_sign_loss, reason = "sixteen bits")]
    #[inline]
    #[target_feature(enable = "sse2")]
    fn bits(mask: __m128i) -> u64 {
        u64::from(_mm_movemask_epi8(mask) as u32)
    }
}

/// AVX2: twice as many bytes at once.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi8,
    };

    use super::{BYTES, Masks};

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn masks(bytes: &[u8; BYTES]) -> Masks {
        let mut masks = Masks::default();
        let (halves, _) = bytes.as_chunks::<32>();
        for (index, half) in halves.iter().enumerate() {
            let shift = 32 * index;
            let (words, _) = half.as_chunks::<8>();
            let word = |at: usize| words.get(at).map_or(0, |word| i64::from_le_bytes(*word));
            let text = _mm256_set_epi64x(word(3), word(2), word(1), word(0));
            // Signed: a byte beyond ASCII is below all of them.
            let lower = within(_mm256_or_si256(text, all(0x20)), b'a', b'z');
            let upper = within(text, b'A', b'Z');
            let space = _mm256_cmpeq_epi8(text, all(b' '));
            let newline = _mm256_or_si256(
                _mm256_cmpeq_epi8(text, all(b'\n')),
                _mm256_cmpeq_epi8(text, all(b'\r')),
            );
            let controls = within(text, b'\t', b'\r');
            masks.letter |= bits(lower) << shift;
            masks.upper |= bits(upper) << shift;
            masks.digit |= bits(within(text, b'0', b'9')) << shift;
            masks.space |= bits(space) << shift;
            masks.blank |= (bits(_mm256_or_si256(space, controls)) & !bits(newline)) << shift;
            masks.newline |= bits(newline) << shift;
            masks.apostrophe |= bits(_mm256_cmpeq_epi8(text, all(b'\''))) << shift;
            masks.slash |= bits(_mm256_cmpeq_epi8(text, all(b'/'))) << shift;
            masks.beyond |= bits(text) << shift;
        }
        masks
    }

    #[expect(clippy::cast_possible_wrap, reason = "bytes are bytes")]
    #[inline]
    #[target_feature(enable = "avx2")]
    fn all(byte: u8) -> __m256i {
        _mm256_set1_epi8(byte as i8)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn within(text: __m256i, first: u8, last: u8) -> __m256i {
        _mm256_and_si256(
            _mm256_cmpgt_epi8(text, all(first - 1)),
            _mm256_cmpgt_epi8(all(last + 1), text),
        )
    }

    #[expect(clippy::cast_sign_loss, reason = "thirty-two bits")]
    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits(mask: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(mask) as u32)
    }
}

#[cfg(test)]
mod tests;
