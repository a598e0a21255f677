//! The walk along the chain.
//!
//! Invariant: reads one consistent state, also while a gate writes, and alters nothing. Rows that a
//! salvage lost are walked across and told; any other gap is a finding.
//! Not here: how a link is made (`chain`), whether the file's pages are whole (`check`).

use std::fmt;

use rusqlite::{Connection, Row};

use crate::chain::{Hash, Head, link};
use crate::columns::{COLUMNS, WIDTH};
use crate::hex::hex;
use crate::lost::{self, Lost};

/// Findings after which the walk no longer tells them.
pub(crate) const FINDINGS_MAX: usize = 100;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The row is not what its hash says.
    Altered {
        /// The row's number.
        seq: i64,
        /// The row's id now, in hex.
        id: String,
    },
    /// Rows that are not there.
    Removed {
        /// The first.
        from: i64,
        /// The last.
        to: i64,
    },
    /// A row that the ledger did not write.
    Inserted {
        /// The row's number.
        seq: i64,
        /// The row's id, in hex.
        id: String,
    },
    /// The chain's first or last link is not what the ledger's own table of them says.
    Ends {
        /// The number of that link.
        seq: i64,
    },
    /// An exchange that has not ended is not what was written of it.
    Open {
        /// The record's id, in hex.
        id: String,
    },
    /// The file is not a whole database.
    Page {
        /// In the database's words.
        says: String,
    },
    /// The log beside the file is not as it was written.
    Log,
    /// The ledger ends before a row that was written.
    SetBack {
        /// A head that was.
        written: Head,
        /// The last row now.
        ends: i64,
    },
    /// Commits are missing at the end, though no settled row is.
    Commits {
        /// How many at least.
        missing: i64,
    },
    /// It is not the ledger that was here.
    OtherLedger,
    /// The chain does not hold the head that was kept elsewhere.
    OtherHistory {
        /// The head that was expected.
        expected: Hash,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Altered { seq, id } => write!(f, "row {seq} (record {id}) was altered"),
            Self::Removed { from, to } if from == to => write!(f, "row {from} was removed"),
            Self::Removed { from, to } => write!(f, "rows {from} to {to} were removed"),
            Self::Inserted { seq, id } => write!(f, "row {seq} (record {id}) was inserted"),
            Self::Ends { seq } => write!(f, "link {seq}, an end of the chain, was altered"),
            Self::Open { id } => write!(f, "the exchange that is open as {id} was altered"),
            Self::Page { says } => write!(f, "the file is damaged: {says}"),
            Self::Log => write!(f, "the log beside the file (-wal) is damaged"),
            Self::SetBack { written, ends } => write!(
                f,
                "it ends at row {ends}, and row {} was written: the end was cut off, or the file set back",
                written.seq
            ),
            Self::Commits { missing } => write!(
                f,
                "at least {missing} commits at the end are missing: the end was cut off, or the file set back"
            ),
            Self::OtherLedger => write!(f, "it is not the ledger that was here before"),
            Self::OtherHistory { expected } => {
                write!(
                    f,
                    "no row has the hash {expected}: the chain was written anew, or pruned past it"
                )
            }
        }
    }
}

/// A head that was kept elsewhere: with its row's number, or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The row's number, where it is known.
    pub seq: Option<i64>,
    /// Its hash.
    pub hash: Hash,
}

impl Expected {
    /// From `SEQ:HASH` or `HASH`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(head) = Head::parse(text) {
            let seq = Some(head.seq);
            return Some(Self {
                seq,
                hash: head.hash,
            });
        }
        let hash = Hash::parse(text)?;
        Some(Self { seq: None, hash })
    }
}

/// What the walk came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Rows walked.
    pub rows: u64,
    /// The last row that was pruned; 0 when none was.
    pub anchor: i64,
    /// Where the chain ends. Kept elsewhere, it proves this history.
    pub head: Head,
    /// What is wrong; at most a hundred.
    pub findings: Vec<Finding>,
    /// What salvages have lost, told for good.
    pub lost: Vec<Lost>,
}

/// Walks the whole chain. With `expected`, also looks for a head that was printed before.
pub(crate) fn verify(db: &Connection, expected: Option<Expected>) -> rusqlite::Result<Verified> {
    let tx = db.unchecked_transaction()?;
    let ends = ends(&tx)?;
    let walk = Walk::start(&tx, ends, None, ends.head.seq, expected)?;
    walk.along(&tx)
}

/// Walks the rows after `after`, which is one or the anchor, up to `up_to`, which is one or the head.
pub(crate) fn part(db: &Connection, after: i64, up_to: i64) -> rusqlite::Result<Verified> {
    let tx = db.unchecked_transaction()?;
    let ends = ends(&tx)?;
    let after = (after > ends.anchor.seq).then_some(after);
    let walk = Walk::start(&tx, ends, after, up_to, None)?;
    walk.along(&tx)
}

/// Where the chain starts and ends, as the ledger itself says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) anchor: Head,
    pub(crate) head: Head,
}

pub(crate) fn ends(db: &Connection) -> rusqlite::Result<Ends> {
    let sql = "SELECT anchor_seq, anchor_hash, head_seq, head_hash FROM chain";
    db.prepare_cached(sql)?.query_row([], |row| {
        let head = |seq, hash| {
            Ok::<_, rusqlite::Error>(Head {
                seq: row.get(seq)?,
                hash: Hash(row.get(hash)?),
            })
        };
        Ok(Ends {
            anchor: head(0, 1)?,
            head: head(2, 3)?,
        })
    })
}

/// All columns of settled rows, hash last.
pub(crate) fn select(which: &str) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    format!(
        "SELECT seq,{},hash FROM settled WHERE {which}",
        names.join(",")
    )
}

struct Walk {
    ends: Ends,
    /// The last row of this walk.
    up_to: i64,
    seq: i64,
    /// None after a gap: nobody knows what came before.
    hash: Option<Hash>,
    rows: u64,
    lost: Vec<Lost>,
    expected: Option<Expected>,
    findings: Vec<Finding>,
}

impl Walk {
    fn start(
        db: &Connection,
        ends: Ends,
        after: Option<i64>,
        up_to: i64,
        expected: Option<Expected>,
    ) -> rusqlite::Result<Self> {
        let (seq, hash) = match after {
            None => (ends.anchor.seq, Some(ends.anchor.hash)),
            Some(seq) => {
                let sql = "SELECT hash FROM settled WHERE seq = ?1";
                let hash = db.query_row(sql, [seq], |row| row.get(0)).ok();
                (seq, hash.map(Hash))
            }
        };
        let mut walk = Self {
            ends,
            up_to,
            seq,
            hash,
            rows: 0,
            lost: lost::read(db)?,
            expected,
            findings: Vec::new(),
        };
        walk.seen(ends.anchor.seq, Some(ends.anchor.hash));
        Ok(walk)
    }

    fn along(mut self, db: &Connection) -> rusqlite::Result<Verified> {
        // The whole walk also sees rows that no ledger has written, before the first and after the last.
        let is_whole = self.seq == self.ends.anchor.seq && self.up_to == self.ends.head.seq;
        let bounds = if is_whole {
            [i64::MIN, i64::MAX]
        } else {
            [self.seq, self.up_to]
        };
        let mut statement = db.prepare(&select("seq > ?1 AND seq <= ?2 ORDER BY seq"))?;
        let mut rows = statement.query(bounds)?;
        while let Some(row) = rows.next()? {
            self.row(row)?;
        }
        Ok(self.end())
    }

    /// Goes on behind what salvages lost before row `next`.
    fn cross(&mut self, next: i64) {
        while self.seq + 1 < next {
            let from = self.seq + 1;
            let range = |lost: &&Lost| lost.from == from && lost.to >= from && lost.to < next;
            let Some(lost) = self.lost.iter().copied().find(|lost| range(&lost)) else {
                return;
            };
            (self.seq, self.hash) = (lost.to, Some(lost.hash));
            self.seen(lost.to, Some(lost.hash));
        }
    }

    fn seen(&mut self, seq: i64, hash: Option<Hash>) {
        let is_it = |e: &Expected| Some(e.hash) == hash && e.seq.is_none_or(|wanted| wanted == seq);
        self.expected = self.expected.filter(|expected| !is_it(expected));
    }

    fn row(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.rows += 1;
        let seq: i64 = row.get(0)?;
        if seq <= self.ends.anchor.seq || seq > self.ends.head.seq {
            let id = id_of(row);
            self.find(Finding::Inserted { seq, id });
            return Ok(());
        }
        self.cross(seq);
        if seq != self.seq + 1 {
            self.find(Finding::Removed {
                from: self.seq + 1,
                to: seq - 1,
            });
            self.hash = None;
        }
        let stored: Option<Hash> = row.get(WIDTH + 1).ok().map(Hash);
        let is_whole = match self.hash {
            Some(before) => {
                let values: Vec<_> = (1..=WIDTH)
                    .map(|at| row.get_ref(at))
                    .collect::<Result<_, _>>()?;
                Some(link(before, seq, values.into_iter())) == stored
            }
            None => true,
        };
        if !is_whole {
            let id = id_of(row);
            self.find(Finding::Altered { seq, id });
        }
        self.seen(seq, stored);
        (self.seq, self.hash) = (seq, stored);
        Ok(())
    }

    fn end(mut self) -> Verified {
        self.cross(self.up_to + 1);
        if self.seq < self.up_to {
            self.find(Finding::Removed {
                from: self.seq + 1,
                to: self.up_to,
            });
        }
        let head = self.ends.head;
        if self.seq == head.seq && self.hash.is_some_and(|hash| hash != head.hash) {
            self.find(Finding::Ends { seq: head.seq });
        }
        if let Some(Expected { seq, hash }) = self.expected {
            let seq = seq.unwrap_or(0);
            let finding = if seq > head.seq {
                let written = Head { seq, hash };
                Finding::SetBack {
                    written,
                    ends: head.seq,
                }
            } else {
                Finding::OtherHistory { expected: hash }
            };
            self.find(finding);
        }
        Verified {
            rows: self.rows,
            anchor: self.ends.anchor.seq,
            head,
            findings: self.findings,
            lost: self.lost,
        }
    }

    fn find(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

fn id_of(row: &Row<'_>) -> String {
    hex(&row.get::<_, Vec<u8>>(1).unwrap_or_default())
}
