//! Whether two samples are of one law: the two-sample test of Kolmogorov and Smirnov.
//!
//! Requests of one session are no independent values. Where each session is in both samples, as it is where a replay sends what was
//! recorded, [`by_pair`] takes whole sessions for what is exchanged, and assumes nothing of what is inside.
//! Invariant: the order of values within a sample says nothing; equal values are one step of both distributions.
//! Not here: one sample against a law (`uniformity`).

#[cfg(test)]
mod tests;

use super::uniformity::{Fit, ks_p};
use crate::random::Rng;

/// The greatest distance between the distributions of both, and how likely chance takes independent values of one law as far; `None`
/// where one has no values.
#[must_use]
pub fn two_samples(one: &[f64], other: &[f64]) -> Option<Fit> {
    let (n, m) = (one.len() as f64, other.len() as f64);
    let of = |values: &[f64], first: bool| -> Vec<(f64, bool)> {
        values.iter().map(|value| (*value, first)).collect()
    };
    let mut all = of(one, true);
    all.extend(of(other, false));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let statistic = distance(all.iter().map(|(value, first)| (*value, *first)), n, m);
    (n > 0.0 && m > 0.0).then(|| Fit {
        statistic,
        p: ks_p(statistic, n * m / (n + m)),
    })
}

/// The same distance of samples whose values come in pairs of groups, such as a session's in both; its probability is the share of
/// `rounds` in which the two groups of each pair, exchanged or not by the toss of a coin, are as far from one another. That is exact where
/// groups of a pair are exchangeable, whatever the values of a group have to do with each other. `None` where a sample has no values.
#[must_use]
pub fn by_pair(pairs: &[(Vec<f64>, Vec<f64>)], rounds: u32, rng: &mut Rng) -> Option<Fit> {
    let mut all: Vec<(f64, usize, bool)> = Vec::new();
    for (pair, (one, other)) in pairs.iter().enumerate() {
        all.extend(one.iter().map(|value| (*value, pair, true)));
        all.extend(other.iter().map(|value| (*value, pair, false)));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let sizes: Vec<(f64, f64)> = pairs
        .iter()
        .map(|(one, other)| (one.len() as f64, other.len() as f64))
        .collect();
    let swapped = |swaps: &[bool]| {
        let (mut n, mut m) = (0.0, 0.0);
        for ((one, other), swap) in sizes.iter().zip(swaps) {
            let (one, other) = if *swap { (other, one) } else { (one, other) };
            (n, m) = (n + one, m + other);
        }
        let values = all.iter().map(|&(value, pair, first)| {
            let swap = swaps.get(pair).copied().unwrap_or_default();
            (value, first != swap)
        });
        (n > 0.0 && m > 0.0).then(|| distance(values, n, m))
    };
    let statistic = swapped(&vec![false; pairs.len()])?;
    let as_far = (0..rounds).filter(|_| {
        let swaps: Vec<bool> = pairs.iter().map(|_| rng.unit() < 0.5).collect();
        // Rounding makes no distance a greater one.
        swapped(&swaps).is_some_and(|distance| distance >= statistic - 1e-12)
    });
    let as_far = as_far.count() as f64;
    Some(Fit {
        statistic,
        p: (as_far + 1.0) / (f64::from(rounds) + 1.0),
    })
}

/// Of ascending values of both samples, which have `n` and `m` of them.
fn distance(ascending: impl Iterator<Item = (f64, bool)>, n: f64, m: f64) -> f64 {
    let (mut one, mut other, mut most) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut values = ascending.peekable();
    while let Some((value, first)) = values.next() {
        if first {
            one += 1.0;
        } else {
            other += 1.0;
        }
        // Equal values are one step.
        if values.peek().is_none_or(|(next, _)| *next > value) {
            most = most.max((one / n - other / m).abs());
        }
    }
    most
}
