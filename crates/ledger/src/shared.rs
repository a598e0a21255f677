//! What the open ledger, its writer and its handles share: how it is kept, what is sent, and how it is.
//!
//! Not here: who sends (`intake`), who writes (`writer`).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::chain::Head;
use crate::clock::{AGREE_FOR, ClockStep, Reading};
use crate::entry::Opening;
use crate::place::Place;
use crate::read::{ReadError, Reader};
use crate::stats::{Counters, add, set};
use crate::store::Note;

/// How long a start may be held up by checks; what is left is checked while the gate serves.
const CHECK_FOR: Duration = Duration::from_secs(3);

/// How a ledger is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// The database file; `-wal`, `-shm`, `.head` and `.lock` stand beside it.
    pub path: PathBuf,
    /// This gate's name in each row.
    pub node: Box<str>,
    /// Entries that may wait for the writer.
    pub queue: usize,
    /// How long an entry may wait for others to share its commit.
    pub linger: Duration,
    /// Entries in one commit.
    pub batch: usize,
    /// Entries kept in memory while the disk is away.
    pub spill: usize,
    /// Age at which rows are pruned, where the clock can be believed: reckoned from the wall clock or the newest row,
    /// whichever is earlier.
    pub keep: Option<Duration>,
    /// Size of the file above which the oldest rows are pruned.
    pub bytes_max: Option<u64>,
    /// How often the log is copied into the file, so that it stays small and the file has the rows.
    pub checkpoint_every: Duration,
    /// A commit that takes longer counts as a disk that is away.
    pub stall_after: Duration,
    /// Pages that the file may have; for tests of a full disk.
    #[doc(hidden)]
    pub pages_max: Option<u32>,
    /// How long both clocks agree before rows are pruned for their age, an hour; for tests, which have none.
    #[doc(hidden)]
    pub clocks_agree_for: Duration,
    /// How long a start may be held up by checks, three seconds; for tests, which say what all of them find.
    #[doc(hidden)]
    pub check_for: Duration,
}

impl Options {
    /// Defaults: commits within 25 ms, a hundred thousand entries of queue and of spill, everything
    /// kept.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            node: "gate".into(),
            queue: 100_000,
            linger: Duration::from_millis(25),
            batch: 4096,
            spill: 100_000,
            keep: None,
            bytes_max: None,
            checkpoint_every: Duration::from_secs(60),
            stall_after: Duration::from_secs(2),
            pages_max: None,
            clocks_agree_for: AGREE_FOR,
            check_for: CHECK_FOR,
        }
    }
}

/// The disk does not take rows at the moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ledger cannot be written: {why}")]
pub struct Unavailable {
    /// In the database's words.
    pub why: String,
}

/// Called once, on the writer's thread or the caller's: the entry is on disk, or will not be.
pub type OnDurable = Box<dyn FnOnce(Result<(), Unavailable>) + Send>;

/// What reaches the writer.
pub(crate) enum Message {
    Note(Note),
    Durable(Opening, OnDurable),
    /// Everything that this sender sent before is on disk.
    Flush(OnDurable),
    Close,
}

/// What the writer and everyone else share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) counters: Counters,
    pub(crate) available: AtomicBool,
    pub(crate) why: Mutex<String>,
    /// Rows after this one are not shipped yet; `i64::MAX` when nobody ships.
    pub(crate) shipped: AtomicI64,
    /// Where the chain ends on disk.
    pub(crate) head: Mutex<Head>,
    /// Why the file beside the ledger does not say so.
    pub(crate) head_fault: Mutex<Option<String>>,
    /// When the wall clock went otherwise than the monotonic one last.
    pub(crate) clock_step: Mutex<Option<ClockStep>>,
    /// The ledger is damaged: nothing but a new start, which looks at it again, takes that back.
    pub(crate) condemned: AtomicBool,
    /// Nothing more is read: the process ends.
    pub(crate) closing: AtomicBool,
    /// Since when a commit runs, milliseconds since `base` plus one; 0 when none does.
    pub(crate) busy_since: AtomicU64,
    base: Instant,
    stall_after: Duration,
    /// Where the database is that was opened.
    place: Place,
}

impl Shared {
    pub(crate) fn new(stall_after: Duration, place: Place) -> Self {
        Self {
            place,
            counters: Counters::default(),
            available: AtomicBool::new(true),
            why: Mutex::default(),
            shipped: AtomicI64::new(i64::MAX),
            head: Mutex::new(Head::START),
            head_fault: Mutex::default(),
            clock_step: Mutex::default(),
            condemned: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            busy_since: AtomicU64::new(0),
            base: Instant::now(),
            stall_after,
        }
    }

    /// Whether the database that was opened still has its name. To open what else has it would leave a log and an index
    /// beside another's file, and its rows would be taken for ours.
    pub(crate) fn is_in_place(&self, path: &Path) -> bool {
        self.place.is_same_database(path)
    }

    /// Opens the database that was opened before, to read it.
    ///
    /// # Errors
    /// As [`Reader::open`]; and where another file, or none, has its name.
    pub(crate) fn reader(&self, path: &Path) -> Result<Reader, ReadError> {
        let strange = || ReadError::Open {
            path: path.display().to_string(),
            says: "it was removed or replaced since it was opened".to_owned(),
        };
        let opened = || self.is_in_place(path).then_some(()).ok_or_else(strange);
        opened()?;
        let reader = Reader::open(path)?;
        // What came into its place meanwhile is not read.
        opened().map(|()| reader)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Both clocks now.
    pub(crate) fn reading(&self) -> Reading {
        Reading {
            wall_ms: unix_ms(),
            monotonic: self.base.elapsed(),
        }
    }

    pub(crate) fn say_clock_step(&self, step: ClockStep) {
        let mut said = self
            .clock_step
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *said = Some(step);
    }

    pub(crate) fn is_available(&self) -> bool {
        self.unavailable().is_none()
    }

    /// Says that no row can be written, and why.
    pub(crate) fn say_unavailable(&self, why: &str) {
        let mut said = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone_into(&mut said);
        drop(said);
        self.available.store(false, Ordering::Release);
    }

    pub(crate) fn say_head(&self, head: Head) {
        *self.head.lock().unwrap_or_else(PoisonError::into_inner) = head;
        set(&self.counters.head, head.seq.unsigned_abs());
    }

    /// Says whether the head beside the ledger was written.
    pub(crate) fn say_head_file(&self, said: &Result<(), String>) {
        let mut fault = self
            .head_fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        fault.clone_from(&said.as_ref().err().cloned());
        add(&self.counters.head_failures, u64::from(said.is_err()));
    }

    /// Says that the ledger is not as it was written.
    pub(crate) fn condemn(&self, what: &str) {
        let why = format!(
            "it is damaged: {what}; budgets go on with what is in memory. Stop the gate, then see \
             what `tollgate usage verify` says of the file"
        );
        self.say_unavailable(&why);
        self.condemned.store(true, Ordering::Release);
    }

    pub(crate) fn unavailable(&self) -> Option<Unavailable> {
        let is_condemned = self.condemned.load(Ordering::Acquire);
        if is_condemned || !self.available.load(Ordering::Acquire) {
            let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
            return Some(Unavailable { why: why.clone() });
        }
        let since = self.busy_since.load(Ordering::Acquire).checked_sub(1)?;
        let busy = Duration::from_millis(self.now_ms().saturating_sub(since));
        (busy > self.stall_after).then(|| Unavailable {
            why: format!("a commit has been waiting for the disk for {busy:.1?}"),
        })
    }
}

/// The wall clock, milliseconds since the Unix epoch.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::{Ledger, Options};
    use std::path::Path;

    #[test]
    fn a_reader_opens_nothing_but_the_file_that_was_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        let [home, away, theirs] = ["home", "away", "theirs"].map(|name| dir.path().join(name));
        let opened = |dir: &Path| {
            std::fs::create_dir(dir).expect("a directory");
            Ledger::open(Options::at(dir.join("usage.db")))
                .expect("a ledger")
                .0
        };
        let ledger = opened(&home);
        drop(opened(&theirs));
        let listed = |dir: &Path| {
            let files = std::fs::read_dir(dir).expect("lists");
            let names = files.map(|file| file.expect("a file").file_name());
            names.collect::<std::collections::BTreeSet<_>>()
        };
        let before = listed(&theirs);
        let (shared, path) = (ledger.shared(), ledger.path());
        shared.reader(path).expect("it is ours");
        std::fs::rename(&home, &away).expect("moves");
        std::fs::rename(&theirs, &home).expect("moves");
        let says = shared.reader(path).expect_err("another's").to_string();
        assert!(says.contains("removed or replaced"), "{says}");
        assert_eq!(listed(&home), before);
        std::fs::rename(&home, &theirs).expect("moves");
        std::fs::rename(&away, &home).expect("moves");
        shared.reader(path).expect("it is ours again");
    }
}
