//! Figures as people read them: units that fit their size, and a dash for what there is not.
//!
//! Invariant: what is shown is the figure itself, rounded to the digits that are shown; nothing that is absent is 0.
//! Not here: which figures there are (`part`).

use crate::text::number;

/// What stands for a figure that was not measured.
pub(crate) const ABSENT: &str = "–";

/// A time, of a second or more to the millisecond, below it with three digits or more.
pub(super) fn time(seconds: f64) -> String {
    match seconds.abs() {
        size if !size.is_finite() => ABSENT.into(),
        0.0 => "0 s".into(),
        size if size < 1e-3 => format!("{:.1} µs", seconds * 1e6),
        size if size < 1e-2 => format!("{:.3} ms", seconds * 1e3),
        size if size < 1.0 => format!("{:.1} ms", seconds * 1e3),
        size if size < 1e4 => format!("{seconds:.3} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// How long something took, as people say it.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..=119 => format!("{seconds:.1} s"),
        120..=7_199 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3_600, whole % 3_600 / 60),
    }
}

/// A share of 1 in percent; small ones keep their digits.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value.abs() {
        size if !size.is_finite() => ABSENT.into(),
        0.0 => "0 %".into(),
        size if size < 0.1 => format!("{value:.4} %"),
        size if size < 1.0 => format!("{value:.3} %"),
        size if size < 10.0 => format!("{value:.2} %"),
        _ => format!("{value:.1} %"),
    }
}

/// A difference in percent, with its sign.
pub(super) fn difference(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{}", percent(share)).replace('-', "−")
}

/// A count, with commas between thousands.
pub(super) fn count(n: u64) -> String {
    number(n)
}

/// A sum of counts that others wrote down; one that is too great stays at the greatest.
pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// A plain figure with three digits or more.
pub(super) fn plain(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => ABSENT.into(),
        0.0 => "0".into(),
        size if size < 1e9 && value > 0.0 && value.fract() == 0.0 => number(value as u64),
        size if size < 1e-6 => format!("{value:.2e}"),
        size if size < 1e-3 => small(value),
        size if size < 1.0 => format!("{value:.4}"),
        size if size < 100.0 => format!("{value:.2}"),
        size if size < 10_000.0 => format!("{value:.1}"),
        size if size < 1e9 && value > 0.0 => number(value.round() as u64),
        _ => format!("{value:.4e}"),
    }
}

/// Three digits behind the zeros.
fn small(value: f64) -> String {
    let zeros = -value.abs().log10().floor();
    let decimals = zeros as usize + 2;
    format!("{value:.decimals$}")
}

/// Bytes in a second, in decimal units.
pub(super) fn bandwidth(bytes: f64) -> String {
    format!("{:.2} GB/s", bytes / 1e9)
}

/// What there may not be.
pub(super) fn maybe<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| ABSENT.into(), show)
}

#[cfg(test)]
mod tests;
