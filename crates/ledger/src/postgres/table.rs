//! The fleet's table: the ledger's own columns, and which ledger a row came from.
//!
//! Invariant: a batch is one transaction, in the order of the ledger, so the last row of a ledger says
//! that all rows before are there. `ON CONFLICT` names the id alone.
//! Not here: when a batch is sent (`postgres`).

use postgres::types::ToSql;
use postgres::{Client, Error};

use crate::chain::{Hash, Head};
use crate::columns::{COLUMNS, Kind, Value, WIDTH_V1};
use crate::read::Stored;

/// Rows in one transaction.
pub(super) const BATCH: usize = 1000;
/// Names the advisory lock under which the table is made: two gates may start at once, and
/// `IF NOT EXISTS` alone does not bear that.
const MAKING: i64 = 0x746f_6c6c_6761_7465;

pub(super) fn create(client: &mut Client) -> Result<(), Error> {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, kind)| format!("{name} {}", name_of(*kind)))
        .collect();
    let added = COLUMNS.iter().skip(WIDTH_V1);
    let added: Vec<String> = added
        .map(|(name, kind)| format!("ADD COLUMN IF NOT EXISTS {name} {}", name_of(*kind)))
        .collect();
    let mut tx = client.transaction()?;
    tx.execute("SELECT pg_advisory_xact_lock($1)", &[&MAKING])?;
    tx.batch_execute(&format!(
        "CREATE TABLE IF NOT EXISTS tollgate_usage (ledger TEXT NOT NULL, seq BIGINT NOT NULL, {}, hash BYTEA NOT NULL, \
         PRIMARY KEY (id), UNIQUE (ledger, seq)); \
         ALTER TABLE tollgate_usage {}; \
         CREATE INDEX IF NOT EXISTS tollgate_usage_ended ON tollgate_usage (ended_unix_ms)",
        columns.join(", "),
        added.join(", ")
    ))?;
    tx.commit()
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "BIGINT",
        Kind::Text => "TEXT",
        Kind::Bytes => "BYTEA",
    }
}

/// The last row of `ledger` that the server has.
pub(super) fn watermark(client: &mut Client, ledger: &str) -> Result<Option<Head>, Error> {
    let sql = "SELECT seq, hash FROM tollgate_usage WHERE ledger = $1 ORDER BY seq DESC LIMIT 1";
    let Some(row) = client.query_opt(sql, &[&ledger])? else {
        return Ok(None);
    };
    let hash: Vec<u8> = row.try_get(1)?;
    Ok(Some(Head {
        seq: row.try_get(0)?,
        // A hash of another length is none that a ledger can have.
        hash: Hash(hash.try_into().unwrap_or([0; 32])),
    }))
}

/// Inserts rows that are not there by their id; gives the number of those. A number of this ledger
/// that another row has is an error: two histories of it are being sent.
pub(super) fn insert(client: &mut Client, ledger: &str, rows: &[Stored]) -> Result<u64, Error> {
    let mut columns = vec![Column::of(
        Kind::Number,
        rows.iter().map(|row| Value::Integer(row.seq)),
    )];
    for (at, (_, kind)) in COLUMNS.iter().enumerate() {
        let values = rows
            .iter()
            .map(|row| row.values.get(at).cloned().unwrap_or(Value::Null));
        columns.push(Column::of(*kind, values));
    }
    columns.push(Column::of(
        Kind::Bytes,
        rows.iter().map(|row| Value::Blob(row.hash.0.to_vec())),
    ));
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&ledger];
    params.extend(columns.iter().map(Column::as_sql));
    let mut tx = client.transaction()?;
    let inserted = tx.execute(&insert_sql(), &params)?;
    tx.commit()?;
    Ok(inserted)
}

fn insert_sql() -> String {
    let kinds = COLUMNS.iter().map(|(_, kind)| name_of(*kind));
    let kinds = std::iter::once("BIGINT").chain(kinds).chain(["BYTEA"]);
    let arrays: Vec<String> = kinds
        .enumerate()
        .map(|(at, kind)| format!("${}::{kind}[]", at + 2))
        .collect();
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    format!(
        "INSERT INTO tollgate_usage (ledger, seq, {}, hash) SELECT $1, * FROM unnest({}) ON CONFLICT (id) DO NOTHING",
        names.join(", "),
        arrays.join(", ")
    )
}

/// One column of a batch, as an array.
enum Column {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    /// A value of another kind than its column's cannot be stored (the tables are strict); were
    /// there one, it would be NULL here.
    fn of(kind: Kind, values: impl Iterator<Item = Value>) -> Self {
        match kind {
            Kind::Number => Self::Numbers(
                values
                    .map(|v| {
                        if let Value::Integer(n) = v {
                            Some(n)
                        } else {
                            None
                        }
                    })
                    .collect(),
            ),
            Kind::Text => Self::Texts(
                values
                    .map(|v| {
                        if let Value::Text(t) = v {
                            Some(without_nul(t))
                        } else {
                            None
                        }
                    })
                    .collect(),
            ),
            Kind::Bytes => Self::Bytes(
                values
                    .map(|v| {
                        if let Value::Blob(b) = v {
                            Some(b)
                        } else {
                            None
                        }
                    })
                    .collect(),
            ),
        }
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Numbers(column) => column,
            Self::Texts(column) => column,
            Self::Bytes(column) => column,
        }
    }
}

/// Postgres keeps no NUL in text; one row must not stop all that come after.
fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}
