//! What a run saw of one profile: histograms over answered requests, failures by kind, counts.
//!
//! Invariant: a failed request is in `failures` and in no histogram but `Lag`, which has every request that was turned to, `Leaving`, which has every one that left,
//! and `BetweenTokens`, which has gaps as they come, whatever becomes of their stream.
//! Not here: what the subject cost (`prove`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::Finish;
use crate::client::Failure;

/// Longest time kept apart, in microseconds: a day. Longer ones count as this.
const LONGEST_US: u64 = 86_400_000_000;

/// What is measured of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// From the intended send to the last byte.
    Latency,
    /// From the actual send to the last byte.
    Service,
    /// From the intended send to the first byte of the head.
    Head,
    /// From the intended send to the first byte of the body.
    FirstByte,
    /// From the intended send to the first event with output: TTFT.
    FirstToken,
    /// From the actual send to the first event with output.
    FirstTokenFromSend,
    /// From the intended send to the first event with visible text.
    FirstVisible,
    /// Between an event with output and the next: ITL.
    BetweenTokens,
    /// From the first event with output to the last, over the tokens after the first: TPOT.
    TimePerToken,
    /// From the intended send to the moment at which the generator turned to it: its own doing.
    Lag,
    /// From then on to the first byte of the request: connecting, or waiting for room on a connection.
    Leaving,
}

impl Measure {
    /// All of them, each at its own place.
    pub const ALL: [Self; 11] = [
        Self::Latency,
        Self::Service,
        Self::Head,
        Self::FirstByte,
        Self::FirstToken,
        Self::FirstTokenFromSend,
        Self::FirstVisible,
        Self::BetweenTokens,
        Self::TimePerToken,
        Self::Lag,
        Self::Leaving,
    ];
}

/// When is measured.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// From then on.
    pub begin: Instant,
    /// And before then.
    pub end: Instant,
}

impl Window {
    /// Whether `now` lies in it.
    #[must_use]
    pub fn holds(&self, now: Instant) -> bool {
        now >= self.begin && now < self.end
    }

    /// Which share of the time between two moments lies in it.
    #[must_use]
    pub fn share(&self, from: Instant, to: Instant) -> f64 {
        let all = to.saturating_duration_since(from);
        if all.is_zero() {
            return f64::from(self.holds(to));
        }
        let inside = to
            .min(self.end)
            .saturating_duration_since(from.max(self.begin));
        inside.as_secs_f64() / all.as_secs_f64()
    }
}

/// Quantiles of a histogram, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantiles {
    /// Half are at or below.
    pub p50: u64,
    /// 90 of 100 are at or below.
    pub p90: u64,
    /// 95 of 100 are at or below.
    pub p95: u64,
    /// 99 of 100 are at or below.
    pub p99: u64,
    /// 999 of 1,000 are at or below.
    pub p999: u64,
    /// The greatest.
    pub max: u64,
}

/// Everything that was due between the end of the warm-up and the end of the measurement, whenever it ended; events,
/// outputs, tokens, bytes and `completed` are counted by the moment at which they came.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Observations {
    /// Requests answered 2xx and whole.
    pub answered: u64,
    /// Good answers that ended in the measured time, whenever they were due.
    pub completed: u64,
    /// Requests without a good answer, by kind.
    pub failures: BTreeMap<Failure, u64>,
    /// Those that were due in the warm-up: nothing may hide there.
    pub warm_up_failures: BTreeMap<Failure, u64>,
    /// What the first answer of each kind of failure said, as far as 512 bytes of it tell.
    pub said: BTreeMap<Failure, String>,
    /// Good answers that say nothing, by why they ended; `None`: they do not say.
    pub empty: BTreeMap<Option<Finish>, u64>,
    /// Server-sent events that ended.
    pub events: u64,
    /// Those with output.
    pub outputs: u64,
    /// Tokens of completions, as good answers report them: they come evenly from the first output to the end.
    pub tokens: f64,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Open loop: requests that were due and not sent when the time was over.
    pub unsent: u64,
    /// Requests under way that were left when the run was over.
    pub left: u64,
    /// Requests that were sent again, as late as a refusal said.
    pub sent_again: u64,
    /// Kept connections that had closed before anything was sent on them.
    pub reopened: u64,
    times: Times,
}

/// A histogram for each of [`Measure::ALL`], in microseconds.
#[derive(Debug, Clone)]
struct Times(Vec<Histogram<u64>>);

impl Default for Times {
    fn default() -> Self {
        let histogram = |_| {
            Histogram::new_with_bounds(1, LONGEST_US, 3)
                .expect("1 is at most half of a day and 3 at most 5")
        };
        Self(Measure::ALL.iter().map(histogram).collect())
    }
}

/// What was recorded, value by value: whoever reads it has the same histograms.
impl Serialize for Times {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let recorded = |times: &Histogram<u64>| -> Vec<(u64, u64)> {
            let values = times.iter_recorded();
            values
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect()
        };
        to.collect_seq(self.0.iter().map(recorded))
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut times = Self::default();
        let all = Vec::<Vec<(u64, u64)>>::deserialize(from)?;
        for (histogram, recorded) in times.0.iter_mut().zip(all) {
            for (value, count) in recorded {
                histogram.saturating_record_n(value, count);
            }
        }
        Ok(times)
    }
}

impl Observations {
    /// Adds one time of one kind.
    pub fn record(&mut self, measure: Measure, time: Duration) {
        self.times.0[measure as usize].saturating_record(micros(time));
    }

    pub(crate) fn record_many(&mut self, measure: Measure, time: Duration, count: u64) {
        self.times.0[measure as usize].saturating_record_n(micros(time), count);
    }

    /// A request has no good answer; it `counts` where it was due in the measured time.
    pub(crate) fn fail(&mut self, failure: Failure, counts: bool) {
        let failures = if counts {
            &mut self.failures
        } else {
            &mut self.warm_up_failures
        };
        *failures.entry(failure).or_default() += 1;
    }

    /// An answer that was a failure said this; the first of its kind is kept.
    pub(crate) fn was_told(&mut self, failure: Failure, says: &[u8]) {
        let said = self.said.entry(failure);
        said.or_insert_with(|| String::from_utf8_lossy(says).into_owned());
    }

    /// Adds what another thread saw, or of another profile.
    pub fn absorb(&mut self, other: &Self) {
        self.answered += other.answered;
        self.completed += other.completed;
        for (mine, theirs) in [
            (&mut self.failures, &other.failures),
            (&mut self.warm_up_failures, &other.warm_up_failures),
        ] {
            for (kind, count) in theirs {
                *mine.entry(*kind).or_default() += count;
            }
        }
        for (kind, says) in &other.said {
            self.said.entry(*kind).or_insert_with(|| says.clone());
        }
        for (finish, count) in &other.empty {
            *self.empty.entry(*finish).or_default() += count;
        }
        self.events += other.events;
        self.outputs += other.outputs;
        self.tokens += other.tokens;
        self.body_bytes += other.body_bytes;
        self.unsent += other.unsent;
        self.left += other.left;
        self.reopened += other.reopened;
        self.sent_again += other.sent_again;
        for (mine, theirs) in self.times.0.iter_mut().zip(&other.times.0) {
            mine.add(theirs).expect("both have the same bounds");
        }
    }

    /// Requests without a good answer, by kind, those of the warm-up among them; a kind may come twice.
    pub fn all_failures(&self) -> impl Iterator<Item = (Failure, u64)> {
        let both = [&self.failures, &self.warm_up_failures];
        let each = both.into_iter().flatten();
        each.map(|(kind, count)| (*kind, *count))
    }

    /// Requests without a good answer, those of the warm-up among them.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.all_failures().map(|(_, count)| count).sum()
    }

    /// All times of one kind, in microseconds.
    #[must_use]
    pub fn histogram(&self, measure: Measure) -> &Histogram<u64> {
        &self.times.0[measure as usize]
    }

    /// Of the times of one kind; `None` when there are none.
    #[must_use]
    pub fn quantiles(&self, measure: Measure) -> Option<Quantiles> {
        let histogram = self.histogram(measure);
        (!histogram.is_empty()).then(|| Quantiles {
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p95: histogram.value_at_quantile(0.95),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        })
    }

    /// Time from the intended send to the last byte; `None` when nothing was answered.
    #[must_use]
    pub fn latency(&self) -> Option<Quantiles> {
        self.quantiles(Measure::Latency)
    }

    /// Time from the intended send to the first body byte; `None` when nothing was answered.
    #[must_use]
    pub fn first_byte(&self) -> Option<Quantiles> {
        self.quantiles(Measure::FirstByte)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(LONGEST_US).max(1)
}

#[cfg(test)]
mod tests {
    //! Sums.

    use std::time::{Duration, Instant};

    use super::{Measure, Observations, Window};
    use crate::client::Failure;

    #[test]
    fn of_what_came_before_and_after_the_measured_time_only_the_share_inside_counts() {
        let zero = Instant::now();
        let at = |seconds| zero + Duration::from_secs(seconds);
        let window = Window {
            begin: at(10),
            end: at(20),
        };
        for (from, to, wanted) in [
            (0, 5, 0.0),
            (5, 15, 0.5),
            (12, 14, 1.0),
            (18, 26, 0.25),
            (0, 40, 0.25),
            (20, 30, 0.0),
            (10, 10, 1.0),
            (20, 20, 0.0),
        ] {
            let share = window.share(at(from), at(to));
            assert!((share - wanted).abs() < 1e-9, "{from} to {to}: {share}");
        }
    }

    #[test]
    fn what_threads_saw_adds_up_and_each_measure_has_a_place_of_its_own() {
        let (mut one, mut other) = (Observations::default(), Observations::default());
        for (at, measure) in Measure::ALL.into_iter().enumerate() {
            assert_eq!(measure as usize, at);
            let ms = 1 + at as u64;
            one.record(measure, Duration::from_millis(ms));
            other.record(measure, Duration::from_millis(100 + ms));
        }
        one.fail(Failure::Closed, true);
        other.fail(Failure::Closed, false);
        (one.answered, other.answered) = (1, 2);
        one.absorb(&other);
        assert_eq!((one.answered, one.failed()), (3, 2));
        let latency = one.latency().expect("two");
        assert!(latency.p50 <= 1001 && latency.max >= 101_000, "{latency:?}");
        assert!(Observations::default().latency().is_none());
    }

    #[test]
    fn what_another_process_saw_is_read_as_it_was() {
        let mut seen = Observations::default();
        for (at, measure) in Measure::ALL.into_iter().enumerate() {
            for us in [1, 999, 123_456, 86_400_000_000 * at as u64] {
                seen.record_many(measure, Duration::from_micros(us), 1 + at as u64);
            }
        }
        seen.fail(Failure::Status(429), true);
        seen.fail(Failure::Connect, false);
        seen.was_told(Failure::Status(429), b"wait");
        (seen.answered, seen.completed, seen.tokens) = (7, 6, 1.5);
        let text = serde_json::to_string(&seen).expect("text");
        let read: Observations = serde_json::from_str(&text).expect("as it was written");
        assert_eq!(
            format!("{:?}", (read.answered, read.completed, read.tokens)),
            "(7, 6, 1.5)"
        );
        assert_eq!(
            (&read.failures, &read.warm_up_failures),
            (&seen.failures, &seen.warm_up_failures)
        );
        assert_eq!(read.said, seen.said);
        for measure in Measure::ALL {
            assert_eq!(
                read.histogram(measure),
                seen.histogram(measure),
                "{measure:?}"
            );
            assert_eq!(read.quantiles(measure), seen.quantiles(measure));
        }
    }
}
