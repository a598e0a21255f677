//! The open ledger as its host sees it, and the handle that a worker writes through.
//!
//! Invariant: nothing here waits for the disk but [`Ledger::close`]. A queue that is full drops the
//! entry and counts it.
//! Not here: the thread that writes (`writer`), what opening recovers (`open`).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use policy::price::Price;

use crate::chain::Head;
use crate::check::{self, Rest};
use crate::id::RecordId;
use crate::lost::Lost;
use crate::open::{OpenError, Opened, Recovered, is_damage, open};
use crate::prices::PriceNote;
use crate::row::{Admission, Progress, Settlement};
use crate::schema::real;
use crate::stats::{Counters, Stats, add, set};
use crate::store::Note;
use crate::writer::Writer;

/// When a check that could not read is tried again.
const CHECK_AGAIN: Duration = Duration::from_secs(1);

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
    /// Age at which rows are pruned.
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
pub type Done = Box<dyn FnOnce(Result<(), Unavailable>) + Send>;

/// What reaches the writer.
pub(crate) enum Message {
    Note(Note),
    Durable(Box<Admission>, Done),
    /// Everything that this sender sent before is on disk.
    Flush(Done),
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
    head_fault: Mutex<Option<String>>,
    /// The ledger is damaged: nothing but a new start, which looks at it again, takes that back.
    pub(crate) condemned: AtomicBool,
    /// Nothing more is read: the process ends.
    pub(crate) closing: AtomicBool,
    /// Since when a commit runs, milliseconds since `base` plus one; 0 when none does.
    pub(crate) busy_since: AtomicU64,
    base: Instant,
    stall_after: Duration,
}

impl Shared {
    fn new(stall_after: Duration) -> Self {
        Self {
            counters: Counters::default(),
            available: AtomicBool::new(true),
            why: Mutex::default(),
            shipped: AtomicI64::new(i64::MAX),
            head: Mutex::new(Head::START),
            head_fault: Mutex::default(),
            condemned: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            busy_since: AtomicU64::new(0),
            base: Instant::now(),
            stall_after,
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_available(&self) -> bool {
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

/// An open ledger.
#[derive(Debug)]
pub struct Ledger {
    intake: Intake,
    writer: Mutex<Option<JoinHandle<()>>>,
    path: PathBuf,
}

/// A worker's handle. Clones share the queue.
#[derive(Debug, Clone)]
pub struct Intake {
    queue: SyncSender<Message>,
    thread: Thread,
    shared: Arc<Shared>,
}

impl Ledger {
    /// Takes the lock, recovers, and starts the writer.
    ///
    /// # Errors
    /// When another process writes this ledger, or could under another name; when what is at the path
    /// is no ledger, one of a newer build, or one that is not as it was written; when one was here and
    /// is gone; when the disk says no. Nothing is changed then.
    pub fn open(mut options: Options) -> Result<(Self, Recovered), OpenError> {
        options.path = real(&options.path);
        let Opened {
            store,
            recovered,
            rest,
            lock,
        } = open(&options)?;
        let shared = Arc::new(Shared::new(options.stall_after));
        set(&shared.counters.unchecked, u64::from(!rest.is_done()));
        set(&shared.counters.salvaged_lost, Lost::sum(&recovered.lost));
        let (queue, entries) = sync_channel(options.queue);
        let path = options.path.clone();
        let writer = Writer::new(options, store, Arc::clone(&shared));
        let writer = thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || {
                writer.run(&entries);
                drop(lock);
            })
            .map_err(OpenError::Thread)?;
        if !rest.is_done() {
            let (path, shared) = (path.clone(), Arc::clone(&shared));
            thread::Builder::new()
                .name("ledger-check".to_owned())
                .spawn(move || check_on(&path, rest, &shared))
                .map_err(OpenError::Thread)?;
        }
        let intake = Intake {
            queue,
            thread: writer.thread().clone(),
            shared,
        };
        let writer = Mutex::new(Some(writer));
        Ok((
            Self {
                intake,
                writer,
                path,
            },
            recovered,
        ))
    }

    /// A handle for one worker.
    #[must_use]
    pub fn intake(&self) -> Intake {
        self.intake.clone()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// What it has done.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.intake.stats()
    }

    /// Where the chain ends on disk. Kept elsewhere, it proves that nothing before it is missing.
    #[must_use]
    pub fn head(&self) -> Head {
        let head = &self.intake.shared.head;
        *head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the head beside the ledger cannot be written at the moment, when it cannot: a start could
    /// not tell whether the ledger was set back.
    #[must_use]
    pub fn head_fault(&self) -> Option<String> {
        let fault = &self.intake.shared.head_fault;
        fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that the ledger was found to be damaged: it takes no more rows.
    pub fn condemn(&self, what: &str) {
        self.intake.shared.condemn(what);
    }

    /// Writes what is queued and ends the writer, within `patience`. `false` when the disk did not
    /// take it in that time.
    pub fn close(&self, patience: Duration) -> bool {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = slot.take() else {
            return true;
        };
        self.intake.shared.closing.store(true, Ordering::Release);
        let until = Instant::now() + patience;
        let mut asked = false;
        while Instant::now() < until && !writer.is_finished() {
            asked = asked || self.intake.queue.try_send(Message::Close).is_ok();
            writer.thread().unpark();
            thread::sleep(Duration::from_millis(1));
        }
        writer.is_finished() && writer.join().is_ok() && self.stats().spilled == 0
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.intake.shared)
    }
}

/// Checks what the start did not come to. What is found is as if the disk took no more rows.
fn check_on(path: &std::path::Path, mut rest: Rest, shared: &Shared) {
    let is_closing = || shared.closing.load(Ordering::Acquire);
    while !rest.is_done() && !is_closing() {
        match check::rest(path, rest, &is_closing) {
            Ok((findings, left)) => {
                rest = left;
                if let Some(finding) = findings.first() {
                    return shared.condemn(&finding.to_string());
                }
            }
            Err(error) if is_damage(&error) => return shared.condemn(&error.to_string()),
            // Its file is away; the writer says so.
            Err(_) => thread::sleep(CHECK_AGAIN),
        }
    }
    if rest.is_done() {
        shared.counters.unchecked.store(0, Ordering::Relaxed);
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.close(Duration::from_secs(5));
    }
}

impl Intake {
    /// Notes that an exchange was let in; on disk within about the linger and one commit.
    pub fn admit(&self, admission: Admission) {
        self.send(Note::Admit(Box::new(admission)));
    }

    /// Notes that an exchange was let in, and calls `done` once that is on disk, or at once when
    /// the disk is away. For routes that may not run without a row.
    pub fn admit_durable(
        &self,
        admission: Admission,
        done: impl FnOnce(Result<(), Unavailable>) + Send + 'static,
    ) {
        self.ask(
            |done| Message::Durable(Box::new(admission), done),
            Box::new(done),
        );
    }

    /// Notes how far an open exchange has come.
    pub fn progress(&self, progress: Progress) {
        self.send(Note::Progress(progress));
    }

    /// Settles an exchange. Settling it twice leaves one row: the first.
    pub fn settle(&self, settlement: Settlement) {
        self.send(Note::Settle(Box::new(settlement)));
    }

    /// Takes an admission back: the exchange was refused after all.
    pub fn withdraw(&self, id: RecordId) {
        self.send(Note::Withdraw(id));
    }

    /// Keeps prices that rows may name from now on, each once.
    pub fn prices<'p>(&self, prices: impl Iterator<Item = &'p Arc<Price>>) {
        let prices = PriceNote::all(prices);
        if !prices.is_empty() {
            self.send(Note::Prices(prices));
        }
    }

    /// Calls `done` once everything sent before through this handle is on disk.
    pub fn flush(&self, done: impl FnOnce(Result<(), Unavailable>) + Send + 'static) {
        self.ask(Message::Flush, Box::new(done));
    }

    /// Whether rows reach the disk at the moment; a strict route that finds `false` answers 503
    /// `ledger_unavailable` without asking.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.shared.is_available()
    }

    /// Why they do not, when they do not.
    #[must_use]
    pub fn unavailable(&self) -> Option<Unavailable> {
        self.shared.unavailable()
    }

    /// What the ledger has done.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.counters.read(self.is_available())
    }

    fn send(&self, note: Note) {
        if let Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) =
            self.queue.try_send(Message::Note(note))
        {
            let counters = &self.shared.counters;
            let settles = matches!(message, Message::Note(Note::Settle(_)));
            add(
                if settles {
                    &counters.lost_settlements
                } else {
                    &counters.lost_notes
                },
                1,
            );
        }
    }

    /// Sends something that its sender waits for, and wakes the writer.
    fn ask(&self, message: impl FnOnce(Done) -> Message, done: Done) {
        if let Some(unavailable) = self.shared.unavailable() {
            return done(Err(unavailable));
        }
        match self.queue.try_send(message(done)) {
            Ok(()) => self.thread.unpark(),
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                if let Message::Durable(_, done) | Message::Flush(done) = message {
                    let why = "its queue is full".to_owned();
                    done(Err(Unavailable { why }));
                }
            }
        }
    }
}
