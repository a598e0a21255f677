//! A shuffle of any number of things in no memory.
//!
//! Invariant: for each seed a bijection of `0..n`.
//! Not here: who takes which place (`deal`).

use crate::random::Rng;

/// Rounds of the network: four make a permutation pseudo-random (Luby and Rackoff, 1988), two more for its small
/// halves.
const ROUNDS: usize = 6;

/// A permutation of `0..n` from a seed: a Feistel network over the next even power of two, walked until it comes back
/// below `n` (Black and Rogaway, 2002: "Ciphers with arbitrary finite domains").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Of `n` things, at most 2^62.
    #[must_use]
    pub fn new(rng: &mut Rng, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| rng.bits()),
        }
    }

    /// How many things there are.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// What stands at `place`, which is less than `n`. The walk takes four steps in the mean at most.
    #[must_use]
    pub fn at(&self, place: u64) -> u64 {
        let mut value = place;
        loop {
            value = self.round_trip(value);
            if value < self.n || place >= self.n {
                return value;
            }
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (left, right) = self
            .keys
            .iter()
            .fold((value >> self.half_bits, value & mask), |(l, r), key| {
                (r, (l ^ Rng::new(key ^ r).bits()) & mask)
            });
        left << self.half_bits | right
    }
}
