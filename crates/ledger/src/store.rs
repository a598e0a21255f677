//! The open database: batches in, all or nothing.
//!
//! Invariant: the head in memory moves only when the commit has returned. After any failed commit
//! the store is dropped and opened anew: a failed fsync is never tried again as if it had worked,
//! because the kernel may have dropped the pages and called them clean.
//! Not here: when batches are made (`writer`), what a first opening recovers (`open`).

use std::collections::HashSet;
use std::path::Path;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Params, Transaction, params, params_from_iter};

use crate::chain::{Hash, Head, link, sum};
use crate::columns::{COLUMNS, WIDTH, number, some_number, some_text, text, values, whole_text};
use crate::damage::is_malformed;
use crate::head_file::{HeadFile, Kept};
use crate::id::RecordId;
use crate::place::Place;
use crate::prices::{PriceNote, keep};
use crate::row::{Admission, Progress, Settlement};
use crate::schema::{connect, name_of};
use crate::verify::{Ends, ends};

/// Something to write.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    Admit(Box<Admission>),
    Progress(Progress),
    Settle(Box<Settlement>),
    /// An admission that was refused after all: forget it if it was written.
    Withdraw(RecordId),
    /// What the rows that follow may be charged by.
    Prices(Box<[PriceNote]>),
}

/// What a batch came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) settled: u64,
    pub(crate) duplicates: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
}

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) db: Connection,
    pub(crate) head: Head,
    pub(crate) place: Place,
    ledger: [u8; 16],
    commits: i64,
    node: Box<str>,
    /// Where the chain starts, as it was read last.
    anchor: Head,
    head_file: HeadFile,
    /// Whether the head beside the ledger says what it should; in words why not.
    pub(crate) head_said: Result<(), String>,
}

impl Store {
    pub(crate) fn new(db: Connection, path: &Path, node: Box<str>) -> rusqlite::Result<Self> {
        let Ends { anchor, head } = ends(&db)?;
        let (ledger, commits) = name_of(&db)?;
        Ok(Self {
            db,
            head,
            // After the first query: it makes the log and its index.
            place: Place::of(path),
            ledger,
            commits,
            node,
            anchor,
            head_file: HeadFile::open(path),
            head_said: Ok(()),
        })
    }

    /// Opens again after a failure. What the log holds is copied into the file and synced there, so
    /// that nothing rests on pages whose sync failed; then something is written, to know that
    /// writing works.
    pub(crate) fn reopen(path: &Path, node: Box<str>) -> rusqlite::Result<Self> {
        let db = connect(path)?;
        let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy != 0 {
            // A reader is in the way; the log is synced anew by the next commit that holds it all.
            db.execute_batch("PRAGMA wal_checkpoint(FULL)")?;
        }
        db.execute("UPDATE chain SET probes = probes + 1", [])?;
        let mut store = Self::new(db, path, node)?;
        store.say_head();
        Ok(store)
    }

    /// Copies the log into the file: `how` is PASSIVE, or TRUNCATE to wait for readers and begin
    /// the log anew.
    pub(crate) fn checkpoint(&mut self, how: &str) -> rusqlite::Result<()> {
        let sql = format!("PRAGMA wal_checkpoint({how})");
        self.db.query_row(&sql, [], |_| Ok(()))
    }

    /// Writes beside the ledger where it ends. A chain whose start cannot be read leaves that file as
    /// it was.
    pub(crate) fn say_head(&mut self) {
        self.head_said = match ends(&self.db) {
            Ok(ends) => {
                self.anchor = ends.anchor;
                self.head_file.write(&self.kept())
            }
            Err(error) => Err(format!("the chain's start cannot be read: {error}")),
        };
    }

    /// Where the ledger ends.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            ledger: self.ledger,
            anchor: self.anchor,
            head: self.head,
            commits: self.commits,
        }
    }

    /// The same onto the disk, in a file that is there: this one's may have been taken away.
    pub(crate) fn keep_head(&mut self, path: &Path) {
        self.head_file = HeadFile::open(path);
        self.say_head();
        if self.head_said.is_ok() {
            self.head_said = self.head_file.sync();
        }
    }

    /// Bytes of the file, with what only the log has of it.
    pub(crate) fn bytes(&self) -> rusqlite::Result<u64> {
        let pragma = |sql: &str| {
            let mut statement = self.db.prepare_cached(sql)?;
            statement.query_row([], |row| row.get::<_, i64>(0))
        };
        let (pages, page) = (pragma("PRAGMA page_count")?, pragma("PRAGMA page_size")?);
        Ok((pages * page).unsigned_abs())
    }

    /// Writes all of it in one commit, or nothing.
    pub(crate) fn apply<'a>(
        &mut self,
        notes: impl Iterator<Item = &'a Note> + Clone,
    ) -> rusqlite::Result<Applied> {
        let ended: HashSet<RecordId> = notes
            .clone()
            .filter_map(|note| match note {
                Note::Settle(row) => Some(row.id),
                Note::Withdraw(id) => Some(*id),
                Note::Admit(_) | Note::Progress(_) | Note::Prices(_) => None,
            })
            .collect();
        let tx = self.db.transaction()?;
        let mut writing = Writing {
            tx: &tx,
            head: self.head,
            node: &self.node,
            applied: Applied::default(),
        };
        for note in notes {
            // What begins and ends in one batch never was open on disk.
            let passing = match note {
                Note::Admit(open) => ended.contains(&open.id),
                Note::Progress(progress) => ended.contains(&progress.id),
                Note::Settle(_) | Note::Withdraw(_) | Note::Prices(_) => false,
            };
            if !passing {
                writing.note(note)?;
            }
        }
        let (head, applied) = (writing.head, writing.applied);
        tx.prepare_cached("UPDATE chain SET head_seq = ?1, head_hash = ?2, probes = probes + 1")?
            .execute(params![head.seq, head.hash.0])?;
        tx.commit()?;
        self.head = head;
        self.commits += 1;
        self.say_head();
        Ok(applied)
    }
}

/// One transaction.
struct Writing<'a> {
    tx: &'a Transaction<'a>,
    head: Head,
    node: &'a str,
    applied: Applied,
}

impl Writing<'_> {
    fn note(&mut self, note: &Note) -> rusqlite::Result<()> {
        let done = match note {
            Note::Admit(open) => self.admit(open),
            Note::Progress(progress) => self.progress(progress),
            Note::Settle(row) => self.settle(row),
            Note::Withdraw(id) => self.close(*id),
            Note::Prices(prices) => keep(self.tx, prices),
        };
        match done {
            Err(error) if is_malformed(&error) => {
                self.applied.refused += 1;
                Ok(())
            }
            done => done,
        }
    }

    fn admit(&mut self, open: &Admission) -> rusqlite::Result<()> {
        // Named, because a file of an older build has them in another order.
        let sql = "INSERT INTO open (id,started_unix_ms,request_id,trace_id,workload,budget_group,route,backend,\
                   model_asked,model_sent,reserved_tokens,at_most_tokens,key_id,user_id,tags,sum) \
                   SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16 \
                   WHERE NOT EXISTS (SELECT 1 FROM settled WHERE id = ?1) ON CONFLICT DO NOTHING";
        let values = [
            ValueRef::Blob(&open.id.0),
            number(open.started_unix_ms),
            text(&open.request_id),
            some_text(open.named.trace_id.as_deref()),
            some_text(open.named.workload.as_deref()),
            some_text(open.named.budget_group.as_deref()),
            some_text(open.named.route.as_deref()),
            some_text(open.named.backend.as_deref()),
            some_text(open.model_asked.as_deref()),
            some_text(open.model_sent.as_deref()),
            number(open.reserved),
            some_number(open.at_most),
        ];
        let who = &open.named.who;
        let known = [
            some_text(who.key.as_deref()),
            some_text(who.user.as_deref()),
            whole_text(who.tags.as_deref()),
        ];
        // Where nobody is known, the sum is the one that earlier builds made.
        let summed = if who.is_empty() { &[][..] } else { &known };
        let sum = ValueRef::Integer(sum(values.iter().chain(summed).copied()));
        let all = values.into_iter().chain(known).chain([sum]);
        let changed = self.tx.prepare_cached(sql)?.execute(bound(all))?;
        self.applied.admitted += changed as u64;
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> rusqlite::Result<()> {
        // Marks only rise, both at once, so that one sum covers both.
        let sql = "UPDATE open SET progress_tokens = ?2, bytes_out = ?3, mark_sum = ?4 \
                   WHERE id = ?1 AND progress_tokens <= ?2 AND bytes_out <= ?3";
        let marks = [
            ValueRef::Blob(&progress.id.0),
            number(progress.tokens),
            number(progress.bytes_out),
        ];
        let sum = ValueRef::Integer(sum(marks.iter().copied()));
        self.tx
            .prepare_cached(sql)?
            .execute(bound(marks.into_iter().chain([sum])))?;
        Ok(())
    }

    fn settle(&mut self, row: &Settlement) -> rusqlite::Result<()> {
        let values = values(row, self.node);
        let seq = self.head.seq + 1;
        let hash = link(self.head.hash, seq, values.iter().copied());
        if insert(self.tx, seq, values, hash)? {
            self.head = Head { seq, hash };
            self.applied.settled += 1;
        } else {
            self.applied.duplicates += 1;
        }
        self.close(row.id)
    }

    fn close(&self, id: RecordId) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached("DELETE FROM open WHERE id = ?1")?
            .execute([id.0])?;
        Ok(())
    }
}

/// Inserts a row as it stands; `false` when there is one of that id.
pub(crate) fn insert(
    db: &Connection,
    seq: i64,
    values: [ValueRef<'_>; WIDTH],
    hash: Hash,
) -> rusqlite::Result<bool> {
    let all = std::iter::once(ValueRef::Integer(seq))
        .chain(values)
        .chain([ValueRef::Blob(&hash.0)]);
    let mut statement = db.prepare_cached(insert_sql())?;
    Ok(statement.execute(bound(all))? == 1)
}

/// Values as a statement takes them, without a copy.
fn bound<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> impl Params {
    params_from_iter(values.map(ToSqlOutput::Borrowed))
}

fn insert_sql() -> &'static str {
    static SQL: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        let marks = vec!["?"; WIDTH + 2].join(",");
        format!(
            "INSERT INTO settled (seq,{},hash) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
            names.join(",")
        )
    });
    &SQL
}

#[cfg(test)]
pub(crate) mod tests;
