//! Rows that a salvage could not keep: on record in the ledger itself, for good.
//!
//! Invariant: a number is never used again. The chain goes on behind a range of lost rows with the
//! hash of the last of them, so that every head that was kept before is still found.
//! Not here: what is kept (`salvage`), how the chain is walked across a range (`verify`).

use std::collections::BTreeMap;
use std::fmt;

use rusqlite::{Connection, params};

use crate::chain::{Hash, Head};
use crate::date;

/// A range of rows that one salvage lost; an empty one when it lost none there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// When it was salvaged, milliseconds since the Unix epoch.
    pub at_unix_ms: u64,
    /// The first row that is lost.
    pub from: i64,
    /// The last; one less than `from` when none is.
    pub to: i64,
    /// The hash of row `to`.
    pub hash: Hash,
    /// There may have been more after `to`: nothing said where the ledger ended.
    pub open_ended: bool,
}

impl Lost {
    /// How many.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.to - self.from + 1).unwrap_or_default()
    }

    /// How many in all, each counted once: a later salvage's range may reach over an earlier one's.
    #[must_use]
    pub fn sum(lost: &[Self]) -> u64 {
        Self::by_salvage(lost)
            .iter()
            .map(|salvage| salvage.rows)
            .sum()
    }

    /// What each salvage lost that was not lost before, the oldest first.
    #[must_use]
    pub fn by_salvage(lost: &[Self]) -> Vec<LostAt> {
        let mut salvages: BTreeMap<u64, Vec<&Self>> = BTreeMap::new();
        for lost in lost {
            salvages.entry(lost.at_unix_ms).or_default().push(lost);
        }
        let mut before: Vec<(i64, i64)> = Vec::new();
        let mut told = Vec::new();
        for (at_unix_ms, lost) in salvages {
            let mut ranges = Vec::new();
            for lost in &lost {
                ranges.extend(without(lost.from, lost.to, &before));
            }
            before.extend(&ranges);
            before.sort_unstable();
            told.push(LostAt {
                at_unix_ms,
                rows: ranges.iter().map(|(from, to)| from.abs_diff(*to) + 1).sum(),
                ranges,
                open_ended_after: lost.iter().find(|lost| lost.open_ended).map(|lost| lost.to),
            });
        }
        told
    }
}

/// The parts of `from..=to` that are in none of `ranges`, which are in order and do not overlap.
fn without(mut from: i64, to: i64, ranges: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut parts = Vec::new();
    for (first, last) in ranges {
        if *last < from || *first > to {
            continue;
        }
        if from < *first {
            parts.push((from, first - 1));
        }
        from = last + 1;
    }
    if from <= to {
        parts.push((from, to));
    }
    parts
}

/// What one salvage lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostAt {
    /// When it was, milliseconds since the Unix epoch.
    pub at_unix_ms: u64,
    /// How many rows it lost that were there before.
    pub rows: u64,
    /// Which, from and to.
    pub ranges: Vec<(i64, i64)>,
    /// There may have been more after this row: nothing said where the ledger ended.
    pub open_ended_after: Option<i64>,
}

/// Ranges that are told; a ledger can be damaged in many places.
const RANGES_MAX: usize = 10;

impl fmt::Display for LostAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "salvaged {}: ", date::timestamp(self.at_unix_ms))?;
        match self.rows {
            0 => write!(f, "no row was lost")?,
            1 => write!(f, "1 row was lost: ")?,
            n => write!(f, "{n} rows were lost: ")?,
        }
        let range = |(from, to): &(i64, i64)| match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        };
        let ranges: Vec<String> = self.ranges.iter().take(RANGES_MAX).map(range).collect();
        write!(f, "{}", ranges.join(", "))?;
        if let Some(more) = self.ranges.len().checked_sub(RANGES_MAX).filter(|n| *n > 0) {
            write!(f, ", and {more} ranges more")?;
        }
        if let Some(row) = self.open_ended_after {
            write!(f, "; how many came after row {row} is not known")?;
        }
        Ok(())
    }
}

impl Lost {
    /// The last link of the range.
    pub(crate) fn end(&self) -> Head {
        Head {
            seq: self.to,
            hash: self.hash,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = date::timestamp(self.at_unix_ms);
        match self.rows() {
            0 => write!(f, "salvaged {at}: no row lost before row {}", self.from)?,
            1 => write!(f, "salvaged {at}: row {} was lost", self.from)?,
            n => write!(
                f,
                "salvaged {at}: rows {} to {} were lost ({n})",
                self.from, self.to
            )?,
        }
        if self.open_ended {
            write!(f, "; how many came after is not known")?;
        }
        Ok(())
    }
}

pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS lost (
  at_unix_ms INTEGER NOT NULL,
  from_seq INTEGER NOT NULL,
  to_seq INTEGER NOT NULL,
  hash BLOB NOT NULL,
  open_ended INTEGER NOT NULL
) STRICT;";

/// All of them, in the order of their numbers.
pub(crate) fn read(db: &Connection) -> rusqlite::Result<Vec<Lost>> {
    let there = "SELECT count(*) FROM sqlite_schema WHERE name = 'lost'";
    if db.query_row(there, [], |row| row.get::<_, i64>(0))? == 0 {
        // A ledger of an earlier build, which a reader must not change.
        return Ok(Vec::new());
    }
    let sql = "SELECT at_unix_ms, from_seq, to_seq, hash, open_ended FROM lost ORDER BY from_seq, to_seq, rowid";
    db.prepare(sql)?
        .query_map([], |row| {
            Ok(Lost {
                at_unix_ms: row.get::<_, i64>(0)?.unsigned_abs(),
                from: row.get(1)?,
                to: row.get(2)?,
                hash: Hash(row.get(3)?),
                open_ended: row.get(4)?,
            })
        })?
        .collect()
}

pub(crate) fn insert(db: &Connection, lost: &Lost) -> rusqlite::Result<()> {
    let sql = "INSERT INTO lost VALUES (?1, ?2, ?3, ?4, ?5)";
    let at = i64::try_from(lost.at_unix_ms).unwrap_or(i64::MAX);
    let values = params![at, lost.from, lost.to, lost.hash.0, lost.open_ended];
    db.execute(sql, values).map(|_| ())
}
