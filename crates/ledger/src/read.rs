//! Reading a ledger, also while a gate writes it.
//!
//! Invariant: a reader takes no lock that a writer waits for, and writes nothing.
//! Not here: what is made of the rows (`report`).

use std::path::Path;

use rusqlite::{Connection, ErrorCode, Row, params};

use crate::chain::{Hash, Head};
use crate::columns::{Value, WIDTH};
use crate::schema::{LAYOUT, add_missing_columns, connect_to_read, layout};
use crate::store::head;
use crate::verify::{Verified, select, verify};

/// Why a ledger cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there, is not a ledger, or cannot be read.
    #[error("cannot read the ledger {path}: {says}")]
    Open {
        /// The ledger.
        path: String,
        /// Why.
        says: String,
    },
    /// Reading stopped.
    #[error("cannot read the ledger: {0}")]
    Read(#[from] rusqlite::Error),
}

/// A span of time, milliseconds since the Unix epoch; rows count by their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// The first moment.
    pub from_ms: u64,
    /// The first moment after.
    pub to_ms: u64,
}

impl Period {
    /// All there is.
    pub const ALL: Self = Self {
        from_ms: 0,
        to_ms: i64::MAX as u64,
    };
}

/// A row as it stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its number.
    pub seq: i64,
    /// Its values, in the order of [`crate::COLUMNS`].
    pub values: [Value; WIDTH],
    /// Its link of the chain.
    pub hash: Hash,
}

impl Stored {
    /// A number by its column; `None` when it is NULL.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<i64> {
        match self.values[crate::columns::at(column)] {
            Value::Integer(n) => Some(n),
            _ => None,
        }
    }

    /// Text by its column; `None` when it is NULL.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&str> {
        match &self.values[crate::columns::at(column)] {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The record's id in hex.
    #[must_use]
    pub fn id(&self) -> String {
        match &self.values[0] {
            Value::Blob(id) => id.iter().map(|byte| format!("{byte:02x}")).collect(),
            _ => String::new(),
        }
    }

    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let mut values = [const { Value::Null }; WIDTH];
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get(at + 1)?;
        }
        Ok(Self {
            seq: row.get(0)?,
            values,
            hash: Hash(row.get(WIDTH + 1)?),
        })
    }
}

/// An open ledger, to read.
#[derive(Debug)]
pub struct Reader {
    pub(crate) db: Connection,
}

impl Reader {
    /// Opens a ledger.
    ///
    /// # Errors
    /// When there is none at `path`, or it is of a newer build.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let open = |says: String| ReadError::Open {
            path: path.display().to_string(),
            says,
        };
        let db = connect_to_read(path).map_err(|error| open(said(&error)))?;
        match layout(&db).map_err(|error| open(said(&error)))? {
            LAYOUT => Ok(Self { db }),
            1 => {
                add_missing_columns(&db).map_err(|error| open(said(&error)))?;
                Ok(Self { db })
            }
            0 => Err(open("it is no ledger".to_owned())),
            newer => Err(open(format!(
                "it has layout {newer}, this build knows {LAYOUT}"
            ))),
        }
    }

    /// Walks the chain; with `expected`, also looks for a head that was printed before.
    ///
    /// # Errors
    /// When the file cannot be read to its end.
    pub fn verify(&self, expected: Option<Hash>) -> Result<Verified, ReadError> {
        Ok(verify(&self.db, None, expected)?)
    }

    /// Where the chain ends.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn head(&self) -> Result<Head, ReadError> {
        Ok(head(&self.db)?)
    }

    /// The ledger's own name, and the last row that was pruned.
    pub(crate) fn origin(&self) -> Result<([u8; 16], i64), ReadError> {
        let sql = "SELECT ledger_id, anchor_seq FROM chain";
        Ok(self
            .db
            .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Exchanges that are open on disk.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn open_count(&self) -> Result<u64, ReadError> {
        let count: i64 = self
            .db
            .query_row("SELECT count(*) FROM open", [], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Calls `each` with the rows that ended in `period`, in the order they were written.
    ///
    /// # Errors
    /// When the file cannot be read, or what `each` says.
    pub fn each<E: From<ReadError>>(
        &self,
        period: Period,
        mut each: impl FnMut(Stored) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = select("ended_unix_ms >= ?1 AND ended_unix_ms < ?2 ORDER BY seq");
        let mut statement = self.db.prepare(&sql).map_err(ReadError::from)?;
        let bounds = [period.from_ms, period.to_ms].map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let mut rows = statement.query(bounds).map_err(ReadError::from)?;
        while let Some(row) = rows.next().map_err(ReadError::from)? {
            each(Stored::of(row).map_err(ReadError::from)?)?;
        }
        Ok(())
    }

    /// At most `n` rows after row `seq`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn after(&self, seq: i64, n: usize) -> Result<Vec<Stored>, ReadError> {
        let mut statement = self
            .db
            .prepare_cached(&select("seq > ?1 ORDER BY seq LIMIT ?2"))?;
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![seq, n], Stored::of)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn said(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => "there is no such file, or it may not be read".to_owned(),
        Some(ErrorCode::NotADatabase) => "it is no ledger".to_owned(),
        _ => error.to_string(),
    }
}
