//! A map from a packed key to a value, in the order of first use.
//!
//! Invariant: nothing is ever removed, so a position stays valid for the table's life.
//! Not here: what the bits of a key mean (`series`), how many keys are allowed (`series`).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Mixer`]s.
pub(crate) type Mix = BuildHasherDefault<Mixer>;

/// Arbitrary odd numbers with about as many ones as zeros.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A fast hash for keys that only the configuration chooses. A client can look up, never insert,
/// so it cannot grow a chain.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words
            .iter()
            .for_each(|w| self.write_u64(u64::from_le_bytes(*w)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(last));
        }
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        // Both halves of the product: either alone would lose one end of the word.
        let product = u128::from(self.0 ^ word ^ SEED) * u128::from(FACTOR);
        let (high, low) = ((product >> 64) as u64, product as u64);
        self.0 = high ^ low;
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Values by packed key.
#[derive(Debug, Clone)]
pub(crate) struct Table<V> {
    index: HashMap<u64, usize, Mix>,
    rows: Vec<(u64, V)>,
    /// Where the last key was found: traffic comes in runs.
    last: usize,
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self {
            index: HashMap::default(),
            rows: Vec::new(),
            last: 0,
        }
    }
}

impl<V: Default> Table<V> {
    /// Where `key` is.
    pub(crate) fn find(&mut self, key: u64) -> Option<usize> {
        if self
            .rows
            .get(self.last)
            .is_none_or(|(last, _)| *last != key)
        {
            self.last = self.index.get(&key).copied()?;
        }
        Some(self.last)
    }

    /// Where `key` is, after adding it if need be.
    pub(crate) fn place(&mut self, key: u64) -> usize {
        let next = self.rows.len();
        let at = *self.index.entry(key).or_insert(next);
        if at == next {
            self.rows.push((key, V::default()));
        }
        at
    }

    /// The value at a position that this table gave.
    pub(crate) fn at(&mut self, position: usize) -> &mut V {
        &mut self.rows[position].1
    }

    /// Keys and values, in the order of first use.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &V)> {
        self.rows.iter().map(|(key, value)| (*key, value))
    }
}

#[cfg(test)]
mod tests;
