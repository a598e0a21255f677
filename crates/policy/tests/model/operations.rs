//! Random takes, settlements, waits and reloads, in step with the model.

use std::sync::Arc;
use std::time::Duration;

use policy::clock::Mono;
use policy::limit::{Bucket, Denied, Rate};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};

use super::exact::Exact;

#[derive(Debug, Clone)]
pub(super) enum Step {
    Take(u64),
    /// Settles the nth oldest reservation still open to this.
    Settle(usize, u64),
    Wait(Duration),
    /// Waits exactly as long as the last refusal said.
    WaitAsTold,
    /// Another rate by a reload.
    Reload(Rate),
}

pub(super) fn rates() -> impl Strategy<Value = Rate> {
    let windows = prop::sample::select(vec![1_u64, 60, 3600, 86_400]);
    let odd = (1..2_000_000_u64, windows, 1..3_000_000_u64);
    let small = (1..20_u64, prop::sample::select(vec![1_u64, 60]), 1..20_u64);
    prop_oneof![odd, small].prop_map(|(amount, seconds, burst)| Rate {
        amount,
        per: Duration::from_secs(seconds),
        // A bucket holds no more than it owes.
        burst: burst.min(NEARLY_THE_MOST.as_secs() * amount / seconds),
    })
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let units = prop_oneof![Just(1_u64), 0..50_u64, 0..4_000_000_u64];
    let wait_ns = prop_oneof![
        0..1000_u64,
        0..10_000_000_000_u64,
        0..200_000_000_000_000_u64
    ];
    let step = prop_oneof![
        6 => units.clone().prop_map(Step::Take),
        4 => (any::<usize>(), units).prop_map(|(nth, actual)| Step::Settle(nth, actual)),
        2 => wait_ns.prop_map(|ns| Step::Wait(Duration::from_nanos(ns))),
        2 => Just(Step::WaitAsTold),
        1 => rates().prop_map(Step::Reload),
    ];
    prop::collection::vec(step, 0..200)
}

/// A runner that replays the corpus first and then goes where its printed seed leads.
pub(super) fn runner(test: &str, corpus: &'static str, cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(testing::seed(test)),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(corpus))),
        ..Config::default()
    })
}

#[test]
fn the_bucket_decides_as_the_exact_one_does() {
    runner("operations", "tests/corpus/operations.txt", 512)
        .run(&(rates(), steps()), |(rate, steps)| check(rate, &steps))
        .expect("every sequence");
}

fn check(rate: Rate, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut bucket, mut exact) = (Arc::new(Bucket::new(rate)), Exact::new(rate));
    // With the bucket that admitted each.
    let mut open: Vec<(Arc<Bucket>, u64)> = Vec::new();
    let mut now = Mono(0);
    let mut told = Duration::ZERO;
    let mut slack = HALF;
    for step in steps {
        slack += nanosecond(bucket.rate());
        exact.advance(now.0);
        match step {
            Step::Take(units) => match bucket.take(*units, now) {
                Ok(()) => {
                    prop_assert!(!exact.lacks(*units, slack), "admitted more: {exact:?}");
                    exact.take(*units);
                    open.push((Arc::clone(&bucket), *units));
                }
                Err(Denied::Never | Denied::NoPlace) => prop_assert!(*units > bucket.rate().burst),
                Err(Denied::Wait(wait)) => {
                    prop_assert!(exact.lacks(*units, -slack), "admitted less: {exact:?}");
                    told = wait;
                    let then = now.after(wait);
                    let mut later = exact.clone();
                    later.advance(then.0);
                    prop_assert!(!later.lacks(*units, slack), "told to wait too little");
                }
            },
            Step::Settle(nth, actual) if !open.is_empty() => {
                let (of, reserved) = open.swap_remove(nth % open.len());
                of.settle(reserved, *actual, now);
                exact.settle(reserved, *actual);
            }
            Step::Settle(..) => {}
            Step::Wait(by) => now = now.after(*by),
            Step::WaitAsTold => now = now.after(std::mem::take(&mut told)),
            Step::Reload(rate) => {
                slack += nanosecond(*rate);
                bucket = Bucket::carried(*rate, &bucket, now);
                exact.carry(*rate);
            }
        }
        let level = bucket.level(now);
        // The model's debts have no end: of one call, or of many at a slower rate.
        if level.reset > NEARLY_THE_MOST {
            return Ok(());
        }
        prop_assert!(level.remaining <= bucket.rate().burst);
        exact.advance(now.0);
        if level.remaining > 0 {
            prop_assert!(
                !exact.lacks(level.remaining, slack),
                "shows more than there is"
            );
        }
    }
    Ok(())
}

/// Of the 73 years that a bucket owes at most.
const NEARLY_THE_MOST: Duration = Duration::from_secs(73 * 365 * 86_400);

/// The half unit that makes whole bursts fit.
const HALF: f64 = 0.5;

/// What one operation may round away, in units: a nanosecond of refill.
#[expect(clippy::cast_precision_loss, reason = "a bound")]
fn nanosecond(rate: Rate) -> f64 {
    rate.amount as f64 / rate.per.as_nanos() as f64
}

/// The check itself is checked: a bucket of twice the rate must not pass for the one meant.
#[test]
#[should_panic(expected = "admitted more")]
fn a_bucket_that_gives_too_much_is_caught() {
    let (meant, given) = (crate::fixture::rate(10, 60), crate::fixture::rate(20, 60));
    let (bucket, mut exact) = (Bucket::new(given), Exact::new(meant));
    for _ in 0..20 {
        bucket.take(1, Mono(0)).expect("twice the burst");
        assert!(!exact.lacks(1, HALF), "admitted more");
        exact.take(1);
    }
}
