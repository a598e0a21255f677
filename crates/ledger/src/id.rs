//! Names of records: the gate's own, never the client's.
//!
//! A client chooses its request id and may choose one twice, so it cannot name a record.
//! Invariant: ids of one source rise strictly, also when the wall clock steps back; two sources
//! differ in their worker or in the 48 random bits of their process.
//! Not here: the request id, which is a column like any other (`row`).

use std::fmt;

use crate::hex::hex;

/// Name of a record: milliseconds (48 bits), a count (16), a worker (16), a process (48).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub [u8; 16]);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A worker's source of ids.
#[derive(Debug)]
pub struct Ids {
    last: u64,
    tail: [u8; 8],
}

impl Ids {
    /// A source; `process` holds 48 random bits that differ from start to start.
    #[must_use]
    pub fn new(process: u64, worker: u16) -> Self {
        let tail = (u64::from(worker) << 48) | (process & ((1 << 48) - 1));
        Self {
            last: 0,
            tail: tail.to_be_bytes(),
        }
    }

    /// The next id, at `unix_ms`.
    pub fn next(&mut self, unix_ms: u64) -> RecordId {
        let now = (unix_ms & ((1 << 48) - 1)) << 16;
        self.last = now.max(self.last + 1);
        let mut id = [0; 16];
        let (head, tail) = id.split_at_mut(8);
        head.copy_from_slice(&self.last.to_be_bytes());
        tail.copy_from_slice(&self.tail);
        RecordId(id)
    }
}

#[cfg(test)]
mod tests;
