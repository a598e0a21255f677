//! Whose file is at the ledger's path: nothing is written to one that is not a ledger.
//!
//! Invariant: reads bytes, and opens nothing as a database that could be another program's.
//! Not here: whether a ledger is whole (`check`).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::plain_file;
use crate::schema::{APPLICATION, beside, open};

/// What is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// No file, or an empty one.
    Nothing,
    Ledger,
    /// Not a database at all.
    NoDatabase,
    /// Another program's database.
    Foreign,
}

const MAGIC: &[u8] = b"SQLite format 3\0";
/// Where the header has the application's id.
const APPLICATION_AT: usize = 68;
/// Largest file whose tables stand in the log alone.
const COPIED_MAX: u64 = 64 << 20;

pub(crate) fn identify(path: &Path) -> io::Result<Identity> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Identity::Nothing),
        file => file?,
    };
    let mut header = Vec::with_capacity(100);
    (&mut file).take(100).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(Identity::Nothing);
    }
    let id = header.get(APPLICATION_AT..APPLICATION_AT + 4);
    let Some(id) = id.filter(|_| header.starts_with(MAGIC)) else {
        return Ok(Identity::NoDatabase);
    };
    if id == APPLICATION.to_be_bytes() {
        return Ok(Identity::Ledger);
    }
    // An earlier build wrote no id; another one than ours is damage, which a check will tell.
    if is_ledger(path, file.metadata()?.len())? {
        Ok(Identity::Ledger)
    } else {
        Ok(Identity::Foreign)
    }
}

/// Whether it has a ledger's tables. To open a database of
/// another program could leave files beside it: the file is read as if nothing could change it, and
/// where its log may have more, a copy of both is.
fn is_ledger(path: &Path, length: u64) -> io::Result<bool> {
    let unchanging = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let as_it_is = Connection::open_with_flags(unchanging_name(path), unchanging);
    if as_it_is.is_ok_and(|db| has_tables(&db).unwrap_or(false)) {
        return Ok(true);
    }
    if length > COPIED_MAX || !beside(path, "-wal").exists() {
        return Ok(false);
    }
    let copy = beside(path, &format!(".look-{}", std::process::id()));
    let mut looked = Ok(false);
    for suffix in ["", "-wal"] {
        let from = beside(path, suffix);
        if from.exists()
            && let Err(error) = plain_file::copy(&from, &beside(&copy, suffix))
        {
            looked = Err(error);
        }
    }
    if looked.is_ok() {
        let copied = open(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE);
        looked = Ok(copied.is_ok_and(|db| has_tables(&db).unwrap_or(false)));
    }
    for suffix in ["", "-wal", "-shm", "-journal"] {
        drop(std::fs::remove_file(beside(&copy, suffix)));
    }
    looked
}

/// The name under which SQLite neither locks a file nor looks for its log.
fn unchanging_name(path: &Path) -> PathBuf {
    let name = path.display().to_string();
    let name = name
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{name}?immutable=1").into()
}

fn has_tables(db: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = db.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('settled', 'open', 'chain')",
        [],
        |row| row.get(0),
    )?;
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(tables == 3 && version > 0)
}
