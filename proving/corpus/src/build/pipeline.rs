//! The threads of a build and what goes between them.
//!
//! Invariant: records are written in the order in which they are read, whatever thread made them; what was read and
//! not yet written has at most [`IN_FLIGHT_BYTES`] of text, or is one record. However the writing ends, all threads
//! end.
//! Not here: what is made of a record (`work`).

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::journal::{Fact, Journal, Place};
use super::work::{Made, make};
use super::{BuildError, IN_FLIGHT_BYTES, MOST_SESSIONS, Plan, Prepared, Progress, Repair, files};
use crate::conversation::{Content, Conversation};
use crate::geometry::TargetTokenizer;
use crate::reader::{Fault, FaultKind, Position, Sink, Tally};
use crate::store::{StoreError, StoreWriter};

/// All is put on the disk after so many bytes, or this time.
const SYNC_BYTES: u64 = 64 << 20;
const SYNC_EVERY: Duration = Duration::from_secs(10);
/// What a record counts at least towards [`IN_FLIGHT_BYTES`].
const LEAST_COST: usize = 4 << 10;

/// What goes from the reader to the threads and from them to the writer.
struct Item<T> {
    number: u64,
    /// The record after this one.
    next: Place,
    cost: usize,
    what: T,
}

enum Read {
    Conversation(Position, Box<Conversation>),
    Fault(Position, Fault),
    UnitEnd(Box<Tally>),
}

enum Done {
    Made(Position, Box<Made>),
    Fault(Position, Fault),
    UnitEnd(Box<Tally>),
}

/// Reads, makes and writes what is not yet written.
pub(super) fn run(
    plan: &Plan<'_>,
    prepared: &[Prepared<'_>],
    target: &dyn TargetTokenizer,
    repair: &dyn Repair,
    journal: &mut Journal,
    watch: &mut dyn FnMut(&Progress),
) -> Result<StoreWriter, BuildError> {
    let mut writer = Writer::new(plan, prepared, journal, watch)?;
    let from = writer.journal.state.at;
    let room = Room::default();
    std::thread::scope(|scope| {
        let (to_make, jobs) = channel::<Item<Read>>();
        let (to_write, done) = channel::<Item<Done>>();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..plan.threads {
            let (jobs, to_write) = (jobs.clone(), to_write.clone());
            scope.spawn(move || work(plan, target, repair, &jobs, &to_write));
        }
        // The threads have the only ends now, so that each channel closes with them.
        drop((jobs, to_write));
        let room = &room;
        scope.spawn(move || {
            Feeder {
                room,
                to_make,
                number: 0,
            }
            .read(prepared, from);
        });
        let written = writer.write(&done, room);
        room.close();
        drop(done);
        written
    })?;
    writer.sync()?;
    Ok(writer.store)
}

/// Room for what was read and not yet written.
#[derive(Default)]
struct Room {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Room {
    /// Waits for room. Whether anybody still wants more.
    fn take(&self, cost: usize) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.1 && state.0 > 0 && state.0 + cost > IN_FLIGHT_BYTES {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.0 += cost;
        !state.1
    }

    fn give(&self, cost: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = state.0.saturating_sub(cost);
        self.changed.notify_all();
    }

    fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = true;
        self.changed.notify_all();
    }
}

/// The thread that reads.
struct Feeder<'a> {
    room: &'a Room,
    to_make: Sender<Item<Read>>,
    number: u64,
}

impl Feeder<'_> {
    fn read(mut self, prepared: &[Prepared<'_>], from: Place) {
        for (profile, prepared) in prepared.iter().enumerate().skip(from.profile) {
            let first = if profile == from.profile {
                from.unit
            } else {
                0
            };
            for unit in first..prepared.units.len() {
                let at = Place {
                    profile,
                    unit,
                    record: 0,
                };
                // What of this unit was written by a call before is read again, and passed over.
                let written = if (profile, unit) == (from.profile, from.unit) {
                    from.record
                } else {
                    0
                };
                if self.unit(prepared, at, written).is_break() {
                    return;
                }
            }
        }
    }

    fn unit(&mut self, prepared: &Prepared<'_>, mut at: Place, written: u64) -> ControlFlow<()> {
        let unit = &prepared.units[at.unit];
        let mut each = |position: Position, record: Result<Conversation, Fault>| {
            at.record += 1;
            if at.record <= written {
                return ControlFlow::Continue(());
            }
            let (cost, what) = match record {
                Ok(c) => (text_bytes(&c), Read::Conversation(position, Box::new(c))),
                Err(fault) => (0, Read::Fault(position, fault)),
            };
            self.send(at, cost, what)
        };
        let wanted = |position: &Position| {
            let sample = prepared.sample.as_ref();
            sample.is_none_or(|sample| sample.wants(prepared.plan, position))
        };
        let mut sink = Sink::new(&mut each).only(&wanted);
        let read = prepared.plan.reader.read(unit, &mut sink);
        let tally = sink.into_tally();
        if let Err(error) = read {
            at.record += 1;
            if at.record > written {
                let fault = Fault::broken("unreadable", error.says());
                self.send(at, 0, Read::Fault(files::of_unit(unit), fault))?;
            }
        }
        at.unit += 1;
        at.record = 0;
        self.send(at, 0, Read::UnitEnd(Box::new(tally)))
    }

    fn send(&mut self, next: Place, cost: usize, what: Read) -> ControlFlow<()> {
        let cost = cost.max(LEAST_COST);
        let number = self.number;
        self.number += 1;
        let item = Item {
            number,
            next,
            cost,
            what,
        };
        if self.room.take(cost) && self.to_make.send(item).is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// About the bytes of its text.
fn text_bytes(conversation: &Conversation) -> usize {
    let of = |message: &crate::conversation::Message| {
        let content = match &message.content {
            Some(Content::Text(text)) => text.len(),
            Some(Content::Parts(parts)) => parts.iter().map(json_bytes).sum(),
            None => 0,
        };
        let calls = message.tool_calls.iter().map(|call| &call.function);
        let calls = calls
            .chain(&message.function_call)
            .map(|f| match &f.arguments {
                crate::conversation::Arguments::Text(text) => text.len(),
                crate::conversation::Arguments::Object(value) => json_bytes(value),
            });
        content + message.reasoning.as_ref().map_or(0, String::len) + calls.sum::<usize>() + 200
    };
    let prompts = conversation.decisions.iter().map(|d| 8 * d.prompt.len());
    let tools = conversation.tools.iter().map(json_bytes);
    conversation.messages.iter().map(of).sum::<usize>()
        + prompts.sum::<usize>()
        + tools.sum::<usize>()
}

fn json_bytes(json: &crate::json::Json) -> usize {
    use crate::json::Json;
    32 + match json {
        Json::String(text) => text.len(),
        Json::Array(all) => all.iter().map(json_bytes).sum(),
        Json::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + json_bytes(value))
            .sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    }
}

/// A thread that makes sessions.
fn work(
    plan: &Plan<'_>,
    target: &dyn TargetTokenizer,
    repair: &dyn Repair,
    jobs: &Mutex<Receiver<Item<Read>>>,
    to_write: &Sender<Item<Done>>,
) {
    let mut counter = target.counter();
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(item) = next else {
            return;
        };
        let profile = item.next.profile;
        let what = match item.what {
            Read::Fault(position, fault) => Done::Fault(position, fault),
            Read::UnitEnd(tally) => Done::UnitEnd(tally),
            Read::Conversation(position, conversation) => {
                let made = catch_unwind(AssertUnwindSafe(|| {
                    make(plan, profile, *conversation, repair, &mut *counter)
                }));
                match made {
                    Ok(Ok(made)) => Done::Made(position, Box::new(made)),
                    Ok(Err(fault)) => Done::Fault(position, fault),
                    // A library gave up on this record; the others do not suffer from it.
                    Err(_) => {
                        counter = target.counter();
                        let says = "a bug: counting it failed; see what was printed";
                        Done::Fault(position, Fault::broken("not_counted", says))
                    }
                }
            }
        };
        let (number, next, cost) = (item.number, item.next, item.cost);
        let done = Item {
            number,
            next,
            cost,
            what,
        };
        if to_write.send(done).is_err() {
            return;
        }
    }
}

/// The caller's thread, which writes.
struct Writer<'a, 'b> {
    plan: &'a Plan<'a>,
    prepared: &'a [Prepared<'a>],
    store: StoreWriter,
    journal: &'a mut Journal,
    watch: &'a mut (dyn FnMut(&Progress) + 'b),
    seen: HashSet<[u8; 16]>,
    synced: (u64, Instant),
    /// Bytes that a call before unrolled.
    before: u64,
    /// Records of this profile, where they are drawn.
    of_sample: u64,
}

impl<'a, 'b> Writer<'a, 'b> {
    fn new(
        plan: &'a Plan<'a>,
        prepared: &'a [Prepared<'a>],
        journal: &'a mut Journal,
        watch: &'a mut (dyn FnMut(&Progress) + 'b),
    ) -> Result<Self, BuildError> {
        let (mut seen, mut of_sample) = (HashSet::new(), 0);
        if journal.state.records > 0 {
            let now = journal.state.at.profile;
            journal.facts(|fact, _| {
                let profile = match &fact {
                    Fact::Session(session) => {
                        seen.extend(unhex(&session.digest));
                        session.profile
                    }
                    Fact::Skipped { profile, .. } => *profile,
                    Fact::Unit { .. } => return Ok(()),
                };
                of_sample += u64::from(profile == now);
                Ok(())
            })?;
        }
        let work = StoreWriter::work_dir(&plan.out);
        Ok(Self {
            plan,
            prepared,
            store: StoreWriter::resume(&work, journal.state.lengths)?,
            before: journal.state.bytes_unrolled,
            synced: (journal.state.lengths.bodies, Instant::now()),
            journal,
            watch,
            seen,
            of_sample,
        })
    }

    fn write(&mut self, done: &Receiver<Item<Done>>, room: &Room) -> Result<(), BuildError> {
        let mut early = BTreeMap::new();
        let mut next = 0;
        while let Ok(item) = done.recv() {
            early.insert(item.number, item);
            while let Some(item) = early.remove(&next) {
                next += 1;
                self.one(item.what, item.next)?;
                room.give(item.cost);
            }
        }
        Ok(())
    }

    fn one(&mut self, what: Done, next: Place) -> Result<(), BuildError> {
        match what {
            Done::Made(position, made) => self.session(&position, *made)?,
            Done::Fault(position, fault) => self.fault(next.profile, &position, &fault)?,
            Done::UnitEnd(tally) => {
                let named = |(name, count): (&'static str, u64)| (name.to_owned(), count);
                let odd = tally.oddities.counts().into_iter();
                let fact = Fact::Unit {
                    profile: next.profile,
                    unknown: tally.unknown.counts.clone(),
                    notes: tally.notes.into_iter().map(named).collect(),
                    oddities: odd.filter(|(_, n)| *n > 0).map(named).collect(),
                };
                self.journal.note(&fact, &[])?;
            }
        }
        if next.profile != self.journal.state.at.profile {
            self.of_sample = 0;
        }
        if next.record > 0 {
            self.journal.state.records += 1;
            self.of_sample += 1;
        }
        self.journal.state.at = next;
        let mut progress = self.journal.state.progress(self.share(next));
        progress.bytes_unrolled_before = self.before;
        (self.watch)(&progress);
        let lengths = self.store.lengths();
        if lengths.bodies - self.synced.0 > SYNC_BYTES || self.synced.1.elapsed() > SYNC_EVERY {
            self.sync()?;
        }
        Ok(())
    }

    fn session(&mut self, position: &Position, mut made: Made) -> Result<(), BuildError> {
        if self.seen.len() as u64 >= MOST_SESSIONS {
            let says = format!("a corpus has {MOST_SESSIONS} different sessions at most");
            return Err(BuildError::Plan(format!("{position}: {says}")));
        }
        made.fact.duplicate = !self.seen.insert(made.digest);
        made.fact.kept = !made.fact.duplicate || self.plan.keep_duplicates;
        if made.fact.kept {
            made.fact.bytes_unrolled = self.store.append(&made.session)?;
            self.journal.state.sessions += 1;
            self.journal.state.requests += made.session.turns.len() as u64;
            self.journal.state.bytes_unrolled += made.fact.bytes_unrolled;
            self.journal.state.lengths = self.store.lengths();
            self.journal.note(&Fact::Session(made.fact), &made.blocks)?;
        } else {
            made.fact.turns.clear();
            self.journal.note(&Fact::Session(made.fact), &[])?;
        }
        Ok(())
    }

    fn fault(
        &mut self,
        profile: usize,
        position: &Position,
        fault: &Fault,
    ) -> Result<(), BuildError> {
        let paths = &self.prepared[profile].plan.paths;
        if self.plan.strict && fault.kind == FaultKind::Broken {
            return Err(BuildError::Broken {
                place: position.to_string(),
                says: fault.says.clone(),
            });
        }
        self.journal.state.skipped += 1;
        let fact = Fact::Skipped {
            profile,
            place: files::place(paths, position),
            reason: fault.reason.to_owned(),
            says: fault.says.chars().take(300).collect(),
        };
        Ok(self.journal.note(&fact, &[])?)
    }

    /// Share of the work that is done, each profile by the bytes of its units.
    fn share(&self, at: Place) -> f64 {
        let bytes = |p: &Prepared<'_>| p.units.iter().map(|u| u.bytes).sum::<u64>().max(1) as f64;
        let all: f64 = self.prepared.iter().map(bytes).sum();
        let before: f64 = self.prepared.iter().take(at.profile).map(bytes).sum();
        let Some(now) = self.prepared.get(at.profile) else {
            return 1.0;
        };
        let share = match &now.sample {
            Some(sample) => self.of_sample as f64 / sample.len().max(1) as f64,
            None => {
                let done: u64 = now.units.iter().take(at.unit).map(|u| u.bytes).sum();
                done as f64 / bytes(now)
            }
        };
        ((before + share.min(1.0) * bytes(now)) / all).min(1.0)
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.store.sync()?;
        self.journal.sync()?;
        self.synced = (self.store.lengths().bodies, Instant::now());
        Ok(())
    }
}

fn unhex(digits: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}
