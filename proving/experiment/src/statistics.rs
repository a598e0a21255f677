//! What figures say, and how sure that is.
//!
//! Invariant: a function of its arguments; what has no answer (no values, too few of them) is `None`, never a number.
//! Not here: which checks make a verdict (`certificate`), quantiles of latencies (a histogram, `load`).

mod correlation;
mod counts;
pub mod special;
mod spread;
mod two_samples;
mod uniformity;
mod variation;

pub use correlation::{LAGS, autocorrelation, farthest_lag};
pub use counts::{Dispersion, dispersion};
pub use spread::Spread;
pub use two_samples::{by_pair, two_samples};
pub use uniformity::{Fit, anderson_darling, kolmogorov_smirnov, ks_p};
pub use variation::{Variation, quantile, variation};
