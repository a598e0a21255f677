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
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Tokens {
    fn add(&mut self, of: Tokens) {
        self.input = self.input.saturating_add(of.input);
        self.output = self.output.saturating_add(of.output);
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    Streamed,
    Refused,
    Left,
    Failed,
}

/// A call, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    /// When it ended, `12:34:56`.
    pub(crate) at: String,
    /// Empty for callers that were not recognised.
    pub(crate) who: String,
    /// Empty where it went nowhere.
    pub(crate) to: String,
    pub(crate) model: String,
    pub(crate) status: u16,
    pub(crate) ending: Ending,
    /// Why it was refused or failed.
    pub(crate) why: String,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) took: Option<Duration>,
    pub(crate) own: Option<Duration>,
    /// By the engine's word.
    pub(crate) engine: Option<Tokens>,
    /// By the gate's count.
    pub(crate) gate: Option<Tokens>,
    /// 1e-12 of the currency's unit.
    pub(crate) cost_pico: Option<i64>,
}

/// What a row of the ledger adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) id: String,
    pub(crate) who: String,
    pub(crate) engine: Option<Tokens>,
    pub(crate) gate: Option<Tokens>,
    pub(crate) cost_pico: Option<i64>,
}

/// A limit or a budget.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) name: String,
    /// `requests`, `tokens` or a currency.
    pub(crate) what: String,
    pub(crate) left: f64,
    pub(crate) of: f64,
    /// What there is to say of when it is full again.
    pub(crate) refills: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
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
pub(crate) struct Sums {
    pub(crate) calls: u64,
    pub(crate) refused: u64,
    pub(crate) engine: Tokens,
    pub(crate) gate: Tokens,
    pub(crate) cost_pico: i128,
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) data: String,
    /// What the demo asks of itself: the workload's name and how many calls.
    pub(crate) plan: Option<(&'static str, u32)>,
    pub(crate) made: u32,
    pub(crate) elapsed: Duration,
    pub(crate) calls: VecDeque<Call>,
    pub(crate) callers: BTreeMap<String, Sums>,
    pub(crate) levels: Vec<Level>,
    pub(crate) open: u64,
    pub(crate) notes: VecDeque<String>,
    pub(crate) missed: u64,
    early: HashMap<String, Settled>,
    /// Calls at the front that were taken by [`View::due`].
    taken: usize,
    /// Calls that were given up before that.
    untaken: u64,
    looks: u32,
}

impl View {
    /// Of nothing yet.
    pub(crate) fn of(plan: Option<(&'static str, u32)>) -> Self {
        Self {
            plan,
            ..Self::default()
        }
    }

    pub(crate) fn apply(&mut self, event: Event) {
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
    pub(crate) fn all(&self) -> Sums {
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
    pub(crate) fn lost(&self) -> u64 {
        self.missed + self.untaken
    }

    /// Calls that are known whole and were not taken before, in their order: one that waits for its row holds up
    /// those behind it, for a while. `is_last`: nothing is waited for.
    pub(crate) fn due(&mut self, is_last: bool) -> Vec<Call> {
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
pub(crate) mod tests;
