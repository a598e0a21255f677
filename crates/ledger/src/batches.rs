//! Whose the files and batches are that providers keep under shared accounts, in a database beside the ledger.
//!
//! One thread has it; whoever asks is told later. Its rows are few: calls of files and batches are.
//! Invariant: what it says that it keeps is on disk. It never gives an owner what is another's, and where it cannot answer it says so.
//! Not here: what may be kept (`policy::batches`), what a batch used (`settled`, as any row).

mod table;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use policy::batch_store::{
    At, Away, BatchStore, GivenUp, Kind, Listed, NotKept, Owner, Page, Thing, Unsettled,
};
use policy::caller::Later;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::batches::table::Table;
use crate::schema::{beside, connect_to_read, real};
use crate::shared::unix_ms;

/// What its file's name adds to the ledger's.
pub(crate) const SUFFIX: &str = ".batches";
/// Questions that wait.
const QUEUE: usize = 1024;
/// Batches whose provider says that they are over, and that wait to be charged sooner than in their turn.
const HURRIED_MAX: usize = 1024;
/// Batches of users that are on no disk, and that are remembered until they are charged.
const USERS_MAX: usize = 4096;

/// Rows of a ledger that are looked at for calls of files and batches, where nothing else is known of any.
const LOOKED_BACK: u32 = 1_000_000;

type Work = Box<dyn FnOnce(&mut Open) + Send>;

/// The open database.
#[derive(Debug)]
pub struct Batches {
    work: SyncSender<Work>,
    is_claimed: AtomicBool,
    hurried: Mutex<HashSet<At>>,
    users: Mutex<HashMap<At, Arc<str>>>,
    stats: Arc<Mutex<Unsettled>>,
    half_made: Vec<Thing>,
    is_lost: bool,
}

/// What its thread has.
struct Open {
    table: Table,
    /// The ledger itself, to look for rows.
    ledger: PathBuf,
    reading: Option<Connection>,
    stats: Arc<Mutex<Unsettled>>,
}

/// Why it cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BatchesError {
    /// The file cannot be read, is damaged, or is of a newer build.
    #[error("{path}: {says}")]
    Open {
        /// The file.
        path: String,
        /// Why.
        says: String,
    },
    /// There is no thread for it.
    #[error("the thread that keeps whose files and batches are cannot be started: {0}")]
    Thread(std::io::Error),
}

impl Batches {
    /// Opens it beside a ledger; makes it where there is none.
    ///
    /// # Errors
    /// It cannot be read, or is not whole.
    pub fn open(ledger: &Path) -> Result<Self, BatchesError> {
        let ledger = real(ledger);
        let path = beside(&ledger, SUFFIX);
        // One that was there and is not any more: the ledger has calls of which it knew whose they were.
        let is_lost = !path.exists() && has_calls(&ledger).unwrap_or(false);
        let mut table = Table::open(&path).map_err(|says| BatchesError::Open {
            path: path.display().to_string(),
            says,
        })?;
        let half_made = table.forget_begun().map_err(|error| BatchesError::Open {
            path: path.display().to_string(),
            says: format!("it cannot be written: {error}"),
        })?;
        let stats = Arc::new(Mutex::new(table.unsettled_now()));
        let (work, asked) = sync_channel::<Work>(QUEUE);
        let mut open = Open {
            table,
            ledger,
            reading: None,
            stats: Arc::clone(&stats),
        };
        thread::Builder::new()
            .name("batches".to_owned())
            .spawn(move || {
                for work in asked {
                    work(&mut open);
                }
            })
            .map_err(BatchesError::Thread)?;
        Ok(Self {
            work,
            is_claimed: AtomicBool::new(false),
            hurried: Mutex::default(),
            users: Mutex::default(),
            stats,
            half_made,
            is_lost,
        })
    }

    /// There was no file, though calls of files and batches stand among the ledger's newest rows: it was lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// What was being made when the process ended that had it before: it may be there at its provider, and is nobody's.
    #[must_use]
    pub fn half_made(&self) -> &[Thing] {
        &self.half_made
    }

    /// Has something asked or done; a queue that is full and a disk that does not answer are away.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Open) -> rusqlite::Result<T> + Send + 'static,
    ) -> Later<Result<T, Away>> {
        let (tell, told) = oneshot::channel();
        let work: Work = Box::new(move |open| {
            // Nobody listens any more when the asker is gone.
            let _gone = tell.send(work(open));
        });
        let is_taken = self.work.try_send(work).is_ok();
        Box::pin(async move {
            match told.await {
                Ok(Ok(answer)) if is_taken => Ok(answer),
                _ => Err(Away),
            }
        })
    }

    fn users_now(&self) -> MutexGuard<'_, HashMap<At, Arc<str>>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hurried_now(&self) -> MutexGuard<'_, HashSet<At>> {
        self.hurried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Tells whoever looks how many are not charged.
    fn tell(&self) {
        let now = self.table.unsettled_now();
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn on_disk(&mut self, rows: &[[u8; 16]]) -> rusqlite::Result<Vec<bool>> {
        let reading = match self.reading.take() {
            Some(reading) => reading,
            None => connect_to_read(&self.ledger)?,
        };
        let is_there = |row: &[u8; 16]| {
            let sql = "SELECT EXISTS (SELECT 1 FROM settled WHERE id = ?1)";
            let mut asking = reading.prepare_cached(sql)?;
            asking.query_row([&row[..]], |found| found.get(0))
        };
        let found: rusqlite::Result<Vec<bool>> = rows.iter().map(is_there).collect();
        if found.is_ok() {
            self.reading = Some(reading);
        }
        found
    }
}

impl BatchStore for Batches {
    fn has_room(&self, workload: Arc<str>) -> Later<Result<bool, Away>> {
        self.run(move |open| open.table.has_room(&workload))
    }

    fn begin(&self, thing: Thing) -> Later<Result<At, Away>> {
        self.run(move |open| {
            let begun = open.table.begin(thing)?;
            open.tell();
            Ok(begun)
        })
    }

    fn made(&self, begun: At, thing: Thing) -> Later<Result<(), NotKept>> {
        let kept = self.run(move |open| {
            let kept = open.table.made(&begun, &thing)?;
            open.tell();
            Ok(kept)
        });
        Box::pin(async move { kept.await.unwrap_or(Err(NotKept::Away)) })
    }

    fn keep(&self, thing: Thing) -> Later<Result<(), NotKept>> {
        let kept = self.run(move |open| {
            let kept = open.table.keep(&thing)?;
            open.tell();
            Ok(kept)
        });
        Box::pin(async move { kept.await.unwrap_or(Err(NotKept::Away)) })
    }

    fn find(&self, of: Owner, at: At) -> Later<Result<Option<Thing>, Away>> {
        self.run(move |open| open.table.find(&of, &at))
    }

    fn page(
        &self,
        of: Owner,
        backend: Arc<str>,
        kind: Kind,
        page: Page,
    ) -> Later<Result<Option<Listed>, Away>> {
        self.run(move |open| open.table.page(&of, &backend, kind, &page))
    }

    fn told(&self, at: At, object: bytes::Bytes) -> Later<Result<(), Away>> {
        self.run(move |open| open.table.told(&at, &object))
    }

    fn holds(&self, of: Owner, file: At) -> Later<Result<Option<At>, Away>> {
        self.run(move |open| open.table.holds(&of, &file))
    }

    fn remove(&self, at: At) -> Later<Result<(), Away>> {
        self.run(move |open| {
            open.table.remove(&at)?;
            open.tell();
            Ok(())
        })
    }

    fn unsettled_of(&self, workload: Arc<str>) -> Later<Result<u64, Away>> {
        self.run(move |open| open.table.unsettled_of(&workload))
    }

    fn unsettled_backends(&self) -> Later<Result<Vec<Arc<str>>, Away>> {
        self.run(|open| open.table.unsettled_backends())
    }

    fn unsettled(&self, backend: Arc<str>, behind: usize) -> Later<Result<Vec<Thing>, Away>> {
        self.run(move |open| open.table.unsettled(Some(&backend), behind))
    }

    fn given_up(&self) -> Later<Result<Vec<GivenUp>, Away>> {
        self.run(|open| open.table.given_up())
    }

    fn is_due(&self, at: At) -> Later<Result<bool, Away>> {
        self.run(move |open| open.table.is_due(&at))
    }

    fn settled(&self, at: At) -> Later<Result<(), Away>> {
        self.users_now().remove(&at);
        self.run(move |open| {
            open.table.settled(&at)?;
            open.tell();
            Ok(())
        })
    }

    fn row(&self, of: &Thing, model: &str) -> [u8; 16] {
        let named = [&of.backend, &*of.id, model].join("\n");
        let digest = Sha256::digest(format!("batch\n{named}").as_bytes());
        let mut row = [0; 16];
        let (time, rest) = row.split_at_mut(6);
        // As other rows: those of one moment stand together.
        time.copy_from_slice(&of.created_unix_ms.to_be_bytes()[2..]);
        rest.copy_from_slice(&digest[..10]);
        row
    }

    fn on_disk(&self, rows: Vec<[u8; 16]>) -> Later<Result<Vec<bool>, Away>> {
        self.run(move |open| open.on_disk(&rows))
    }

    fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::SeqCst)
    }

    fn release(&self) {
        self.is_claimed.store(false, Ordering::SeqCst);
    }

    fn hurry(&self, at: &At) {
        let mut hurried = self.hurried_now();
        if hurried.len() < HURRIED_MAX {
            hurried.insert(at.clone());
        }
    }

    fn hurried(&self) -> Vec<At> {
        self.hurried_now().drain().collect()
    }

    fn remember_user(&self, at: At, user: Arc<str>) {
        let mut users = self.users_now();
        if users.len() < USERS_MAX {
            users.insert(at, user);
        }
    }

    fn remembered_user(&self, at: &At) -> Option<Arc<str>> {
        self.users_now().get(at).cloned()
    }

    fn stats(&self) -> Unsettled {
        let stats = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        stats.clone()
    }
}

/// Whether calls of files and batches that were served stand among the newest rows of a ledger; `None` where it cannot be read.
fn has_calls(ledger: &Path) -> Option<bool> {
    let reading = connect_to_read(ledger).ok()?;
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM settled WHERE seq > (SELECT max(seq) FROM settled) - {LOOKED_BACK} \
         AND operation IN ('files', 'batches') AND status = 200)"
    );
    reading.query_row(&sql, [], |found| found.get(0)).ok()
}

/// The file beside a ledger that says whose files and batches are, where there is one.
pub(crate) fn file_of(ledger: &Path) -> Option<PathBuf> {
    let path = beside(&real(ledger), SUFFIX);
    path.exists().then_some(path)
}

/// Batches of the gate with this ledger that are not charged yet, read only; `None` where it keeps none.
///
/// # Errors
/// They cannot be read, in words.
pub fn uncounted(ledger: &Path) -> Result<Option<Vec<Thing>>, String> {
    let Some(path) = file_of(ledger) else {
        return Ok(None);
    };
    let read = || -> rusqlite::Result<Vec<Thing>> {
        let table = Table::open_to_read(&path)?;
        let mut all = Vec::new();
        loop {
            let page = table.unsettled(None, all.len())?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    };
    let all = read().map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(Some(all))
}

/// Gives up a batch that can never be counted: the gate with this ledger enters a row that says so, and charges nothing.
///
/// # Errors
/// There is no such batch that is not counted, there are several, or the file cannot be written, in words.
pub fn give_up(
    ledger: &Path,
    id: &str,
    backend: Option<&str>,
    (who, why): (&str, &str),
) -> Result<GivenUp, String> {
    let of_id = |thing: &Thing| &*thing.id == id && backend.is_none_or(|of| of == &*thing.backend);
    let all = uncounted(ledger)?.unwrap_or_default();
    let mut found = all.into_iter().filter(of_id);
    let Some(thing) = found.next() else {
        return Err(format!(
            "there is no batch {id:?} that is not counted; `tollgate usage batches` lists them"
        ));
    };
    if let Some(other) = found.next() {
        let (one, other) = (&thing.backend, &other.backend);
        return Err(format!(
            "the backends {one} and {other} each have a batch {id:?}; say which by --backend"
        ));
    }
    let path = beside(&real(ledger), SUFFIX);
    let given_up = GivenUp {
        thing,
        who: who.into(),
        why: why.into(),
        unix_ms: unix_ms(),
    };
    let table = Table::open(&path).map_err(|says| format!("{}: {says}", path.display()))?;
    let noted = table.give_up(&given_up);
    noted.map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    Ok(given_up)
}

#[cfg(test)]
mod tests;
