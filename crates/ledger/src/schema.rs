//! The file: its tables, and how a connection to it is set up.
//!
//! `settled` is the ledger, `open` what has been let in and has not ended, `chain` one row: where
//! the chain starts (the anchor, which moves when old rows are pruned) and ends (the head), and how
//! many commits there were. `lost` is what salvages could not keep.
//! Invariant: every commit is on disk when it returns (WAL, `synchronous = FULL`). A file is made
//! whole or not at all, and says in its first page whose it is.
//! Not here: what is written when (`store`), whether a file is a ledger (`identity`).

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::chain::{Hash, Head};
use crate::columns::{COLUMNS, Kind, WIDTH_V1, WIDTH_V2, WIDTH_V3, WIDTH_V4, WIDTH_V5, WIDTH_V6};
use crate::lost;

/// Whose file it is, in `PRAGMA application_id` and in the header: `Tllg`.
pub(crate) const APPLICATION: u32 = 0x546c_6c67;

/// Layout of the tables, in `PRAGMA user_version`. Layout 6 lacks the columns of version 7 of the encoding, and what calls of tools that are open say of their tool; layout 5 also lacks the columns of version 6 of the encoding; layout 4 also lacks those of version 5; layout 3 also
/// lacks those of version 4; layout 2 also lacks those of version 3, and who asked of what is open; layout 1 also lacks those
/// of version 2.
pub(crate) const LAYOUT: i64 = 7;

/// Columns of `open` that came later, each with the first layout that has it: the ledger's own of that name.
const LATER_OF_OPEN: [(i64, &str); 6] = [
    (3, "key_id"),
    (3, "user_id"),
    (3, "tags"),
    (7, "mcp_method"),
    (7, "mcp_name"),
    (7, "user_issuer"),
];

/// Pages of the log before it is copied into the file.
const CHECKPOINT_PAGES: i64 = 4000;

/// A file beside the ledger.
pub(crate) fn beside(ledger: &Path, suffix: &str) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The file itself where the path is a link: the log stands beside the file.
pub(crate) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    // Links to a file that is still to be made.
    let mut file = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&file) {
            Ok(target) => file = file.with_file_name(target),
            Err(_) if file == path => break,
            Err(_) => return in_real_directory(&file).unwrap_or(file),
        }
    }
    path.to_owned()
}

/// Links that lead from one to another before they are given up, as in the kernel.
const LINKS_MAX: usize = 40;

/// The same name in its directory without links on the way: SQLite, told to follow none, refuses those too.
fn in_real_directory(path: &Path) -> io::Result<PathBuf> {
    let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let real = std::fs::canonicalize(directory.unwrap_or(Path::new(".")))?;
    Ok(path
        .file_name()
        .map_or(real.clone(), |name| real.join(name)))
}

/// Opens a database. A link in the place of the file is not followed: its directory may be another user's. So it is
/// with what the connection attaches or writes with `VACUUM INTO`, by a name of [`name_to_write`].
///
/// # Errors
/// As SQLite's; also where the file is a link.
pub(crate) fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let path = in_real_directory(path).map_err(|error| cannot_open(path, &error))?;
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(path, flags)
}

/// The name under which a connection writes another database.
///
/// # Errors
/// Where its directory is not there or the name is not Unicode.
pub(crate) fn name_to_write(path: &Path) -> rusqlite::Result<String> {
    let real = in_real_directory(path).map_err(|error| cannot_open(path, &error))?;
    real.into_os_string()
        .into_string()
        .map_err(|_| cannot_open(path, &"its name is not Unicode"))
}

/// Makes the file (mode 0640) and its tables; there must be none, or an empty one.
pub(crate) fn make(path: &Path, ledger_id: [u8; 16]) -> rusqlite::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o640);
    options
        .open(path)
        .map_err(|error| cannot_open(path, &error))?;
    make_tables(path, ledger_id)
}

/// Makes the tables of a file that is empty.
pub(crate) fn make_tables(path: &Path, ledger_id: [u8; 16]) -> rusqlite::Result<()> {
    let mut db = open_existing(path)?;
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // Before there is a log, so that the first page of the file has it all.
    create(&mut db, ledger_id)?;
    drop(db);
    Ok(())
}

/// A connection that writes to a file that is there.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let db = open_existing(path)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

fn open_existing(path: &Path) -> rusqlite::Result<Connection> {
    let db = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(Duration::from_secs(1))?;
    Ok(db)
}

/// Whether closing copies the log into the file and removes it, as SQLite does unless told
/// otherwise. Not where the file is damaged, or where the log's name may be another file's by now.
pub(crate) fn tidy_at_close(db: &Connection, tidy: bool) {
    drop(db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !tidy));
}

pub(crate) fn cannot_open(path: &Path, error: &impl std::fmt::Display) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    rusqlite::Error::SqliteFailure(code, Some(format!("{}: {error}", path.display())))
}

/// A connection that reads the file as it is.
pub(crate) fn connect_to_copy(path: &Path) -> rusqlite::Result<Connection> {
    let db = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.busy_timeout(Duration::from_secs(5))?;
    Ok(db)
}

/// A connection that reads, also while a gate writes.
pub(crate) fn connect_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let db = connect_to_copy(path)?;
    // A file that is damaged here says so to whoever asks more of it.
    if let Ok(layout) = layout(&db)
        && let Some(width) = width_of(layout)
    {
        add_missing_columns(&db, width, &missing_of_open(layout))?;
    }
    Ok(db)
}

/// Makes the tables of a new file.
fn create(db: &mut Connection, ledger_id: [u8; 16]) -> rusqlite::Result<()> {
    let tx = db.transaction()?;
    tx.execute_batch(&tables())?;
    let chain = "INSERT INTO chain VALUES (1, ?1, 0, zeroblob(32), 0, zeroblob(32), 0)";
    tx.execute(chain, [ledger_id])?;
    tx.pragma_update(None, "user_version", LAYOUT)?;
    tx.pragma_update(None, "application_id", APPLICATION)?;
    tx.commit()
}

/// The columns that what is open lacks in an older layout.
fn missing_of_open(layout: i64) -> Vec<&'static str> {
    let later = LATER_OF_OPEN.iter().filter(|(since, _)| layout < *since);
    later.map(|(_, name)| *name).collect()
}

/// How many columns the rows of an older layout have.
fn width_of(layout: i64) -> Option<usize> {
    match layout {
        1 => Some(WIDTH_V1),
        2 => Some(WIDTH_V2),
        3 => Some(WIDTH_V3),
        4 => Some(WIDTH_V4),
        5 => Some(WIDTH_V5),
        6 => Some(WIDTH_V6),
        _ => None,
    }
}

/// Whether the table has other columns than its layout: its number was altered.
pub(crate) fn is_misnumbered(db: &Connection, layout: i64) -> rusqlite::Result<bool> {
    let mut names = db.prepare("SELECT name FROM pragma_table_info('settled', 'main')")?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    let is_there = |column: &str| names.iter().any(|name| name.eq_ignore_ascii_case(column));
    let width = width_of(layout).unwrap_or(COLUMNS.len());
    let (due, later) = COLUMNS.split_at(width);
    Ok(!due.iter().all(|(name, _)| is_there(name)) || later.iter().any(|(name, _)| is_there(name)))
}

/// Adds the columns that a file of an older layout lacks. Its rows have NULL there, so that their hashes hold.
pub(crate) fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    let older = layout(db)?;
    let Some(width) = width_of(older) else {
        return Ok(());
    };
    let tx = db.transaction()?;
    for (name, kind) in COLUMNS.iter().skip(width) {
        let kind = type_of(*kind);
        tx.execute_batch(&format!("ALTER TABLE settled ADD COLUMN {name} {kind}"))?;
    }
    for name in missing_of_open(older) {
        tx.execute_batch(&format!("ALTER TABLE open ADD COLUMN {name} TEXT"))?;
    }
    tx.pragma_update(None, "user_version", LAYOUT)?;
    tx.commit()
}

/// Gives a reader of a file whose rows have so many columns the missing ones, all NULL; the file stays as it is.
fn add_missing_columns(
    db: &Connection,
    width: usize,
    missing_of_open: &[&str],
) -> rusqlite::Result<()> {
    let missing: Vec<&str> = COLUMNS.iter().skip(width).map(|(name, _)| *name).collect();
    for (table, missing) in [("settled", &*missing), ("open", missing_of_open)] {
        if missing.is_empty() {
            continue;
        }
        let missing: Vec<String> = missing
            .iter()
            .map(|name| format!("NULL AS {name}"))
            .collect();
        db.execute_batch(&format!(
            "CREATE TEMP VIEW {table} AS SELECT *, {} FROM main.{table}",
            missing.join(", ")
        ))?;
    }
    Ok(())
}

/// The layout of an open file; 0 where it is not a ledger.
pub(crate) fn layout(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "INTEGER",
        Kind::Text => "TEXT",
        Kind::Bytes => "BLOB",
    }
}

/// Adds what an earlier build of this layout did not make.
pub(crate) fn complete(db: &mut Connection) -> rusqlite::Result<()> {
    let tx = db.transaction()?;
    tx.execute_batch(lost::TABLE)?;
    if !has_sums(&tx)? {
        tx.execute_batch("ALTER TABLE open ADD COLUMN sum INTEGER; ALTER TABLE open ADD COLUMN mark_sum INTEGER;")?;
    }
    if application(&tx)? == 0 {
        tx.pragma_update(None, "application_id", APPLICATION)?;
    }
    tx.commit()
}

/// Whether what is open has sums; an earlier build wrote none. One column of the two is damage, which who reads
/// them finds.
pub(crate) fn has_sums(db: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_table_info('open') WHERE name COLLATE NOCASE IN ('sum', 'mark_sum')";
    Ok(db.query_row(sql, [], |row| row.get::<_, i64>(0))? > 0)
}

/// Whose file it is; 0 for nobody's.
pub(crate) fn application(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA application_id", [], |row| row.get(0))
}

fn tables() -> String {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, kind)| format!("  {name} {}", type_of(*kind)))
        .collect();
    format!(
        "CREATE TABLE settled (
  seq INTEGER PRIMARY KEY,
{},
  hash BLOB NOT NULL,
  prompt_drift INTEGER GENERATED ALWAYS AS (prompt_reported - prompt_counted) VIRTUAL,
  completion_drift INTEGER GENERATED ALWAYS AS (completion_reported - completion_counted) VIRTUAL
) STRICT;
CREATE UNIQUE INDEX settled_id ON settled (id);
CREATE INDEX settled_ended ON settled (ended_unix_ms);
CREATE TABLE open (
  id BLOB PRIMARY KEY,
  started_unix_ms INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  trace_id TEXT,
  workload TEXT,
  budget_group TEXT,
  route TEXT,
  backend TEXT,
  model_asked TEXT,
  model_sent TEXT,
  reserved_tokens INTEGER NOT NULL,
  at_most_tokens INTEGER,
  progress_tokens INTEGER NOT NULL DEFAULT 0,
  bytes_out INTEGER NOT NULL DEFAULT 0,
  sum INTEGER,
  mark_sum INTEGER,
  key_id TEXT,
  user_id TEXT,
  tags TEXT,
  mcp_method TEXT,
  mcp_name TEXT,
  user_issuer TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE chain (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  ledger_id BLOB NOT NULL,
  anchor_seq INTEGER NOT NULL,
  anchor_hash BLOB NOT NULL,
  head_seq INTEGER NOT NULL,
  head_hash BLOB NOT NULL,
  probes INTEGER NOT NULL
) STRICT;
{}",
        columns.join(",\n"),
        lost::TABLE
    )
}

/// The ledger's own name, and its commits since it was made.
pub(crate) fn name_of(db: &Connection) -> rusqlite::Result<([u8; 16], i64)> {
    db.query_row("SELECT ledger_id, probes FROM chain", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// The head as the file has it.
pub(crate) fn head(db: &Connection) -> rusqlite::Result<Head> {
    db.query_row("SELECT head_seq, head_hash FROM chain", [], |row| {
        Ok(Head {
            seq: row.get(0)?,
            hash: Hash(row.get(1)?),
        })
    })
}

#[cfg(test)]
mod tests;
