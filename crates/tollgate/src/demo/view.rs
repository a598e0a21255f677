//! What the demo knows of its calls: events in, a picture's facts out.
//!
//! Invariant: no clock, no terminal, no gate. Of calls the last [`CALLS_MAX`] are kept, of lines of the log the last
//! [`NOTES_MAX`]; sums are of all of them. A call has its record and its row, whichever comes first.
//! Not here: where events come from (`feed`), how it looks (`draw`, `plain`).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

/// Calls that are kept.
const CALLS_MAX: usize = 500;
/// Rows that wait for their call's record.
const EARLY_MAX: usize = 1_000;
/// Lines of the log that are kept.
const NOTES_MAX: usize = 100;
/// Looks after which a call is shown without its row.
const PATIENCE: u32 = 20;

/// Tokens in and out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
}

impl Tokens {
    fn add(&mut self, of: Tokens) {
        self.input = self.input.saturating_add(of.input);
        self.output = self.output.saturating_add(of.output);
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    Streamed,
    Refused,
    Left,
    Failed,
}

/// A call, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    /// When it ended, `12:34:56`.
    pub(super) at: String,
    /// Empty for callers that were not recognised.
    pub(super) who: String,
    /// Empty where it went nowhere.
    pub(super) to: String,
    pub(super) model: String,
    pub(super) status: u16,
    pub(super) ending: Ending,
    /// Why it was refused or failed.
    pub(super) why: String,
    pub(super) first_byte: Option<Duration>,
    pub(super) took: Option<Duration>,
    pub(super) own: Option<Duration>,
    /// By the engine's word.
    pub(super) engine: Option<Tokens>,
    /// By the gate's count.
    pub(super) gate: Option<Tokens>,
    /// 1e-12 of the currency's unit.
    pub(super) cost_pico: Option<i64>,
}

/// What a row of the ledger adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) id: String,
    pub(super) who: String,
    pub(super) engine: Option<Tokens>,
    pub(super) gate: Option<Tokens>,
    pub(super) cost_pico: Option<i64>,
}

/// A limit or a budget.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Level {
    pub(super) name: String,
    /// `requests`, `tokens` or a currency.
    pub(super) what: String,
    pub(super) left: f64,
    pub(super) of: f64,
    /// What there is to say of when it is full again.
    pub(super) refills: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    Ended(Call),
    Settled(Settled),
    Levels(Vec<Level>),
    /// Calls that are open.
    Open(u64),
    /// A line of the log.
    Noted(String),
    /// Calls whose records found no room.
    Missed(u64),
    /// Time since the start, and calls that the demo made itself.
    Now(Duration, u32),
}

/// What a caller came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) refused: u64,
    pub(super) engine: Tokens,
    pub(super) gate: Tokens,
    pub(super) cost_pico: i128,
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) data: String,
    /// What the demo asks of itself: the workload's name and how many calls.
    pub(super) plan: Option<(&'static str, u32)>,
    pub(super) made: u32,
    pub(super) elapsed: Duration,
    pub(super) calls: VecDeque<Call>,
    pub(super) callers: BTreeMap<String, Sums>,
    pub(super) levels: Vec<Level>,
    pub(super) open: u64,
    pub(super) notes: VecDeque<String>,
    pub(super) missed: u64,
    early: HashMap<String, Settled>,
    /// Calls at the front that were taken by [`View::due`].
    taken: usize,
    /// Calls that were given up before that.
    untaken: u64,
    looks: u32,
}

impl View {
    /// Of nothing yet.
    pub(super) fn of(plan: Option<(&'static str, u32)>) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }

    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Ended(call) => self.ended(call),
            Event::Settled(row) => self.settled(row),
            Event::Levels(levels) => self.levels = levels,
            Event::Open(open) => self.open = open,
            Event::Missed(missed) => self.missed = missed,
            Event::Noted(line) => {
                self.notes.push_back(line);
                if self.notes.len() > NOTES_MAX {
                    self.notes.pop_front();
                }
            }
            Event::Now(elapsed, made) => (self.elapsed, self.made) = (elapsed, made),
        }
    }

    fn ended(&mut self, mut call: Call) {
        let sums = self.callers.entry(call.who.clone()).or_default();
        sums.calls += 1;
        sums.refused += u64::from(call.ending == Ending::Refused);
        if let Some(row) = self.early.remove(&call.id) {
            call.take(row);
        }
        self.calls.push_back(call);
        if self.calls.len() > CALLS_MAX {
            self.calls.pop_front();
            self.untaken += u64::from(self.taken == 0);
            self.taken = self.taken.saturating_sub(1);
        }
    }

    fn settled(&mut self, row: Settled) {
        let sums = self.callers.entry(row.who.clone()).or_default();
        // Sums are compared, so they are of rows that have both.
        if let (Some(engine), Some(gate)) = (row.engine, row.gate) {
            sums.engine.add(engine);
            sums.gate.add(gate);
        }
        sums.cost_pico += i128::from(row.cost_pico.unwrap_or_default());
        let call = self.calls.iter_mut().rev().find(|call| call.id == row.id);
        match call {
            Some(call) => call.take(row),
            None if self.early.len() < EARLY_MAX => drop(self.early.insert(row.id.clone(), row)),
            // What waits that long has lost its call.
            None => self.early.clear(),
        }
    }

    /// What all came to.
    pub(super) fn all(&self) -> Sums {
        let mut all = Sums::default();
        for sums in self.callers.values() {
            all.calls += sums.calls;
            all.refused += sums.refused;
            all.engine.add(sums.engine);
            all.gate.add(sums.gate);
            all.cost_pico += sums.cost_pico;
        }
        all
    }

    /// Calls that [`View::due`] never gave and will not give.
    pub(super) fn lost(&self) -> u64 {
        self.missed + self.untaken
    }

    /// Calls that are known whole and were not taken before, in their order: one that waits for its row holds up
    /// those behind it, for a while. `is_last`: nothing is waited for.
    pub(super) fn due(&mut self, is_last: bool) -> Vec<Call> {
        let waiting = self.calls.iter().skip(self.taken);
        let known = waiting.take_while(|call| call.is_known()).count();
        let waits = known == 0 && self.calls.len() > self.taken;
        self.looks = if waits { self.looks + 1 } else { 0 };
        let n = if is_last || self.looks > PATIENCE {
            self.looks = 0;
            self.calls.len()
        } else {
            known
        };
        let due: Vec<Call> = self
            .calls
            .iter()
            .skip(self.taken)
            .take(n)
            .cloned()
            .collect();
        self.taken += due.len();
        due
    }
}

impl Call {
    fn take(&mut self, row: Settled) {
        self.engine = row.engine.or(self.engine);
        self.gate = row.gate;
        self.cost_pico = row.cost_pico;
    }

    /// Whether nothing more is to come. A refused call has no row.
    fn is_known(&self) -> bool {
        self.ending == Ending::Refused || self.gate.is_some() || self.cost_pico.is_some()
    }
}

#[cfg(test)]
pub(super) mod tests;
