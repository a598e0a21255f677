//! Names of blocks of tokens, by which a prefix cache finds them: each stands for its tokens and all before them.
//!
//! Invariant: the hit rate that is predicted and the one that is simulated come from the same names. Two blocks have one
//! name when they and all before them hold the same tokens, and only then (but for a collision of 64 bits).
//! Not here: which blocks a cache keeps (`simulator::kv`), what hits are predicted (`corpus::prefix`).

use crate::random::{GOLDEN, mix};

/// The name of the block of these `tokens` after the block named `before`; 0 is before the first.
#[must_use]
#[inline]
pub fn name(before: u64, tokens: &[u32]) -> u64 {
    tokens.iter().fold(mix(before), |hash, &token| {
        mix(hash ^ u64::from(token).wrapping_mul(GOLDEN))
    })
}

#[cfg(test)]
mod tests;
