//! The rows of a damaged file that can be read, in the order of their numbers.
//!
//! What cannot be read is gone round: row by row at first, then by steps that grow with the distance, so that a file which was cut costs
//! some ten thousand looks.
//! Invariant: behind rows that cannot be read, up to [`ONE_BY_ONE`] of them, the very next one that can be is found; further off,
//! none is passed over but a run shorter than that part of the distance.
//! Not here: which of them are kept (`keeping`).

use rusqlite::Connection;

use super::keeping::{Keeping, Read};
use super::{Salvaged, fault};
use crate::chain::{Hash, Head};
use crate::columns::{Value, WIDTH};
use crate::verify::select;

/// So many rows are looked for one after the other: as many as a page of the tree that leads to rows can cost.
const ONE_BY_ONE: i64 = 4096;

/// Reads rows in the order of their numbers, round what cannot be read.
pub(super) fn rows(
    from: &Connection,
    keeping: &mut Keeping<'_>,
    head: Option<Head>,
    salvaged: &mut Salvaged,
) -> rusqlite::Result<()> {
    let upper = head.map_or(i64::MAX, |head| head.seq);
    let mut last = keeping.last.seq;
    loop {
        let before = last;
        let Err(error) = rows_after(from, &mut last, upper, keeping, salvaged)? else {
            break;
        };
        let _told: Option<()> = fault(Err(error), salvaged);
        // Of the row at which it stopped at once nothing more is to be had, whatever a disk says the next time.
        let nearest = if last == before { 2 } else { 1 };
        let Some(next) = readable_after(from, last, nearest, upper) else {
            break;
        };
        last = next - 1;
    }
    keeping.flush()
}

/// The outer error is of the new file, the inner one of the damaged.
fn rows_after(
    from: &Connection,
    last: &mut i64,
    upper: i64,
    keeping: &mut Keeping<'_>,
    salvaged: &mut Salvaged,
) -> rusqlite::Result<rusqlite::Result<()>> {
    let Some(first) = last.checked_add(1) else {
        return Ok(Ok(()));
    };
    // Looked for by its own number: by that of the row before, a page would be read that this one does not need.
    let sql = select("seq >= ?1 AND seq <= ?2 ORDER BY seq");
    let mut statement = match from.prepare_cached(&sql) {
        Ok(statement) => statement,
        Err(error) => return Ok(Err(error)),
    };
    let mut rows = match statement.query([first, upper]) {
        Ok(rows) => rows,
        Err(error) => return Ok(Err(error)),
    };
    loop {
        match rows.next() {
            Ok(None) => return Ok(Ok(())),
            Ok(Some(row)) => {
                let read = read(row);
                let Some((seq, _, _)) = read.as_ref().filter(|(seq, _, _)| *seq > *last) else {
                    // Out of order, or no row at all: as good as a page that cannot be read.
                    return Ok(Err(rusqlite::Error::QueryReturnedNoRows));
                };
                *last = *seq;
                if let Some((seq, hash, values)) = read {
                    salvaged.settled += u64::from(keeping.row(seq, hash, values)?);
                }
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// The first row that can be read from `nearest` behind `last` on: further and further off up to `upper`, then back.
fn readable_after(from: &Connection, last: i64, nearest: i64, upper: i64) -> Option<i64> {
    let sql = select("seq >= ?1 AND seq <= ?2 ORDER BY seq LIMIT 1");
    let mut statement = from.prepare_cached(&sql).ok()?;
    let mut readable = |at: i64| -> Option<i64> {
        let found = statement.query_row([at, upper], |row| Ok(read(row)));
        let (seq, _, _) = found.ok().flatten()?;
        Some(seq).filter(|seq| *seq >= at)
    };
    let first = last.checked_add(nearest).filter(|at| *at <= upper)?;
    let (mut bad, mut at) = (first - 1, first);
    while readable(at).is_none() {
        if at == upper {
            return None;
        }
        bad = at;
        let step = 1 + (at - first) / ONE_BY_ONE;
        at = at.saturating_add(step).min(upper);
    }
    while bad + 1 < at {
        let middle = bad + (at - bad) / 2;
        if readable(middle).is_some() {
            at = middle;
        } else {
            bad = middle;
        }
    }
    readable(at)
}

fn read(row: &rusqlite::Row<'_>) -> Option<Read> {
    let seq: i64 = row.get(0).ok()?;
    let hash = Hash(row.get(WIDTH + 1).ok()?);
    let values: Option<Vec<Value>> = (1..=WIDTH).map(|at| row.get(at).ok()).collect();
    Some((seq, hash, values?.try_into().ok()?))
}
