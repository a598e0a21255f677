//! Time as an argument.
//!
//! Not here: reading a clock. The host does that and passes the result.

use std::time::Duration;

/// A point on the host's monotonic clock, in nanoseconds since a base the host chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mono(pub i64);

impl Mono {
    /// Time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This point moved later by `by`.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }
}

/// A duration in whole nanoseconds, saturating at about 292 years.
#[must_use]
pub fn nanos(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}
