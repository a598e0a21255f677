//! Values in one piece of memory, in the canonical encoding: what is hashed, and what travels to the writer.
//!
//! Each value is one byte of kind (0 NULL, 1 number, 2 text, 3 bytes) and the value: a number as eight bytes,
//! text and bytes as a length of four and the bytes. All numbers are big-endian two's complement.
//! Invariant: no two lists of values have the same encoding, but for NULLs at their end, which it need not have.
//! Not here: which values there are (`columns`, `entry`), how rows are linked (`chain`).

use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

/// Values, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded(Box<[u8]>);

impl Encoded {
    /// All of these, with the NULLs at their end.
    pub(crate) fn of<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> Self {
        let mut encoder = Encoder::new();
        values.for_each(|value| encoder.push(&value));
        let width = encoder.width;
        encoder.finish(width)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The values; NULLs at their end that it does not have are not among them.
    pub(crate) fn values(&self) -> Values<'_> {
        Values(&self.0)
    }

    /// What tells whether values that no chain covers are as they were written: half of a hash.
    pub(crate) fn sum(&self) -> i64 {
        let digest: [u8; 32] = Sha256::digest(&self.0).into();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        i64::from_be_bytes(first)
    }
}

/// Values of [`Encoded`], one after the other.
pub(crate) struct Values<'a>(&'a [u8]);

impl<'a> Iterator for Values<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        decode(&mut self.0)
    }
}

/// Values as they are encoded, none of them held beside its encoding.
pub(crate) struct Encoder {
    out: Vec<u8>,
    /// How many there are.
    width: usize,
    /// How many there are up to the last that is not NULL.
    used: usize,
    /// Where that one ends.
    end: usize,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            out: Vec::with_capacity(MOST),
            width: 0,
            used: 0,
            end: 0,
        }
    }

    pub(crate) fn push(&mut self, value: &ValueRef<'_>) {
        encode(&mut self.out, value);
        self.width += 1;
        if !matches!(value, ValueRef::Null) {
            (self.used, self.end) = (self.width, self.out.len());
        }
    }

    /// How many there are up to the last that is not NULL.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// The first `width` of them, or as many as it takes for all that are not NULL.
    pub(crate) fn finish(mut self, width: usize) -> Encoded {
        self.out.truncate(self.end);
        let nulls = width.saturating_sub(self.used);
        self.out.resize(self.end + nulls, NULL);
        Encoded(self.out.as_slice().into())
    }
}

/// Bytes that most rows have room in.
const MOST: usize = 960;
/// The kind of NULL, and all of its encoding.
const NULL: u8 = 0;
/// Bytes of text and bytes beside their own: the kind and the length.
const HEAD: usize = 5;
/// Bytes of a number with its kind.
const NUMBER: usize = 9;

fn encode(out: &mut Vec<u8>, value: &ValueRef<'_>) {
    let (kind, bytes) = match value {
        ValueRef::Null => return out.push(NULL),
        ValueRef::Integer(n) => return number(out, 1, n.to_be_bytes()),
        // No column holds one; a row that does has been tampered with, and hashes as such.
        ValueRef::Real(x) => return number(out, 4, x.to_be_bytes()),
        ValueRef::Text(bytes) => (2, bytes),
        ValueRef::Blob(bytes) => (3, bytes),
    };
    let mut head = [kind; HEAD];
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    head[1..].copy_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(bytes);
}

fn number(out: &mut Vec<u8>, kind: u8, bytes: [u8; 8]) {
    let mut all = [kind; NUMBER];
    all[1..].copy_from_slice(&bytes);
    out.extend_from_slice(&all);
}

/// The next value; `None` at the end.
fn decode<'a>(rest: &mut &'a [u8]) -> Option<ValueRef<'a>> {
    let (kind, after) = rest.split_first()?;
    let (value, after) = match kind {
        &NULL => (ValueRef::Null, after),
        1 => {
            let (n, after) = after.split_first_chunk()?;
            (ValueRef::Integer(i64::from_be_bytes(*n)), after)
        }
        4 => {
            let (x, after) = after.split_first_chunk()?;
            (ValueRef::Real(f64::from_be_bytes(*x)), after)
        }
        kind => {
            let (length, after) = after.split_first_chunk()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            let (bytes, after) = after.split_at_checked(length)?;
            let is_text = *kind == 2;
            let value = if is_text {
                ValueRef::Text
            } else {
                ValueRef::Blob
            };
            (value(bytes), after)
        }
    };
    *rest = after;
    Some(value)
}

#[cfg(test)]
mod tests;
