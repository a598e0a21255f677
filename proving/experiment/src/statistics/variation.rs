//! Mean and coefficient of variation of gaps, with an interval, and quantiles.
//!
//! Invariant: the same values and seed give the same interval.
//! Not here: what it should be (`arrivals`).

#[cfg(test)]
mod tests;

use crate::random::Rng;

/// Blocks that are drawn again.
const BLOCKS: usize = 100;
/// Times that they are.
const DRAWS: usize = 1000;

/// How gaps vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variation {
    /// Their mean.
    pub mean: f64,
    /// Standard deviation over mean.
    pub cv: f64,
    /// The standard error of the coefficient of variation.
    pub cv_error: f64,
    /// Its interval of 95 %.
    pub cv_interval: [f64; 2],
}

/// Mean and coefficient of variation; `None` of fewer than 200 values, or of a mean that is not above 0.
///
/// Error and interval by a block bootstrap (Künsch, 1989): the values in order are cut into 100 blocks, which are
/// drawn with replacement 1,000 times, so that what neighbours have in common within a block stays; the interval is
/// that of the percentiles.
#[must_use]
pub fn variation(values: &[f64], seed: u64) -> Option<Variation> {
    let n = values.len();
    if n < 2 * BLOCKS {
        return None;
    }
    let blocks: Vec<[f64; 3]> = (0..BLOCKS)
        .map(|block| {
            let cut = |block: usize| block * n / BLOCKS;
            let part = values.get(cut(block)..cut(block + 1)).unwrap_or_default();
            part.iter().fold([0.0; 3], |sums, x| {
                [sums[0] + 1.0, sums[1] + x, sums[2] + x * x]
            })
        })
        .collect();
    let add = |a: [f64; 3], b: &[f64; 3]| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
    let of = |[n, sum, squares]: [f64; 3]| {
        let mean = sum / n;
        (mean, (squares / n - mean * mean).max(0.0).sqrt() / mean)
    };
    let (mean, cv) = of(blocks.iter().fold([0.0; 3], add));
    if mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let mut rng = Rng::new(seed);
    let mut drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let sums = (0..BLOCKS).fold([0.0; 3], |sums, _| {
                add(sums, &blocks[rng.below(BLOCKS as u64) as usize])
            });
            of(sums).1
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let middle = drawn.iter().sum::<f64>() / DRAWS as f64;
    let squares = drawn.iter().map(|cv| (cv - middle).powi(2)).sum::<f64>();
    Some(Variation {
        mean,
        cv,
        cv_error: (squares / (DRAWS - 1) as f64).sqrt(),
        cv_interval: [quantile(&drawn, 0.025)?, quantile(&drawn, 0.975)?],
    })
}

/// The quantile of ascending values, on a line between the two next to it; `None` of no values.
#[must_use]
pub fn quantile(ascending: &[f64], q: f64) -> Option<f64> {
    let place = q.clamp(0.0, 1.0) * ascending.len().checked_sub(1)? as f64;
    let low = ascending.get(place.floor() as usize)?;
    let high = ascending.get(place.ceil() as usize)?;
    Some(low + (high - low) * place.fract())
}
