//! The thread that writes: it gathers what came, commits it at once, and says so to who asked.
//!
//! Invariant: an entry leaves the writer's hands only onto the disk, into the spill, or into a
//! counter. Who waits is told the truth: after a failed commit they are told no, and their rows are
//! withdrawn when the disk is back, should they have reached it after all. A file that was taken away
//! or replaced is a disk that is away: nothing is ever begun anew at its path. Nothing is written to a
//! ledger that turned out to be damaged, its log included.
//! Not here: what a batch does to the tables (`store`), what is pruned (`retention`).

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use crate::backup::copy_into;
use crate::clock::Clock;
use crate::columns::micros;
use crate::damage::{is_damage, is_of_another_writer};
use crate::head_file::{self, HeadFile, Kept};
use crate::id::RecordId;
use crate::open::RESCUED;
use crate::place::{Place, ShortestLength, log_length};
use crate::retention;
use crate::schema::{beside, connect_to_read, head, tidy_at_close};
use crate::shared::{Message, OnDurable, Options, Shared, Unavailable, unix_ms};
use crate::spill::Spill;
use crate::stats::{add, set};
use crate::store::{Applied, Note, Store};

/// How often what is old is looked for, and a disk that is away is tried.
const TEND_EVERY: Duration = Duration::from_millis(200);

/// How long a file may be away before what it held is saved beside where it was.
const RESCUE_AFTER: Duration = Duration::from_secs(5);
/// Bytes of the log above which readers are waited for, so that it can be begun anew.
const LOG_MAX: u64 = 64 << 20;

pub(crate) struct Writer {
    options: Options,
    /// None while the disk is away.
    store: Option<Store>,
    /// Open, and no longer at its path.
    stray: Option<Stray>,
    /// Where the database was opened.
    place: Place,
    shortest: ShortestLength,
    /// Bytes of the log after the last write.
    log: u64,
    /// Where it ended when it was closed because the disk was away.
    last: Option<Kept>,
    checkpointed: Instant,
    /// What rows are pruned for their age by.
    clock: Clock,
    spill: Spill,
    shared: Arc<Shared>,
    tended: Instant,
}

/// A store whose files were taken away or replaced.
struct Stray {
    store: Store,
    since: Instant,
    rescued: bool,
}

/// What one commit is made of.
#[derive(Default)]
struct Batch {
    notes: Vec<Note>,
    waiting: Vec<OnDurable>,
    /// Admissions that somebody waits for.
    durable: HashSet<RecordId>,
    closing: bool,
}

impl Batch {
    fn take(&mut self, message: Message) {
        match message {
            Message::Note(note) => self.notes.push(note),
            Message::Durable(admission, done) => {
                self.durable.insert(admission.id);
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
        shared.say_head(store.head);
        shared.say_head_file(&store.head_said);
        Self {
            shortest: ShortestLength::of(&options.path, store.bytes().ok()),
            log: log_length(&options.path),
            place: store.place,
            last: None,
            store: Some(store),
            stray: None,
            checkpointed: Instant::now(),
            clock: Clock::new(options.clocks_agree_for, shared.reading()),
            options,
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
            self.leave_if_condemned();
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
        // The last look at the path: to close a file that is another's by now would harm that one.
        drop(self.write(|store| store.checkpoint("TRUNCATE")));
        self.keep_head();
        if self.stray.as_ref().is_some_and(|stray| !stray.rescued) {
            self.rescue();
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
                for note in batch.notes {
                    // Who waited is told no, so the exchange does not run.
                    let note = match note {
                        Note::Admit(open) if batch.durable.contains(&open.id) => {
                            Note::Withdraw(open.id)
                        }
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
        self.leave_if_condemned();
        // Before anything is written: a checkpoint would fill the hole.
        if self.store.is_some() {
            self.look_for_a_cut(None)?;
            self.look_for_a_cut_log()?;
        }
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
        let gone = store.place.gone(&self.options.path);
        let bytes = result.as_ref().ok().and_then(|_| store.bytes_now().ok());
        self.shared.busy_since.store(0, Ordering::Release);
        let counters = &self.shared.counters;
        match result {
            // What was written is where nobody will look for it.
            Ok(_) if gone.is_some() => {
                add(&counters.failures, 1);
                Err(self.strayed(&gone.unwrap_or_default()))
            }
            Ok(done) => {
                let took = micros(begun.elapsed());
                set(&counters.last_commit_us, took);
                if bytes.is_some() {
                    self.look_for_a_cut(bytes)?;
                }
                self.shortest = ShortestLength::of(&self.options.path, bytes);
                self.log = log_length(&self.options.path);
                Ok(done)
            }
            Err(error) => {
                add(&counters.failures, 1);
                if let Some(gone) = gone {
                    return Err(self.strayed(&gone));
                }
                if is_of_another_writer(&error) {
                    return Err(self.damaged("another process has written rows into it"));
                }
                if is_damage(&error) {
                    return Err(self.damaged(&error.to_string()));
                }
                self.look_for_a_cut(None)?;
                self.leave(true);
                Err(self.gone(&error))
            }
        }
    }

    /// A file that is shorter than it was is damaged, unless it is another file by now.
    fn look_for_a_cut(&mut self, committed: Option<u64>) -> Result<(), Unavailable> {
        let path = &self.options.path;
        let Some(cut) = self.shortest.cut(path, committed) else {
            return Ok(());
        };
        add(&self.shared.counters.failures, 1);
        let gone = self.store.as_ref().and_then(|store| store.place.gone(path));
        match gone {
            Some(gone) => Err(self.strayed(&gone)),
            None => Err(self.damaged(&cut)),
        }
    }

    /// A log that is shorter than it was is damaged, unless somebody else has copied it into the file: a new
    /// connection finds the last row then, which one that trusts the index cannot tell.
    fn look_for_a_cut_log(&mut self) -> Result<(), Unavailable> {
        let path = &self.options.path;
        let Some(store) = self.store.as_ref().filter(|_| log_length(path) < self.log) else {
            return Ok(());
        };
        // What else has the name is not opened.
        let gone = store.place.gone(path);
        if gone.is_none() {
            let found = connect_to_read(path).and_then(|db| head(&db));
            if found.is_ok_and(|head| head == store.head) {
                self.log = log_length(path);
                return Ok(());
            }
        }
        add(&self.shared.counters.failures, 1);
        match gone.or_else(|| store.place.gone(path)) {
            Some(gone) => Err(self.strayed(&gone)),
            None => Err(self.damaged("its log was cut short while the gate writes it")),
        }
    }

    /// Gives the store up. One that is damaged keeps its log, for whoever looks at it.
    fn leave(&mut self, tidy: bool) {
        if let Some(store) = self.store.take() {
            tidy_at_close(&store.db, tidy);
            self.last = Some(store.kept());
        }
    }

    /// Somebody else may have found that it is damaged: nothing is written to it then.
    fn leave_if_condemned(&mut self) {
        if self.shared.condemned.load(Ordering::Acquire) {
            self.leave(false);
        }
    }

    fn damaged(&mut self, what: &str) -> Unavailable {
        self.leave(false);
        self.shared.condemn(what);
        let why = what.to_owned();
        Unavailable { why }
    }

    /// Writes and syncs the head beside the ledger.
    fn keep_head(&mut self) {
        if let Some(store) = &mut self.store {
            store.keep_head(&self.options.path);
            self.shared.say_head_file(&store.head_said);
        }
    }

    fn gone(&self, error: &rusqlite::Error) -> Unavailable {
        let why = error.to_string();
        self.shared.say_unavailable(&why);
        Unavailable { why }
    }

    /// The files are no longer where they were. The store is kept open: it has all rows, and closing
    /// it would remove a log by a name that may be another's by now.
    fn strayed(&mut self, gone: &str) -> Unavailable {
        let why = format!("{gone}; put it back, or stop the gate and put a backup back");
        if let Some(mut store) = self.store.take() {
            tidy_at_close(&store.db, false);
            // So that a start finds out that there was a ledger. A file in its place has its own.
            let path = &self.options.path;
            if store.place.is_same_database(path) || lacks_head(path, &store.place, &store.kept()) {
                store.keep_head(path);
                self.shared.say_head_file(&store.head_said);
            }
            self.stray = Some(Stray {
                store,
                since: Instant::now(),
                rescued: false,
            });
        }
        self.shared.say_unavailable(&why);
        Unavailable { why }
    }

    /// Saves what the open files hold, under a name of its own.
    fn rescue(&mut self) {
        let Some(stray) = &mut self.stray else {
            return;
        };
        stray.rescued = true;
        let file = beside(&self.options.path, &format!("{RESCUED}{}", unix_ms()));
        let part = beside(&file, ".part");
        let saved = copy_into(&stray.store.db, &part)
            .map_err(|error| error.to_string())
            .and_then(|()| std::fs::rename(&part, &file).map_err(|error| error.to_string()));
        let said = match saved {
            Ok(()) => format!("what it held is saved as {}", file.display()),
            Err(error) => format!("what it held could not be saved: {error}"),
        };
        let why = self.shared.unavailable().map(|unavailable| unavailable.why);
        self.shared
            .say_unavailable(&format!("{}; {said}", why.unwrap_or_default()));
    }

    fn count(&self, applied: Applied) {
        let counters = &self.shared.counters;
        add(&counters.commits, 1);
        add(&counters.settled, applied.settled);
        add(&counters.duplicates, applied.duplicates);
        add(&counters.admitted, applied.admitted);
        add(&counters.refused, applied.refused);
        if let Some(store) = &self.store {
            self.shared.say_head(store.head);
            self.shared.say_head_file(&store.head_said);
        }
    }

    fn tend(&mut self) {
        if self.store.is_none() {
            return self.come_back();
        }
        let log = std::fs::metadata(beside(&self.options.path, "-wal"));
        let log_bytes = log.map_or(0, |log| log.len());
        set(&self.shared.counters.log_bytes, log_bytes);
        if self.checkpointed.elapsed() >= self.options.checkpoint_every {
            self.checkpointed = Instant::now();
            // A reader in the way costs at most the time that a busy database is waited for.
            let how = if log_bytes > LOG_MAX {
                "TRUNCATE"
            } else {
                "PASSIVE"
            };
            drop(self.write(|store| store.checkpoint(how)));
            self.keep_head();
        }
        let (options, shipped) = (
            self.options.clone(),
            self.shared.shipped.load(Ordering::Acquire),
        );
        let believed = self.believed_ms();
        let step = self.write(|store| retention::step(store, &options, believed, shipped));
        if let Ok(step) = step {
            let counters = &self.shared.counters;
            set(&counters.bytes, step.bytes);
            if step.pruned > 0 {
                set(&counters.pruned_until, step.until_ms);
            }
            add(&counters.pruned, step.pruned);
            add(&counters.pruned_unshipped, step.unshipped);
        }
    }

    /// The wall clock, where it matters and can be believed.
    fn believed_ms(&mut self) -> Option<u64> {
        self.options.keep?;
        let now = self.shared.reading();
        if let Some(step) = self.clock.step(now) {
            self.shared.say_clock_step(step);
        }
        self.clock.believed(now)
    }

    /// Opens anew and writes what waited; says that the disk is back only when all of it is there.
    fn come_back(&mut self) {
        if self.shared.condemned.load(Ordering::Acquire) {
            return;
        }
        if !self.find_store() {
            return;
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

    /// The store of before: nothing else is taken for it.
    fn find_store(&mut self) -> bool {
        let path = &self.options.path;
        if let Some(mut stray) = self.stray.take() {
            if stray.store.place.gone(path).is_none() {
                tidy_at_close(&stray.store.db, true);
                self.store = Some(stray.store);
                self.keep_head();
                return true;
            }
            // It may have been removed after the ledger was.
            if lacks_head(path, &stray.store.place, &stray.store.kept()) {
                stray.store.keep_head(path);
                self.shared.say_head_file(&stray.store.head_said);
            }
            let is_late = !stray.rescued && stray.since.elapsed() >= RESCUE_AFTER;
            self.stray = Some(stray);
            if is_late {
                self.rescue();
            }
            return false;
        }
        if !self.place.is_same_database(path) {
            // As with a stray one, a start has to find out that there was a ledger.
            if let Some(last) = self.last.filter(|last| lacks_head(path, &self.place, last)) {
                let said = HeadFile::open(path).write(&last);
                self.shared.say_head_file(&said);
            }
            let gone = format!("{} was removed or replaced", path.display());
            self.shared.say_unavailable(&gone);
            return false;
        }
        // To open it copies its log into it.
        if let Some(cut) = self.shortest.cut(path, None) {
            self.shared.condemn(&cut);
            return false;
        }
        match Store::reopen(path) {
            Ok(store) if self.last.is_some_and(|last| store.head.seq < last.head.seq) => {
                tidy_at_close(&store.db, false);
                self.shared.condemn("rows at its end are gone that it had");
                false
            }
            Ok(store) => {
                self.shared.say_head_file(&store.head_said);
                self.shortest = ShortestLength::of(path, store.bytes().ok());
                self.log = log_length(path);
                self.place = store.place;
                self.store = Some(store);
                true
            }
            Err(error) if is_damage(&error) => {
                self.shared.condemn(&error.to_string());
                false
            }
            Err(error) => {
                self.gone(&error);
                false
            }
        }
    }

    fn limit_pages(&self) {
        if let (Some(store), Some(pages)) = (&self.store, self.options.pages_max) {
            drop(store.db.pragma_update(None, "max_page_count", pages));
        }
    }
}

/// Whether nothing is at the path, and the file beside it does not say where this ledger ended. One that speaks of another
/// ledger is left alone, and so is another directory in the place of the one that was opened.
fn lacks_head(path: &Path, place: &Place, kept: &Kept) -> bool {
    let is_said = |said: Kept| said == *kept || said.ledger != kept.ledger;
    place.is_same_directory(path)
        && !path.exists()
        && !head_file::read(path).kept().is_some_and(is_said)
}
