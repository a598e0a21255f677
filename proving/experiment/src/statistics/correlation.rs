//! Whether a value depends on those before it.
//!
//! Invariant: a correlation is between -1 and 1.
//! Not here: what a modulated process has in theory (`arrivals`).

#[cfg(test)]
mod tests;

use super::special::normal_outside;

/// Lags that are looked at.
pub const LAGS: usize = 20;

/// Correlations of values with those 1 to [`LAGS`] before; `None` of fewer than twice as many values, or of equal ones.
#[must_use]
pub fn autocorrelation(values: &[f64]) -> Option<[f64; LAGS]> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    if n < 2 * LAGS || variance <= 0.0 {
        return None;
    }
    Some(std::array::from_fn(|i| {
        let later = values.get(i + 1..).unwrap_or_default();
        let products = values
            .iter()
            .zip(later)
            .map(|(a, b)| (a - mean) * (b - mean));
        products.sum::<f64>() / variance
    }))
}

/// The correlation farthest from 0, and how likely `n` independent values have one as far at any of the lags.
///
/// A correlation of independent values is nearly normal with variance `1 / n` (Bartlett, 1946); Bonferroni over the
/// lags. `margin` is what a correlation may be without counting.
#[must_use]
pub fn farthest_lag(correlations: &[f64; LAGS], n: usize, margin: f64) -> (f64, f64) {
    let farthest =
        correlations.iter().copied().fold(
            0.0,
            |most: f64, r| if r.abs() > most.abs() { r } else { most },
        );
    let excess = (farthest.abs() - margin).max(0.0);
    let p = normal_outside(excess * (n as f64).sqrt()) * LAGS as f64;
    (farthest, p.min(1.0))
}
