//! One lane: the trace that it plays, how far each stream of it is, and when each goes on.
//!
//! Invariant: a stream is due, under way, waits for others, or is done; a lane whose streams are all done takes its next trace.
//! Not here: phases, what all lanes have in common (`lanes`).

use std::time::Duration;

use super::{Kind, LeftOut, Rules, Sent, Trace};
use crate::workload::Deal;

#[derive(Debug, Clone)]
pub(super) struct Lane {
    number: u32,
    deal: Deal,
    trace: usize,
    play: u64,
    streams: Vec<Progress>,
    /// Its first trace, and the first request of that trace's root that is no history.
    began: (usize, usize),
    /// Primers that are not sent yet, the last first: of which stream, which request.
    primers: Vec<(usize, usize)>,
    under_way: u32,
    /// Since when it has had nothing under way, where it has nothing.
    quiet: Duration,
    stage: Stage,
}

/// How far a stream is.
#[derive(Debug, Clone, Copy)]
struct Progress {
    next: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Due(Duration),
    UnderWay,
    /// For its parent's answer, or for sub-agents.
    Waits,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// What was sent before the lane began is brought into the cache; the trace's clock stands.
    Primes {
        warm_ups: u32,
    },
    /// So many requests still warm up; after the last nothing more is sent.
    WarmsUp {
        left: u32,
    },
    /// It waits for other lanes, and its clock stands since then.
    Warm {
        since: Duration,
    },
    Measured,
}

impl Lane {
    /// In the middle of its first trace, at this share of its time.
    pub(super) fn begin(
        rules: &Rules,
        traces: &[Trace],
        number: u32,
        play: u64,
        share: f64,
    ) -> Self {
        let mut lane = Self {
            number,
            deal: Deal::new(rules.seed, 0, u64::from(number), u64::from(rules.lanes)),
            trace: 0,
            play,
            streams: Vec::new(),
            began: (0, 0),
            primers: Vec::new(),
            under_way: 0,
            quiet: Duration::ZERO,
            stage: Stage::Primes {
                warm_ups: rules.warm_ups,
            },
        };
        lane.deal_next(traces);
        if let Some(trace) = traces.get(lane.trace) {
            // To the millisecond, as traces have their moments.
            let from = trace.length().mul_f64(share).as_millis();
            lane.resume(
                trace,
                Duration::from_millis(u64::try_from(from).unwrap_or(0)),
            );
        }
        lane.settle(Duration::ZERO);
        lane
    }

    fn deal_next(&mut self, traces: &[Trace]) {
        let dealt = self.deal.next(traces.len() as u64);
        self.trace = dealt.map_or(0, |(trace, _)| usize::try_from(trace).unwrap_or(0));
    }

    /// What was sent before `from` is history, of which each stream that goes on has a primer; until these have ended the trace's clock
    /// stands at `from`, which is time 0 of what is due.
    fn resume(&mut self, trace: &Trace, from: Duration) {
        let streams = trace.streams.iter().enumerate();
        let progress = streams.map(|(at, stream)| {
            let all = stream.requests.len();
            let history = stream.requests.partition_point(|ask| ask.at < from);
            // The agent itself has something left to say.
            let next = if at == 0 {
                history.min(all.saturating_sub(1))
            } else {
                history
            };
            let due = stream
                .requests
                .get(next)
                .map(|ask| ask.at.saturating_sub(from));
            Progress {
                next,
                state: due.map_or(State::Done, State::Due),
            }
        });
        self.streams = progress.collect();
        self.began = (self.trace, self.next_of(0));
        for at in (0..self.streams.len()).rev() {
            let Some(&Progress { next, state }) = self.streams.get(at) else {
                continue;
            };
            if state == State::Done {
                continue;
            }
            if next > 0 {
                self.primers.push((at, next - 1));
            }
            if !self.is_ready(trace, at) {
                self.set(at, State::Waits);
            }
        }
    }

    /// Where its first trace began.
    pub(super) const fn beginning(&self) -> (usize, usize) {
        self.began
    }

    /// Whether it has done what comes before the measurement.
    pub(super) const fn is_warm(&self) -> bool {
        matches!(self.stage, Stage::Warm { .. })
    }

    /// Whether its trace has ended.
    pub(super) fn is_done(&self) -> bool {
        let mut states = self.streams.iter().map(|stream| stream.state);
        self.under_way == 0 && self.primers.is_empty() && states.all(|state| state == State::Done)
    }

    /// The measurement begins: its clock goes on.
    pub(super) fn release(&mut self, now: Duration) {
        if let Stage::Warm { since } = self.stage {
            let stood = now.saturating_sub(since);
            self.shift(|due| due + stood);
            self.quiet = now;
        }
        self.stage = Stage::Measured;
    }

    /// When its next request is due; `None` where it waits for something.
    pub(super) fn next_due(&self) -> Option<Duration> {
        match self.stage {
            Stage::Primes { .. } => (!self.primers.is_empty()).then_some(Duration::ZERO),
            Stage::WarmsUp { left: 0 } | Stage::Warm { .. } => None,
            Stage::WarmsUp { .. } | Stage::Measured => self.stream_due(),
        }
    }

    fn stream_due(&self) -> Option<Duration> {
        let due = self.streams.iter().filter_map(|stream| match stream.state {
            State::Due(at) => Some(at),
            State::UnderWay | State::Waits | State::Done => None,
        });
        due.min()
    }

    /// Takes the request that is due first.
    pub(super) fn take(&mut self, number: u64) -> Option<Sent> {
        let due = self.next_due()?;
        let (stream, request, kind) = match self.primers.pop() {
            Some((stream, request)) => (stream, request, Kind::Primer),
            None => {
                let is_first = |progress: &Progress| progress.state == State::Due(due);
                let stream = self.streams.iter().position(is_first)?;
                self.set(stream, State::UnderWay);
                let kind = match &mut self.stage {
                    Stage::WarmsUp { left } => {
                        *left = left.saturating_sub(1);
                        Kind::WarmUp
                    }
                    Stage::Primes { .. } | Stage::Warm { .. } | Stage::Measured => Kind::Measured,
                };
                (stream, self.next_of(stream), kind)
            }
        };
        self.under_way += 1;
        Some(Sent {
            number,
            lane: self.number,
            play: self.play,
            trace: self.trace,
            stream,
            request,
            kind,
            due,
        })
    }

    /// An answer has ended.
    pub(super) fn ended(&mut self, sent: &Sent, traces: &[Trace], now: Duration) {
        self.under_way = self.under_way.saturating_sub(1);
        self.quiet = now;
        if let (false, Some(trace)) = (sent.kind == Kind::Primer, traces.get(self.trace)) {
            self.advance(trace, sent.stream, now);
        }
        self.settle(now);
    }

    /// Whether primers or warm-ups are all done.
    fn settle(&mut self, now: Duration) {
        if self.under_way > 0 || !self.primers.is_empty() {
            return;
        }
        if let Stage::Primes { warm_ups } = self.stage {
            self.shift(|due| due + now);
            self.stage = Stage::WarmsUp { left: warm_ups };
        }
        if self.stage == (Stage::WarmsUp { left: 0 }) {
            self.stage = Stage::Warm { since: now };
        }
    }

    /// A stream has an answer: it goes on, and so do those that waited for it.
    fn advance(&mut self, trace: &Trace, stream: usize, now: Duration) {
        if let Some(progress) = self.streams.get_mut(stream) {
            progress.next += 1;
            let all = trace
                .streams
                .get(stream)
                .map_or(0, |stream| stream.requests.len());
            let is_done = progress.next >= all;
            progress.state = if is_done { State::Done } else { State::Waits };
        }
        self.wake(trace, now);
    }

    /// Streams that wait for nothing any more are due after their pauses.
    fn wake(&mut self, trace: &Trace, now: Duration) {
        for at in 0..self.streams.len() {
            let waits = self
                .streams
                .get(at)
                .is_some_and(|stream| stream.state == State::Waits);
            if waits && self.is_ready(trace, at) {
                let stream = trace.streams.get(at);
                let ask = stream.and_then(|stream| stream.requests.get(self.next_of(at)));
                self.set(
                    at,
                    State::Due(now + ask.map_or(Duration::ZERO, |ask| ask.pause)),
                );
            }
        }
    }

    /// Whether a stream's next request waits for no other stream.
    fn is_ready(&self, trace: &Trace, at: usize) -> bool {
        let next = self.next_of(at);
        let mut all = trace.streams.iter().zip(&self.streams);
        let is_joined = all.all(|(stream, progress)| {
            let waits = stream
                .parent
                .is_some_and(|parent| parent.stream == at && parent.before == Some(next));
            !waits || progress.state == State::Done
        });
        is_joined && self.has_begun(trace, at)
    }

    /// Whether what a stream begins after has been answered.
    fn has_begun(&self, trace: &Trace, at: usize) -> bool {
        let parent = trace.streams.get(at).and_then(|stream| stream.parent);
        match parent {
            _ if self.next_of(at) > 0 => true,
            None => true,
            Some(parent) => match parent.after {
                Some(after) => self.next_of(parent.stream) > after,
                None => self.has_begun(trace, parent.stream),
            },
        }
    }

    /// The next trace, from its start.
    pub(super) fn go_on(&mut self, traces: &[Trace], play: u64, now: Duration) {
        self.deal_next(traces);
        self.play = play;
        let Some(trace) = traces.get(self.trace) else {
            return;
        };
        let waits = Progress {
            next: 0,
            state: State::Waits,
        };
        self.streams = vec![waits; trace.streams.len()];
        self.wake(trace, now);
    }

    /// Where it has nothing under way for longer than this, its clock goes on.
    pub(super) fn limit_idle(&mut self, most: Duration, left_out: &mut LeftOut) {
        if self.under_way > 0 || matches!(self.stage, Stage::Primes { .. }) {
            return;
        }
        let surplus = self
            .next_due()
            .and_then(|due| due.checked_sub(self.quiet + most));
        if let Some(surplus) = surplus.filter(|surplus| !surplus.is_zero()) {
            self.come_earlier(surplus);
            left_out.add(surplus);
        }
    }

    /// Its clock goes on by so much, where it does not stand.
    pub(super) fn come_earlier(&mut self, by: Duration) {
        if !self.is_warm() {
            self.shift(|due| due.saturating_sub(by));
        }
    }

    fn next_of(&self, stream: usize) -> usize {
        self.streams.get(stream).map_or(0, |stream| stream.next)
    }

    fn set(&mut self, stream: usize, state: State) {
        if let Some(progress) = self.streams.get_mut(stream) {
            progress.state = state;
        }
    }

    fn shift(&mut self, by: impl Fn(Duration) -> Duration) {
        for progress in &mut self.streams {
            if let State::Due(due) = &mut progress.state {
                *due = by(*due);
            }
        }
    }
}
