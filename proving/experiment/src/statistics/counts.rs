//! Counts in windows: how much burstier than Poisson a stream is at a scale.
//!
//! Invariant: windows follow one another from the start and are whole; what is after the last whole one is left out.
//! Not here: closed forms (`arrivals`).

#[cfg(test)]
mod tests;

/// Batches at most, and at least: fewer have no error worth the name.
const BATCHES: std::ops::RangeInclusive<usize> = 20..=50;
/// Windows of a batch at least.
const WINDOWS: usize = 5;

/// An index of dispersion of counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dispersion {
    /// Mean squared distance of a count from what the rate has expect, over that.
    pub index: f64,
    /// Its standard error; `None` where there are too few windows for one.
    pub error: Option<f64>,
    /// The batches that the error comes from.
    pub batches: usize,
}

/// Windows that are counted at most: four bytes each.
const MOST_WINDOWS: usize = 10_000_000;

/// The index of dispersion of ascending `times` (seconds from 0 to `span_s`) in windows of `window_s`, for a process of
/// this `rate`; `None` where no window is whole, or more than ten million
/// are.
///
/// The distance is from the count that the rate has expect, not from the mean of the counts, so that a wrong or
/// drifting rate shows too. The error is that of batch means (Law and Kelton): consecutive windows are put into 20 to
/// 50 batches, each at least `batch_s` seconds and five windows long, and the batches' indices are taken for
/// independent.
#[must_use]
pub fn dispersion(
    times: &[f64],
    span_s: f64,
    window_s: f64,
    rate: f64,
    batch_s: f64,
) -> Option<Dispersion> {
    let windows = (span_s / window_s).floor() as usize;
    let expected = rate * window_s;
    if windows == 0 || windows > MOST_WINDOWS || expected.is_nan() || expected <= 0.0 {
        return None;
    }
    let mut counts = vec![0_u32; windows];
    for time in times {
        if let Some(count) = counts.get_mut((time / window_s) as usize) {
            *count += 1;
        }
    }
    let distances: Vec<f64> = counts
        .iter()
        .map(|&count| (f64::from(count) - expected).powi(2) / expected)
        .collect();
    let index = distances.iter().sum::<f64>() / windows as f64;
    let least = WINDOWS.max((batch_s / window_s).ceil() as usize);
    let batches = (windows / least).min(*BATCHES.end());
    Some(Dispersion {
        index,
        error: BATCHES
            .contains(&batches)
            .then(|| error(&distances, batches)),
        batches,
    })
}

fn error(distances: &[f64], batches: usize) -> f64 {
    let size = distances.len() / batches;
    let means: Vec<f64> = distances
        .chunks_exact(size)
        .take(batches)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let squares = means.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (squares / (n - 1.0) / n).sqrt()
}
