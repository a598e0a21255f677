//! The thread that writes: it gathers what came, commits it at once, and says so to who asked.
//!
//! Invariant: an entry leaves the writer's hands only onto the disk, into the spill, or into a
//! counter. Who waits is told the truth: after a failed commit they are told no, and their rows are
//! withdrawn when the disk is back, should they have reached it after all.
//! Not here: what a batch does to the tables (`store`), what is pruned (`retention`).

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::intake::{Done, Message, Options, Shared, Unavailable};
use crate::retention;
use crate::row::Admission;
use crate::spill::Spill;
use crate::stats::{add, set};
use crate::store::{Applied, Note, Store};

/// How often what is old is looked for, and a disk that is away is tried.
const TEND_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Writer {
    options: Options,
    /// None while the disk is away.
    store: Option<Store>,
    spill: Spill,
    shared: Arc<Shared>,
    tended: Instant,
}

/// What one commit is made of.
#[derive(Default)]
struct Batch {
    notes: Vec<Note>,
    /// Who waits, and whose admission it is.
    waiting: Vec<Done>,
    durable: Vec<Admission>,
    closing: bool,
}

impl Batch {
    fn take(&mut self, message: Message) {
        match message {
            Message::Note(note) => self.notes.push(note),
            Message::Durable(admission, done) => {
                self.durable.push((*admission).clone());
                self.notes.push(Note::Admit(admission));
                self.waiting.push(done);
            }
            Message::Flush(done) => self.waiting.push(done),
            Message::Close => self.closing = true,
        }
    }

    fn is_urgent(&self) -> bool {
        self.closing || !self.waiting.is_empty()
    }
}

impl Writer {
    pub(crate) fn new(options: Options, store: Store, shared: Arc<Shared>) -> Self {
        let spill = Spill::new(options.spill);
        set(&shared.counters.head, store.head.seq.unsigned_abs());
        Self {
            options,
            store: Some(store),
            spill,
            shared,
            tended: Instant::now(),
        }
    }

    /// Until it is told to close, or nobody is left who could send.
    pub(crate) fn run(mut self, entries: &Receiver<Message>) {
        loop {
            let batch = match entries.recv_timeout(TEND_EVERY) {
                Ok(first) => self.gather(first, entries),
                Err(RecvTimeoutError::Timeout) => Batch::default(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let closing = batch.closing;
            self.commit(batch);
            if closing {
                break;
            }
            if self.tended.elapsed() >= TEND_EVERY {
                self.tend();
                self.tended = Instant::now();
            }
        }
        if self.store.is_none() {
            self.come_back();
        }
    }

    /// Takes what comes until it has waited long enough, has enough, or somebody waits.
    fn gather(&self, first: Message, entries: &Receiver<Message>) -> Batch {
        let until = Instant::now() + self.options.linger;
        let mut batch = Batch::default();
        batch.take(first);
        while batch.notes.len() < self.options.batch {
            match entries.try_recv() {
                Ok(message) => batch.take(message),
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if batch.is_urgent() || left.is_zero() {
                        break;
                    }
                    thread::park_timeout(left);
                }
            }
        }
        batch
    }

    fn commit(&mut self, batch: Batch) {
        if batch.notes.is_empty() && self.store.is_some() {
            return batch.waiting.into_iter().for_each(|done| done(Ok(())));
        }
        let result = self.write(|store| store.apply(batch.notes.iter()));
        let counters = &self.shared.counters;
        match result {
            Ok(applied) => {
                self.count(applied);
                batch.waiting.into_iter().for_each(|done| done(Ok(())));
            }
            Err(unavailable) => {
                let refused: std::collections::HashSet<_> =
                    batch.durable.iter().map(|a| a.id).collect();
                for note in batch.notes {
                    // Who waited is told no, so the exchange does not run.
                    let note = match note {
                        Note::Admit(open) if refused.contains(&open.id) => Note::Withdraw(open.id),
                        note => note,
                    };
                    self.spill.push(note, counters);
                }
                for done in batch.waiting {
                    done(Err(unavailable.clone()));
                }
            }
        }
    }

    /// Runs something against the store; a failure drops the store.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Store) -> rusqlite::Result<T>,
    ) -> Result<T, Unavailable> {
        let Some(store) = &mut self.store else {
            let why = self
                .shared
                .why
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            return Err(Unavailable { why: why.clone() });
        };
        let begun = Instant::now();
        self.shared
            .busy_since
            .store(self.shared.now_ms() + 1, Ordering::Release);
        let result = work(store);
        self.shared.busy_since.store(0, Ordering::Release);
        let counters = &self.shared.counters;
        match result {
            Ok(done) => {
                let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                set(&counters.last_commit_us, took);
                Ok(done)
            }
            Err(error) => {
                add(&counters.failures, 1);
                self.store = None;
                Err(self.gone(&error))
            }
        }
    }

    fn gone(&self, error: &rusqlite::Error) -> Unavailable {
        let why = error.to_string();
        self.shared
            .why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&why);
        self.shared.available.store(false, Ordering::Release);
        Unavailable { why }
    }

    fn count(&self, applied: Applied) {
        let counters = &self.shared.counters;
        add(&counters.commits, 1);
        add(&counters.settled, applied.settled);
        add(&counters.duplicates, applied.duplicates);
        add(&counters.admitted, applied.admitted);
        add(&counters.refused, applied.refused);
        if let Some(store) = &self.store {
            set(&counters.head, store.head.seq.unsigned_abs());
        }
    }

    fn tend(&mut self) {
        if self.store.is_none() {
            return self.come_back();
        }
        let (options, shipped) = (
            self.options.clone(),
            self.shared.shipped.load(Ordering::Acquire),
        );
        let step = self.write(|store| retention::step(store, &options, unix_ms(), shipped));
        if let Ok(step) = step {
            let counters = &self.shared.counters;
            set(&counters.bytes, step.bytes);
            add(&counters.pruned, step.pruned);
            add(&counters.pruned_unshipped, step.unshipped);
        }
    }

    /// Opens anew and writes what waited; says that the disk is back only when all of it is there.
    fn come_back(&mut self) {
        match Store::reopen(&self.options.path, self.options.node.clone()) {
            Ok(store) => self.store = Some(store),
            Err(error) => {
                self.gone(&error);
                return;
            }
        }
        self.limit_pages();
        while self.spill.len() > 0 {
            let n = self.options.batch.min(self.spill.len());
            let spill = std::mem::replace(&mut self.spill, Spill::new(0));
            let written = self.write(|store| store.apply(spill.front(n)));
            self.spill = spill;
            let Ok(applied) = written else { return };
            self.count(applied);
            self.spill.settle(n, &self.shared.counters);
        }
        self.shared.available.store(true, Ordering::Release);
    }

    fn limit_pages(&self) {
        if let (Some(store), Some(pages)) = (&self.store, self.options.pages_max) {
            drop(store.db.pragma_update(None, "max_page_count", pages));
        }
    }
}

/// The wall clock, milliseconds since the Unix epoch.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
