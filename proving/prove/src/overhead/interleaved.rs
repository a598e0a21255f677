//! The price of a gateway behind which nothing can be put: the same request straight to its upstream and through it, in turn.
//!
//! Blocks of both ways follow each other, and which comes first alternates, so that what changes with time changes for
//! both. What the gateway adds to one request cannot be seen so; what it adds to the mean and to each quantile can.
//! Invariant: one request at a time; bounded by count and, for each, by time.
//! Not here: pairs of stamps (`overhead`).

use std::time::{Duration, Instant};

use experiment::random::Rng;
use load::client::{Client, Listener, Reach, Said, Target};
use load::source::{Head, Payload};

use super::quantile;
use crate::report::document::{Overhead, Quantiles};

/// Requests of each way at most.
pub(crate) const MOST_REQUESTS: u32 = 1_000_000;
/// Samples of a bootstrap; 1,000 give 95 % to half a percent.
const RESAMPLES: usize = 1_000;
/// Requests that a resample has at most: an interval of a median needs no more.
const RESAMPLED: usize = 10_000;
/// Standard deviations that hold 95 % of a normal distribution.
const NORMAL_95: f64 = 1.959_964;

/// What to ask, and how often.
pub(crate) struct Probe {
    pub(crate) direct: Target,
    pub(crate) through: Target,
    pub(crate) head: Head,
    pub(crate) payload: Payload,
    /// Requests of each way in all.
    pub(crate) requests: u32,
    /// Requests of one way before the other has its turn.
    pub(crate) block: u32,
    /// For one request.
    pub(crate) timeout: Duration,
    pub(crate) seed: u64,
}

/// One request's times.
#[derive(Debug, Clone, Copy)]
struct Took {
    first_byte: Duration,
    whole: Duration,
}

#[derive(Default)]
struct Times {
    sent: Option<Instant>,
    first: Option<Instant>,
    says: Option<String>,
}

impl Listener for Times {
    fn on_send(&mut self, now: Instant) {
        self.sent = Some(now);
    }

    fn on_fault(&mut self, says: &str) {
        self.says = Some(says.to_owned());
    }

    fn on_first_byte(&mut self, now: Instant) {
        self.first = Some(now);
    }

    fn on_body(&mut self, _now: Instant, _said: Said, _bytes: &[u8]) {}
}

/// A difference, and the interval that holds it in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Difference {
    pub(crate) is: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Asks both ways in turn. Blocks.
///
/// # Errors
/// A request of either way had no good answer: then nothing is said of the rest.
pub(crate) fn interleaved(probe: &Probe) -> Result<Overhead, String> {
    let (direct, through) = ask(probe)?;
    Ok(sum_up(&direct, &through, probe.seed))
}

fn ask(probe: &Probe) -> Result<(Vec<Took>, Vec<Took>), String> {
    let runtime = crate::runtime::make_local();
    let runtime = runtime.map_err(|error| format!("the probe could not start: {error}"))?;
    runtime.block_on(async {
        let client = |target: &Target| {
            let client = Client::new(Reach::plain(target.clone(), probe.timeout));
            client.map_err(|error| error.to_string())
        };
        let ways = [client(&probe.direct)?, client(&probe.through)?];
        let mut lines = [ways[0].line(0), ways[1].line(0)];
        let mut took = [Vec::new(), Vec::new()];
        let requests = probe.requests.min(MOST_REQUESTS);
        let block = probe.block.clamp(1, requests.max(1));
        // The first of each way opens its connection and does not count.
        for way in [0, 1] {
            one(&ways[way], &mut lines[way], probe).await?;
        }
        for round in 0..requests.div_ceil(block) {
            let size = block.min(requests - round * block);
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for way in order {
                for _ in 0..size {
                    took[way].push(one(&ways[way], &mut lines[way], probe).await?);
                }
            }
        }
        let [direct, through] = took;
        Ok((direct, through))
    })
}

async fn one(
    client: &Client,
    line: &mut load::client::ConnectionSlot,
    probe: &Probe,
) -> Result<Took, String> {
    let mut times = Times::default();
    let asked = client.exchange(line, (&probe.head, None), &probe.payload, &mut times);
    let answer = asked
        .await
        .map_err(|failure| times.says.take().unwrap_or_else(|| failure.to_string()))?;
    if !(200..300).contains(&answer.said.status) {
        return Err(format!("status {}", answer.said.status));
    }
    let sent = times.sent.unwrap_or(answer.last_byte);
    Ok(Took {
        first_byte: times.first.unwrap_or(answer.last_byte) - sent,
        whole: answer.last_byte - sent,
    })
}

fn sum_up(direct: &[Took], through: &[Took], seed: u64) -> Overhead {
    let sorted = |took: &[Took], read: fn(&Took) -> Duration| {
        let mut all: Vec<f64> = took.iter().map(|took| read(took).as_secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let whole = [direct, through].map(|took| sorted(took, |took| took.whole));
    let first = [direct, through].map(|took| sorted(took, |took| took.first_byte));
    let at = |share| quantile(&whole[1], share) - quantile(&whole[0], share);
    let means = means(&whole[0], &whole[1]);
    let medians = medians(&whole[0], &whole[1], seed);
    let first_medians = medians_of(&first);
    let parts = [
        ("mean of the difference", means.is),
        ("mean, 95 % from", means.low),
        ("mean, 95 % to", means.high),
        ("difference of medians", medians.is),
        ("difference of medians, 95 % from", medians.low),
        ("difference of medians, 95 % to", medians.high),
        ("difference of medians, first byte", first_medians),
    ];
    Overhead {
        method: "interleaved".into(),
        requests: through.len() as u64,
        upstream_s: mean(&whole[0]),
        downstream_s: mean(&whole[1]),
        // Differences of quantiles: no single request has a time of the gateway's here.
        gate: Quantiles {
            count: through.len() as u64,
            mean: means.is,
            p50: medians.is,
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        },
        parts: parts.map(|(name, value)| (name.to_owned(), value)).into(),
        last_byte: None,
        drawn_out: None,
        isolated: None,
        own_histogram_s: None,
        own_record_s: None,
        cdf: Vec::new(),
        throttling: None,
    }
}

fn medians_of(sorted: &[Vec<f64>; 2]) -> f64 {
    quantile(&sorted[1], 0.5) - quantile(&sorted[0], 0.5)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// By the central limit theorem, the two ways having variances of their own.
fn means(direct: &[f64], through: &[f64]) -> Difference {
    let error = |values: &[f64]| {
        let (mean, count) = (mean(values), values.len() as f64);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        squares / (count - 1.0).max(1.0) / count.max(1.0)
    };
    let is = mean(through) - mean(direct);
    let reach = NORMAL_95 * (error(direct) + error(through)).sqrt();
    Difference {
        is,
        low: is - reach,
        high: is + reach,
    }
}

/// By a bootstrap of percentiles (Efron, 1979).
fn medians(direct: &[f64], through: &[f64], seed: u64) -> Difference {
    let mut rng = Rng::stream(seed, &[0x6d65_6469]);
    let mut drawn = |from: &[f64]| {
        let count = from.len().min(RESAMPLED);
        let mut one: Vec<f64> = (0..count)
            .filter_map(|_| from.get(usize::try_from(rng.below(from.len() as u64)).ok()?))
            .copied()
            .collect();
        let middle = count / 2;
        if one.is_empty() {
            return 0.0;
        }
        let (_, median, _) = one.select_nth_unstable_by(middle, f64::total_cmp);
        *median
    };
    let mut all: Vec<f64> = (0..RESAMPLES)
        .map(|_| drawn(through) - drawn(direct))
        .collect();
    all.sort_by(f64::total_cmp);
    Difference {
        is: quantile(through, 0.5) - quantile(direct, 0.5),
        low: quantile(&all, 0.025),
        high: quantile(&all, 0.975),
    }
}

#[cfg(test)]
mod tests {
    //! Differences that are known.

    use std::time::Duration;

    use experiment::random::Rng;

    use super::{Took, sum_up};

    #[test]
    fn a_known_difference_lies_in_its_interval_and_none_is_found_where_there_is_none() {
        eprintln!("seed 7");
        let mut rng = Rng::new(7);
        let mut took = |added_us: f64| {
            let us = 1_000.0 + added_us + 50.0 * rng.normal();
            let whole = Duration::from_secs_f64(us / 1e6);
            Took {
                first_byte: whole / 2,
                whole,
            }
        };
        let direct: Vec<Took> = (0..4_000).map(|_| took(0.0)).collect();
        for added in [0.0, 100.0] {
            let through: Vec<Took> = (0..4_000).map(|_| took(added)).collect();
            let summed = sum_up(&direct, &through, 1);
            let us = |at: usize| summed.parts[at].1 * 1e6;
            for at in [0, 3] {
                let (is, low, high) = (us(at), us(at + 1), us(at + 2));
                assert!(
                    low < is && is < high && high - low < 12.0,
                    "{:?}",
                    summed.parts
                );
                assert!((is - added).abs() < 8.0, "{:?}", summed.parts);
            }
            assert!((us(6) - added / 2.0).abs() < 4.0, "{:?}", summed.parts);
        }
    }
}
