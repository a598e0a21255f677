//! Sixteen bytes looked at together: which of them need a closer look.
//!
//! Invariant: bit n tells of byte n, on every processor alike.
//! Not here: what such a byte means (`json`, `http1`).

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

/// Where the first quote, backslash or control character is in a long text; its length where there is none.
#[inline(never)]
pub(crate) fn special_at(text: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "50 GB/s where SSE2 takes 17: `cargo bench -p wire --bench bodies`"
        )]
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { avx2::special_at(text) };
    }
    special_from(text, 0)
}

/// The same, from a place on.
#[inline]
fn special_from(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let (blocks, last) = rest.as_chunks::<BLOCK_BYTES>();
    let mut at = from;
    for block in blocks {
        let hits = special(block);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize;
        }
        at += BLOCK_BYTES;
    }
    let is_special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    at + last.iter().position(is_special).unwrap_or(last.len())
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_xor_si256,
    };

    /// Four vectors are looked at together: one branch for 128 bytes.
    #[target_feature(enable = "avx2")]
    pub(super) fn special_at(text: &[u8]) -> usize {
        let (quarters, _) = text.as_chunks::<32>();
        let (groups, _) = quarters.as_chunks::<4>();
        let clear = |group: &&[[u8; 32]; 4]| !has_special(group.each_ref().map(|q| load(q)));
        let mut at = 4 * groups.iter().take_while(clear).count();
        while let Some(quarter) = quarters.get(at) {
            let hits = special(load(quarter));
            if hits != 0 {
                return at * 32 + hits.trailing_zeros() as usize;
            }
            at += 1;
        }
        super::special_from(text, at * 32)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn special(bytes: __m256i) -> u32 {
        let slash = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'\\'.cast_signed()));
        let moved = _mm256_xor_si256(bytes, _mm256_set1_epi8(2));
        let low = _mm256_min_epu8(moved, _mm256_set1_epi8(0x20));
        let hits = _mm256_or_si256(slash, _mm256_cmpeq_epi8(low, moved));
        _mm256_movemask_epi8(hits).cast_unsigned()
    }

    /// The quote is one bit away from following the control characters, so that the least byte of all
    /// tells of both.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn has_special([a, b, c, d]: [__m256i; 4]) -> bool {
        let slash = _mm256_set1_epi8(b'\\'.cast_signed());
        let is_slash = |bytes| _mm256_cmpeq_epi8(bytes, slash);
        let slashes = _mm256_or_si256(
            _mm256_or_si256(is_slash(a), is_slash(b)),
            _mm256_or_si256(is_slash(c), is_slash(d)),
        );
        let moved = |bytes| _mm256_xor_si256(bytes, _mm256_set1_epi8(2));
        let least = _mm256_min_epu8(
            _mm256_min_epu8(moved(a), moved(b)),
            _mm256_min_epu8(moved(c), moved(d)),
        );
        let low = _mm256_min_epu8(least, _mm256_set1_epi8(0x20));
        let hits = _mm256_or_si256(slashes, _mm256_cmpeq_epi8(low, least));
        _mm256_movemask_epi8(hits) != 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    #[expect(
        unsafe_code,
        reason = "put together from words it takes three instructions"
    )]
    fn load(quarter: &[u8; 32]) -> __m256i {
        // SAFETY: 32 bytes are there to be read, and this load asks for no alignment.
        unsafe { _mm256_loadu_si256(quarter.as_ptr().cast()) }
    }
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
