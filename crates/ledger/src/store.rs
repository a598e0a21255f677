//! The open database: batches in, all or nothing.
//!
//! Invariant: the head in memory moves only when the commit has returned. After any failed commit
//! the store is dropped and opened anew: a failed fsync is never tried again as if it had worked,
//! because the kernel may have dropped the pages and called them clean.
//! Not here: when batches are made (`writer`), what a first opening recovers (`open`).

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Transaction, params};

use crate::chain::{Hash, Head};
use crate::columns::{COLUMNS, WIDTH, number};
use crate::damage::is_malformed;
use crate::encoded::Encoded;
use crate::entry::{ADMITTED, Ending, Opening};
use crate::head_file::{HeadFile, Kept};
use crate::id::RecordId;
use crate::opens::Opens;
use crate::place::Place;
use crate::prices::{PriceNote, keep};
use crate::repeated::Repeated;
use crate::row::Progress;
use crate::schema::{connect, name_of};
use crate::verify::{Ends, ends};

/// Something to write.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    Admit(Opening),
    Progress(Progress),
    Settle(Ending),
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
    opens: Opens,
    /// Where the chain starts, as it was read last.
    anchor: Head,
    head_file: HeadFile,
    /// Whether the head beside the ledger says what it should; in words why not.
    pub(crate) head_said: Result<(), String>,
    /// Bytes of the file after the last batch, with what only the log has of it, until they are asked for.
    after_batch: Option<u64>,
}

impl Store {
    pub(crate) fn new(db: Connection, path: &Path) -> rusqlite::Result<Self> {
        let Ends { anchor, head } = ends(&db)?;
        let (ledger, commits) = name_of(&db)?;
        Ok(Self {
            db,
            head,
            // After the first query: it makes the log and its index.
            place: Place::of(path),
            ledger,
            commits,
            opens: Opens::default(),
            anchor,
            head_file: HeadFile::open(path),
            head_said: Ok(()),
            after_batch: None,
        })
    }

    /// Opens again after a failure. What the log holds is copied into the file and synced there, so
    /// that nothing rests on pages whose sync failed; then something is written, to know that
    /// writing works.
    pub(crate) fn reopen(path: &Path) -> rusqlite::Result<Self> {
        let db = connect(path)?;
        let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy != 0 {
            // A reader is in the way; the log is synced anew by the next commit that holds it all.
            db.execute_batch("PRAGMA wal_checkpoint(FULL)")?;
        }
        db.execute("UPDATE chain SET probes = probes + 1", [])?;
        let mut store = Self::new(db, path)?;
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
        let ends = ends(&self.db);
        self.say_ends(ends);
    }

    fn say_ends(&mut self, ends: rusqlite::Result<Ends>) {
        self.head_said = match ends {
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
        bytes(&self.db)
    }

    /// The same, just after something was written.
    pub(crate) fn bytes_now(&mut self) -> rusqlite::Result<u64> {
        match self.after_batch.take() {
            Some(bytes) => Ok(bytes),
            None => self.bytes(),
        }
    }

    /// Writes all of it in one commit, or nothing.
    pub(crate) fn apply<'a>(
        &mut self,
        notes: impl Iterator<Item = &'a Note> + Clone,
    ) -> rusqlite::Result<Applied> {
        let applied = self.commit(notes);
        if applied.is_err() {
            self.opens = Opens::default();
        }
        applied
    }

    fn commit<'a>(
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
        self.opens.read(&tx)?;
        let mut writing = Writing::new(&tx, self.head, &mut self.opens)?;
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
        drop(writing);
        tx.prepare_cached("UPDATE chain SET head_seq = ?1, head_hash = ?2, probes = probes + 1")?
            .execute(params![head.seq, head.hash.0])?;
        // Asked here, where the file is locked already: each question of its own would lock it twice more.
        let (ends, bytes) = (ends(&tx), bytes(&tx));
        tx.commit()?;
        self.head = head;
        self.commits += 1;
        self.after_batch = bytes.ok();
        self.say_ends(ends);
        Ok(applied)
    }
}

fn bytes(db: &Connection) -> rusqlite::Result<u64> {
    let pragma = |sql: &str| {
        let mut statement = db.prepare_cached(sql)?;
        statement.query_row([], |row| row.get::<_, i64>(0))
    };
    let (pages, page) = (pragma("PRAGMA page_count")?, pragma("PRAGMA page_size")?);
    Ok((pages * page).unsigned_abs())
}

/// One transaction.
struct Writing<'w> {
    tx: &'w Transaction<'w>,
    head: Head,
    opens: &'w mut Opens,
    applied: Applied,
    admission: Repeated<'w, 'w, ADMITTED>,
    /// Made with the first row: its statement is long.
    row: Option<Repeated<'w, 'w, WIDTH>>,
    closing: CachedStatement<'w>,
}

impl<'w> Writing<'w> {
    fn new(tx: &'w Transaction<'w>, head: Head, opens: &'w mut Opens) -> rusqlite::Result<Self> {
        Ok(Self {
            tx,
            head,
            opens,
            applied: Applied::default(),
            admission: Repeated::new(tx, ADMIT)?,
            row: None,
            closing: tx.prepare_cached("DELETE FROM open WHERE id = ?1")?,
        })
    }

    fn note(&mut self, note: &'w Note) -> rusqlite::Result<()> {
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

    fn admit(&mut self, open: &'w Opening) -> rusqlite::Result<()> {
        let sum = ValueRef::Integer(open.sum());
        let changed = self.admission.execute(open.values(), &[sum])?;
        if changed > 0 {
            self.opens.add(open.id);
            self.applied.admitted += 1;
        }
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> rusqlite::Result<()> {
        if !self.opens.may_have(progress.id) {
            return Ok(());
        }
        // Marks only rise, both at once, so that one sum covers both.
        let sql = "UPDATE open SET progress_tokens = ?2, bytes_out = ?3, mark_sum = ?4 \
                   WHERE id = ?1 AND progress_tokens <= ?2 AND bytes_out <= ?3";
        let marks = [
            ValueRef::Blob(&progress.id.0),
            number(progress.tokens),
            number(progress.bytes_out),
        ];
        let sum = ValueRef::Integer(Encoded::of(marks.iter().copied()).sum());
        Repeated::<3>::new(self.tx, sql)?.execute(marks.into_iter(), &[sum])?;
        Ok(())
    }

    fn settle(&mut self, row: &'w Ending) -> rusqlite::Result<()> {
        let seq = self.head.seq + 1;
        let hash = row.hash(self.head.hash, seq);
        let statement = match &mut self.row {
            Some(statement) => statement,
            none => none.insert(inserting(self.tx)?),
        };
        if insert(statement, seq, row.values(), hash)? {
            self.head = Head { seq, hash };
            self.applied.settled += 1;
        } else {
            self.applied.duplicates += 1;
        }
        self.close(row.id)
    }

    fn close(&mut self, id: RecordId) -> rusqlite::Result<()> {
        if self.opens.may_have(id) {
            self.closing.execute([id.0])?;
            self.opens.remove(id);
        }
        Ok(())
    }
}

/// Named, because a file of an older build has them in another order.
const ADMIT: &str = "INSERT INTO open (id,started_unix_ms,request_id,trace_id,workload,budget_group,route,backend,\
     model_asked,model_sent,reserved_tokens,at_most_tokens,key_id,user_id,tags,mcp_method,mcp_name,user_issuer,sum) \
     SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19 \
     WHERE NOT EXISTS (SELECT 1 FROM settled WHERE id = ?1) ON CONFLICT DO NOTHING";

/// What inserts rows of a ledger.
pub(crate) fn inserting<'db, 'row>(
    db: &'db Connection,
) -> rusqlite::Result<Repeated<'db, 'row, WIDTH>> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        let marks = vec!["?"; WIDTH + 2].join(",");
        format!(
            "INSERT INTO settled ({},seq,hash) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
            names.join(",")
        )
    });
    Repeated::new(db, &SQL)
}

/// Inserts a row as it stands; `false` when there is one of that id.
pub(crate) fn insert<'row>(
    inserting: &mut Repeated<'_, 'row, WIDTH>,
    seq: i64,
    values: impl Iterator<Item = ValueRef<'row>>,
    hash: Hash,
) -> rusqlite::Result<bool> {
    let link = [ValueRef::Integer(seq), ValueRef::Blob(&hash.0)];
    Ok(inserting.execute(values, &link)? == 1)
}

#[cfg(test)]
pub(crate) mod tests;
