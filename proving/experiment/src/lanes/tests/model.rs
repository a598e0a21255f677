//! The model: it counts pauses down by the millisecond, and knows no due moments.

use super::*;
use crate::workload::Deal;

/// A request as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at_ms: u64,
    pub(super) lane: u32,
    pub(super) play: u64,
    pub(super) trace: usize,
    pub(super) stream: usize,
    pub(super) request: usize,
    pub(super) kind: Kind,
}

impl Event {
    pub(super) fn of(sent: &Sent, now: Duration) -> Self {
        Self {
            at_ms: now.as_millis() as u64,
            lane: sent.lane,
            play: sent.play,
            trace: sent.trace,
            stream: sent.stream,
            request: sent.request,
            kind: sent.kind,
        }
    }
}

/// What a stream does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    Pauses { left: u64 },
    Answers { left: u64 },
    Waits,
    Nothing,
}

struct Play {
    trace: usize,
    number: u64,
    /// Of each stream what comes next, and what it does.
    streams: Vec<(usize, Does)>,
    /// Primers with the time that is left of each; none of them is sent where it is `None`.
    primers: Vec<(usize, usize, Option<u64>)>,
}

struct ModelLane {
    play: Play,
    deal: Deal,
    warm_ups: u32,
    is_held: bool,
    quiet_ms: u64,
}

pub(super) struct Model<'a> {
    rules: &'a Rules,
    traces: &'a [Trace],
    lanes: Vec<ModelLane>,
    plays: u64,
    now: u64,
    pub(super) begun: u64,
    is_measured: bool,
    quiet_ms: u64,
    pub(super) events: Vec<Event>,
    pub(super) left_out: (u64, u64),
}

fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}

impl<'a> Model<'a> {
    /// Lanes that begin where the machine says: traces and the agents' own requests. The rest follows from the time of these.
    pub(super) fn new(rules: &'a Rules, traces: &'a [Trace], began: &[(usize, usize)]) -> Self {
        let lanes = (0..rules.lanes).zip(began).map(|(number, &(trace, _))| {
            let mut deal = Deal::new(rules.seed, 0, u64::from(number), u64::from(rules.lanes));
            assert_eq!(
                deal.next(traces.len() as u64).map(|(trace, _)| trace),
                Some(trace as u64)
            );
            let mut rng = Rng::stream(rules.seed, &[BEGINS, u64::from(number)]);
            let share = 0.25 + 0.5 * rng.unit();
            let from = Duration::from_millis(ms(traces[trace].length().mul_f64(share)));
            let streams: Vec<(usize, Does)> = traces[trace]
                .streams
                .iter()
                .enumerate()
                .map(|(at, stream)| {
                    let mut next = stream.requests.iter().filter(|ask| ask.at < from).count();
                    if at == 0 && next == stream.requests.len() {
                        next -= 1;
                    }
                    let does = match stream.requests.get(next) {
                        None => Does::Nothing,
                        Some(ask) => Does::Pauses {
                            left: ms(ask.at.saturating_sub(from)),
                        },
                    };
                    (next, does)
                })
                .collect();
            let primers = streams.iter().enumerate();
            let primers = primers.filter(|(_, (next, does))| *next > 0 && *does != Does::Nothing);
            let primers = primers
                .map(|(at, (next, _))| (at, next - 1, None))
                .collect();
            ModelLane {
                play: Play {
                    trace,
                    number: u64::from(number),
                    streams,
                    primers,
                },
                deal,
                warm_ups: rules.warm_ups,
                is_held: false,
                quiet_ms: 0,
            }
        });
        let mut model = Self {
            rules,
            traces,
            lanes: lanes.collect(),
            plays: u64::from(rules.lanes),
            now: 0,
            begun: 0,
            is_measured: false,
            quiet_ms: 0,
            events: Vec::new(),
            left_out: (0, 0),
        };
        for at in 0..model.lanes.len() {
            model.make_wait(at);
        }
        assert_eq!(
            model
                .lanes
                .iter()
                .map(|lane| (lane.play.trace, lane.play.streams[0].0))
                .collect::<Vec<_>>(),
            began
        );
        model
    }

    fn ready(&self, lane: usize, stream: usize) -> bool {
        let play = &self.lanes[lane].play;
        let trace = &self.traces[play.trace];
        let next = play.streams[stream].0;
        let subs = trace.streams.iter().enumerate();
        let joined = subs.filter(|(_, sub)| {
            sub.parent
                .is_some_and(|p| p.stream == stream && p.before == Some(next))
        });
        let all_done = { joined }.all(|(sub, _)| play.streams[sub].1 == Does::Nothing);
        let mut begun = true;
        let mut at = stream;
        while let Some(parent) = trace.streams[at].parent.filter(|_| play.streams[at].0 == 0) {
            if let Some(after) = parent.after {
                begun = play.streams[parent.stream].0 > after;
                break;
            }
            at = parent.stream;
        }
        all_done && begun
    }

    /// At the beginning: what waits for others has no pause of its own yet.
    fn make_wait(&mut self, lane: usize) {
        for stream in (0..self.lanes[lane].play.streams.len()).rev() {
            let does = self.lanes[lane].play.streams[stream].1;
            if does != Does::Nothing && !self.ready(lane, stream) {
                self.lanes[lane].play.streams[stream].1 = Does::Waits;
            }
        }
    }

    fn busy(&self, lane: usize) -> bool {
        let play = &self.lanes[lane].play;
        let answers = play
            .streams
            .iter()
            .any(|(_, does)| matches!(does, Does::Answers { .. }));
        answers || play.primers.iter().any(|(_, _, left)| left.is_some())
    }

    pub(super) fn run(&mut self) {
        loop {
            self.ends();
            self.begins_measuring();
            self.limits_idling();
            let end = self.begun + ms(self.rules.measure);
            let is_over = self.is_measured && self.now >= end;
            if is_over
                && (self.now >= end + ms(self.rules.grace)
                    || (0..self.lanes.len()).all(|lane| !self.busy(lane)))
            {
                return;
            }
            if !is_over {
                self.sends();
            }
            self.now += 1;
            self.counts_down();
        }
    }

    /// Whether a lane's clock goes on.
    fn is_running(&self, lane: usize) -> bool {
        self.lanes[lane].play.primers.is_empty() && !self.lanes[lane].is_held
    }

    fn counts_down(&mut self) {
        for lane in 0..self.lanes.len() {
            let runs = self.is_running(lane);
            for (_, does) in &mut self.lanes[lane].play.streams {
                match does {
                    Does::Answers { left } => *left -= 1,
                    Does::Pauses { left } if runs => *left = left.saturating_sub(1),
                    Does::Pauses { .. } | Does::Waits | Does::Nothing => {}
                }
            }
            for (_, _, left) in &mut self.lanes[lane].play.primers {
                *left = left.map(|left| left - 1);
            }
        }
    }

    fn ends(&mut self) {
        let was_busy = (0..self.lanes.len()).any(|lane| self.busy(lane));
        for lane in 0..self.lanes.len() {
            let was = self.busy(lane);
            self.lanes[lane]
                .play
                .primers
                .retain(|(_, _, left)| *left != Some(0));
            for stream in 0..self.lanes[lane].play.streams.len() {
                if self.lanes[lane].play.streams[stream].1 == (Does::Answers { left: 0 }) {
                    self.answered(lane, stream);
                }
            }
            if was && !self.busy(lane) {
                self.lanes[lane].quiet_ms = self.now;
            }
            self.takes_the_next(lane);
            let is_closed = self.lanes[lane].warm_ups == 0 && !self.is_measured;
            if is_closed && !self.busy(lane) && self.lanes[lane].play.primers.is_empty() {
                self.lanes[lane].is_held = true;
            }
        }
        if was_busy && (0..self.lanes.len()).all(|lane| !self.busy(lane)) {
            self.quiet_ms = self.now;
        }
    }

    fn answered(&mut self, lane: usize, stream: usize) {
        let trace = &self.traces[self.lanes[lane].play.trace];
        let (next, does) = &mut self.lanes[lane].play.streams[stream];
        *next += 1;
        *does = if *next < trace.streams[stream].requests.len() {
            Does::Waits
        } else {
            Does::Nothing
        };
        self.wakes(lane);
    }

    fn wakes(&mut self, lane: usize) {
        let trace = &self.traces[self.lanes[lane].play.trace];
        for other in 0..self.lanes[lane].play.streams.len() {
            let (next, does) = self.lanes[lane].play.streams[other];
            if does == Does::Waits && self.ready(lane, other) {
                let left = ms(trace.streams[other].requests[next].pause);
                self.lanes[lane].play.streams[other].1 = Does::Pauses { left };
            }
        }
    }

    fn takes_the_next(&mut self, lane: usize) {
        let is_done = self.lanes[lane]
            .play
            .streams
            .iter()
            .all(|(_, does)| *does == Does::Nothing);
        if !is_done {
            return;
        }
        let count = self.traces.len() as u64;
        let trace = self.lanes[lane]
            .deal
            .next(count)
            .map_or(0, |(trace, _)| trace as usize);
        let streams = vec![(0, Does::Waits); self.traces[trace].streams.len()];
        self.lanes[lane].play = Play {
            trace,
            number: self.plays,
            streams,
            primers: Vec::new(),
        };
        self.plays += 1;
        self.wakes(lane);
    }

    fn begins_measuring(&mut self) {
        if !self.is_measured && self.lanes.iter().all(|lane| lane.is_held) {
            self.is_measured = true;
            self.begun = self.now;
            self.quiet_ms = self.now;
            for lane in &mut self.lanes {
                (lane.is_held, lane.quiet_ms) = (false, self.now);
            }
        }
    }

    fn least_pause(&self, lane: usize) -> Option<u64> {
        let lane_of = &self.lanes[lane];
        if !self.is_running(lane) || (lane_of.warm_ups == 0 && !self.is_measured) {
            return None;
        }
        let pauses = lane_of
            .play
            .streams
            .iter()
            .filter_map(|(_, does)| match does {
                Does::Pauses { left } => Some(*left),
                Does::Answers { .. } | Does::Waits | Does::Nothing => None,
            });
        pauses.min()
    }

    fn shorten(&mut self, lane: usize, by: u64) {
        for (_, does) in &mut self.lanes[lane].play.streams {
            if let Does::Pauses { left } = does {
                *left = left.saturating_sub(by);
            }
        }
    }

    fn limits_idling(&mut self) {
        if self.is_measured && self.now >= self.begun + ms(self.rules.measure) {
            return;
        }
        for lane in 0..self.lanes.len() {
            let idle = self.now - self.lanes[lane].quiet_ms;
            if self.busy(lane) {
                continue;
            }
            let most = ms(self.rules.lane_idle).saturating_sub(idle);
            if let Some(surplus) = self
                .least_pause(lane)
                .and_then(|left| left.checked_sub(most))
                .filter(|s| *s > 0)
            {
                self.shorten(lane, surplus);
                self.left_out.0 += 1;
            }
        }
        let primes = self.lanes.iter().any(|lane| !lane.play.primers.is_empty());
        if primes || (0..self.lanes.len()).any(|lane| self.busy(lane)) {
            return;
        }
        let idle = self.now - self.quiet_ms;
        let most = ms(self.rules.idle).saturating_sub(idle);
        let least = (0..self.lanes.len())
            .filter_map(|lane| self.least_pause(lane))
            .min();
        if let Some(surplus) = least
            .and_then(|left| left.checked_sub(most))
            .filter(|surplus| *surplus > 0)
        {
            for lane in 0..self.lanes.len() {
                if self.is_running(lane) {
                    self.shorten(lane, surplus);
                }
            }
            self.left_out.1 += 1;
        }
    }

    fn sends(&mut self) {
        for lane in 0..self.lanes.len() {
            let number = lane as u32;
            let (trace, play) = (self.lanes[lane].play.trace, self.lanes[lane].play.number);
            let mut primed = Vec::new();
            for (stream, request, left) in &mut self.lanes[lane].play.primers {
                if left.is_none() {
                    *left = Some(answer_ms(1));
                    primed.push((*stream, *request));
                }
            }
            for (stream, request) in primed {
                self.event(number, play, trace, (stream, request), Kind::Primer);
            }
            while self.least_pause(lane) == Some(0) {
                let streams = &mut self.lanes[lane].play.streams;
                let at = streams
                    .iter()
                    .position(|(_, does)| *does == Does::Pauses { left: 0 })
                    .expect("one is due");
                let request = streams[at].0;
                let left = answer_ms(self.traces[trace].streams[at].requests[request].output);
                streams[at].1 = Does::Answers { left };
                let kind = if self.is_measured {
                    Kind::Measured
                } else {
                    Kind::WarmUp
                };
                self.lanes[lane].warm_ups = self.lanes[lane].warm_ups.saturating_sub(1);
                self.event(number, play, trace, (at, request), kind);
            }
        }
    }

    fn event(
        &mut self,
        lane: u32,
        play: u64,
        trace: usize,
        (stream, request): (usize, usize),
        kind: Kind,
    ) {
        self.events.push(Event {
            at_ms: self.now,
            lane,
            play,
            trace,
            stream,
            request,
            kind,
        });
    }

    pub(super) fn cancelled(&self) -> Vec<(u32, usize, usize)> {
        let mut all = Vec::new();
        for (number, lane) in self.lanes.iter().enumerate() {
            for (stream, (next, does)) in lane.play.streams.iter().enumerate() {
                if matches!(does, Does::Answers { .. }) {
                    all.push((number as u32, stream, *next));
                }
            }
        }
        all
    }
}
