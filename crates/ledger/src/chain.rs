//! The chain: each row's hash covers the row and the hash before it.
//!
//! `hash = SHA-256(previous hash ‖ encoding)`. Encoding: the label `tollgate ledger row`, the
//! version as two bytes, `seq` as eight, then each column of the version in order, as `encoded` has
//! values. All numbers are big-endian two's complement. Version 7 has all of
//! `columns::COLUMNS`, version 6 the first 61, version 5 the first 59, version 4 the first 58, version 3 the first 56, version 2 the first 53 and version 1 the first 44; a row has the lowest version
//! whose missing columns are all NULL. No two rows have the same encoding.
//! Invariant: whoever alters, removes or inserts a row without the rest of the chain is found.
//! Whoever rewrites the whole file from that row on is found only by a head that was kept elsewhere.
//! Not here: the walk along the chain (`verify`).

use std::fmt;

use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

use crate::columns::{WIDTH, WIDTH_V1, WIDTH_V2, WIDTH_V3, WIDTH_V4, WIDTH_V5, WIDTH_V6};
use crate::encoded::{Encoded, Encoder, Values};
use crate::hex::{hex, unhex};

/// The versions of the encoding, and how many columns each has.
const VERSIONS: [(u16, usize); 7] = [
    (1, WIDTH_V1),
    (2, WIDTH_V2),
    (3, WIDTH_V3),
    (4, WIDTH_V4),
    (5, WIDTH_V5),
    (6, WIDTH_V6),
    (7, WIDTH),
];
const LABEL: &[u8] = b"tollgate ledger row";
/// Bytes before the columns: the hash before, the label, the version and the number.
const HEAD: usize = 32 + LABEL.len() + 2 + 8;

/// A link of the chain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// From 64 hex digits, as printed.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        unhex(hex).map(Self)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Where the chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of the last row; rows count from 1.
    pub seq: i64,
    /// Its hash.
    pub hash: Hash,
}

impl Head {
    /// Before the first row.
    pub(crate) const START: Self = Self {
        seq: 0,
        hash: Hash([0; 32]),
    };

    /// From `SEQ:HASH`, as printed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, hash) = text.split_once(':')?;
        Some(Self {
            seq: seq.parse().ok().filter(|seq| *seq >= 0)?,
            hash: Hash::parse(hash)?,
        })
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// A row's part of the encoding, which is the same whatever comes before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    version: u16,
    columns: Encoded,
}

impl Link {
    /// Of a row with these values, in the order of the columns.
    pub(crate) fn of<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> Self {
        let mut encoder = Encoder::new();
        values.for_each(|value| encoder.push(&value));
        let holds = |(_, width): &(u16, usize)| encoder.used() <= *width;
        let (version, width) = VERSIONS
            .into_iter()
            .find(holds)
            .unwrap_or(VERSIONS[VERSIONS.len() - 1]);
        let columns = encoder.finish(width);
        Self { version, columns }
    }

    pub(crate) fn values(&self) -> Values<'_> {
        self.columns.values()
    }

    /// The hash of row `seq` that has these values.
    pub(crate) fn hash(&self, before: Hash, seq: i64) -> Hash {
        let mut head = [0; HEAD];
        let (hash, rest) = head.split_at_mut(before.0.len());
        let (label, numbers) = rest.split_at_mut(LABEL.len());
        let (version, number) = numbers.split_at_mut(2);
        hash.copy_from_slice(&before.0);
        label.copy_from_slice(LABEL);
        version.copy_from_slice(&self.version.to_be_bytes());
        number.copy_from_slice(&seq.to_be_bytes());
        let hash = Sha256::new().chain_update(head);
        Hash(hash.chain_update(self.columns.bytes()).finalize().into())
    }
}

/// The hash of row `seq`, whose values come in the order of the columns.
pub(crate) fn link<'a>(before: Hash, seq: i64, values: impl Iterator<Item = ValueRef<'a>>) -> Hash {
    Link::of(values).hash(before, seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::values;
    use crate::store::tests::settlement;

    /// The encoding as the manual of this file has it, of so many columns.
    fn encoded(version: u8, seq: u8, values: &[ValueRef<'_>]) -> Vec<u8> {
        let mut out = vec![9; 32];
        out.extend(b"tollgate ledger row");
        out.extend([0, version, 0, 0, 0, 0, 0, 0, 0, seq]);
        for value in values {
            match value {
                ValueRef::Null => out.push(0),
                ValueRef::Integer(n) => {
                    out.push(1);
                    out.extend(n.to_be_bytes());
                }
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    let is_text = matches!(value, ValueRef::Text(_));
                    out.push(if is_text { 2 } else { 3 });
                    let length = u32::try_from(bytes.len()).expect("short");
                    out.extend(length.to_be_bytes());
                    out.extend(*bytes);
                }
                ValueRef::Real(_) => panic!("no column holds one"),
            }
        }
        out
    }

    #[test]
    fn a_row_has_the_lowest_version_that_holds_it() {
        let plain = settlement(1);
        let mut later = settlement(1);
        later.record.tokens.cache_write_1h = Some(7);
        let mut known = settlement(1);
        known.named.who.user = Some("ada".into());
        let mut tagged = later.clone();
        tagged.named.who.tags = Some("{}".into());
        let mut uncounted = settlement(1);
        uncounted.uncounted(None, Some("late"));
        let mut doubted = uncounted.clone();
        doubted.count(Some(100), None, None);
        doubted.doubt(Some("differs"));
        let mut tool = settlement(1);
        tool.named.tool = Some("github__search".into());
        let mut issued = known.clone();
        issued.named.issuer = Some("https://login.example".into());
        for (row, version, columns) in [
            (issued, 7, 62),
            (tool, 6, 61),
            (doubted, 5, 59),
            (plain, 1, 44),
            (later, 2, 53),
            (known, 3, 56),
            (tagged, 3, 56),
            (uncounted, 4, 58),
        ] {
            let values: Vec<_> = values(&row, "gate").collect();
            let expected = Sha256::digest(encoded(version, 5, &values[..columns]));
            let linked = link(Hash([9; 32]), 5, values.iter().copied());
            assert_eq!(linked, Hash(expected.into()), "version {version}");
        }
    }
}
