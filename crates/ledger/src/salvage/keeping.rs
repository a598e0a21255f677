//! The new file of a salvage as it grows: which rows are kept, and a record of those that are not.
//!
//! Invariant: a row is kept only where the one before it, kept or not, proves it by its hash, and once
//! for each id; the numbers between two kept rows stand in the record of what was lost.
//! Not here: reading the damaged file (`salvage`).

use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::Salvaged;
use crate::chain::{Hash, Head, link};
use crate::columns::{Value, WIDTH};
use crate::lost::{self, Lost};
use crate::store::{insert, inserting};

/// Rows in one transaction of the new file.
const BATCH: u64 = 10_000;

/// A row as it was read: its number, hash and values.
pub(super) type Read = (i64, Hash, [Value; WIDTH]);

/// The new file as it grows. Invariant: `last` ≤ `before`; the rows between them are lost once a
/// later one is kept.
pub(super) struct Keeping<'a> {
    db: &'a Connection,
    anchor: Head,
    /// The last row that was kept or is on record as lost.
    pub(super) last: Head,
    /// The last row that was read, whether it was kept or not, by its own hash.
    before: Head,
    /// What earlier salvages lost.
    known_lost: Vec<Lost>,
    lost: Vec<Lost>,
    /// Rows in the transaction that is under way.
    uncommitted: u64,
    now: u64,
}

impl<'a> Keeping<'a> {
    pub(super) fn new(db: &'a Connection, anchor: Head, known_lost: Vec<Lost>, now: u64) -> Self {
        Self {
            db,
            anchor,
            last: anchor,
            before: anchor,
            known_lost,
            lost: Vec::new(),
            uncommitted: 0,
            now,
        }
    }

    /// Goes on behind what earlier salvages lost before row `next`.
    fn cross(&mut self, next: i64) {
        while self.before.seq + 1 < next {
            let from = self.before.seq + 1;
            let range = |lost: &&Lost| lost.from == from && lost.to >= from && lost.to < next;
            let Some(to) = self.known_lost.iter().find(range).map(Lost::end) else {
                return;
            };
            // That is on record; what this salvage lost before it is not.
            if self.last.seq < self.before.seq {
                self.lose(self.before);
            }
            (self.before, self.last) = (to, to);
        }
    }

    /// Keeps a row that the one before it proves, unless an earlier row has its id; whether it did.
    pub(super) fn row(
        &mut self,
        seq: i64,
        hash: Hash,
        values: [Value; WIDTH],
    ) -> rusqlite::Result<bool> {
        self.cross(seq);
        let before = self.before;
        self.before = Head { seq, hash };
        let made = link(before.hash, seq, values.iter().map(Into::into));
        if before.seq + 1 != seq || made != hash {
            return Ok(false);
        }
        if self.uncommitted >= BATCH {
            self.flush()?;
        }
        if self.uncommitted == 0 {
            self.db.execute_batch("BEGIN")?;
        }
        self.uncommitted += 1;
        let is_kept = insert(
            &mut inserting(self.db)?,
            seq,
            values.iter().map(ValueRef::from),
            hash,
        )?;
        if !is_kept {
            self.lose(self.before);
        } else if self.last.seq != before.seq {
            self.lose(before);
        }
        self.last = self.before;
        Ok(is_kept)
    }

    /// What comes after the last row that was kept, up to this one, is lost.
    fn lose(&mut self, to: Head) {
        self.lost.push(Lost {
            at_unix_ms: self.now,
            from: self.last.seq + 1,
            to: to.seq,
            hash: to.hash,
            open_ended: false,
        });
        self.last = to;
    }

    pub(super) fn flush(&mut self) -> rusqlite::Result<()> {
        if self.uncommitted > 0 {
            self.db.execute_batch("COMMIT")?;
            self.uncommitted = 0;
        }
        Ok(())
    }

    /// Writes down what was lost, and where the chain starts and goes on.
    pub(super) fn end(
        &mut self,
        head: Option<Head>,
        salvaged: &mut Salvaged,
    ) -> rusqlite::Result<(Head, Head)> {
        self.flush()?;
        self.before = self.last;
        self.cross(i64::MAX);
        match head.filter(|head| head.seq > self.last.seq) {
            Some(head) => self.lose(head),
            // Even if nothing is lost it is on record that somebody did this.
            None => self.lost.push(Lost {
                at_unix_ms: self.now,
                from: self.last.seq + 1,
                to: self.last.seq,
                hash: self.last.hash,
                open_ended: head.is_none(),
            }),
        }
        let all: Vec<Lost> = self.known_lost.iter().chain(&self.lost).copied().collect();
        for lost in &all {
            lost::insert(self.db, lost)?;
        }
        self.db.execute(
            "UPDATE chain SET anchor_seq = ?1, anchor_hash = ?2, head_seq = ?3, head_hash = ?4",
            params![
                self.anchor.seq,
                self.anchor.hash.0,
                self.last.seq,
                self.last.hash.0
            ],
        )?;
        salvaged.rows_lost = Lost::sum(&all) - Lost::sum(&self.known_lost);
        salvaged.lost.append(&mut self.lost);
        Ok((self.anchor, self.last))
    }
}
