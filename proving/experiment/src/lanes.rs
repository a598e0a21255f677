//! Lanes that replay traces of agents, as AgentX does: who begins where, what is a primer, a warm-up, measured or cancelled, and when each
//! request is due.
//!
//! A lane holds one trace at a time, with the streams of its sub-agents. It begins at a drawn moment of its trace: primers bring the prompts before
//! that moment into the engine's cache, with one token of output each, and a number of requests warm up. When all lanes have done
//! that, the measurement begins; a lane whose trace ends goes on with its next one from the start. At the end nothing new begins, and what is under
//! way after a grace is cancelled.
//! Invariant: a pure machine, the same in real and in virtual time: what is sent follows from traces, rules, and when answers end. A lane has
//! one request of a stream under way at most.
//! Not here: sending (`prove`, the simulator), reading traces (`prove`).

mod lane;
mod trace;

#[cfg(test)]
mod tests;

pub use trace::{Ask, Parent, Stream, Trace, TraceFault};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::random::Rng;
use lane::Lane;

/// Names the streams of what is drawn.
const BEGINS: u64 = 7;
/// Lanes at most.
pub const MOST_LANES: u32 = 100_000;

/// How traces are replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Traces at once.
    pub lanes: u32,
    /// Of where lanes begin, and of the order of traces.
    pub seed: u64,
    /// The shares of a trace's time between which its first lane begins.
    pub begins: (f64, f64),
    /// Requests of each lane that warm up, after its primers.
    pub warm_ups: u32,
    /// How long is measured.
    pub measure: Duration,
    /// How long answers may take after that.
    pub grace: Duration,
    /// A lane of which nothing is under way waits no longer.
    pub lane_idle: Duration,
    /// And all lanes together no longer.
    pub idle: Duration,
}

impl Rules {
    /// As AgentX has them, for so many lanes.
    #[must_use]
    pub const fn agentx(lanes: u32, seed: u64) -> Self {
        Self {
            lanes,
            seed,
            begins: (0.25, 0.75),
            warm_ups: 10,
            measure: Duration::from_secs(3_600),
            grace: Duration::from_secs(30),
            lane_idle: Duration::from_secs(300),
            idle: Duration::from_secs(10),
        }
    }

    /// What makes no sense.
    ///
    /// # Errors
    /// The first member that does not.
    pub fn check(&self) -> Result<(), &'static str> {
        let (from, to) = self.begins;
        if !(1..=MOST_LANES).contains(&self.lanes) {
            return Err("there are 1 to 100,000 lanes");
        }
        if !(0.0 <= from && from <= to && to <= 1.0) {
            return Err(
                "a lane begins between two shares of its trace, from 0 to 1, the less one first",
            );
        }
        if self.measure.is_zero() {
            return Err("nothing would be measured: the duration is 0");
        }
        Ok(())
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It brings a prompt into the engine's cache, and has one token of output.
    Primer,
    /// It is sent before the measurement begins.
    WarmUp,
    /// It counts.
    Measured,
}

/// A request that is to be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Unique among all.
    pub number: u64,
    /// Whose.
    pub lane: u32,
    /// Which play of a trace, unique among all: prompts of two plays share nothing.
    pub play: u64,
    /// Of the traces.
    pub trace: usize,
    /// Of the trace.
    pub stream: usize,
    /// Of the stream.
    pub request: usize,
    /// What it is for.
    pub kind: Kind,
    /// When it was due.
    pub due: Duration,
}

/// What goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Lanes have primers and warm-ups.
    WarmUp,
    /// Requests count.
    Measured,
    /// Nothing new begins.
    Grace,
    /// Everything has ended, or is cancelled.
    Over,
}

/// Time that was left out, because nothing was under way for too long.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LeftOut {
    /// How often.
    pub times: u64,
    /// How much in all.
    pub time: Duration,
}

impl LeftOut {
    fn add(&mut self, time: Duration) {
        self.times += 1;
        self.time += time;
    }
}

/// All lanes.
#[derive(Debug, Clone)]
pub struct Lanes {
    rules: Rules,
    traces: Arc<[Trace]>,
    lanes: Vec<Lane>,
    phase: Phase,
    /// When the measurement began.
    begun: Duration,
    under_way: BTreeMap<u64, Sent>,
    next: u64,
    plays: u64,
    lane_idle: LeftOut,
    idle: LeftOut,
}

impl Lanes {
    /// All lanes at time 0.
    ///
    /// # Errors
    /// Rules that make no sense, or no traces.
    pub fn new(rules: Rules, traces: Arc<[Trace]>) -> Result<Self, &'static str> {
        rules.check()?;
        if traces.is_empty() {
            return Err("there are no traces");
        }
        let mut plays = 0;
        let lanes = (0..rules.lanes).map(|number| {
            let mut rng = Rng::stream(rules.seed, &[BEGINS, u64::from(number)]);
            let (from, to) = rules.begins;
            let share = from + (to - from) * rng.unit();
            plays += 1;
            Lane::begin(&rules, &traces, number, plays - 1, share)
        });
        let lanes = lanes.collect();
        let mut all = Self {
            lanes,
            traces,
            phase: Phase::WarmUp,
            begun: Duration::ZERO,
            under_way: BTreeMap::new(),
            next: 0,
            plays,
            lane_idle: LeftOut::default(),
            idle: LeftOut::default(),
            rules,
        };
        all.settle(Duration::ZERO);
        Ok(all)
    }

    /// What goes on.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// When the measurement began; `None` before it did.
    #[must_use]
    pub fn begun(&self) -> Option<Duration> {
        (self.phase != Phase::WarmUp).then_some(self.begun)
    }

    /// The traces.
    #[must_use]
    pub fn traces(&self) -> &Arc<[Trace]> {
        &self.traces
    }

    /// Where each lane began: its first trace, and the first request of its root that is no history.
    pub fn beginnings(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.lanes.iter().map(Lane::beginning)
    }

    /// What is under way.
    pub fn under_way(&self) -> impl Iterator<Item = &Sent> {
        self.under_way.values()
    }

    /// Time that lanes were idle beyond what they may, and that all were.
    #[must_use]
    pub const fn left_out(&self) -> (LeftOut, LeftOut) {
        (self.lane_idle, self.idle)
    }

    /// How many plays of traces were begun.
    #[must_use]
    pub const fn plays(&self) -> u64 {
        self.plays
    }

    /// The next moment at which something happens by itself; `None` where only an answer goes on.
    #[must_use]
    pub fn next_at(&self) -> Option<Duration> {
        let end = match self.phase {
            Phase::WarmUp => None,
            Phase::Measured => Some(self.begun + self.rules.measure),
            Phase::Grace => return Some(self.begun + self.rules.measure + self.rules.grace),
            Phase::Over => return None,
        };
        let due = self.lanes.iter().filter_map(Lane::next_due).min();
        [end, due].into_iter().flatten().min()
    }

    /// A request that is due by `now`, in the order of their times; it counts as sent. Time never goes back.
    pub fn take(&mut self, now: Duration) -> Option<Sent> {
        self.pass(now);
        if matches!(self.phase, Phase::Grace | Phase::Over) {
            return None;
        }
        let due = |lane: &Lane| lane.next_due().filter(|due| *due <= now);
        let all = self.lanes.iter().enumerate();
        let first = all.filter_map(|(at, lane)| Some((due(lane)?, at))).min();
        let (_, at) = first?;
        let number = self.next;
        let sent = self.lanes.get_mut(at)?.take(number)?;
        self.next += 1;
        self.under_way.insert(number, sent);
        Some(sent)
    }

    /// An answer has ended, whatever it was. One that was cancelled is not known any more.
    pub fn ended(&mut self, number: u64, now: Duration) {
        self.pass(now);
        let Some(sent) = self.under_way.remove(&number) else {
            return;
        };
        if let Some(lane) = self.lanes.get_mut(sent.lane as usize) {
            lane.ended(&sent, &self.traces, now);
            if lane.is_done() && self.phase != Phase::Over {
                let play = self.plays;
                self.plays += 1;
                lane.go_on(&self.traces, play, now);
            }
        }
        self.settle(now);
    }

    /// Phases that end by themselves by `now`.
    fn pass(&mut self, now: Duration) {
        let end = self.begun + self.rules.measure;
        if self.phase == Phase::Measured && now >= end {
            self.phase = Phase::Grace;
        }
        let is_late = now >= end + self.rules.grace;
        if self.phase == Phase::Grace && (is_late || self.under_way.is_empty()) {
            self.phase = Phase::Over;
        }
    }

    /// After something ended: whether the measurement begins, and who would be idle for too long.
    fn settle(&mut self, now: Duration) {
        if self.phase == Phase::WarmUp && self.lanes.iter().all(Lane::is_warm) {
            self.phase = Phase::Measured;
            self.begun = now;
            for lane in &mut self.lanes {
                lane.release(now);
            }
        }
        if !matches!(self.phase, Phase::WarmUp | Phase::Measured) {
            return self.pass(now);
        }
        for lane in &mut self.lanes {
            lane.limit_idle(self.rules.lane_idle, &mut self.lane_idle);
        }
        if self.under_way.is_empty() {
            let due = self.lanes.iter().filter_map(Lane::next_due).min();
            let surplus = due.and_then(|due| due.checked_sub(now + self.rules.idle));
            if let Some(surplus) = surplus.filter(|surplus| !surplus.is_zero()) {
                self.lanes
                    .iter_mut()
                    .for_each(|lane| lane.come_earlier(surplus));
                self.idle.add(surplus);
            }
        }
        self.pass(now);
    }
}
