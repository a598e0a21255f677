//! What is old enough goes, a little at a time.
//!
//! Invariant: only the oldest rows go, and the chain's anchor moves with them in the same commit, so
//! that what is left still verifies. Rows wait to be shipped before they go for their age; for want
//! of room they do not, and are counted.
//! Not here: who calls this (`writer`).

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
    pub(crate) unshipped: u64,
}

pub(crate) fn step(
    store: &mut Store,
    options: &Options,
    now_ms: u64,
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
        match options.keep {
            Some(keep) => old(&store.db, anchor, newest, now_ms, keep)?,
            None => None,
        }
    };
    let mut step = Step {
        bytes,
        ..Step::default()
    };
    if let Some(up_to) = up_to.filter(|seq| *seq > anchor) {
        if let Some(up_to) = prune(store, up_to)? {
            step.pruned = (up_to - anchor).unsigned_abs();
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
    let Some(before) = now_ms
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

/// Prunes up to row `up_to`, or to the end of the lost rows that it is among; gives the new anchor.
fn prune(store: &mut Store, up_to: i64) -> rusqlite::Result<Option<i64>> {
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
    if let Some((seq, hash)) = &anchor {
        tx.execute(
            "UPDATE chain SET anchor_seq = ?1, anchor_hash = ?2",
            params![seq, hash],
        )?;
        tx.execute("DELETE FROM settled WHERE seq <= ?1", [seq])?;
    }
    tx.commit()?;
    Ok(anchor.map(|(seq, _)| seq))
}

fn bytes_in_use(db: &Connection) -> rusqlite::Result<u64> {
    let pragma =
        |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok((pages * pragma("page_size")?).unsigned_abs())
}
