//! Whether values are uniform between 0 and 1: Kolmogorov-Smirnov and Anderson-Darling, one sample, nothing fitted.
//!
//! Invariant: values ascend; a probability is between 0 and 1.
//! Not here: what makes gaps uniform (`arrivals::Law`).

#[cfg(test)]
mod tests;

use super::special::erfc;

/// Values are kept this far from 0 and 1, where logarithms end: a clock ticks no finer.
const EDGE: f64 = 1e-15;
/// From this statistic on, Anderson-Darling's tail is taken from its expansion.
const TAIL: f64 = 6.0;

/// How far values are from a law, and how likely it is that chance alone takes them as far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The statistic: a distance for Kolmogorov-Smirnov, `A^2` for Anderson-Darling.
    pub statistic: f64,
    /// The probability of at least this statistic under the law.
    pub p: f64,
}

/// The greatest distance between the values' distribution and the uniform one; `None` of no values.
#[must_use]
pub fn kolmogorov_smirnov(ascending: &[f64]) -> Option<Fit> {
    let n = ascending.len() as f64;
    let statistic = ascending
        .iter()
        .enumerate()
        .map(|(i, u)| (u - i as f64 / n).max((i + 1) as f64 / n - u))
        .fold(0.0, f64::max);
    (n > 0.0).then(|| Fit {
        statistic,
        p: ks_p(statistic, n),
    })
}

/// The probability of a Kolmogorov-Smirnov distance of at least `distance` among `n` values, which need not be whole.
///
/// Kolmogorov's limit with Stephens's correction for finite `n` (1970): within 1 % in the tail for 100 values and more.
#[must_use]
pub fn ks_p(distance: f64, n: f64) -> f64 {
    let root = n.sqrt();
    let x = (root + 0.12 + 0.11 / root) * distance.max(0.0);
    if x < 0.2 {
        return 1.0;
    }
    let terms = (1..=100).map(|j| {
        let j = f64::from(j);
        let sign = if j % 2.0 == 1.0 { 2.0 } else { -2.0 };
        sign * (-2.0 * j * j * x * x).exp()
    });
    terms.sum::<f64>().clamp(0.0, 1.0)
}

/// Anderson-Darling's statistic, which weighs the tails; `None` of no values.
///
/// Its distribution by Marsaglia and Marsaglia, "Evaluating the Anderson-Darling distribution", 2004, with their
/// correction for finite `n`. Where their 2e-6 is no longer small beside the tail, the tail's expansion (Zolotarev,
/// 1961): the statistic's limit is a sum of squared normal values with weights `1 / (j (j + 1))`, whose largest gives
/// `sqrt(3) erfc(sqrt(A^2))`.
#[must_use]
pub fn anderson_darling(ascending: &[f64]) -> Option<Fit> {
    let n = ascending.len() as f64;
    let sum: f64 = ascending
        .iter()
        .zip(ascending.iter().rev())
        .enumerate()
        .map(|(i, (low, high))| {
            let low = low.clamp(EDGE, 1.0 - EDGE);
            let high = high.clamp(EDGE, 1.0 - EDGE);
            (2 * i + 1) as f64 * (low.ln() + (-high).ln_1p())
        })
        .sum();
    let statistic = -n - sum / n;
    (n > 0.0).then(|| Fit {
        statistic,
        p: ad_p(statistic, n),
    })
}

fn ad_p(statistic: f64, n: f64) -> f64 {
    if statistic >= TAIL {
        return 3_f64.sqrt() * erfc(statistic.sqrt());
    }
    let limit = ad_limit(statistic.max(1e-3));
    (1.0 - limit - ad_correction(limit, n)).clamp(0.0, 1.0)
}

/// A polynomial, its constant first.
fn polynomial(terms: &[f64], x: f64) -> f64 {
    terms.iter().rev().fold(0.0, |sum, term| sum * x + term)
}

/// The distribution in the limit.
fn ad_limit(z: f64) -> f64 {
    if z < 2.0 {
        let terms = [
            2.00012,
            0.247_105,
            -0.064_982_1,
            0.034_796_2,
            -0.011_672_0,
            0.001_686_91,
        ];
        return (-1.233_714_1 / z).exp() / z.sqrt() * polynomial(&terms, z);
    }
    let terms = [
        1.0776,
        -2.30695,
        0.43424,
        -0.082_433,
        0.008_056,
        -0.000_314_6,
    ];
    (-polynomial(&terms, z).exp()).exp()
}

/// What is to be added for `n` values, where the limit is `x`.
fn ad_correction(x: f64, n: f64) -> f64 {
    if x > 0.8 {
        let terms = [
            -130.2137, 745.2337, -1705.091, 1950.646, -1116.360, 255.7844,
        ];
        return polynomial(&terms, x) / n;
    }
    let edge = 0.01265 + 0.1757 / n;
    if x < edge {
        let t = x / edge;
        let t = t.sqrt() * (1.0 - t) * (49.0 * t - 102.0);
        return t * (0.0037 / (n * n) + 0.00078 / n + 0.00006) / n;
    }
    let t = (x - edge) / (0.8 - edge);
    let terms = [-0.000_226_33, 6.54034, -14.6538, 14.458, -8.259, 1.91864];
    polynomial(&terms, t) * (0.04213 + 0.01365 / n) / n
}
