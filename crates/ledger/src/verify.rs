//! The walk along the chain.
//!
//! Invariant: reads one consistent state, also while a gate writes, and alters nothing.
//! Not here: how a link is made (`chain`).

use std::fmt;

use rusqlite::{Connection, Row};

use crate::chain::{Hash, Head, link};
use crate::columns::{COLUMNS, WIDTH};

/// Findings after which the walk no longer tells them.
const FINDINGS_MAX: usize = 100;

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
            Self::OtherHistory { expected } => {
                write!(
                    f,
                    "no row has the hash {expected}: the chain was written anew, or pruned past it"
                )
            }
        }
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
}

/// Walks the whole chain, or what comes after row `after`. With `expected`, also looks for a head
/// that was printed before.
pub(crate) fn verify(
    db: &Connection,
    after: Option<i64>,
    expected: Option<Hash>,
) -> rusqlite::Result<Verified> {
    let tx = db.unchecked_transaction()?;
    let mut walk = Walk::start(&tx, after, expected)?;
    let mut statement = tx.prepare(&select("seq > ?1 ORDER BY seq"))?;
    let mut rows = statement.query([if after.is_some() { walk.seq } else { i64::MIN }])?;
    while let Some(row) = rows.next()? {
        walk.row(row)?;
    }
    Ok(walk.end())
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
    anchor: i64,
    head: Head,
    seq: i64,
    /// None after a gap: nobody knows what came before.
    hash: Option<Hash>,
    rows: u64,
    expected: Option<Hash>,
    findings: Vec<Finding>,
}

impl Walk {
    fn start(
        db: &Connection,
        after: Option<i64>,
        expected: Option<Hash>,
    ) -> rusqlite::Result<Self> {
        let sql = "SELECT anchor_seq, anchor_hash, head_seq, head_hash FROM chain";
        let (anchor, anchor_hash, head) = db.query_row(sql, [], |row| {
            let head = Head {
                seq: row.get(2)?,
                hash: Hash(row.get(3)?),
            };
            Ok((row.get(0)?, Hash(row.get(1)?), head))
        })?;
        let (seq, hash) = match after.filter(|seq| *seq > anchor) {
            None => (anchor, Some(anchor_hash)),
            Some(seq) => {
                let sql = "SELECT hash FROM settled WHERE seq = ?1";
                let hash = db.query_row(sql, [seq], |row| row.get(0)).ok();
                (seq, hash.map(Hash))
            }
        };
        let expected = expected.filter(|hash| *hash != anchor_hash);
        Ok(Self {
            anchor,
            head,
            seq,
            hash,
            rows: 0,
            expected,
            findings: Vec::new(),
        })
    }

    fn row(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.rows += 1;
        let seq: i64 = row.get(0)?;
        if seq <= self.anchor || seq > self.head.seq {
            let id = id_of(row);
            self.find(Finding::Inserted { seq, id });
            return Ok(());
        }
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
        let is_last = seq == self.head.seq;
        if !is_whole || (is_last && stored != Some(self.head.hash)) {
            let id = id_of(row);
            self.find(Finding::Altered { seq, id });
        }
        self.expected = self.expected.filter(|expected| Some(*expected) != stored);
        (self.seq, self.hash) = (seq, stored);
        Ok(())
    }

    fn end(mut self) -> Verified {
        if self.seq < self.head.seq {
            self.find(Finding::Removed {
                from: self.seq + 1,
                to: self.head.seq,
            });
        }
        if let Some(expected) = self.expected {
            self.find(Finding::OtherHistory { expected });
        }
        Verified {
            rows: self.rows,
            anchor: self.anchor,
            head: self.head,
            findings: self.findings,
        }
    }

    fn find(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

fn id_of(row: &Row<'_>) -> String {
    let id: Vec<u8> = row.get(1).unwrap_or_default();
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
