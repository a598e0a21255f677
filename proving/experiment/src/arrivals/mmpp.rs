//! A Poisson process whose rate a hidden two-state chain switches (MMPP), with its closed forms.
//!
//! Invariant: the rate in the high state is greater than that in the low one, and above 0; both mean sojourns are.
//! Not here: a trajectory of the chain (`chain`). Formulas: Fischer and Meier-Hellstern, "The Markov-modulated Poisson
//! process (MMPP) cookbook", 1993; in them, state 1 is the high one, left at rate `r1`.

use super::text::ProcessError;

/// Mean time in the high state where nothing is said, in seconds. No fit of agents' traffic is published: this is ours.
pub(super) const BURST_S: f64 = 6.0;
/// Mean time in the low state where nothing is said, in seconds.
pub(super) const SILENCE_S: f64 = 24.0;
/// Rate of the low state over the mean rate, where nothing is said.
pub(super) const FLOOR: f64 = 0.05;
/// Shorter sojourns would make as many switches as arrivals.
const LEAST_SOJOURN_S: f64 = 1e-3;
/// With rarer arrivals than one in so many cycles, a gap would take too long to draw.
const MOST_CYCLES: f64 = 1e5;

/// The parameters. An ON/OFF source has nothing in its low state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mmpp {
    high: f64,
    low: f64,
    on_s: f64,
    off_s: f64,
}

impl Mmpp {
    /// Of the rates in both states (a second) and the mean sojourns (seconds).
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn new(high: f64, low: f64, on_s: f64, off_s: f64) -> Result<Self, ProcessError> {
        let says = |what: &str| Err(ProcessError::Parameters(what.into()));
        if on_s < LEAST_SOJOURN_S || off_s < LEAST_SOJOURN_S {
            return says("on and off have to be at least 1 ms");
        }
        if ![high, low, on_s, off_s].iter().all(|x| x.is_finite()) {
            return says("rates and sojourns have to be finite");
        }
        if low < 0.0 || high <= low {
            return says(
                "the rate of the low state has to be at least 0 and less than that of the high one",
            );
        }
        let mmpp = Self {
            high,
            low,
            on_s,
            off_s,
        };
        if mmpp.rate() * (on_s + off_s) * MOST_CYCLES < 1.0 {
            return says("arrivals are rarer than one in 100,000 cycles: make on and off longer");
        }
        Ok(mmpp)
    }

    /// Of the mean gap (seconds), the burst factor (rate of the high state over the mean rate) and the mean sojourns.
    ///
    /// # Errors
    /// A parameter is out of its range; the factor has to be above 1 and at most `(on + off) / on`.
    pub fn with_factor(
        mean_s: f64,
        factor: f64,
        on_s: f64,
        off_s: f64,
    ) -> Result<Self, ProcessError> {
        let most = (on_s + off_s) / on_s;
        if !(factor > 1.0 && factor <= most * (1.0 + 1e-12)) {
            return Err(ProcessError::Parameters(format!(
                "a burst factor of {factor} is impossible: above 1, and at most {most} = (on + off) / on"
            )));
        }
        let rate = mean_s.recip();
        let low = (rate * (on_s + off_s - factor * on_s) / off_s).max(0.0);
        let low = if low < rate * 1e-12 { 0.0 } else { low };
        Self::new(rate * factor, low, on_s, off_s)
    }

    /// Everything in bursts, silence between them, with this mean gap (seconds).
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn on_off(mean_s: f64, on_s: f64, off_s: f64) -> Result<Self, ProcessError> {
        Self::with_factor(mean_s, (on_s + off_s) / on_s, on_s, off_s)
    }

    /// Arrivals a second in the high state.
    #[must_use]
    pub const fn high(&self) -> f64 {
        self.high
    }

    /// Arrivals a second in the low state.
    #[must_use]
    pub const fn low(&self) -> f64 {
        self.low
    }

    /// Mean time in the high state, in seconds.
    #[must_use]
    pub const fn on_s(&self) -> f64 {
        self.on_s
    }

    /// Mean time in the low state, in seconds.
    #[must_use]
    pub const fn off_s(&self) -> f64 {
        self.off_s
    }

    /// Arrivals a second while in this state.
    #[must_use]
    pub const fn rate_in(&self, on: bool) -> f64 {
        if on { self.high } else { self.low }
    }

    /// Share of time in the high state.
    #[must_use]
    pub fn occupancy(&self) -> f64 {
        self.on_s / (self.on_s + self.off_s)
    }

    /// Arrivals a second, in the mean.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let p = self.occupancy();
        self.high * p + self.low * (1.0 - p)
    }

    /// Squared coefficient of variation of gaps.
    #[must_use]
    pub fn cv2(&self) -> f64 {
        let (r1, r2) = self.leaving();
        let spread = (self.high - self.low).powi(2);
        1.0 + 2.0 * r1 * r2 * spread / ((r1 + r2).powi(2) * self.cross())
    }

    /// Correlation of a gap with the one `lag` before; 0 for ON/OFF, whose gaps are independent.
    ///
    /// Each further lag multiplies by `l1 l2 / X`, the second eigenvalue of the chain embedded at arrivals.
    #[must_use]
    pub fn correlation(&self, lag: u32) -> f64 {
        let (r1, r2) = self.leaving();
        let (product, cross) = (self.high * self.low, self.cross());
        let spread = (self.high - self.low).powi(2);
        let first = product * spread * r1 * r2 / (self.cv2() * (r1 + r2).powi(2) * cross.powi(2));
        match lag {
            0 => 1.0,
            _ => first * (product / cross).powf(f64::from(lag - 1)),
        }
    }

    /// Index of dispersion of counts in windows of `window_s` seconds: their variance over their mean.
    #[must_use]
    pub fn dispersion(&self, window_s: f64) -> f64 {
        let (r1, r2) = self.leaving();
        let spread = (self.high - self.low).powi(2);
        let most = 2.0 * spread * r1 * r2 / ((r1 + r2).powi(2) * (self.high * r2 + self.low * r1));
        let t = (r1 + r2) * window_s;
        1.0 + most * (1.0 + (-t).exp_m1() / t)
    }

    /// Variance of the share of a time of `span_s` seconds spent in the high state, from a stationary start.
    #[must_use]
    pub fn occupancy_variance(&self, span_s: f64) -> f64 {
        let (r1, r2) = self.leaving();
        let (p, t) = (self.occupancy(), (r1 + r2) * span_s);
        2.0 * p * (1.0 - p) / t * (1.0 + (-t).exp_m1() / t)
    }

    fn leaving(&self) -> (f64, f64) {
        (self.on_s.recip(), self.off_s.recip())
    }

    /// The cookbook's `l1 l2 + l1 r2 + l2 r1`.
    fn cross(&self) -> f64 {
        let (r1, r2) = self.leaving();
        self.high * self.low + self.high * r2 + self.low * r1
    }
}
