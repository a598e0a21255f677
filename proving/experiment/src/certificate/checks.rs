//! The checks of gaps, one by one.
//!
//! Invariant: a check has a probability only where its distribution is known well enough far out in the tail.
//! Not here: what a probability leads to (`certificate`), the hidden chain (`chain`).

use super::gaps::{Gaps, Series};
use super::lag::Lag;
use super::{Check, LEAST_GAPS, MARGIN, Of};
use crate::arrivals::{Mmpp, Process};
use crate::statistics::special::{gamma_pq, normal_outside, student_outside, two_sided};
use crate::statistics::{
    anderson_darling, autocorrelation, dispersion, farthest_lag, kolmogorov_smirnov, ks_p,
    variation,
};

/// Windows in which arrivals are counted, in seconds.
const WINDOWS_S: [(&str, f64); 3] = [
    ("dispersion_1s", 1.0),
    ("dispersion_10s", 10.0),
    ("dispersion_60s", 60.0),
];
/// Gaps from which on the logarithm of a CV is nearly normal.
const LEAST_FOR_CV: usize = 1000;
/// Cycles of a hidden chain from which on figures over all of them are nearly normal.
pub(super) const LEAST_CYCLES: f64 = 300.0;
/// Counts in a window from which on its index is judged.
const LEAST_COUNTS: f64 = 1.0;
/// Cycles of a hidden chain in a batch of windows.
const CYCLES_OF_BATCH: f64 = 5.0;
/// Batches of gaps whose correlations are compared.
const BATCHES: usize = 20;
/// Gaps of such a batch at least.
const LEAST_OF_BATCH: usize = 1000;
/// A moment that leaves nothing to chance is met to this, in seconds.
const EXACT_S: f64 = 1e-6;
/// No send may be earlier than this, in seconds: clocks are read before and after.
const EARLY_S: f64 = 1e-3;
/// Of the bootstrap: a certificate is the same whenever it is made.
const SEED: u64 = 1;

/// Checks, and the correlations among them.
pub(super) struct Found {
    pub(super) checks: Vec<Check>,
    pub(super) correlations: Vec<f64>,
}

pub(super) fn intended(gaps: &Gaps<'_>) -> Found {
    let view = View {
        gaps,
        series: &gaps.intended,
        of: Of::Intended,
        margin: 0.0,
        resolved: true,
        sharp: true,
    };
    let mut checks: Vec<Check> = view.exact().into_iter().collect();
    checks.extend(view.laws());
    let correlations = autocorrelation(&gaps.intended.uniforms);
    Found {
        checks,
        correlations: correlations.map_or(Vec::new(), |all| all.to_vec()),
    }
}

pub(super) fn achieved(gaps: &Gaps<'_>, lag: &Lag) -> Vec<Check> {
    let lag_ns = std::time::Duration::from_secs_f64(lag.p99_s.max(0.0));
    let hidden = match gaps.process {
        Process::Mmpp(mmpp) => -(-mmpp.high() * lag.p99_s.max(0.0)).exp_m1(),
        _ => gaps
            .law(0)
            .uniform(std::time::Duration::ZERO, lag_ns, 0.5)
            .unwrap_or(0.0),
    };
    let n = gaps.achieved.pairs.len() as f64;
    let view = View {
        gaps,
        series: &gaps.achieved,
        of: Of::Achieved,
        margin: MARGIN,
        resolved: hidden <= MARGIN,
        sharp: hidden * n.sqrt() < 0.1,
    };
    let early = Check::new("early_s", Of::Achieved, lag.early_s, None).limit(EARLY_S);
    let mut checks = vec![early];
    if let Some(error) = gap_error(gaps) {
        checks.push(Check::new("gap_error_p99_s", Of::Achieved, error, None).limit(lag.limit_s));
    }
    checks.extend(view.laws());
    checks
}

/// By how much achieved gaps differ from intended ones, of a process that leaves nothing to chance.
fn gap_error(gaps: &Gaps<'_>) -> Option<f64> {
    if !matches!(gaps.process, Process::Constant { .. } | Process::Trace(_)) {
        return None;
    }
    let (intended, achieved) = (gaps.intended.gaps_s(), gaps.achieved.gaps_s());
    let pairs = intended.iter().zip(&achieved);
    let mut errors: Vec<f64> = pairs.map(|(a, b)| (a - b).abs()).collect();
    errors.sort_by(f64::total_cmp);
    crate::statistics::quantile(&errors, 0.99)
}

/// One series, and how it is looked at.
struct View<'a> {
    gaps: &'a Gaps<'a>,
    series: &'a Series,
    of: Of,
    /// What may differ without counting.
    margin: f64,
    /// Whether gaps are long beside the lag.
    resolved: bool,
    /// Whether the lag is invisible among so many gaps.
    sharp: bool,
}

impl View<'_> {
    fn laws(&self) -> Vec<Check> {
        let n = self.series.uniforms.len();
        let mut checks = Vec::new();
        if n > 0 {
            checks.extend(self.uniformity());
            checks.extend(self.lags());
            checks.extend(self.mean());
            checks.extend(self.variation());
            checks.extend(self.raw_lag());
        }
        if self.gaps.open {
            checks.extend(self.phase());
            checks.extend(self.dispersions());
        }
        checks
    }

    /// Moments that leave nothing to chance.
    fn exact(&self) -> Option<Check> {
        let farthest = match self.gaps.process {
            Process::Constant { mean_s } => self
                .series
                .gaps_s()
                .iter()
                .map(|gap| (gap - mean_s).abs())
                .fold(0.0, f64::max),
            Process::Trace(trace) => {
                let times = self.series.times_s();
                let extra = times.len() > trace.arrivals().len();
                let recorded = trace
                    .arrivals()
                    .iter()
                    .map(|arrival| arrival.at.as_secs_f64());
                let far = times.iter().zip(recorded).map(|(a, b)| (a - b).abs());
                far.fold(if extra { f64::INFINITY } else { 0.0 }, f64::max)
            }
            Process::Exponential { .. }
            | Process::Gamma { .. }
            | Process::Mmpp(_)
            | Process::Recorded => return None,
        };
        let check = Check::new("exact_s", self.of, farthest, None);
        let any = !self.series.pairs.is_empty();
        any.then(|| check.limit(EXACT_S))
    }

    fn uniformity(&self) -> Vec<Check> {
        let mut ascending = self.series.uniforms.clone();
        ascending.sort_by(f64::total_cmp);
        let n = ascending.len();
        let enough = n >= LEAST_GAPS && self.resolved;
        let mut checks = Vec::new();
        if let Some(fit) = kolmogorov_smirnov(&ascending) {
            let p = ks_p(fit.statistic - self.margin, n as f64);
            checks.push(
                Check::new("kolmogorov_smirnov", self.of, fit.statistic, None).p_if(enough, p),
            );
        }
        if let Some(fit) = anderson_darling(&ascending) {
            let check = Check::new("anderson_darling", self.of, fit.statistic, None);
            checks.push(check.p_if(enough && self.sharp, fit.p));
        }
        checks
    }

    fn lags(&self) -> Option<Check> {
        let n = self.series.uniforms.len();
        let correlations = autocorrelation(&self.series.uniforms)?;
        let (farthest, p) = farthest_lag(&correlations, n, self.margin);
        let check = Check::new("correlation", self.of, farthest, Some(0.0));
        Some(check.p_if(n >= LEAST_GAPS && self.resolved, p))
    }

    /// The mean gap, by the exact law of a sum of gamma gaps; of a modulated process, the number of arrivals by its
    /// dispersion.
    fn mean(&self) -> Option<Check> {
        let gaps = self.series.gaps_s();
        let n = gaps.len() as f64;
        let sum: f64 = gaps.iter().sum();
        let expected = self.gaps.process.rate()?.recip();
        let check = Check::new("mean_gap_s", self.of, sum / n, Some(expected));
        let enough = gaps.len() >= LEAST_GAPS;
        match self.gaps.process {
            Process::Mmpp(mmpp) if self.gaps.open => {
                let counts = mmpp.rate() * sum;
                let error = (mmpp.dispersion(sum) / counts).sqrt();
                let p = normal_outside(self.beyond((n / counts).ln()) / error);
                Some(check.p_if(enough && cycles(mmpp, sum) >= LEAST_CYCLES, p))
            }
            Process::Mmpp(_) => None,
            _ => {
                let shape = n / self.gaps.process.cv2()?;
                let log = (sum / n / expected).ln();
                let nearer = self.beyond(log).copysign(log).exp();
                let p = two_sided(gamma_pq(shape, shape * nearer));
                Some(check.p_if(enough, p))
            }
        }
    }

    /// The coefficient of variation. That of `n` gamma gaps has the variance `cv^2 (1 + cv^2) / 2 n`; its logarithm is
    /// compared, which is less skewed.
    fn variation(&self) -> Option<Check> {
        let gaps = self.series.gaps_s();
        let seen = variation(&gaps, SEED)?;
        let cv2 = self.gaps.process.cv2()?;
        let check = Check::new("cv", self.of, seen.cv, Some(cv2.sqrt())).interval(seen.cv_interval);
        let log = self.beyond((seen.cv / cv2.sqrt()).ln());
        match self.gaps.process {
            Process::Mmpp(_) if !self.gaps.open => None,
            Process::Mmpp(mmpp) => {
                let enough = cycles(mmpp, gaps.iter().sum()) >= LEAST_CYCLES;
                let p = student_outside(log * seen.cv / seen.cv_error, 50.0);
                Some(check.p_if(enough && self.resolved, p))
            }
            _ => {
                let error = ((1.0 + cv2) / (2.0 * gaps.len() as f64)).sqrt();
                let enough = gaps.len() >= LEAST_FOR_CV && self.resolved;
                Some(check.p_if(enough, normal_outside(log / error)))
            }
        }
    }

    /// The correlation of a modulated process's gaps with those before, which its hidden chain makes; by batches, each
    /// taken for independent.
    fn raw_lag(&self) -> Option<Check> {
        let Process::Mmpp(mmpp) = self.gaps.process else {
            return None;
        };
        if !self.gaps.open {
            return None;
        }
        let gaps = self.series.gaps_s();
        let found = autocorrelation(&gaps)?[0];
        let expected = mmpp.correlation(1);
        let check = Check::new("lag_1", self.of, found, Some(expected));
        let size = gaps.len() / BATCHES;
        let enough = size >= LEAST_OF_BATCH && cycles(mmpp, gaps.iter().sum()) >= LEAST_CYCLES;
        if !enough || mmpp.low() <= 0.0 {
            return Some(check);
        }
        let each: Vec<f64> = gaps
            .chunks_exact(size)
            .take(BATCHES)
            .filter_map(|batch| Some(autocorrelation(batch)?[0]))
            .collect();
        let n = each.len() as f64;
        let mean = each.iter().sum::<f64>() / n;
        let squares = each.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let error = (squares / (n - 1.0) / n).sqrt();
        let excess = ((mean - expected).abs() - self.margin).max(0.0);
        Some(check.p_if(self.resolved, student_outside(excess / error, n - 1.0)))
    }

    /// Where in a second arrivals fall: a generator that fits its gaps into seconds has one at the end of each.
    ///
    /// Of a Poisson process the places are independent. Bunches land together; then their number counts, by dividing
    /// by the index of dispersion of long windows. Of a process smoother than Poisson's nothing is said.
    fn phase(&self) -> Option<Check> {
        const SECOND_NS: u64 = 1_000_000_000;
        let process = self.gaps.process;
        if process.cv2()? < 1.0 {
            return None;
        }
        let mut phases: Vec<f64> = self
            .series
            .pairs
            .iter()
            .map(|&(_, at)| (at % SECOND_NS) as f64 * 1e-9)
            .collect();
        phases.sort_by(f64::total_cmp);
        let fit = kolmogorov_smirnov(&phases)?;
        let n = phases.len() as f64 / process.dispersion(1e6)?.max(1.0);
        let check = Check::new("phase", self.of, fit.statistic, None);
        let enough = n >= LEAST_GAPS as f64 && self.series.last_s() >= LEAST_GAPS as f64;
        Some(check.p_if(enough, ks_p(fit.statistic - self.margin, n)))
    }

    /// Counts in windows, against the closed form.
    fn dispersions(&self) -> Vec<Check> {
        let times = self.series.times_s();
        let (process, span_s) = (self.gaps.process, self.series.last_s());
        let Some(rate) = process.rate() else {
            return Vec::new();
        };
        let batch_s = match process {
            Process::Mmpp(mmpp) => CYCLES_OF_BATCH * (mmpp.on_s() + mmpp.off_s()),
            _ => 0.0,
        };
        let one = |(name, window_s): (&'static str, f64)| {
            let seen = dispersion(&times, span_s, window_s, rate, batch_s)?;
            let expected = process.dispersion(window_s);
            let check = Check::new(name, self.of, seen.index, expected);
            let (Some(expected), Some(error), Some(_)) = (expected, seen.error, self.chance())
            else {
                return Some(check);
            };
            let log = self.beyond((seen.index / expected).ln());
            let p = student_outside(log * seen.index / error, (seen.batches - 1) as f64);
            let half = 2.0 * error;
            let check = check.interval([seen.index - half, seen.index + half]);
            Some(check.p_if(rate * window_s >= LEAST_COUNTS, p))
        };
        WINDOWS_S.into_iter().filter_map(one).collect()
    }

    /// Something, where the process leaves something to chance.
    fn chance(&self) -> Option<()> {
        let drawn = matches!(
            self.gaps.process,
            Process::Exponential { .. } | Process::Gamma { .. } | Process::Mmpp(_)
        );
        drawn.then_some(())
    }

    /// How far the logarithm of a ratio is from 0, beyond the margin.
    fn beyond(&self, log: f64) -> f64 {
        (log.abs() - self.margin).max(0.0)
    }
}

/// Cycles of the hidden chain in a time.
fn cycles(mmpp: &Mmpp, span_s: f64) -> f64 {
    span_s / (mmpp.on_s() + mmpp.off_s())
}
