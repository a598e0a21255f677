//! Counters that others read while a run goes on.
//!
//! Invariant: each is written by one thread alone, with plain loads and stores, and read by any: a reader sees a run as it
//! was a moment ago and costs it nothing.
//! Not here: what is exact at the end (`observations`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::client::Failure;

/// Steps in each doubling: a value is known to one part in sixteen.
const STEPS: u64 = 16;
const STEPS_BITS: u32 = STEPS.trailing_zeros();
/// Up to 2^32 µs, more than an hour.
const BUCKETS: usize = (32 - STEPS_BITS as usize + 1) * STEPS as usize;

/// What one thread did for one profile so far.
#[derive(Debug, Default)]
pub struct Live {
    sent: AtomicU64,
    answered: AtomicU64,
    events: AtomicU64,
    outputs: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
    open: AtomicU64,
    users: AtomicU64,
    longest_lag_us: AtomicU64,
    /// By [`Failure::number`].
    failures: Atomics<{ Failure::KINDS }>,
    latency: Atomics<BUCKETS>,
    first_token: Atomics<BUCKETS>,
}

/// So many counts.
#[derive(Debug)]
struct Atomics<const N: usize>(Box<[AtomicU64]>);

impl<const N: usize> Default for Atomics<N> {
    fn default() -> Self {
        Self((0..N).map(|_| AtomicU64::new(0)).collect())
    }
}

/// A copy of the counters of one profile, added up over threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests sent.
    pub sent: u64,
    /// Good answers, since the start, warm-up included.
    pub answered: u64,
    /// Server-sent events.
    pub events: u64,
    /// Those with output.
    pub outputs: u64,
    /// Bytes of request bodies.
    pub bytes_up: u64,
    /// Bytes of answers' bodies.
    pub bytes_down: u64,
    /// Answers of which the first body byte has come and the last has not.
    pub open: u64,
    /// Users at work, or sessions of an open loop under way.
    pub users: u64,
    /// The latest that a request was ever sent after it was due.
    pub longest_lag_us: u64,
    /// By kind; kinds without one are left out.
    pub failures: Vec<(Failure, u64)>,
    /// From the intended time to the last byte.
    pub latency: Buckets,
    /// From the intended time to the first event with output, or the first body byte where there are no events.
    pub first_token: Buckets,
}

/// Counts of times, in microseconds, each to one part in sixteen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Buckets(Vec<u64>);

/// There is one writer.
fn add(counter: &AtomicU64, more: u64) {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before.wrapping_add(more), Ordering::Relaxed);
}

impl Live {
    pub(crate) fn sent(&self, lag: Duration, bytes: u64) {
        add(&self.sent, 1);
        add(&self.bytes_up, bytes);
        let lag = micros(lag);
        if lag > self.longest_lag_us.load(Ordering::Relaxed) {
            self.longest_lag_us.store(lag, Ordering::Relaxed);
        }
    }

    pub(crate) fn answered(&self, latency: Duration, first_token: Duration) {
        add(&self.answered, 1);
        add(&self.latency.0[bucket(micros(latency))], 1);
        add(&self.first_token.0[bucket(micros(first_token))], 1);
    }

    pub(crate) fn failed(&self, failure: Failure) {
        add(&self.failures.0[failure.number()], 1);
    }

    pub(crate) fn heard(&self, bytes: u64, events: u64, outputs: u64) {
        add(&self.bytes_down, bytes);
        if events > 0 {
            add(&self.events, events);
            add(&self.outputs, outputs);
        }
    }

    pub(crate) fn opened(&self) {
        add(&self.open, 1);
    }

    pub(crate) fn closed(&self) {
        add(&self.open, 1_u64.wrapping_neg());
    }

    pub(crate) fn came(&self) {
        add(&self.users, 1);
    }

    pub(crate) fn left(&self) {
        add(&self.users, 1_u64.wrapping_neg());
    }

    /// Answers under way.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Adds what stands here to `sum`.
    pub fn read(&self, sum: &mut Counters) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        sum.sent += of(&self.sent);
        sum.answered += of(&self.answered);
        sum.events += of(&self.events);
        sum.outputs += of(&self.outputs);
        sum.bytes_up += of(&self.bytes_up);
        sum.bytes_down += of(&self.bytes_down);
        sum.open += of(&self.open);
        sum.users += of(&self.users);
        sum.longest_lag_us = sum.longest_lag_us.max(of(&self.longest_lag_us));
        for (number, counter) in self.failures.0.iter().enumerate() {
            let count = of(counter);
            if let Some(kind) = Failure::of_number(number).filter(|_| count > 0) {
                match sum.failures.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, known)) => *known += count,
                    None => sum.failures.push((kind, count)),
                }
            }
        }
        sum.latency.add(&self.latency.0);
        sum.first_token.add(&self.first_token.0);
    }
}

impl Buckets {
    fn add(&mut self, counts: &[AtomicU64]) {
        self.0.resize(BUCKETS, 0);
        for (sum, count) in self.0.iter_mut().zip(counts) {
            *sum += count.load(Ordering::Relaxed);
        }
    }

    /// What came since `before` was read.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let known = before.0.iter().copied().chain(std::iter::repeat(0));
        let grown = self.0.iter().zip(known);
        Self(
            grown
                .map(|(now, before)| now.saturating_sub(before))
                .collect(),
        )
    }

    /// Times and how many there are of each, in microseconds; the middle of each step.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, count)| (middle_us(at), *count))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The time that `share` of them are at or below, in microseconds; `None` when there are none.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts below 2^53, shares between 0 and 1"
    )]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut passed = 0;
        for (us, count) in self.each() {
            passed += count;
            if passed >= wanted {
                return Some(us);
            }
        }
        None
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Values below the number of steps have buckets of their own.
fn bucket(us: u64) -> usize {
    let us = us.min(u64::from(u32::MAX));
    let at = if us < STEPS {
        us
    } else {
        let doubling = us.ilog2() - STEPS_BITS;
        u64::from(doubling + 1) * STEPS + (us >> doubling) - STEPS
    };
    usize::try_from(at).unwrap_or(0).min(BUCKETS - 1)
}

fn middle_us(bucket: usize) -> u64 {
    let (row, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    if row == 0 {
        return step;
    }
    let width = 1 << (row - 1);
    (STEPS + step) * width + width / 2
}

#[cfg(test)]
mod tests {
    //! Steps, and what is read of a run.

    use std::time::Duration;

    use super::{Counters, Live, bucket, middle_us};
    use crate::client::Failure;

    #[test]
    fn a_time_is_known_to_one_part_in_sixteen() {
        let mut last = 0;
        for exponent in 0..320_u32 {
            let us = (2_f64.powf(f64::from(exponent) / 10.0)) as u64;
            let (at, middle) = (bucket(us), middle_us(bucket(us)));
            assert!(
                at >= last && middle.abs_diff(us) * 16 <= us.max(1),
                "{us}: {middle}"
            );
            last = at;
        }
        assert_eq!(bucket(u64::MAX), bucket(u64::from(u32::MAX)));
    }

    #[test]
    fn a_reader_adds_up_threads_and_sees_what_came_since() {
        let threads = [Live::default(), Live::default()];
        for live in &threads {
            live.sent(Duration::from_micros(30), 10);
            live.opened();
            live.heard(100, 2, 1);
            live.answered(Duration::from_millis(8), Duration::from_millis(4));
            live.failed(Failure::Status(503));
        }
        threads[0].closed();
        let read = || {
            let mut sum = Counters::default();
            threads.iter().for_each(|live| live.read(&mut sum));
            sum
        };
        let before = read();
        assert_eq!((before.sent, before.bytes_up, before.answered), (2, 20, 2));
        assert_eq!((before.open, before.longest_lag_us), (1, 30));
        assert_eq!(before.failures, [(Failure::Status(503), 2)]);
        let p50 = before.latency.quantile(0.5).expect("answers");
        assert!(p50.abs_diff(8000) < 500, "{p50}");
        threads[1].answered(Duration::from_millis(80), Duration::from_millis(80));
        let since = read().latency.since(&before.latency);
        assert_eq!(since.count(), 1);
        assert!(since.quantile(0.99).expect("one").abs_diff(80_000) < 5_000);
    }
}
