//! Opening a ledger: one that is whole, or none.
//!
//! What a crash leaves is put right and told: a torn end of the log, incomplete exchanges. What
//! a crash cannot have left is refused, and nothing at the path is changed: rows, and what budgets
//! have spent, must not vanish because a file was damaged, cut, set back, taken away or replaced.
//! Invariant: a ledger that opens holds every row that was acknowledged, as far as the file itself
//! and the head beside it can tell; what was open becomes indeterminate, each exactly once.
//! Not here: the checks (`check`), what can be kept of a damaged ledger (`salvage`).

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::attribution::Attribution;
use rusqlite::{Connection, Row};

use crate::chain::Head;
use crate::check::{self, Rest};
use crate::damage::is_damage;
use crate::entry::Ending;
use crate::head_file::{self, Found};
use crate::id::RecordId;
use crate::identity::{Identity, identify};
use crate::lock::{Lock, Refused};
use crate::lost::{self, Lost};
use crate::row::{Admission, Named, Progress, Settlement};
use crate::schema::{self, LAYOUT, beside, connect, connect_to_read, name_of, tidy_at_close};
use crate::shared::{Options, unix_ms};
use crate::store::{Note, Store};
use crate::verify::Finding;
use crate::wal::{Tail, scan};

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
    /// It has more than one name.
    #[error(
        "{path} has {links} names (hard links). Its log stands beside one name, and who opens another does not see it: rows would be lost. Remove the other names (find / -samefile {quoted}), or, while nothing has it open, give this one a file of its own: cp -p {quoted} {quoted}.own && mv {quoted}.own {quoted}",
        quoted = quoted(path)
    )]
    Linked {
        /// The ledger.
        path: String,
        /// How many.
        links: u64,
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
    /// Something else is there.
    #[error(
        "{path} is {what} and no ledger; it was not touched: name another file, or move it away"
    )]
    Foreign {
        /// The ledger's path.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// It was here, and is not any more.
    #[error(
        "{path} is gone: it held rows up to {written}, as {path}.head says{}. A new one would begin with empty budgets. Put it or a backup of it back; to begin a new one all the same, end the gate that had it and remove {path}.head",
        rescued.as_ref().map(|file| format!(", and a copy of it is {}", file.display())).unwrap_or_default()
    )]
    Gone {
        /// The ledger's path.
        path: String,
        /// Where it ended.
        written: Head,
        /// What the gate that lost it saved of it.
        rescued: Option<PathBuf>,
    },
    /// The log is there, and the file is not.
    #[error("{path} is gone and its log {path}-wal is there: put both back, or move the log away")]
    Parted {
        /// The ledger's path.
        path: String,
    },
    /// It is not as it was written.
    #[error(
        "{path} is not as it was written: {}. The gate does not start on it, because rows and what budgets have spent could be missing. Put a backup back (docs/backup.md), or accept what is lost: tollgate usage --ledger {path} salvage",
        words(findings)
    )]
    Damaged {
        /// The ledger.
        path: String,
        /// What was found first.
        findings: Vec<Finding>,
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
    /// A ledger needs a name that no other has.
    #[error(
        "cannot name the ledger {path}: the system gives no random bytes; try again, and look at the sandbox's rules for getrandom"
    )]
    Random {
        /// The ledger.
        path: String,
    },
    /// No thread for the writer.
    #[error("cannot start the ledger's writer: {0}")]
    Thread(#[source] io::Error),
}

/// A path as a shell takes it, whatever is in it.
pub(crate) fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// The first few findings, for a line.
fn words(findings: &[Finding]) -> String {
    let said: Vec<String> = findings.iter().take(3).map(ToString::to_string).collect();
    let more = findings.len().saturating_sub(said.len());
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", said.join("; "))
}

impl OpenError {
    pub(crate) fn of(refused: Refused, path: &Path) -> Self {
        match refused {
            Refused::Held(pid) => Self::Locked {
                path: path.display().to_string(),
                pid,
            },
            Refused::File(error) => Self::disk(path, &error),
        }
    }

    pub(crate) fn disk(path: &Path, says: &impl ToString) -> Self {
        Self::Disk {
            path: path.display().to_string(),
            says: says.to_string(),
        }
    }
}

/// What opening found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// There was none: it was made, and all budgets begin with nothing spent.
    pub is_new: bool,
    /// Incomplete admissions, now indeterminate.
    pub indeterminate: u64,
    /// The log as it was found.
    pub log: Tail,
    /// What salvages have lost, ever.
    pub lost: Vec<Lost>,
    /// Nothing beside the ledger said where it ended, so that nothing tells whether it was set back.
    pub without_head: bool,
    /// What the bounded check did not come to; it is checked while the gate serves.
    pub unchecked: bool,
}

/// An open ledger, what was found, and what is left to check.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) recovered: Recovered,
    pub(crate) rest: Rest,
    pub(crate) lock: Lock,
}

pub(crate) fn open(options: &Options) -> Result<Opened, OpenError> {
    let path = &options.path;
    let disk = |error: rusqlite::Error| OpenError::disk(path, &error);
    // Before anything is made beside a file that may be somebody else's.
    known(path, head_file::read(path))?;
    let lock = Lock::take(path).map_err(|refused| OpenError::of(refused, path))?;
    let found = head_file::read(path);
    let mut recovered = Recovered::default();
    let identity = known(path, found)?;
    one_name(path)?;
    if identity == Identity::Nothing {
        schema::make(path, random(path)?).map_err(disk)?;
        recovered.is_new = true;
    }
    recovered.log = scan(&beside(path, "-wal")).map_err(|error| OpenError::disk(path, &error))?;
    let rest = whole(path, recovered.log, found, Some(options.check_for))?;
    let mut db = connect(path).map_err(disk)?;
    schema::migrate(&mut db).map_err(disk)?;
    schema::complete(&mut db).map_err(disk)?;
    recovered.lost = lost::read(&db).map_err(disk)?;
    let mut store = Store::new(db, path).map_err(disk)?;
    recovered.without_head = found.kept().is_none() && store.head.seq > 0;
    recovered.unchecked = !rest.is_done();
    recovered.indeterminate = settle_open(&mut store, &options.node).map_err(disk)?;
    store.say_head();
    if let Some(pages) = options.pages_max {
        drop(store.db.pragma_update(None, "max_page_count", pages));
    }
    Ok(Opened {
        store,
        recovered,
        rest,
        lock,
    })
}

/// What is at the path: a ledger, or nothing where nothing was.
pub(crate) fn known(path: &Path, found: Found) -> Result<Identity, OpenError> {
    let identity = identify(path).map_err(|error| OpenError::disk(path, &error))?;
    let shown = path.display().to_string();
    let foreign = |what| {
        let path = shown.clone();
        Err(OpenError::Foreign { path, what })
    };
    match (identity, found.kept()) {
        (Identity::Ledger, _) => Ok(Identity::Ledger),
        (Identity::Nothing, Some(kept)) => Err(OpenError::Gone {
            path: shown,
            written: kept.head,
            rescued: rescued(path),
        }),
        (Identity::Nothing, None) => {
            let log = std::fs::metadata(beside(path, "-wal"));
            if log.is_ok_and(|log| log.len() > 0) {
                return Err(OpenError::Parted { path: shown });
            }
            Ok(Identity::Nothing)
        }
        // The head beside it says that there was a ledger.
        (Identity::NoDatabase, Some(_)) => {
            let says = "its first page is not that of a database".to_owned();
            Err(OpenError::Damaged {
                path: shown,
                findings: vec![Finding::Page { says }],
            })
        }
        (Identity::NoDatabase, None) => foreign("not a database"),
        (Identity::Foreign, _) => foreign("another program's database"),
    }
}

/// Refuses a file that has a second name: SQLite's log stands beside one.
pub(crate) fn one_name(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path) {
        Ok(file) if file.nlink() > 1 => Err(OpenError::Linked {
            path: path.display().to_string(),
            links: file.nlink(),
        }),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(OpenError::disk(path, &error)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Name of a copy that a gate saves when its file is taken away.
pub(crate) const RESCUED: &str = ".rescued-";

/// The newest such copy.
fn rescued(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let entries = std::fs::read_dir(dir.unwrap_or(Path::new("."))).ok()?;
    let copies = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let file = path.file_name().and_then(|name| name.to_str());
        file.and_then(|file| file.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(RESCUED) && !rest.ends_with(".part"))
    });
    copies.max()
}

/// Refuses what is damaged, cut or set back, as far as can be told within `bound`. Changes nothing.
pub(crate) fn whole(
    path: &Path,
    log: Tail,
    found: Found,
    bound: Option<Duration>,
) -> Result<Rest, OpenError> {
    let damaged = |findings| OpenError::Damaged {
        path: path.display().to_string(),
        findings,
    };
    if log.is_damaged {
        return Err(damaged(vec![Finding::Log]));
    }
    let looked = look(path, found, bound);
    let (findings, rest) = match looked {
        Ok(Looked::Newer(found)) => {
            let path = path.display().to_string();
            return Err(OpenError::Newer { path, found });
        }
        Ok(Looked::Known(findings, rest)) => (findings, rest),
        Err(error) if is_damage(&error) => {
            let says = error.to_string();
            (vec![Finding::Page { says }], Rest::default())
        }
        Err(error) => return Err(OpenError::disk(path, &error)),
    };
    if findings.is_empty() {
        Ok(rest)
    } else {
        Err(damaged(findings))
    }
}

enum Looked {
    Newer(i64),
    Known(Vec<Finding>, Rest),
}

fn look(path: &Path, found: Found, bound: Option<Duration>) -> rusqlite::Result<Looked> {
    // Read-only: `connect` would write WAL mode into a backup, which is not in it. A `-journal` that a
    // cut-off making left can be rolled back by a writer only.
    let db = if beside(path, "-journal").exists() {
        let db = connect(path)?;
        tidy_at_close(&db, false);
        db
    } else {
        connect_to_read(path)?
    };
    let layout = schema::layout(&db)?;
    if layout > LAYOUT {
        return Ok(Looked::Newer(layout));
    }
    let whose = schema::application(&db)?;
    if whose != 0 && whose != i64::from(schema::APPLICATION) {
        let says = "its header says that it is another program's".to_owned();
        let findings = vec![Finding::Page { says }];
        return Ok(Looked::Known(findings, Rest::default()));
    }
    if layout < 1 || schema::is_misnumbered(&db, layout)? {
        let says = format!("its layout is {layout}, which its tables are not of");
        let findings = vec![Finding::Page { says }];
        return Ok(Looked::Known(findings, Rest::default()));
    }
    if let Some(finding) = check::header(path) {
        return Ok(Looked::Known(vec![finding], Rest::default()));
    }
    if let Found::Kept(kept) = found {
        let (ledger, commits) = name_of(&db)?;
        if let Some(finding) = check::against(&db, ledger, commits, &kept)? {
            return Ok(Looked::Known(vec![finding], Rest::default()));
        }
    }
    let (findings, rest) = check::at_start(path, bound)?;
    Ok(Looked::Known(findings, rest))
}

/// Makes every open admission indeterminate, in one commit.
fn settle_open(store: &mut Store, node: &str) -> rusqlite::Result<u64> {
    let now = unix_ms();
    let notes: Vec<Note> = opens(&store.db)?
        .into_iter()
        .map(|(open, progress)| {
            let row = Settlement::indeterminate(open, progress, now);
            Note::Settle(Ending::of(&row, node))
        })
        .collect();
    if notes.is_empty() {
        return Ok(0);
    }
    Ok(store.apply(notes.iter())?.settled)
}

fn opens(db: &Connection) -> rusqlite::Result<Vec<(Admission, Progress)>> {
    let sql = format!("{} ORDER BY id", check::OPENS);
    db.prepare(&sql)?.query_map([], open_of)?.collect()
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
        named: Named {
            method: row.get::<_, Option<String>>(19)?.map(Into::into),
            tool: text(20)?,
            issuer: text(21)?,
            trace_id: text(3)?,
            workload: text(4)?,
            budget_group: text(5)?,
            route: text(6)?,
            backend: text(7)?,
            who: Attribution {
                key: text(16)?,
                user: text(17)?,
                tags: text(18)?,
            },
        },
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
pub(crate) fn random(path: &Path) -> Result<[u8; 16], OpenError> {
    let mut bytes = [0; 16];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| OpenError::Random {
        path: path.display().to_string(),
    })
}

#[cfg(test)]
mod tests;
