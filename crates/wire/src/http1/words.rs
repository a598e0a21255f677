//! Sixteen bytes looked at together: which of them may stand in a plain word.
//!
//! Invariant: bit n tells of byte n, on every processor alike.
//! Not here: what the word is (`path`, `fields`).

use crate::block::Block;

/// One bit a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Classes {
    /// Letters, digits, hyphens and underscores.
    pub(super) words: u32,
    pub(super) slashes: u32,
}

/// One bit a byte, for each letter, digit, hyphen and underscore.
#[inline(always)]
pub(super) fn words(block: &Block) -> u32 {
    classes(block).words
}

/// The same with the slashes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(
    unsafe_code,
    reason = "a path of 20 bytes in 70 instructions where a table takes 430"
)]
pub(super) fn classes(block: &Block) -> Classes {
    // SAFETY: SSE2, the only thing asked for, is part of x86-64.
    unsafe { sse2::classes(block) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn classes(block: &Block) -> Classes {
    plainly(block)
}

/// The same, byte by byte.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn plainly(block: &Block) -> Classes {
    let bits = |is_hit: fn(u8) -> bool| {
        let each = block.iter().enumerate();
        each.fold(0, |bits, (at, &byte)| bits | u32::from(is_hit(byte)) << at)
    };
    Classes {
        words: bits(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'),
        slashes: bits(|byte| byte == b'/'),
    }
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8, _mm_sub_epi8,
    };

    use super::{Block, Classes};

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn classes(block: &Block) -> Classes {
        let bytes = load(block);
        let letters = within(_mm_or_si128(bytes, each(0x20)), b'a', b'z');
        let digits = within(bytes, b'0', b'9');
        let hyphens = _mm_cmpeq_epi8(bytes, each(b'-'));
        let underscores = _mm_cmpeq_epi8(bytes, each(b'_'));
        let words = _mm_or_si128(
            _mm_or_si128(letters, digits),
            _mm_or_si128(hyphens, underscores),
        );
        Classes {
            words: _mm_movemask_epi8(words).cast_unsigned(),
            slashes: _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, each(b'/'))).cast_unsigned(),
        }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn within(bytes: __m128i, first: u8, last: u8) -> __m128i {
        let moved = _mm_sub_epi8(bytes, each(first));
        _mm_cmpeq_epi8(_mm_min_epu8(moved, each(last - first)), moved)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn each(byte: u8) -> __m128i {
        _mm_set1_epi8(byte.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(block: &Block) -> __m128i {
        let word = u128::from_le_bytes(*block);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let (low, high) = (word as u64, (word >> 64) as u64);
        _mm_set_epi64x(high.cast_signed(), low.cast_signed())
    }
}

#[cfg(test)]
mod tests;
