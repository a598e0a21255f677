//! What can be read out of a damaged file.
//!
//! Invariant: a row is taken over only with its number and its hash, and only as long as the chain
//! holds; from the first row that does not, the damaged file is all there is, and it is kept.
//! Not here: where that file is kept (`open`).

use std::path::Path;

use rusqlite::{Connection, params};

use crate::chain::{Hash, Head, link};
use crate::columns::{Value, WIDTH};
use crate::schema::{add_missing_columns, connect_to_read, layout};
use crate::store::insert;
use crate::verify::select;

/// Rows taken over from a damaged file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Salvaged {
    /// Settled rows, from the oldest on.
    pub settled: u64,
    /// Admissions without an end.
    pub open: u64,
    /// Where reading stopped, and why; `None` when all of it could be read.
    pub stopped: Option<String>,
}

/// Copies rows from `damaged` into `db`, which is new. What cannot be read is not an error.
pub(crate) fn salvage(damaged: &Path, db: &mut Connection) -> rusqlite::Result<Salvaged> {
    let mut salvaged = Salvaged::default();
    let from = match connect_to_read(damaged) {
        Ok(from) => from,
        Err(error) => {
            salvaged.stopped = Some(error.to_string());
            return Ok(salvaged);
        }
    };
    if layout(&from) == Ok(1)
        && let Err(error) = add_missing_columns(&from)
    {
        salvaged.stopped = Some(error.to_string());
        return Ok(salvaged);
    }
    if let Err(stopped) = rows(&from, db, &mut salvaged)? {
        salvaged.stopped = Some(stopped);
    }
    if let Err(stopped) = opens(&from, db, &mut salvaged)? {
        salvaged.stopped.get_or_insert(stopped);
    }
    Ok(salvaged)
}

/// The outer error is of the new file, the inner one of the damaged.
type Read = rusqlite::Result<Result<(), String>>;

fn rows(from: &Connection, db: &mut Connection, salvaged: &mut Salvaged) -> Read {
    let anchor = from.query_row("SELECT anchor_seq, anchor_hash FROM chain", [], |row| {
        Ok(Head {
            seq: row.get(0)?,
            hash: Hash(row.get(1)?),
        })
    });
    let anchor = match anchor {
        Ok(anchor) => anchor,
        Err(error) => return Ok(Err(format!("the chain's anchor: {error}"))),
    };
    let sql = select("seq > ?1 ORDER BY seq");
    let mut statement = match from.prepare(&sql) {
        Ok(statement) => statement,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut rows = match statement.query([anchor.seq]) {
        Ok(rows) => rows,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let tx = db.transaction()?;
    let mut head = anchor;
    let stopped = loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break Ok(()),
            Err(error) => break Err(format!("after row {}: {error}", head.seq)),
        };
        let Some((next, values)) = whole(row, head) else {
            break Err(format!("row {} is not what its hash says", head.seq + 1));
        };
        insert(&tx, next.seq, values, next.hash)?;
        head = next;
        salvaged.settled += 1;
    };
    tx.execute(
        "UPDATE chain SET anchor_seq = ?1, anchor_hash = ?2, head_seq = ?3, head_hash = ?4",
        params![anchor.seq, anchor.hash.0, head.seq, head.hash.0],
    )?;
    tx.commit()?;
    Ok(stopped)
}

/// The row when it continues the chain.
fn whole(row: &rusqlite::Row<'_>, before: Head) -> Option<(Head, [Value; WIDTH])> {
    let seq: i64 = row.get(0).ok()?;
    let hash = Hash(row.get(WIDTH + 1).ok()?);
    let values: Vec<Value> = (1..=WIDTH)
        .map(|at| row.get(at).ok())
        .collect::<Option<_>>()?;
    let made = link(before.hash, seq, values.iter().map(Into::into));
    let values = values.try_into().ok()?;
    (seq == before.seq + 1 && made == hash).then_some((Head { seq, hash }, values))
}

/// Admissions without an end, each as far as it can be read.
fn opens(from: &Connection, db: &mut Connection, salvaged: &mut Salvaged) -> Read {
    let mut statement = match from.prepare("SELECT * FROM open") {
        Ok(statement) => statement,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let width = statement.column_count();
    let mut rows = match statement.query([]) {
        Ok(rows) => rows,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let sql = format!(
        "INSERT INTO open VALUES ({}) ON CONFLICT DO NOTHING",
        vec!["?"; width].join(",")
    );
    let tx = db.transaction()?;
    let stopped = loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.to_string()),
        };
        let values: Vec<Value> = (0..width).map_while(|at| row.get(at).ok()).collect();
        if values.len() == width {
            salvaged.open += tx.execute(&sql, rusqlite::params_from_iter(values))? as u64;
        }
    };
    tx.commit()?;
    Ok(stopped)
}
