//! Sixteen bytes looked at together: which of them need a closer look.
//!
//! Invariant: bit n tells of byte n, on every processor alike.
//! Not here: more of them together (`wide`), what such a byte means (`json`, `http1`).

mod line;
mod wide;

pub(crate) use line::line_without;
pub use wide::as_text;
pub(crate) use wide::{WIDE_BYTES, WORD_BYTES, WORDS, has_no_special, specials};

/// Bytes in a block.
pub(crate) const BLOCK_BYTES: usize = 16;

/// A block.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// One bit a byte, for each quote, backslash and control character.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(
    unsafe_code,
    reason = "`cargo xtask instructions`: 4 % fewer for 1 KiB, 17 % for 32 KiB"
)]
pub(crate) fn special(block: &Block) -> u32 {
    // SAFETY: SSE2, the only thing asked for, is part of x86-64.
    unsafe { sse2::special(block) }
}

/// The same with each byte beyond ASCII.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "as `special`")]
pub(crate) fn special_or_high(block: &Block) -> u32 {
    // SAFETY: SSE2, the only thing asked for, is part of x86-64.
    unsafe { sse2::special_or_high(block) }
}

/// One bit a byte, for each colon.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "as `special`")]
pub(crate) fn colons(block: &Block) -> u32 {
    // SAFETY: SSE2, the only thing asked for, is part of x86-64.
    unsafe { sse2::colons(block) }
}

/// One bit a byte, for each control character.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "as `special`")]
pub(crate) fn controls(block: &Block) -> u32 {
    // SAFETY: SSE2, the only thing asked for, is part of x86-64.
    unsafe { sse2::controls(block) }
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };

    use super::Block;

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn special(block: &Block) -> u32 {
        let bytes = load(block);
        let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed()));
        let slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
        let hits = _mm_or_si128(_mm_or_si128(quote, slash), control);
        _mm_movemask_epi8(hits).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn special_or_high(block: &Block) -> u32 {
        special(block) | _mm_movemask_epi8(load(block)).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn colons(block: &Block) -> u32 {
        let hits = _mm_cmpeq_epi8(load(block), _mm_set1_epi8(b':'.cast_signed()));
        _mm_movemask_epi8(hits).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn controls(block: &Block) -> u32 {
        let bytes = load(block);
        let low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
        let delete = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
        _mm_movemask_epi8(_mm_or_si128(low, delete)).cast_unsigned()
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

/// One bit a byte, for each quote, backslash and control character.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn special(block: &Block) -> u32 {
    bits(block, |byte| byte < b' ' || byte == b'"' || byte == b'\\')
}

/// The same with each byte beyond ASCII.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn special_or_high(block: &Block) -> u32 {
    special(block) | bits(block, |byte| byte > 0x7f)
}

/// One bit a byte, for each colon.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn colons(block: &Block) -> u32 {
    bits(block, |byte| byte == b':')
}

/// One bit a byte, for each control character.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn controls(block: &Block) -> u32 {
    bits(block, |byte| byte < b' ' || byte == 0x7f)
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn bits(block: &Block, is_hit: impl Fn(u8) -> bool) -> u32 {
    let each = block.iter().enumerate();
    each.fold(0, |bits, (at, &byte)| bits | u32::from(is_hit(byte)) << at)
}

#[cfg(test)]
mod tests;
