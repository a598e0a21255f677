//! Reading a ledger, also while a gate writes it.
//!
//! Invariant: a reader takes no lock that a writer waits for, and writes nothing.
//! Not here: what is made of the rows (`report`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use policy::attribution::{kept, kept_value};
use rusqlite::{Connection, ErrorCode, Row, params};

use crate::chain::{Hash, Head};
use crate::check;
use crate::columns::{Value, WIDTH};
use crate::damage::is_damage;
use crate::head_file::{self, Found};
use crate::hex::hex;
use crate::lost::{self, Lost};
use crate::only::Only;
use crate::schema::{
    APPLICATION, LAYOUT, application, connect_to_read, head, layout, name_of, real,
};
use crate::verify::{Expected, Finding, Verified, select, verify};

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

impl ReadError {
    /// Whether it says that the file is not what was written, rather than that it cannot be read at
    /// the moment.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Read(error) if is_damage(error))
    }
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
            Value::Blob(id) => hex(id),
            _ => String::new(),
        }
    }

    /// Its tags; none where the column holds none, or what no gate has written.
    #[must_use]
    pub fn tags(&self) -> BTreeMap<String, String> {
        let text = self.text("tags").unwrap_or("{}");
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Whether it is one of these.
    #[must_use]
    pub fn is_of(&self, only: &Only) -> bool {
        let is = |column, asked: &Option<String>| {
            asked
                .as_deref()
                .is_none_or(|asked| kept(asked).as_deref() == self.text(column))
        };
        is("workload", &only.workload)
            && is("key_id", &only.key)
            && is("user_id", &only.user)
            && (only.tags.is_empty() || self.has_tags(only))
    }

    fn has_tags(&self, only: &Only) -> bool {
        let tags = self.tags();
        let has = |(name, value): &(String, String)| {
            tags.get(name).is_some_and(|tag| *tag == *kept_value(value))
        };
        only.tags.iter().all(has)
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
    pub(crate) path: PathBuf,
    pub(crate) only: Only,
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
        let file = real(path);
        let db = connect_to_read(&file).map_err(|error| open(said(&error)))?;
        let layout = layout(&db).map_err(|error| open(said(&error)))?;
        let whose = application(&db).map_err(|error| open(said(&error)))?;
        match layout {
            _ if whose != 0 && whose != i64::from(APPLICATION) => {
                Err(open("it is another program's database".to_owned()))
            }
            1..=LAYOUT => Ok(Self {
                db,
                path: file,
                only: Only::default(),
            }),
            0 => Err(open("it is not a ledger".to_owned())),
            newer => Err(open(format!(
                "it has layout {newer}, this build knows {LAYOUT}"
            ))),
        }
    }

    /// The same ledger, of whose rows [`Reader::each`] gives those alone that are of `only`. Reports, statements and exports are
    /// of these then; everything else is of the whole ledger.
    #[must_use]
    pub fn only(self, only: Only) -> Self {
        Self { only, ..self }
    }

    /// Checks pages and indices, walks the chain, and holds both against the head beside the file;
    /// with `expected`, also looks for a head that was printed before.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn verify(&self, expected: Option<Expected>) -> Result<Verified, ReadError> {
        let mut verified = checked(&self.db, expected)?;
        verified.findings.extend(check::header(&self.path));
        if let Found::Kept(kept) = head_file::read(&self.path) {
            // What is read after it is no older, also while a gate writes.
            let against = name_of(&self.db)
                .and_then(|(ledger, commits)| check::against(&self.db, ledger, commits, &kept));
            match against {
                Ok(found) => verified.findings.extend(found),
                Err(error) if is_damage(&error) && !verified.findings.is_empty() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(verified)
    }

    /// What [`Reader::verify`] says of the file alone.
    pub(crate) fn checked(db: Connection) -> Result<Verified, ReadError> {
        Ok(checked(&db, None)?)
    }

    /// Where the chain ends.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn head(&self) -> Result<Head, ReadError> {
        Ok(head(&self.db)?)
    }

    /// What salvages of this ledger have lost.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn lost(&self) -> Result<Vec<Lost>, ReadError> {
        Ok(lost::read(&self.db)?)
    }

    /// Whether link `head.seq` of the chain is this one; `None` when it was pruned.
    pub(crate) fn has(&self, head: Head) -> Result<Option<bool>, ReadError> {
        let anchor = self.origin()?.1;
        if check::has(&self.db, head)? {
            return Ok(Some(true));
        }
        Ok((head.seq >= anchor).then_some(false))
    }

    /// The ledger's own name, and the last row that was pruned.
    pub(crate) fn origin(&self) -> Result<([u8; 16], i64), ReadError> {
        let sql = "SELECT ledger_id, anchor_seq FROM chain";
        Ok(self
            .db
            .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Calls `each` with the rows, of those that are asked for, that ended in `period`, in the order they were written.
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
            let row = Stored::of(row).map_err(ReadError::from)?;
            if row.is_of(&self.only) {
                each(row)?;
            }
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

/// Everything that a file alone can say. What cannot be read is a finding, too.
fn checked(db: &Connection, expected: Option<Expected>) -> rusqlite::Result<Verified> {
    let as_finding = |error: rusqlite::Error| {
        if is_damage(&error) {
            let says = error.to_string();
            Ok(Finding::Page { says })
        } else {
            Err(error)
        }
    };
    let mut findings = match check::pages(db, &|| false).map(Option::unwrap_or_default) {
        Ok(findings) => findings,
        Err(error) => vec![as_finding(error)?],
    };
    match check::opens_altered(db) {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(as_finding(error)?),
    }
    let mut verified = match verify(db, expected) {
        Ok(verified) => verified,
        Err(error) => {
            findings.push(as_finding(error)?);
            Verified {
                rows: 0,
                anchor: 0,
                head: head(db).unwrap_or(Head::START),
                findings: Vec::new(),
                lost: Vec::new(),
            }
        }
    };
    findings.append(&mut verified.findings);
    findings.dedup();
    verified.findings = findings;
    Ok(verified)
}

fn said(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => "there is no such file, or it may not be read".to_owned(),
        Some(ErrorCode::NotADatabase) => "it is not a ledger".to_owned(),
        _ => error.to_string(),
    }
}
