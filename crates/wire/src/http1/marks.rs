//! Sixty-four bytes of a head looked at together: where a name or a value may end.
//!
//! Invariant: bit n tells of byte n, on every processor alike; a byte beyond ASCII may be marked as a control.
//! Not here: what ends there (`fields`).

use crate::block::{BLOCK_BYTES, colons, controls};

/// Bytes that are looked at together.
pub(super) const MARKED_BYTES: usize = 64;

/// One bit a byte.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marks {
    /// Each colon.
    pub(super) colons: u64,
    /// Each control character, and perhaps each byte beyond ASCII.
    pub(super) controls: u64,
}

impl Marks {
    /// Without those of the first bytes.
    pub(super) fn later(self, bytes: usize) -> Self {
        Self {
            colons: self.colons >> bytes,
            controls: self.controls >> bytes,
        }
    }
}

/// The marks on any processor.
pub(super) fn marks(bytes: &[u8; MARKED_BYTES]) -> Marks {
    let (blocks, _) = bytes.as_chunks::<BLOCK_BYTES>();
    let joined = |later: Marks, block| Marks {
        colons: later.colons << BLOCK_BYTES | u64::from(colons(block)),
        controls: later.controls << BLOCK_BYTES | u64::from(controls(block)),
    };
    blocks.iter().rev().fold(Marks::default(), joined)
}

/// The same on a processor that has AVX2.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256,
        _mm256_movemask_epi8, _mm256_set1_epi8,
    };

    use super::{MARKED_BYTES, Marks};

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn marks(bytes: &[u8; MARKED_BYTES]) -> Marks {
        let ([low, high], _) = bytes.as_chunks::<32>() else {
            return Marks::default();
        };
        let (low, high) = (load(low), load(high));
        Marks {
            colons: joined(colons(low), colons(high)),
            controls: joined(controls(low), controls(high)),
        }
    }

    fn joined(low: u32, high: u32) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn colons(bytes: __m256i) -> u32 {
        let hits = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b':'.cast_signed()));
        _mm256_movemask_epi8(hits).cast_unsigned()
    }

    /// One more makes 0x7f negative, as the bytes beyond ASCII are: one comparison tells of all.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn controls(bytes: __m256i) -> u32 {
        let next = _mm256_add_epi8(bytes, _mm256_set1_epi8(1));
        let hits = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x21), next);
        _mm256_movemask_epi8(hits).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    #[expect(
        unsafe_code,
        reason = "put together from words it takes three instructions"
    )]
    fn load(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: 32 bytes are there to be read, and this load asks for no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests;
