//! From values to places on an axis, and the values that stand beside it.
//!
//! Invariant: every value given lies within the axis, and there are at least two ticks and at most [`MOST_TICKS`], be the
//! values as odd as they like.
//! Not here: drawing (`plot` and what stands on it).

#[cfg(test)]
mod tests;

/// Ticks of one axis.
const MOST_TICKS: u32 = 50;
/// What an axis can show: a value beyond is as good as its end, one nearer to 0 as good as 0. Between them every quotient
/// is a number.
const GREATEST: f64 = 1e150;
const LEAST: f64 = 1e-150;

/// One axis.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// An axis over `values`; linear ones start at 0. A logarithmic one needs a value above 0.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>, log: bool) -> Self {
        let values = shown(values);
        let high = values.iter().copied().fold(0.0, f64::max);
        let least = values
            .iter()
            .copied()
            .filter(|v| *v > 0.0)
            .fold(f64::INFINITY, f64::min);
        if log && least.is_finite() {
            let (low, high) = (nice_below(least), nice_above(high));
            let high = if high > low { high } else { low * 10.0 };
            return Self { low, high, log };
        }
        let high = if high > 0.0 { nice_above(high) } else { 1.0 };
        Self {
            low: 0.0,
            high,
            log: false,
        }
    }

    /// As [`Self::over`], but a linear one ends at the first tick that nothing is above, so that little room is lost.
    pub(crate) fn close(values: impl IntoIterator<Item = f64>, log: bool) -> Self {
        Self::ending(values, log, |most| {
            let step = nice_above(most / 5.0);
            (most / step * 0.999).ceil() * step
        })
    }

    /// As [`Self::over`], but a linear one ends with the greatest value, be it a round number or not.
    pub(crate) fn up_to(values: impl IntoIterator<Item = f64>, log: bool) -> Self {
        Self::ending(values, log, |most| most)
    }

    /// A linear axis from 0 to what `end` makes of the greatest value above 0.
    fn ending(values: impl IntoIterator<Item = f64>, log: bool, end: fn(f64) -> f64) -> Self {
        let values = shown(values);
        let most = values.iter().copied().fold(0.0, f64::max);
        let over = Self::over(values, log);
        if over.log || most <= 0.0 {
            return over;
        }
        Self {
            high: end(most),
            ..over
        }
    }

    /// Where it begins.
    pub(crate) const fn low(&self) -> f64 {
        self.low
    }

    /// Where it ends.
    pub(crate) const fn high(&self) -> f64 {
        self.high
    }

    /// Where `value` lies, from 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            value / self.high
        };
        share.clamp(0.0, 1.0)
    }

    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.log {
            return self.log_ticks();
        }
        let step = nice_above(self.high / 5.0);
        let ticks = (0..MOST_TICKS).map(|at| f64::from(at) * step);
        ticks
            .take_while(|tick| *tick <= self.high * 1.001)
            .collect()
    }

    /// 1, 2 and 5 of each power, the powers alone where there are many, or every so many of those.
    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let is_wide = self.high / self.low > 2_000.0;
        let factors: &[f64] = if is_wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let every = ((last - first) / f64::from(MOST_TICKS - 1)).ceil().max(1.0);
        let powers = (0..MOST_TICKS).map(|at| first + f64::from(at) * every);
        let powers = powers.take_while(|power| *power <= last);
        powers
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powf(power)))
            .filter(|value| (self.low * 0.999..=self.high * 1.001).contains(value))
            .collect()
    }
}

/// Of values, those that an axis can show.
fn shown(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let values = values.into_iter().filter(|value| value.is_finite());
    let within = values.map(|value| match value.abs() {
        size if size < LEAST => 0.0,
        size if size > GREATEST => GREATEST.copysign(value),
        _ => value,
    });
    within.collect()
}

/// The least of 1, 2, 5 times a power of ten that is not below `value`.
fn nice_above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * power >= value * 0.999);
    factor.unwrap_or(10.0) * power
}

fn nice_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|factor| factor * power <= value * 1.001);
    factor.unwrap_or(1.0) * power
}

/// A number as short as it is useful.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e12 => format!("{value:.1e}"),
        size if size >= 1e6 => format!("{}M", trimmed(value / 1e6, 2)),
        size if size >= 10_000.0 => format!("{}k", trimmed(value / 1_000.0, 1)),
        size if size >= 100.0 => trimmed(value, 0),
        size if size >= 10.0 => trimmed(value, 1),
        size if size >= 0.1 || size == 0.0 => trimmed(value, 2),
        _ => trimmed(value, 4),
    }
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
