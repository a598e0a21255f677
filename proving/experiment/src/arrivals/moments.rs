//! Closed forms: what a process has in the limit of infinitely many gaps.
//!
//! Invariant: `None` where a process has no such figure (a trace, recorded pauses, a constant process of gap 0).
//! Not here: estimates from observations (`statistics`).

#[cfg(test)]
mod tests;

use super::{Mmpp, Process, ProcessError};
use crate::statistics::special::gamma_pq;

/// Beyond so many expected counts in a window its index of dispersion is taken from the expansion, not the series.
const MANY_COUNTS: f64 = 2_000.0;

impl Process {
    /// Arrivals a second in the mean. Of users with think times, `1 / rate` is the mean pause.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Constant { mean_s } => (*mean_s > 0.0).then(|| mean_s.recip()),
            Self::Exponential { mean_s } | Self::Gamma { mean_s, .. } => Some(mean_s.recip()),
            Self::Mmpp(mmpp) => Some(mmpp.rate()),
            Self::Trace(trace) => trace.rate(),
            Self::Recorded => None,
        }
    }

    /// The same with all time so many times as long: gaps, and with them bursts and the silence between.
    ///
    /// # Errors
    /// The factor is no number above 0, or the law cannot be slowed so far; a trace has its own time.
    pub fn slowed(&self, factor: f64) -> Result<Self, ProcessError> {
        let says = |what: &str| Err(ProcessError::Parameters(what.into()));
        if !(factor.is_finite() && factor > 0.0) {
            return says("a factor of time has to be above 0");
        }
        Ok(match *self {
            Self::Constant { mean_s } => Self::Constant {
                mean_s: mean_s * factor,
            },
            Self::Exponential { mean_s } => Self::Exponential {
                mean_s: mean_s * factor,
            },
            Self::Gamma { mean_s, cv } => Self::Gamma {
                mean_s: mean_s * factor,
                cv,
            },
            Self::Mmpp(mmpp) => Self::Mmpp(Mmpp::new(
                mmpp.high() / factor,
                mmpp.low() / factor,
                mmpp.on_s() * factor,
                mmpp.off_s() * factor,
            )?),
            Self::Trace(_) | Self::Recorded => return says("what was recorded has its own time"),
        })
    }

    /// Squared coefficient of variation of gaps.
    #[must_use]
    pub fn cv2(&self) -> Option<f64> {
        match self {
            Self::Constant { .. } => Some(0.0),
            Self::Exponential { .. } => Some(1.0),
            Self::Gamma { cv, .. } => Some(cv * cv),
            Self::Mmpp(mmpp) => Some(mmpp.cv2()),
            Self::Trace(_) | Self::Recorded => None,
        }
    }

    /// Correlation of a gap with the one `lag` before.
    #[must_use]
    pub fn correlation(&self, lag: u32) -> Option<f64> {
        match self {
            Self::Exponential { .. } | Self::Gamma { .. } => Some(if lag == 0 { 1.0 } else { 0.0 }),
            Self::Mmpp(mmpp) => Some(mmpp.correlation(lag)),
            Self::Constant { .. } | Self::Trace(_) | Self::Recorded => None,
        }
    }

    /// Index of dispersion of counts in windows of `window_s` seconds: their variance over their mean, in steady state.
    ///
    /// For a constant process with `f` the fraction of `window / gap`: `f (1 - f) gap / window`. For gamma gaps from
    /// the renewal function (Cox, "Renewal Theory", 1962, section 4.5): the variance is
    /// `L t + 2 L sum over n of the integral of P(n k, u) du - (L t)^2`, and for very many counts Cox's expansion of
    /// it.
    #[must_use]
    pub fn dispersion(&self, window_s: f64) -> Option<f64> {
        match self {
            Self::Constant { mean_s } if *mean_s > 0.0 => {
                let fraction = (window_s / mean_s).fract();
                Some(fraction * (1.0 - fraction) * mean_s / window_s)
            }
            Self::Exponential { .. } => Some(1.0),
            Self::Gamma { mean_s, cv } => Some(gamma_dispersion(window_s / mean_s, cv * cv)),
            Self::Mmpp(mmpp) => Some(mmpp.dispersion(window_s)),
            Self::Constant { .. } | Self::Trace(_) | Self::Recorded => None,
        }
    }
}

/// With `counts` expected in the window.
fn gamma_dispersion(counts: f64, cv2: f64) -> f64 {
    if counts > MANY_COUNTS {
        let constant = 1.0 / 6.0 + cv2 * cv2 / 2.0 - 2.0 * cv2 * cv2 / 3.0;
        return cv2 + constant / counts;
    }
    let shape = cv2.recip();
    let window = counts * shape;
    let most = counts + 40.0 * (cv2 * counts + 1.0).sqrt() + 40.0 * cv2;
    let sum = (1..=most as u64)
        .map(|n| {
            let a = n as f64 * shape;
            window * gamma_pq(a, window).0 - a * gamma_pq(a + 1.0, window).0
        })
        .sum::<f64>();
    (counts + 2.0 * sum * cv2 - counts * counts) / counts
}
