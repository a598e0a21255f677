//! What is old enough goes, a little at a time.
//!
//! Invariant: only the oldest rows go, and the chain's anchor moves with them in the same commit, so
//! that what is left still verifies. Rows wait to be shipped before they go for their age; for want
//! of room they do not, and are counted. No age is reckoned by a clock that is not believed, nor from
//! a moment after the newest row: a clock alone empties no ledger.
//! Not here: who calls this (`writer`), when the clock is believed (`clock`).

use rusqlite::{Connection, OptionalExtension, params};

use crate::lost;
use crate::shared::Options;
use crate::store::Store;

/// Rows pruned in one step.
const STEP_ROWS: i64 = 500;
/// Pages given back to the file system in one step.
const STEP_PAGES: i64 = 400;

/// What a step came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Step {
    /// Bytes of the file in use.
    pub(crate) bytes: u64,
    pub(crate) pruned: u64,
    /// When the newest of them ended.
    pub(crate) until_ms: u64,
    pub(crate) unshipped: u64,
}

/// Prunes a few rows, if there are any to prune; for their age only where the wall clock is believed.
pub(crate) fn step(
    store: &mut Store,
    options: &Options,
    believed_ms: Option<u64>,
    shipped: i64,
) -> rusqlite::Result<Step> {
    let bytes = bytes_in_use(&store.db)?;
    let anchor: i64 = store
        .db
        .query_row("SELECT anchor_seq FROM chain", [], |row| row.get(0))?;
    let newest = (anchor + STEP_ROWS).min(store.head.seq);
    let too_big = options.bytes_max.is_some_and(|most| bytes > most);
    let up_to = if too_big {
        Some(newest)
    } else {
        let newest = newest.min(shipped);
        match (options.keep, believed_ms) {
            (Some(keep), Some(now_ms)) => old(&store.db, anchor, newest, now_ms, keep)?,
            (None, _) | (_, None) => None,
        }
    };
    let mut step = Step {
        bytes,
        ..Step::default()
    };
    if let Some(up_to) = up_to.filter(|seq| *seq > anchor) {
        if let Some(Pruned { up_to, until_ms }) = prune(store, up_to)? {
            step.pruned = (up_to - anchor).unsigned_abs();
            step.until_ms = until_ms;
            step.unshipped = (up_to - shipped.max(anchor)).max(0).unsigned_abs();
        }
        give_back(&store.db)?;
    }
    Ok(step)
}

/// Each row of this pragma's answer is a page that was given back: it goes on only as it is read.
fn give_back(db: &Connection) -> rusqlite::Result<()> {
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut pages = statement.query([])?;
    while pages.next()?.is_some() {}
    Ok(())
}

/// The last of the oldest rows that are all too old.
fn old(
    db: &Connection,
    anchor: i64,
    newest: i64,
    now_ms: u64,
    keep: std::time::Duration,
) -> rusqlite::Result<Option<i64>> {
    let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
    let sql = "SELECT ended_unix_ms FROM settled ORDER BY seq DESC LIMIT 1";
    let last: Option<i64> = db.query_row(sql, [], |row| row.get(0)).optional()?;
    let Some(before) = now_ms
        .min(last.unwrap_or(0).unsigned_abs())
        .checked_sub(keep)
        .and_then(|ms| i64::try_from(ms).ok())
    else {
        return Ok(None);
    };
    let sql =
        "SELECT min(seq) - 1 FROM settled WHERE seq > ?1 AND seq <= ?2 AND ended_unix_ms >= ?3";
    let young: Option<i64> =
        db.query_row(sql, params![anchor, newest, before], |row| row.get(0))?;
    Ok(Some(young.unwrap_or(newest)))
}

/// What went.
struct Pruned {
    /// The new anchor.
    up_to: i64,
    /// When the newest of the rows ended.
    until_ms: u64,
}

/// Prunes up to row `up_to`, or to the end of the lost rows that it is among.
fn prune(store: &mut Store, up_to: i64) -> rusqlite::Result<Option<Pruned>> {
    let tx = store.db.transaction()?;
    let sql = "SELECT hash FROM settled WHERE seq = ?1";
    let row: Option<Vec<u8>> = tx.query_row(sql, [up_to], |row| row.get(0)).optional()?;
    let anchor = match row {
        Some(hash) => Some((up_to, hash)),
        None => {
            let lost = lost::read(&tx)?.into_iter();
            let mut among = lost.filter(|lost| (lost.from..=lost.to).contains(&up_to));
            among.next().map(|lost| (lost.to, lost.hash.0.to_vec()))
        }
    };
    // Another gap there is for `verify` to report; the anchor stays, so that it still can.
    let mut pruned = None;
    if let Some((up_to, hash)) = anchor {
        let sql = "SELECT max(ended_unix_ms) FROM settled WHERE seq <= ?1";
        let until: Option<i64> = tx.query_row(sql, [up_to], |row| row.get(0))?;
        tx.execute(
            "UPDATE chain SET anchor_seq = ?1, anchor_hash = ?2",
            params![up_to, hash],
        )?;
        tx.execute("DELETE FROM settled WHERE seq <= ?1", [up_to])?;
        pruned = Some(Pruned {
            up_to,
            until_ms: until.unwrap_or(0).unsigned_abs(),
        });
    }
    tx.commit()?;
    Ok(pruned)
}

fn bytes_in_use(db: &Connection) -> rusqlite::Result<u64> {
    let pragma =
        |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok((pages * pragma("page_size")?).unsigned_abs())
}

#[cfg(test)]
mod tests;
