//! The promise itself, over every window of a random run, checked by adding up.
//!
//! Units used by what was admitted in a window ≤ rate × window + burst + what exchanges admitted
//! before it gave back inside it + what exchanges admitted in it overran and had not settled by
//! its last admission + less than one unit of rounding.

use policy::clock::Mono;
use policy::limit::{Bucket, Rate};
use proptest::prelude::*;

use super::operations::{Step, rates, runner, steps};

/// One admitted exchange.
#[derive(Debug, Clone, Copy)]
struct Admitted {
    at_ns: i64,
    /// Its place in the course of the run, which orders what happens at one instant.
    order: usize,
    reserved: u64,
    /// What it really used and when that was settled; still open ones use what they reserved.
    settled: Option<(usize, u64)>,
}

impl Admitted {
    fn used(&self) -> u64 {
        self.settled.map_or(self.reserved, |(_, actual)| actual)
    }
}

#[test]
fn over_any_window_no_more_is_used_than_promised() {
    runner("window", "tests/corpus/window.txt", 256)
        .run(&(rates(), steps()), |(rate, steps)| {
            let run = course(rate, &steps);
            for first in 0..run.len() {
                for last in first..run.len() {
                    holds(rate, &run, first, last)?;
                }
            }
            Ok(())
        })
        .expect("every window");
}

fn course(rate: Rate, steps: &[Step]) -> Vec<Admitted> {
    let bucket = Bucket::new(rate);
    let mut now = Mono(0);
    let mut run: Vec<Admitted> = Vec::new();
    for (order, step) in steps.iter().enumerate() {
        match step {
            Step::Take(units) => {
                let units = units % (rate.burst + 1);
                if bucket.take(units, now).is_ok() {
                    run.push(Admitted {
                        at_ns: now.0,
                        order,
                        reserved: units,
                        settled: None,
                    });
                }
            }
            Step::Settle(nth, actual) => {
                let open = run.iter().filter(|a| a.settled.is_none()).count();
                let mut left = run.iter_mut().filter(|a| a.settled.is_none());
                if let Some(one) = left.nth(nth % open.max(1)) {
                    let actual = actual % (2 * rate.burst);
                    bucket.settle(one.reserved, actual, now);
                    one.settled = Some((order, actual));
                }
            }
            Step::Wait(by) => now = now.after(*by),
            Step::WaitAsTold => {
                if let Err(policy::limit::Denied::Wait(wait)) = bucket.take(rate.burst, now) {
                    now = now.after(wait / 2);
                } else {
                    bucket.settle(rate.burst, 0, now);
                }
            }
            Step::Reload(_) => {}
        }
    }
    run
}

/// The window from just before the admission `first` to just after `last`.
fn holds(rate: Rate, run: &[Admitted], first: usize, last: usize) -> Result<(), TestCaseError> {
    let (from, to) = (run[first], run[last]);
    let inside = |order: usize| order > from.order && order < to.order;
    let used: u64 = run[first..=last].iter().map(Admitted::used).sum();
    let given_back: u64 = run[..first]
        .iter()
        .filter(|a| a.settled.is_some_and(|(order, _)| inside(order)))
        .map(|a| a.reserved.saturating_sub(a.used()))
        .sum();
    let overrun: u64 = run[first..=last]
        .iter()
        .filter(|a| !a.settled.is_some_and(|(order, _)| inside(order)))
        .map(|a| a.used().saturating_sub(a.reserved))
        .sum();
    let per = i128::try_from(rate.per.as_nanos()).expect("short");
    let refilled = i128::from(to.at_ns - from.at_ns) * i128::from(rate.amount);
    let bound = i128::from(rate.burst + given_back + overrun + 1) * per + refilled;
    prop_assert!(
        i128::from(used) * per < bound,
        "{rate:?}: admissions {first} to {last} used {used}; given back {given_back}, overrun {overrun}"
    );
    Ok(())
}
