//! Histograms with fixed bounds, in whole nanoseconds or tokens.
//!
//! Invariant: a value equal to a bound is counted under that bound (`le`); sums are exact
//! integers, so merging copies in any order gives the same page.
//! Not here: which histogram a value belongs to (`series`).

use std::time::Duration;

/// What a histogram's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Counted in nanoseconds, shown in seconds.
    Seconds,
    /// Counted and shown in tokens.
    Tokens,
}

/// Upper bounds of buckets, ascending.
#[derive(Debug)]
pub(crate) struct Scale<const B: usize> {
    pub(crate) unit: Unit,
    pub(crate) bounds: [u64; B],
    /// For each power of two, how many bounds lie below it: where the search for a value of
    /// that many bits begins.
    below: [u8; 64],
}

impl<const B: usize> Scale<B> {
    const fn new(unit: Unit, bounds: [u64; B]) -> Self {
        let mut below = [0; 64];
        let mut power = 0;
        while power < 64 {
            while (below[power] as usize) < B && bounds[below[power] as usize] < 1 << power {
                below[power] += 1;
            }
            power += 1;
        }
        Self {
            unit,
            bounds,
            below,
        }
    }

    /// How many bounds lie below `value`.
    fn place(&self, value: u64) -> usize {
        let power = value.max(1).ilog2();
        let mut at = usize::from(self.below[power as usize]);
        while self.bounds.get(at).is_some_and(|bound| *bound < value) {
            at += 1;
        }
        at
    }
}

const fn micros<const B: usize>(bounds: [u64; B]) -> Scale<B> {
    let mut scaled = bounds;
    let mut i = 0;
    while i < B {
        scaled[i] = bounds[i] * 1000;
        i += 1;
    }
    Scale::new(Unit::Seconds, scaled)
}

/// OpenTelemetry's bounds for `gen_ai.client.token.usage`: powers of four.
pub(crate) static TOKENS: Scale<14> = Scale::new(
    Unit::Tokens,
    [
        1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
        67_108_864,
    ],
);

/// OpenTelemetry's bounds for `gen_ai.server.request.duration`.
pub(crate) static REQUEST: Scale<14> = micros([
    10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 1_280_000, 2_560_000, 5_120_000,
    10_240_000, 20_480_000, 40_960_000, 81_920_000,
]);

/// OpenTelemetry's bounds for `gen_ai.server.time_to_first_token`.
pub(crate) static FIRST_TOKEN: Scale<16> = micros([
    1000, 5000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 250_000, 500_000, 750_000,
    1_000_000, 2_500_000, 5_000_000, 7_500_000, 10_000_000,
]);

/// OpenTelemetry's bounds for `gen_ai.server.time_per_output_token`.
pub(crate) static PER_TOKEN: Scale<13> = micros([
    10_000, 25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000, 750_000,
    1_000_000, 2_500_000,
]);

/// The gate's own time: steps of at most 20 µs up to 200 µs.
pub(crate) static OWN: Scale<27> = micros([
    5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 140, 160, 180, 200, 250, 300, 400, 500, 750,
    1000, 2000, 5000, 10_000, 20_000, 50_000,
]);

/// Waiting for who identifies, authorises and gives credentials: of this machine, or across a network.
pub(crate) static ASKED: Scale<19> = micros([
    50, 100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000, 7500, 10_000, 20_000, 50_000,
    100_000, 500_000, 1_000_000, 5_000_000,
]);

/// Waiting for upstreams and first bytes.
pub(crate) static WAIT: Scale<17> = micros([
    1000,
    2500,
    5000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
]);

/// Counts by bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Histogram<const B: usize> {
    within: [u64; B],
    above: u64,
    sum: u64,
}

impl<const B: usize> Default for Histogram<B> {
    fn default() -> Self {
        Self {
            within: [0; B],
            above: 0,
            sum: 0,
        }
    }
}

impl<const B: usize> Histogram<B> {
    /// Counts one value.
    pub(crate) fn observe(&mut self, scale: &Scale<B>, value: u64) {
        match self.within.get_mut(scale.place(value)) {
            Some(bucket) => *bucket += 1,
            None => self.above += 1,
        }
        self.sum = self.sum.saturating_add(value);
    }

    /// Counts one duration.
    pub(crate) fn time(&mut self, scale: &Scale<B>, duration: Duration) {
        self.observe(scale, nanos(duration));
    }

    /// Takes in another's counts.
    pub(crate) fn absorb(&mut self, other: &Self) {
        for (mine, theirs) in self.within.iter_mut().zip(&other.within) {
            *mine += theirs;
        }
        self.above += other.above;
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many values were counted at or below each bound.
    pub(crate) fn cumulative(&self) -> [u64; B] {
        let mut running = 0;
        self.within.map(|n| {
            running += n;
            running
        })
    }

    /// How many values were counted.
    pub(crate) fn count(&self) -> u64 {
        self.within.iter().sum::<u64>() + self.above
    }

    /// Their sum, in the scale's unit (nanoseconds for durations).
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }
}

/// Whole nanoseconds, as many as a number can hold.
pub(crate) fn nanos(duration: Duration) -> u64 {
    let whole = duration.as_secs().saturating_mul(1_000_000_000);
    whole.saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests;
