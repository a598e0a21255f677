//! The open ledger as its host sees it, and the handle that a worker writes through.
//!
//! Invariant: nothing here waits for the disk but [`Ledger::close`]. A queue that is full drops the
//! entry and counts it.
//! Not here: the thread that writes (`writer`), what opening recovers (`open`).

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use policy::price::Price;

use crate::chain::Head;
use crate::check::{self, Rest};
use crate::clock::ClockStep;
use crate::damage::is_damage;
use crate::entry::{Ending, Opening};
use crate::id::RecordId;
use crate::lost::Lost;
use crate::open::{OpenError, Opened, Recovered, open};
use crate::prices::PriceNote;
use crate::row::{Admission, Progress, Settlement};
use crate::schema::real;
use crate::shared::{Message, OnDurable, Options, Shared, Unavailable};
use crate::stats::{Stats, add, set};
use crate::store::Note;
use crate::writer::Writer;

/// How long the disk may take for the last rows.
pub(crate) const CLOSE_WITHIN: Duration = Duration::from_secs(30);
/// When a check that could not read is tried again.
const CHECK_AGAIN: Duration = Duration::from_secs(1);

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
    /// The gate's name in each row.
    node: Arc<str>,
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
        let shared = Arc::new(Shared::new(options.stall_after, store.place));
        set(&shared.counters.unchecked, u64::from(!rest.is_done()));
        set(&shared.counters.salvaged_lost, Lost::sum(&recovered.lost));
        let (queue, entries) = sync_channel(options.queue);
        let (path, node) = (options.path.clone(), Arc::from(&*options.node));
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
            node,
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

    /// When the wall clock went otherwise than the monotonic one last, where rows are pruned for their age: for an
    /// hour after that none is.
    #[must_use]
    pub fn clock_step(&self) -> Option<ClockStep> {
        let step = &self.intake.shared.clock_step;
        *step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the newest row ended that this process has pruned, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn pruned_until(&self) -> Option<u64> {
        let until = &self.intake.shared.counters.pruned_until;
        Some(until.load(Ordering::Relaxed)).filter(|ms| *ms > 0)
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
        if !shared.is_in_place(path) {
            thread::sleep(CHECK_AGAIN);
            continue;
        }
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
        self.close(CLOSE_WITHIN);
    }
}

impl Intake {
    /// Notes that an exchange was let in; on disk within about the linger and one commit.
    pub fn admit(&self, admission: Admission) {
        self.open(Opening::of(&admission));
    }

    pub(crate) fn open(&self, opening: Opening) {
        self.send(Note::Admit(opening));
    }

    /// Notes that an exchange was let in, and calls `done` once that is on disk, or at once when
    /// the disk is away. For routes that may not run without a row.
    pub fn admit_durable(
        &self,
        admission: Admission,
        done: impl FnOnce(Result<(), Unavailable>) + Send + 'static,
    ) {
        self.open_durable(Opening::of(&admission), Box::new(done));
    }

    pub(crate) fn open_durable(&self, opening: Opening, done: OnDurable) {
        self.ask(|done| Message::Durable(opening, done), done);
    }

    /// Notes how far an open exchange has come.
    pub fn progress(&self, progress: Progress) {
        self.send(Note::Progress(progress));
    }

    /// Settles an exchange. Settling it twice leaves one row: the first.
    pub fn settle(&self, settlement: Settlement) {
        self.send(Note::Settle(Ending::of(&settlement, &self.node)));
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
    fn ask(&self, message: impl FnOnce(OnDurable) -> Message, done: OnDurable) {
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
