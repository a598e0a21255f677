//! Opening a ledger: what a crash, a torn file or a damaged disk has left is put right and told.
//!
//! Invariant: nothing is dropped in silence. A file that cannot be read is kept aside under another
//! name; what was open becomes indeterminate, each exactly once.
//! Not here: reading rows out of a damaged file (`salvage`).

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, Row};

use crate::id::RecordId;
use crate::intake::Options;
use crate::lock::Refused;
use crate::row::{Admission, Progress, Settlement};
use crate::salvage::{Salvaged, salvage};
use crate::schema::{LAYOUT, beside, connect, create, migrate};
use crate::store::{Note, Store};
use crate::verify::{Finding, verify};
use crate::wal::{Tail, scan};
use crate::writer::unix_ms;

/// Rows at the end whose hashes are looked at when a ledger is opened.
const LOOK_BACK: i64 = 10_000;

/// Why a ledger was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes it.
    #[error("{path} is written by another process{}; a ledger has one writer: stop that one, or name another file", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked {
        /// The ledger.
        path: String,
        /// That process, where it said.
        pid: Option<u32>,
    },
    /// A newer build made it.
    #[error(
        "{path} has layout {found}, this build knows {LAYOUT}: use the build that made it, or name another file"
    )]
    Newer {
        /// The ledger.
        path: String,
        /// Its layout.
        found: i64,
    },
    /// The disk says no.
    #[error(
        "cannot open {path}: {says}; check that its directory exists, has room, and may be written"
    )]
    Disk {
        /// The ledger.
        path: String,
        /// In the disk's or the database's words.
        says: String,
    },
    /// No thread for the writer.
    #[error("cannot start the ledger's writer: {0}")]
    Thread(#[source] io::Error),
}

impl OpenError {
    pub(crate) fn of(refused: Refused, path: &Path) -> Self {
        match refused {
            Refused::Held(pid) => Self::Locked {
                path: path.display().to_string(),
                pid,
            },
            Refused::Io(error) => Self::disk(path, &error),
        }
    }

    fn disk(path: &Path, says: &impl ToString) -> Self {
        Self::Disk {
            path: path.display().to_string(),
            says: says.to_string(),
        }
    }
}

/// What opening found and did. Empty when the last process ended in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Admissions without an end, now indeterminate.
    pub indeterminate: u64,
    /// The log as it was found.
    pub log: Tail,
    /// Where a damaged file or log was kept.
    pub kept_aside: Vec<PathBuf>,
    /// What was read out of a damaged file.
    pub salvaged: Option<Salvaged>,
    /// What is wrong with the newest rows. The ledger serves on: `verify` tells all of it.
    pub findings: Vec<Finding>,
}

pub(crate) fn open(options: &Options) -> Result<(Store, Recovered), OpenError> {
    let path = &options.path;
    let mut recovered = Recovered::default();
    let log = beside(path, "-wal");
    recovered.log = scan(&log).map_err(|error| OpenError::disk(path, &error))?;
    if recovered.log.is_damaged {
        let aside = beside(path, &format!("-wal.damaged-{}", unix_ms()));
        std::fs::copy(&log, &aside).map_err(|error| OpenError::disk(path, &error))?;
        recovered.kept_aside.push(aside);
    }
    let store = match look(options, &mut recovered) {
        Err(error) if is_damage(&error) => begin_again(options, &mut recovered),
        done => done,
    };
    let mut store = store.map_err(|error| OpenError::disk(path, &error))?;
    let found: i64 = store
        .db
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|error| OpenError::disk(path, &error))?;
    if found > LAYOUT {
        let path = path.display().to_string();
        return Err(OpenError::Newer { path, found });
    }
    recovered.indeterminate =
        settle_open(&mut store).map_err(|error| OpenError::disk(path, &error))?;
    if let Some(pages) = options.pages_max {
        drop(store.db.pragma_update(None, "max_page_count", pages));
    }
    Ok((store, recovered))
}

/// Opens and reads what a damaged file would choke on.
fn look(options: &Options, recovered: &mut Recovered) -> rusqlite::Result<Store> {
    let mut db = connect(&options.path)?;
    let made: i64 = db.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'chain'",
        [],
        |row| row.get(0),
    )?;
    if made == 0 {
        create(&mut db, random())?;
    }
    migrate(&mut db)?;
    let store = Store::new(db, options.node.clone())?;
    let verified = verify(&store.db, Some(store.head.seq - LOOK_BACK), None)?;
    recovered.findings = verified.findings;
    opens(&store.db)?;
    Ok(store)
}

/// Whether the file is not what a database looks like.
fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    ) || matches!(
        error,
        rusqlite::Error::QueryReturnedNoRows | rusqlite::Error::InvalidColumnType(..)
    )
}

/// Keeps the damaged file aside and starts a new one with what can be read of it.
fn begin_again(options: &Options, recovered: &mut Recovered) -> rusqlite::Result<Store> {
    let name = format!(".damaged-{}", unix_ms());
    let aside = beside(&options.path, &name);
    for suffix in ["", "-wal", "-shm"] {
        let (from, to) = (beside(&options.path, suffix), beside(&aside, suffix));
        if from.exists() && std::fs::rename(&from, &to).is_ok() && suffix != "-shm" {
            recovered.kept_aside.push(to);
        }
    }
    let mut db = connect(&options.path)?;
    create(&mut db, random())?;
    recovered.salvaged = Some(salvage(&aside, &mut db)?);
    Store::new(db, options.node.clone())
}

/// Makes every open admission indeterminate, in one commit.
fn settle_open(store: &mut Store) -> rusqlite::Result<u64> {
    let now = unix_ms();
    let notes: Vec<Note> = opens(&store.db)?
        .into_iter()
        .map(|(open, progress)| {
            Note::Settle(Box::new(Settlement::indeterminate(open, progress, now)))
        })
        .collect();
    if notes.is_empty() {
        return Ok(0);
    }
    Ok(store.apply(notes.iter())?.settled)
}

fn opens(db: &Connection) -> rusqlite::Result<Vec<(Admission, Progress)>> {
    let sql = "SELECT id,started_unix_ms,request_id,trace_id,workload,budget_group,route,backend,model_asked,\
               model_sent,reserved_tokens,at_most_tokens,progress_tokens,bytes_out FROM open ORDER BY id";
    db.prepare(sql)?.query_map([], open_of)?.collect()
}

fn open_of(row: &Row<'_>) -> rusqlite::Result<(Admission, Progress)> {
    let number = |at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
    let text = |at| {
        Ok::<_, rusqlite::Error>(
            row.get::<_, Option<String>>(at)?
                .map(String::into_boxed_str),
        )
    };
    let id = RecordId(row.get(0)?);
    let open = Admission {
        id,
        started_unix_ms: number(1)?,
        request_id: text(2)?.unwrap_or_default(),
        trace_id: text(3)?,
        workload: text(4)?,
        budget_group: text(5)?,
        route: text(6)?,
        backend: text(7)?,
        model_asked: text(8)?,
        model_sent: text(9)?,
        reserved: number(10)?,
        at_most: row.get::<_, Option<i64>>(11)?.map(i64::unsigned_abs),
    };
    let progress = Progress {
        id,
        tokens: number(12)?,
        bytes_out: number(13)?,
    };
    Ok((open, progress))
}

/// Bytes that name this ledger, from the kernel.
fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        bytes[..8].copy_from_slice(&unix_ms().to_be_bytes());
        bytes[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    }
    bytes
}
