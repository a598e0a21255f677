//! A ledger that does not open, made into one that does: what can be kept, and a record of what not.
//!
//! A row is kept when the row before it proves it: its hash covers it and the hash before. So one
//! bad page costs the rows on it and one more, wherever it is. Numbers stay as they are and none is
//! used twice; the ledger gets a new name, because its history is another from here on.
//! Invariant: the damaged files are kept under other names, byte for byte. What is lost stands in the
//! new ledger for good, so that no report passes for a whole one.
//! Not here: when a ledger does not open (`open`), which rows can be read (`reading`), how the new file grows (`keeping`) and comes into
//! its place (`in_place`).

mod in_place;
mod keeping;
mod reading;

use std::io::Read as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use self::in_place::{made_for, put, refuse_two_owners, swap};
use self::keeping::Keeping;
use self::reading::rows;
use crate::chain::Head;
use crate::check::{self, is_as_written};
use crate::columns::Value;
use crate::damage::is_malformed;
use crate::head_file::{self, Found, Kept};
use crate::identity::Identity;
use crate::lock::Lock;
use crate::lost::{self, Lost};
use crate::open::{OpenError, known, one_name, random, whole};
use crate::place::FILES;
use crate::plain_file;
use crate::prices;
use crate::schema::{
    self, beside, connect, connect_to_read, make_tables, name_of, name_to_write, real,
};
use crate::shared::unix_ms;
use crate::verify::ends;
use crate::wal::scan;

/// Bytes of a page, SQLite's own default.
const PAGE: usize = 4096;
/// How a database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// What a salvage came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Salvaged {
    /// Settled rows that are kept.
    pub settled: u64,
    /// Incomplete exchanges that are kept; the next start makes them indeterminate.
    pub open: u64,
    /// Incomplete exchanges that could be read and were altered: they are not kept.
    pub open_altered: u64,
    /// Rows that are lost, this time. A range may reach over one that was lost before.
    pub lost: Vec<Lost>,
    /// How many rows that is, without those that were lost before.
    pub rows_lost: u64,
    /// Why reading stopped or was not whole, in the database's words.
    pub faults: Vec<String>,
    /// Where the damaged files are now.
    pub kept_aside: Vec<PathBuf>,
    /// What could not be done once the new ledger was in its place, and what to do.
    pub left_to_do: Option<String>,
}

/// A ledger that opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SalvageOutcome {
    /// It did already, and was left as it is.
    Whole {
        /// Its rows.
        rows: u64,
        /// Where it ends.
        head: Head,
    },
    /// It does now.
    Salvaged(Salvaged),
}

/// Why nothing was salvaged. The files are as they were, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// It is in use, gone, or no ledger.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no file.
    #[error("{0} is not there: nothing can be salvaged")]
    Nothing(String),
    /// Not one row can be read, and nothing tells how many there were.
    #[error(
        "no row of {path} can be read, and there is no {path}.head that says how many there were: nothing was changed. Put a backup back; to begin with empty budgets all the same, move {path} away ({why})"
    )]
    Unreadable {
        /// The ledger.
        path: String,
        /// In the database's words.
        why: String,
    },
    /// The new file could not be written, or the old ones not be moved aside.
    #[error("cannot write beside the ledger: {0}")]
    Write(String),
    /// The new file cannot be given to whom the old one belongs to.
    #[error(
        "{path} belongs to user {user}, and a file in its place cannot be given to that user: {error}. Nothing was changed: run this as that user, or as root"
    )]
    Owner {
        /// The ledger.
        path: String,
        /// Its owner's number.
        user: u32,
        /// In the system's words.
        error: std::io::Error,
    },
    /// The ledger and its lock belong to two users, and either may be the wrong one.
    #[error(
        "{path} belongs to user {ledgers} and {path}.lock to user {locks}. Nothing was changed: give all to whom the gate runs as (chown -h USER {files}), then run this again"
    )]
    Owners {
        /// The ledger.
        path: String,
        /// Its owner's number.
        ledgers: u32,
        /// The owner's of the lock.
        locks: u32,
        /// The files beside each other, quoted for a shell.
        files: String,
    },
}

impl From<rusqlite::Error> for SalvageError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Write(error.to_string())
    }
}

impl From<std::io::Error> for SalvageError {
    fn from(error: std::io::Error) -> Self {
        Self::Write(error.to_string())
    }
}

/// Makes a ledger that opens of the one at `path`, and keeps what was there aside. One that is whole
/// stays as it is.
///
/// # Errors
/// When it is in use or no ledger, or there is no room for the new file. Nothing is changed then.
pub fn salvage(path: &Path) -> Result<SalvageOutcome, SalvageError> {
    let held = Held::take(path)?;
    match held.is_whole() {
        Ok(true) => as_it_is(&held.path),
        // The disk does not give all of it; some it may.
        Ok(false) | Err(OpenError::Damaged { .. } | OpenError::Disk { .. }) => {
            held.made_anew().map(SalvageOutcome::Salvaged)
        }
        Err(error) => Err(error.into()),
    }
}

/// The same of a ledger that may be whole: all its rows go on under a new name, which is what a
/// Postgres that has another history under the old one needs.
///
/// # Errors
/// When it is in use or no ledger, or there is no room for the new file. Nothing is changed then.
pub fn under_new_name(path: &Path) -> Result<Salvaged, SalvageError> {
    Held::take(path)?.made_anew()
}

/// A ledger that no other process writes, until this is dropped.
struct Held {
    path: PathBuf,
    found: Found,
    has_first_page: bool,
    _lock: Lock,
}

impl Held {
    fn take(path: &Path) -> Result<Self, SalvageError> {
        let path = real(path);
        // A log that cannot be read would cost its rows, which nobody would miss.
        for suffix in FILES.iter().filter(|suffix| !suffix.is_empty()) {
            plain_file::check(&beside(&path, suffix))?;
        }
        // Before a lock is made beside what is no ledger.
        has_first_page(&path, head_file::read(&path))?;
        let lock = Lock::take(&path).map_err(|refused| OpenError::of(refused, &path))?;
        let found = head_file::read(&path);
        let has_first_page = has_first_page(&path, found)?;
        one_name(&path)?;
        Ok(Self {
            path,
            found,
            has_first_page,
            _lock: lock,
        })
    }

    /// Whether a start would take it.
    fn is_whole(&self) -> Result<bool, OpenError> {
        if !self.has_first_page {
            return Ok(false);
        }
        let log = scan(&beside(&self.path, "-wal"));
        let log = log.map_err(|error| OpenError::disk(&self.path, &error))?;
        whole(&self.path, log, self.found, None).map(|_| true)
    }

    fn made_anew(&self) -> Result<Salvaged, SalvageError> {
        let path = &self.path;
        let now = unix_ms();
        let made = beside(path, &format!(".salvaged-{now}"));
        let owner = std::fs::metadata(path)?.into();
        refuse_two_owners(owner, path)?;
        let result = made_for(owner, path, &made);
        let result = result.and_then(|()| into_new(path, &made, self.found.kept(), now));
        let result = result.and_then(|(mut salvaged, kept)| {
            salvaged.kept_aside = swap(path, &made, now)?;
            salvaged.left_to_do = put(path, &kept, owner, &beside(&made, ".head")).err();
            Ok(salvaged)
        });
        remove(&made);
        result
    }
}

/// Whether its first page is that of a ledger. One whose first page is damaged is one all the same.
fn has_first_page(path: &Path, found: Found) -> Result<bool, SalvageError> {
    match known(path, found) {
        Ok(Identity::Nothing) => Err(SalvageError::Nothing(path.display().to_string())),
        Ok(_) => Ok(true),
        Err(OpenError::Damaged { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn as_it_is(path: &Path) -> Result<SalvageOutcome, SalvageError> {
    let db = connect_to_read(path)?;
    let rows: i64 = db.query_row("SELECT count(*) FROM settled", [], |row| row.get(0))?;
    Ok(SalvageOutcome::Whole {
        rows: rows.unsigned_abs(),
        head: ends(&db)?.head,
    })
}

fn remove(database: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        drop(std::fs::remove_file(beside(database, suffix)));
    }
}

/// Copies into a new file, which is empty, what can be kept.
fn into_new(
    path: &Path,
    made: &Path,
    beside: Option<Kept>,
    now: u64,
) -> Result<(Salvaged, Kept), SalvageError> {
    let name = random(path)?;
    make_tables(made, name)?;
    let look = schema::beside(made, ".look");
    let mut to = connect(made)?;
    let pages = first_pages(path, made, &to)?;
    let mut salvaged = Salvaged::default();
    let read = readable(path, &pages, &look, &mut salvaged);
    let ends = match read {
        Some(from) => copy(&from, &mut to, beside, now, &mut salvaged),
        None => nothing(&to, beside, now, &mut salvaged),
    };
    remove(&look);
    let ends = ends?;
    let is_blind = ends.1 == Head::START && beside.is_none() && !salvaged.faults.is_empty();
    if is_blind && salvaged.settled + salvaged.open == 0 {
        // Not one row, and nobody knows how many there were.
        let why = salvaged.faults.join("; ");
        return Err(SalvageError::Unreadable {
            path: path.display().to_string(),
            why,
        });
    }
    let (_, commits) = name_of(&to)?;
    // One file without a log, so that one rename puts it in place.
    to.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(to);
    plain_file::read(made)?.sync_all()?;
    let kept = Kept {
        ledger: name,
        anchor: ends.0,
        head: ends.1,
        commits,
    };
    Ok((salvaged, kept))
}

/// First pages with which the damaged file may be read, and where each is from. That page says where the tables
/// are and how long the file is: its own, for a file that was cut; that of a new ledger, as all ledgers that were
/// not copied have the same; and that of a copy of a new one, as all backups have.
fn first_pages(
    path: &Path,
    made: &Path,
    new: &Connection,
) -> Result<Vec<(Vec<u8>, &'static str)>, SalvageError> {
    let first = |file: &Path| -> std::io::Result<Vec<u8>> {
        let mut page = vec![0; PAGE];
        plain_file::read(file)?.read_exact(&mut page)?;
        Ok(page)
    };
    let copy = schema::beside(made, ".copy");
    // Empty, which is taken for a new database.
    drop(plain_file::make(&copy, plain_file::GROUP_READS)?);
    new.execute("VACUUM INTO ?1", [name_to_write(&copy)?])?;
    let of_copy = first(&copy);
    remove(&copy);
    let own = first(path).ok().filter(|page| page.starts_with(MAGIC));
    let own = own.map(|page| (page, "its length was taken from the file"));
    let others = [
        (first(made)?, "its first page was taken from a new ledger"),
        (of_copy?, "its first page was taken from a new backup"),
    ];
    Ok(own.into_iter().chain(others).collect())
}

/// The damaged file, opened to be read: as it is, or a copy of it with another first page.
fn readable(
    path: &Path,
    first_pages: &[(Vec<u8>, &'static str)],
    look: &Path,
    salvaged: &mut Salvaged,
) -> Option<Connection> {
    let open = |path: &Path| connect_to_read(path).and_then(|db| ends(&db).map(|_| db));
    if let Some(db) = fault(open(path), salvaged) {
        return Some(db);
    }
    let copied = |first_page: &[u8]| -> std::io::Result<()> {
        remove(look);
        let length = plain_file::copy(path, look)?;
        if schema::beside(path, "-wal").exists() {
            plain_file::copy(&schema::beside(path, "-wal"), &schema::beside(look, "-wal"))?;
        }
        let mut page = first_page.to_owned();
        let pages = u32::try_from(length / PAGE as u64).unwrap_or(u32::MAX);
        // Pages of the file; and no free ones, which nothing here asks for.
        for (at, word) in [(28, pages), (32, 0), (36, 0)] {
            page[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        // With a log, and its length to be believed.
        page[18..20].copy_from_slice(&[2, 2]);
        page.copy_within(24..28, 92);
        let mut writing = std::fs::OpenOptions::new();
        plain_file::open(writing.write(true), look)?.write_all_at(&page, 0)
    };
    for (page, whence) in first_pages {
        if copied(page).is_ok()
            && let Ok(db) = open(look)
        {
            salvaged.faults.push((*whence).to_owned());
            return Some(db);
        }
    }
    // Without its ends, but some of its rows may be there.
    connect_to_read(path).ok()
}

/// Nothing can be read: all up to the head that is known is lost.
fn nothing(
    to: &Connection,
    beside: Option<Kept>,
    now: u64,
    salvaged: &mut Salvaged,
) -> rusqlite::Result<(Head, Head)> {
    let anchor = beside.map_or(Head::START, |kept| kept.anchor);
    let mut keeping = Keeping::new(to, anchor, Vec::new(), now);
    keeping.end(beside.map(|kept| kept.head), salvaged)
}

fn copy(
    from: &Connection,
    to: &mut Connection,
    beside: Option<Kept>,
    now: u64,
    salvaged: &mut Salvaged,
) -> rusqlite::Result<(Head, Head)> {
    let own = fault(ends(from), salvaged);
    let own_name = fault(name_of(from), salvaged);
    // Another ledger's head says nothing of this one.
    let beside = beside.filter(|kept| own_name.is_none_or(|(name, _)| name == kept.ledger));
    if let (Some((_, commits)), Some(kept)) = (own_name, beside)
        && commits < kept.commits
    {
        let missing = kept.commits - commits;
        salvaged.faults.push(format!(
            "at least {missing} commits at the end are missing, and with them what was open then"
        ));
    }
    let known_lost = fault(lost::read(from), salvaged).unwrap_or_default();
    let anchor = own.map(|own| own.anchor).or(beside.map(|kept| kept.anchor));
    let head = head_of(from, own.map(|own| own.head), beside.map(|kept| kept.head));
    let mut keeping = Keeping::new(to, anchor.unwrap_or(Head::START), known_lost, now);
    rows(from, &mut keeping, head, salvaged)?;
    let ends = keeping.end(head, salvaged)?;
    opens(from, to, salvaged)?;
    fault(prices::copy(from, to), salvaged);
    Ok(ends)
}

/// Where the ledger ended: as its own table says if a row bears it out, or as the head beside it
/// says, whichever is later.
fn head_of(from: &Connection, own: Option<Head>, beside: Option<Head>) -> Option<Head> {
    let is_borne_out = |head: &Head| check::has_row(from, *head).unwrap_or(false);
    let heads = [own.filter(is_borne_out), beside];
    heads
        .into_iter()
        .flatten()
        .max_by_key(|head| head.seq)
        .or(own)
}

/// What could be read; what could not is told.
fn fault<T>(read: rusqlite::Result<T>, salvaged: &mut Salvaged) -> Option<T> {
    read.map_err(|error| {
        let says = error.to_string();
        if !salvaged.faults.contains(&says) {
            salvaged.faults.push(says);
        }
    })
    .ok()
}

/// Incomplete exchanges, each as far as it can be read.
fn opens(from: &Connection, to: &mut Connection, salvaged: &mut Salvaged) -> rusqlite::Result<()> {
    let width = check::OPENS.matches(',').count() + 1;
    let sql = format!(
        "INSERT INTO open SELECT {} WHERE NOT EXISTS (SELECT 1 FROM settled WHERE id = ?1) ON CONFLICT DO NOTHING",
        (1..=width)
            .map(|n| format!("?{n}"))
            .collect::<Vec<_>>()
            .join(",")
    );
    let tx = to.transaction()?;
    let mut read = || -> rusqlite::Result<rusqlite::Result<()>> {
        let mut statement = match from.prepare(check::OPENS) {
            Ok(statement) => statement,
            Err(error) => return Ok(Err(error)),
        };
        let mut rows = match statement.query([]) {
            Ok(rows) => rows,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Ok(())),
                Err(error) => return Ok(Err(error)),
            };
            let values: Vec<Value> = (0..width).map_while(|at| row.get(at).ok()).collect();
            let is_good = values.len() == width && is_as_written(row).unwrap_or(false);
            if !is_good {
                salvaged.open_altered += 1;
                continue;
            }
            match tx.execute(&sql, rusqlite::params_from_iter(values)) {
                Ok(kept) => salvaged.open += kept as u64,
                // The new file refuses what no ledger has written.
                Err(error) if is_malformed(&error) => salvaged.open_altered += 1,
                Err(error) => return Err(error),
            }
        }
    };
    let ended = read()?;
    tx.commit()?;
    fault(ended, salvaged);
    Ok(())
}

#[cfg(test)]
mod tests;
