//! A fast hash for tables whose keys only the configuration chooses, or the process numbers itself.
//!
//! Invariant: a client can look up and never choose what is inserted, so it cannot grow a chain. A table that a
//! client fills with keys of its own must not use this.
//! Not here: the tables (`snapshot`, telemetry's names and series, exchanges that are counted).

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Mixer`]s.
pub type Mix = BuildHasherDefault<Mixer>;

/// Arbitrary odd numbers with about as many ones as zeros.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A word of state, multiplied with each word of the key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        match bytes.last_chunk() {
            Some(_) if rest.is_empty() => {}
            // The last word may overlap the one before it.
            Some(last) => self.write_u64(u64::from_le_bytes(*last)),
            None => {
                let each = bytes.iter().rev();
                self.write_u64(each.fold(0, |word, b| word << 8 | u64::from(*b)));
            }
        }
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        // Both halves of the product: either alone would lose one end of the word.
        let product = u128::from(self.0 ^ word ^ SEED) * u128::from(FACTOR);
        let (high, low) = ((product >> 64) as u64, product as u64);
        self.0 = high ^ low;
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// `SplitMix64`'s finaliser: every bit of the result hangs on every bit of `n`.
#[must_use]
pub fn finalize(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests;
