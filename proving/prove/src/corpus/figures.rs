//! Figures of a corpus as people read them.
//!
//! Not here: what is shown (`inspect`).

use experiment::statistics::Spread;

use crate::report::content::Bar;
use crate::text::number;

/// Counts by powers of two: `0`, `1`, `2-3`, `4-7`, … from the first to the last that has any.
pub(super) fn by_powers(values: impl Iterator<Item = u64>) -> Vec<Bar> {
    let mut counts = [0_u64; 65];
    for value in values {
        counts[(64 - value.leading_zeros()) as usize] += 1;
    }
    let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
    let last = counts.iter().rposition(|n| *n > 0).unwrap_or(0);
    let label = |i: usize| match i {
        0 => "0".to_owned(),
        1 => "1".to_owned(),
        i => format!("{}-", number(1 << (i - 1))),
    };
    let bar = |i: usize| {
        let [median, min, max] = [counts[i] as f64; 3];
        Bar {
            name: label(i),
            value: Spread { median, min, max },
            says: number(counts[i]),
        }
    };
    (first..=last).map(bar).collect()
}

/// In decimal units.
pub(super) fn bytes(n: u64) -> String {
    let n = n as f64;
    match n {
        n if n < 1e3 => format!("{n:.0} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.2} GB", n / 1e9),
    }
}
