//! What people must be told of once: a condition that begins, lasts and ends.
//!
//! Workers tell of every failure; what is logged is the change. Each worker counts for itself and hands over
//! at its ticks; one place puts the counts together and says when there is a line to write.
//! Invariant: of one condition there is at most one line in [`EVERY`], and the one that says its end; every
//! failure is in the count of some line, or will be in the next. A worker that tells never waits.
//! Not here: how lines read, and conditions that no worker knows of (`tollgate`).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use policy::id::EndpointId;
use policy::record::{Count, Record, Said, Trouble};
use policy::snapshot::Snapshot;

/// Between two lines of one condition while it lasts, and between two beginnings.
const EVERY: Duration = Duration::from_secs(30);
/// A condition whose end nobody tells of is over after so long without another failure.
const QUIET: Duration = Duration::from_secs(30);
/// Batches that may wait for whoever looks; a worker keeps what finds no room.
const QUEUE: usize = 256;
/// Bytes of a detail that are kept.
const DETAIL_BYTES: usize = 300;

/// What a condition is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Attempts at this endpoint fail.
    Endpoint(Arc<str>),
    /// This endpoint refuses the gate's credential.
    Credential(Arc<str>),
    /// This backend reports usage that no call can hold.
    Usage(Arc<str>),
    /// This backend reports more tokens than a call has bytes, and they are charged.
    Beyond(Arc<str>),
    /// Something about the gate's own connections.
    Connections(Trouble),
    /// Something that the process knows of, by its name; it tells of the end, too.
    Named(&'static str),
    /// Something of which the process counts the failures alone.
    Counted(&'static str),
}

/// What was heard of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// Failures.
    pub times: u64,
    /// What the first of them said.
    pub detail: Box<str>,
    /// It went well since.
    pub is_over: bool,
}

/// A line to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Of what.
    pub condition: Condition,
    /// What became of it.
    pub phase: Phase,
    /// Failures since the last line.
    pub times: u64,
    /// Failures since it began.
    pub total: u64,
    /// How long it lasts, or lasted.
    pub lasts: Duration,
    /// What the newest of them said.
    pub detail: Box<str>,
}

/// What became of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It begins.
    Begins,
    /// It goes on.
    Lasts,
    /// It is over.
    Ends,
}

type Batch = Vec<(Condition, Heard)>;

/// A worker's count of failures.
#[derive(Debug)]
pub struct Reporter {
    heard: Batch,
    queue: SyncSender<Batch>,
    /// Some condition is on: those that are well tell so.
    is_on: Arc<AtomicBool>,
}

impl Reporter {
    /// Something failed.
    #[cold]
    pub(crate) fn trouble(&mut self, of: &Snapshot, trouble: Trouble, detail: &dyn Display) {
        let endpoint = |id| of.endpoint(id).map(|e| Arc::clone(&e.name));
        let condition = match trouble {
            Trouble::Endpoint(id) => endpoint(id).map(Condition::Endpoint),
            Trouble::Credential(id) => endpoint(id).map(Condition::Credential),
            other => Some(Condition::Connections(other)),
        };
        let Some(condition) = condition else { return };
        let heard = self.of(condition);
        if heard.times == 0 {
            heard.detail = shortened(detail);
        }
        heard.times += 1;
        heard.is_over = false;
    }

    /// An exchange came to tokens that are not those which its backend reported, as no call can hold them.
    #[cold]
    pub(crate) fn disbelieved(&mut self, of: &Snapshot, record: &Record) {
        let Some(backend) = record.backend.and_then(|id| of.backend(id)) else {
            return;
        };
        let tokens = &record.tokens;
        let said = |said: Said| {
            said.tokens()
                .map_or_else(|| "-".to_owned(), |n| n.to_string())
        };
        let charged = |count: Count| count.tokens().unwrap_or(0);
        let heard = self.of(Condition::Usage(Arc::clone(&backend.name)));
        heard.detail = shortened(&format_args!(
            "reported {} and {} tokens, charged {} and {}",
            said(tokens.prompt_said),
            said(tokens.completion_said),
            charged(tokens.prompt),
            charged(tokens.completion),
        ));
        heard.times += 1;
    }

    /// An exchange is charged more tokens than its text has bytes, as its backend reported them.
    #[cold]
    pub(crate) fn charged_beyond_text(&mut self, of: &Snapshot, record: &Record) {
        let Some(backend) = record.backend.and_then(|id| of.backend(id)) else {
            return;
        };
        let tokens = &record.tokens;
        let reported = |count: Count, said: Said| said.tokens().or(count.tokens()).unwrap_or(0);
        let heard = self.of(Condition::Beyond(Arc::clone(&backend.name)));
        heard.detail = shortened(&format_args!(
            "reported {} and {} tokens, which are charged: a body of {} bytes, an answer of {}",
            reported(tokens.prompt, tokens.prompt_said),
            reported(tokens.completion, tokens.completion_said),
            record.bytes_in,
            record.bytes_out,
        ));
        heard.times += 1;
    }

    /// An attempt at this endpoint went well. While no condition is on this is one look at a flag.
    #[inline]
    pub(crate) fn well(&mut self, of: &Snapshot, endpoint: EndpointId) {
        if self.is_on.load(Ordering::Relaxed) || !self.heard.is_empty() {
            self.over(of, endpoint);
        }
    }

    #[cold]
    fn over(&mut self, of: &Snapshot, endpoint: EndpointId) {
        if let Some(endpoint) = of.endpoint(endpoint) {
            let name = || Arc::clone(&endpoint.name);
            self.of(Condition::Endpoint(name())).is_over = true;
            self.of(Condition::Credential(name())).is_over = true;
        }
    }

    fn of(&mut self, condition: Condition) -> &mut Heard {
        let known = self.heard.iter().position(|(c, _)| *c == condition);
        let at = known.unwrap_or_else(|| {
            self.heard.push((condition, Heard::default()));
            self.heard.len() - 1
        });
        &mut self.heard[at].1
    }

    /// Hands over what there is.
    pub(crate) fn flush(&mut self) {
        if self.heard.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(kept)) = self.queue.try_send(std::mem::take(&mut self.heard))
        {
            self.heard = kept;
        }
    }
}

/// All conditions, as one place looks at them.
#[derive(Debug)]
pub struct Conditions {
    queue: Receiver<Batch>,
    hand: SyncSender<Batch>,
    is_on: Arc<AtomicBool>,
    spells: BTreeMap<Condition, Spell>,
    heard: BTreeMap<Condition, Heard>,
}

/// One condition from its beginning to its end.
#[derive(Debug, Default)]
struct Spell {
    is_on: bool,
    /// Its beginning was written.
    is_told: bool,
    /// It went well after the newest failure, as far as can be told.
    is_well: bool,
    began: Duration,
    failed: Duration,
    /// When the last line was written that was not of an end.
    line: Option<Duration>,
    /// Failures that are in no line yet.
    untold: u64,
    total: u64,
    detail: Box<str>,
}

impl Default for Conditions {
    fn default() -> Self {
        let (hand, queue) = sync_channel(QUEUE);
        Self {
            queue,
            hand,
            is_on: Arc::default(),
            spells: BTreeMap::new(),
            heard: BTreeMap::new(),
        }
    }
}

impl Conditions {
    /// A worker's end of it.
    #[must_use]
    pub fn reporter(&self) -> Reporter {
        Reporter {
            heard: Vec::new(),
            queue: self.hand.clone(),
            is_on: Arc::clone(&self.is_on),
        }
    }

    /// Takes what was heard of a condition.
    pub fn tell(&mut self, condition: Condition, heard: Heard) {
        let all = self.heard.entry(condition).or_default();
        if heard.times > 0 {
            all.detail = heard.detail;
        }
        all.times += heard.times;
        all.is_over |= heard.is_over;
    }

    /// The lines to write now, at this time since some beginning. To be called about every second.
    pub fn look(&mut self, now: Duration) -> Vec<Change> {
        while let Ok(batch) = self.queue.try_recv() {
            for (condition, heard) in batch {
                self.tell(condition, heard);
            }
        }
        for (condition, spell) in &mut self.spells {
            spell.hear(self.heard.remove(condition).unwrap_or_default(), now);
        }
        for (condition, heard) in std::mem::take(&mut self.heard) {
            if heard.times > 0 {
                self.spells.entry(condition).or_default().hear(heard, now);
            }
        }
        let changes = self.spells.iter_mut().filter_map(|(condition, spell)| {
            let ends_alone = matches!(
                condition,
                Condition::Connections(_)
                    | Condition::Counted(_)
                    | Condition::Usage(_)
                    | Condition::Beyond(_)
            );
            spell.change(condition, ends_alone, now)
        });
        let changes = changes.collect();
        self.spells.retain(|_, spell| spell.is_worth_keeping(now));
        self.is_on
            .store(self.spells.values().any(|s| s.is_on), Ordering::Relaxed);
        changes
    }
}

impl Spell {
    fn hear(&mut self, heard: Heard, now: Duration) {
        if heard.times > 0 {
            if !std::mem::replace(&mut self.is_on, true) {
                (self.began, self.total, self.is_told) = (now, 0, false);
            }
            self.failed = now;
            self.untold += heard.times;
            self.total += heard.times;
            self.detail = heard.detail;
            self.is_well = heard.is_over;
        } else if heard.is_over || self.is_well {
            // A whole look brought no failure.
            self.is_on = false;
        }
    }

    fn change(&mut self, condition: &Condition, ends_alone: bool, now: Duration) -> Option<Change> {
        if ends_alone && self.is_on && now.saturating_sub(self.failed) >= QUIET {
            self.is_on = false;
        }
        let is_held = self.holds(now) || self.untold == 0;
        let phase = match (self.is_on, self.is_told) {
            (false, true) => Phase::Ends,
            (_, _) if is_held => return None,
            // It was over before there was a line for its beginning.
            (false, false) => Phase::Ends,
            (true, true) => Phase::Lasts,
            (true, false) => Phase::Begins,
        };
        self.is_told = self.is_on;
        if self.is_on {
            self.line = Some(now);
        }
        Some(Change {
            condition: condition.clone(),
            phase,
            times: std::mem::take(&mut self.untold),
            total: self.total,
            lasts: now.saturating_sub(self.began),
            detail: self.detail.clone(),
        })
    }

    /// Whether there was a line a short while ago.
    fn holds(&self, now: Duration) -> bool {
        self.line
            .is_some_and(|line| now.saturating_sub(line) < EVERY)
    }

    /// One that is over is kept as long as its line holds back the next, and while failures are untold.
    fn is_worth_keeping(&self, now: Duration) -> bool {
        self.is_on || self.untold > 0 || self.holds(now)
    }
}

/// A detail on one line, and not long.
fn shortened(detail: &dyn Display) -> Box<str> {
    let mut text = detail.to_string();
    let end = text
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| *at >= DETAIL_BYTES);
    text.truncate(end.unwrap_or(text.len()));
    text.replace(char::is_control, " ").into()
}

#[cfg(test)]
mod tests;
