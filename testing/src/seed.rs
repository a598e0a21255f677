//! Chance in tests: the same at each run, unless another is asked for.
//!
//! A seed follows from the test's name, so that a run is red because of a change and never because of a day. With
//! `TOLLGATE_SEED=fresh` each test draws one of its own, and with `TOLLGATE_SEED=<number>` takes that.
//! `cargo xtask random` runs tests with fresh ones.

use std::hash::{BuildHasher, RandomState};

/// Names the seed: a number, or `fresh`.
const SEED: &str = "TOLLGATE_SEED";

/// The seed of the test of this name, printed with what repeats it.
///
/// # Panics
///
/// Where `TOLLGATE_SEED` is set and is neither a number nor `fresh`.
pub fn seed(test: &str) -> u64 {
    let seed = match std::env::var(SEED).as_deref() {
        Err(_) => of(test),
        Ok("fresh") => RandomState::new().hash_one(test),
        Ok(number) => (number.parse()).unwrap_or_else(|_| panic!("{SEED}={number}: no number")),
    };
    println!("{test}: {SEED}={seed}");
    seed
}

/// How many cases a test makes: `otherwise`, or what the variable of this name says.
///
/// # Panics
///
/// Where the variable is set and is no number.
#[must_use]
pub fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |said| {
        (said.parse()).unwrap_or_else(|_| panic!("{variable}={said}: no number"))
    })
}

/// FNV-1a, 64 bits (draft-eastlake-fnv): the same on every machine and of every compiler.
fn of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Numbers that follow from a seed: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// All that follows from this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub const fn below(&mut self, end: usize) -> usize {
        // What is left is below `end`, which is a `usize`.
        (self.next() % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_seed_and_another_name_another() {
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn numbers_follow_from_the_seed_as_published() {
        let mut draw = Draw::new(1_234_567);
        assert_eq!(
            [draw.next(), draw.next(), draw.next()],
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }
}
