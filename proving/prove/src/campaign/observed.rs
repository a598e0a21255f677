//! What users had: requests summed up by phase, by profile and by window, while they come.
//!
//! A request belongs to the phase in which it was due, and its first token to the window in which it came.
//! Invariant: memory grows with phases, windows and seconds, and not with requests.
//! Not here: what the engine says of them (`experiment::telemetry`), the document (`summary`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use experiment::telemetry::{Sample, Span, Value};
use hdrhistogram::Histogram;

use crate::report::document::{Errors, Quantiles};

/// Microseconds at most: a day.
const LONGEST_US: u64 = 86_400_000_000;
/// Kinds of errors that are told apart, of all phases together.
const MOST_KINDS: usize = 250;
/// What requests are called that had no whole answer.
const LEFT: &str = "no whole answer at the end";
/// Over which a peak is taken, seconds.
const PEAK_S: usize = 10;

/// One request that has ended; times since the campaign began.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    pub(super) profile: usize,
    /// Whose it was, by its number in the profile.
    pub(super) user: Option<u64>,
    /// Of the profile's corpus, by number.
    pub(super) session: Option<u64>,
    /// Which turn of it, from 0.
    pub(super) turn: Option<u32>,
    pub(super) due: Duration,
    pub(super) sent: Option<Duration>,
    pub(super) first_token: Option<Duration>,
    pub(super) ended: Duration,
    pub(super) per_token: Option<Duration>,
    pub(super) longest_gap: Option<Duration>,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) failure: Option<String>,
}

/// Everything that was seen so far.
pub(super) struct Observed {
    profiles: usize,
    phases: Vec<PhaseCells>,
    windows: Vec<WindowCells>,
    /// Answers and errors that ended in each second.
    seconds: Vec<(u32, u32)>,
    sums: Sums,
    errors: BTreeMap<(String, String), u64>,
    /// Profile and session of all requests: no more than the corpus has, or were begun in virtual time.
    sessions: HashSet<(usize, u64)>,
    /// Sessions whose first request was answered, as often as it was.
    begun: u64,
    /// What each user of a profile had last: no more than there were users at once.
    last: HashMap<(usize, u64), Last>,
}

/// The request after which a user pauses.
struct Last {
    ended: Duration,
    turn: (Option<u64>, Option<u32>),
    is_refused: bool,
}

/// A phase, from its beginning on.
struct PhaseCells {
    name: String,
    from: Duration,
    /// By profile.
    cells: Vec<Cells>,
    /// Answers to what was due in each second since it began.
    due: Vec<u32>,
}

/// A window, from its beginning on.
struct WindowCells {
    from: Duration,
    pub(super) first: Times,
    pub(super) per_token: Times,
    pub(super) whole: Times,
    pub(super) answered: u64,
    pub(super) errors: u64,
    /// Of answers, by the time in which they came: what a warm-up generated is none of the window after it.
    pub(super) output_tokens: f64,
}

/// What users of a profile had in a phase.
#[derive(Clone)]
pub(super) struct Cells {
    pub(super) first: Times,
    pub(super) per_token: Times,
    pub(super) gap: Times,
    pub(super) whole: Times,
    pub(super) lag: Times,
    pub(super) answered: u64,
    pub(super) errors: u64,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) cached_of: u64,
    pub(super) reported: u64,
    /// Of users, before what was due.
    pub(super) pauses_s: f64,
    pub(super) pauses: u64,
}

/// Times of one kind.
#[derive(Clone)]
pub(super) struct Times {
    histogram: Histogram<u64>,
    sum_s: f64,
}

/// Since the beginning, for gates.
#[derive(Default)]
struct Sums {
    answered: f64,
    errors: f64,
    ttft: (f64, f64),
    tpot: (f64, f64),
    e2e: (f64, f64),
    lag: (f64, f64),
}

/// A window as it was.
pub(super) struct WindowSeen {
    pub(super) answered: u64,
    pub(super) errors: u64,
    pub(super) output_tokens: f64,
    pub(super) first: Option<Quantiles>,
    pub(super) per_token: Option<Quantiles>,
    pub(super) whole: Option<Quantiles>,
}

impl Observed {
    pub(super) fn new(profiles: usize) -> Self {
        Self {
            profiles,
            phases: Vec::new(),
            windows: Vec::new(),
            seconds: Vec::new(),
            sums: Sums::default(),
            errors: BTreeMap::new(),
            sessions: HashSet::new(),
            begun: 0,
            last: HashMap::new(),
        }
    }

    /// A phase begins.
    pub(super) fn phase(&mut self, name: &str, from: Duration) {
        self.phases.push(PhaseCells {
            name: name.to_owned(),
            from,
            cells: vec![Cells::new(); self.profiles],
            due: Vec::new(),
        });
    }

    /// A window begins.
    pub(super) fn window(&mut self, from: Duration) {
        self.windows.push(WindowCells {
            from,
            first: Times::new(),
            per_token: Times::new(),
            whole: Times::new(),
            answered: 0,
            errors: 0,
            output_tokens: 0.0,
        });
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, ended: &Ended) {
        if let Some((answered, errors)) = second_of(&mut self.seconds, ended.ended) {
            *(if ended.failure.is_none() {
                answered
            } else {
                errors
            }) += 1;
        }
        self.sums.add(ended);
        let session = ended.session.map(|session| (ended.profile, session));
        self.sessions.extend(session);
        // One that was refused is perhaps sent again.
        self.begun += u64::from(ended.turn == Some(0) && ended.failure.is_none());
        self.count_window(ended);
        let pause = self.pause_before(ended);
        let phase = self
            .phases
            .iter()
            .rposition(|phase| phase.from <= ended.due);
        let Some(phase) = phase else { return };
        let phase = &mut self.phases[phase];
        if ended.failure.is_none()
            && let Some(answers) = second_of(&mut phase.due, ended.due.saturating_sub(phase.from))
        {
            *answers += 1;
        }
        if let Some(kind) = &ended.failure {
            let key = (phase.name.clone(), kind.clone());
            if self.errors.len() < MOST_KINDS || self.errors.contains_key(&key) {
                *self.errors.entry(key).or_default() += 1;
            }
        }
        if let Some(cells) = phase.cells.get_mut(ended.profile) {
            cells.add(ended);
            if let Some(pause) = pause {
                cells.pauses_s += pause.as_secs_f64();
                cells.pauses += 1;
            }
        }
    }

    /// How long its user paused before a request: from the end of the one before, whatever became of it.
    fn pause_before(&mut self, ended: &Ended) -> Option<Duration> {
        let last = Last {
            ended: ended.ended,
            turn: (ended.session, ended.turn),
            is_refused: ended.failure.is_some(),
        };
        let before = self.last.insert((ended.profile, ended.user?), last)?;
        // One that is sent again waits as long as its refusal said.
        let is_again = before.is_refused && before.turn == (ended.session, ended.turn);
        let pause = ended.due.checked_sub(before.ended);
        pause.filter(|_| !is_again)
    }

    /// Tokens of a good answer came evenly from the first to the end, in whichever windows that was.
    fn count_tokens(&mut self, ended: &Ended) {
        let tokens = ended.output_tokens.filter(|_| ended.failure.is_none());
        let Some(tokens) = tokens.filter(|tokens| *tokens > 0) else {
            return;
        };
        let first = ended.first_token.unwrap_or(ended.ended).min(ended.ended);
        let whole = ended.ended.saturating_sub(first).as_secs_f64();
        let mut until = Duration::MAX;
        for window in self.windows.iter_mut().rev() {
            let (from, to) = (window.from.max(first), until.min(ended.ended));
            until = window.from;
            let share = match whole > 0.0 {
                true => to.saturating_sub(from).as_secs_f64() / whole,
                // All of them at once.
                false => f64::from(from <= ended.ended && to >= ended.ended),
            };
            #[expect(clippy::cast_precision_loss, reason = "tokens below 2^53")]
            let all = tokens as f64;
            window.output_tokens += all * share;
            if until <= first {
                return;
            }
        }
    }

    fn count_window(&mut self, ended: &Ended) {
        self.count_tokens(ended);
        let windows = &mut self.windows;
        let at = |windows: &[WindowCells], time: Duration| {
            windows
                .partition_point(|window| window.from <= time)
                .checked_sub(1)
        };
        if let (Some(first), true) = (ended.first_token, ended.failure.is_none())
            && let Some(window) = at(windows, first)
        {
            windows[window].first.add(first.saturating_sub(ended.due));
        }
        let Some(window) = at(windows, ended.ended) else {
            return;
        };
        let window = &mut windows[window];
        if ended.failure.is_some() {
            window.errors += 1;
            return;
        }
        window.answered += 1;
        window.whole.add(ended.ended.saturating_sub(ended.due));
        if let Some(time) = ended.per_token {
            window.per_token.add(time);
        }
    }

    /// So many requests had no whole answer when everything was over; they count as errors of the last phase of that
    /// name.
    pub(super) fn left(&mut self, profile: usize, phase: &str, count: u64) {
        let cells = self.phases.iter_mut().rev();
        let mut cells = cells.filter(|cells| cells.name == phase);
        let Some(cells) = cells.next().and_then(|cells| cells.cells.get_mut(profile)) else {
            return;
        };
        cells.errors += count;
        self.sums.errors += count as f64;
        if count > 0 {
            let key = (phase.to_owned(), LEFT.to_owned());
            *self.errors.entry(key).or_default() += count;
        }
    }

    /// The client as a target of its own.
    pub(super) fn sample(&self, at: Duration, users: u32) -> Sample {
        let sums = &self.sums;
        let values = [
            ("requests_total", sums.answered + sums.errors),
            ("answered_total", sums.answered),
            ("errors_total", sums.errors),
            ("ttft_seconds_sum", sums.ttft.0),
            ("ttft_seconds_count", sums.ttft.1),
            ("tpot_seconds_sum", sums.tpot.0),
            ("tpot_seconds_count", sums.tpot.1),
            ("e2e_seconds_sum", sums.e2e.0),
            ("e2e_seconds_count", sums.e2e.1),
            ("lag_seconds_sum", sums.lag.0),
            ("lag_seconds_count", sums.lag.1),
            ("users", f64::from(users)),
        ];
        let values = values.map(|(metric, value)| Value {
            metric: metric.to_owned(),
            labels: Vec::new(),
            value,
        });
        Sample {
            at,
            target: "client".into(),
            values: values.into(),
        }
    }

    /// How often a session was begun; `None` where requests are of none.
    pub(super) fn begun_sessions(&self) -> Option<u64> {
        (self.begun > 0).then_some(self.begun)
    }

    /// How many sessions had a request; `None` where requests are of none.
    pub(super) fn unique_sessions(&self) -> Option<u64> {
        let sessions = self.sessions.len() as u64;
        (sessions > 0).then_some(sessions)
    }

    /// Answers and errors since the beginning.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.sums.answered as u64, self.sums.errors as u64)
    }

    /// What users of each profile had in the last phase of that name.
    pub(super) fn cells(&self, phase: &str) -> Option<&[Cells]> {
        let mut phases = self.phases.iter().rev();
        phases
            .find(|cells| cells.name == phase)
            .map(|cells| &*cells.cells)
    }

    /// The window that began then.
    pub(super) fn window_at(&self, from: Duration) -> Option<WindowSeen> {
        let window = self.windows.iter().find(|window| window.from == from)?;
        Some(WindowSeen {
            answered: window.answered,
            errors: window.errors,
            output_tokens: window.output_tokens,
            first: window.first.quantiles(),
            per_token: window.per_token.quantiles(),
            whole: window.whole.quantiles(),
        })
    }

    /// The greatest rate over ten seconds of the last phase of that name, which was so long, a second, of what was due then
    /// and answered, whenever that was: so do phases count.
    pub(super) fn peak(&self, phase: &str, length: Duration) -> f64 {
        let mut phases = self.phases.iter().rev();
        let Some(phase) = phases.find(|cells| cells.name == phase) else {
            return 0.0;
        };
        let whole = index(length);
        let known = &phase.due[..phase.due.len().min(whole)];
        let width = PEAK_S.min(whole.max(1));
        let sum = |slice: &[u32]| slice.iter().copied().map(u64::from).sum::<u64>();
        // In seconds that nobody wrote down nothing was due.
        let most = known.windows(width.min(known.len().max(1))).map(sum).max();
        most.unwrap_or(0) as f64 / width as f64
    }

    /// Answers, and errors, a second over a span.
    pub(super) fn rates(&self, span: Span) -> (f64, f64) {
        let (from, to) = (index(span.from), index(span.to));
        let known = self.seconds.len();
        let slice = self.seconds.get(from.min(known)..to.min(known));
        let sum = slice.unwrap_or_default().iter();
        let sum = sum.fold((0.0, 0.0), |(ok, bad), (more, worse)| {
            (ok + f64::from(*more), bad + f64::from(*worse))
        });
        // Seconds in which nothing ended are no less seconds.
        let width = to.saturating_sub(from).max(1) as f64;
        (sum.0 / width, sum.1 / width)
    }

    pub(super) fn errors(&self) -> Vec<Errors> {
        let errors = self.errors.iter().map(|((phase, kind), count)| Errors {
            phase: phase.clone(),
            kind: kind.clone(),
            count: *count,
            says: None,
        });
        errors.collect()
    }
}

/// What is counted of a second.
fn second_of<T: Default + Clone>(seconds: &mut Vec<T>, at: Duration) -> Option<&mut T> {
    // Nothing lasts longer than a month.
    let second = Some(index(at)).filter(|second| *second < 32 * 86_400)?;
    if seconds.len() <= second {
        seconds.resize(second + 1, T::default());
    }
    seconds.get_mut(second)
}

fn index(at: Duration) -> usize {
    usize::try_from(at.as_secs()).unwrap_or(usize::MAX)
}

impl Sums {
    fn add(&mut self, ended: &Ended) {
        if ended.failure.is_some() {
            self.errors += 1.0;
            return;
        }
        self.answered += 1.0;
        let mut count = |pair: fn(&mut Self) -> &mut (f64, f64), time: Option<Duration>| {
            if let Some(time) = time {
                let pair = pair(self);
                pair.0 += time.as_secs_f64();
                pair.1 += 1.0;
            }
        };
        let since = |to: Duration| to.saturating_sub(ended.due);
        count(|sums| &mut sums.ttft, ended.first_token.map(since));
        count(|sums| &mut sums.tpot, ended.per_token);
        count(|sums| &mut sums.e2e, Some(since(ended.ended)));
        count(|sums| &mut sums.lag, ended.sent.map(since));
    }
}

impl Cells {
    fn new() -> Self {
        Self {
            first: Times::new(),
            per_token: Times::new(),
            gap: Times::new(),
            whole: Times::new(),
            lag: Times::new(),
            answered: 0,
            errors: 0,
            prompt_tokens: 0,
            output_tokens: 0,
            cached_tokens: 0,
            cached_of: 0,
            reported: 0,
            pauses_s: 0.0,
            pauses: 0,
        }
    }

    fn add(&mut self, ended: &Ended) {
        let since = |to: Duration| to.saturating_sub(ended.due);
        if let Some(sent) = ended.sent {
            self.lag.add(since(sent));
        }
        if ended.failure.is_some() {
            self.errors += 1;
            return;
        }
        self.answered += 1;
        self.whole.add(since(ended.ended));
        for (times, time) in [
            (&mut self.first, ended.first_token.map(since)),
            (&mut self.per_token, ended.per_token),
            (&mut self.gap, ended.longest_gap),
        ] {
            if let Some(time) = time {
                times.add(time);
            }
        }
        if let Some(prompt) = ended.prompt_tokens {
            self.reported += 1;
            self.prompt_tokens = self.prompt_tokens.saturating_add(prompt);
            if let Some(cached) = ended.cached_tokens.filter(|cached| *cached <= prompt) {
                self.cached_tokens = self.cached_tokens.saturating_add(cached);
                self.cached_of = self.cached_of.saturating_add(prompt);
            }
        }
        let output = ended.output_tokens.unwrap_or(0);
        self.output_tokens = self.output_tokens.saturating_add(output);
    }

    /// All of them as one.
    pub(super) fn sum(cells: &[Self]) -> Self {
        let mut sum = Self::new();
        for one in cells {
            for (into, from) in [
                (&mut sum.first, &one.first),
                (&mut sum.per_token, &one.per_token),
                (&mut sum.gap, &one.gap),
                (&mut sum.whole, &one.whole),
                (&mut sum.lag, &one.lag),
            ] {
                into.absorb(from);
            }
            sum.answered += one.answered;
            sum.errors += one.errors;
            sum.prompt_tokens += one.prompt_tokens;
            sum.output_tokens += one.output_tokens;
            sum.cached_tokens += one.cached_tokens;
            sum.cached_of += one.cached_of;
            sum.reported += one.reported;
            sum.pauses_s += one.pauses_s;
            sum.pauses += one.pauses;
        }
        sum
    }
}

impl Times {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_US, 3);
        Self {
            histogram: histogram.expect("bounds that are written here"),
            sum_s: 0.0,
        }
    }

    fn add(&mut self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(us.clamp(1, LONGEST_US));
        self.sum_s += time.as_secs_f64();
    }

    fn absorb(&mut self, other: &Self) {
        let added = self.histogram.add(&other.histogram);
        added.expect("histograms of the same bounds");
        self.sum_s += other.sum_s;
    }

    /// `None` of none.
    #[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        let count = self.histogram.len();
        let at = |share: f64| self.histogram.value_at_quantile(share) as f64 / 1e6;
        (count > 0).then(|| Quantiles {
            count,
            mean: self.sum_s / count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.histogram.max() as f64 / 1e6,
        })
    }
}
