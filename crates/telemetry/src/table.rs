//! A map from a packed key to a value, in the order of first use.
//!
//! Invariant: nothing is ever removed, so a position stays valid for the table's life.
//! Not here: what the bits of a key mean (`series`), how many keys are allowed (`series`).

use std::collections::HashMap;

use policy::fast_hash::Mix;

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
