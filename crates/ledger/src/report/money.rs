//! Pico-units as people write money.
//!
//! Invariant: `decimal` is exact; `rounded` rounds half to even, so that many roundings do not lean.
//! Not here: what anything costs (`policy`).

const UNIT: u128 = 1_000_000_000_000;

/// Exact, without trailing zeros but with at least two decimals.
#[must_use]
pub fn decimal(pico: i128) -> String {
    let (whole, part) = (pico.unsigned_abs() / UNIT, pico.unsigned_abs() % UNIT);
    let digits = format!("{part:012}");
    let kept = digits.trim_end_matches('0').len().max(2);
    let sign = if pico < 0 { "-" } else { "" };
    format!("{sign}{whole}.{}", digits.get(..kept).unwrap_or(&digits))
}

/// To `places` decimals (at most 12).
#[must_use]
pub fn rounded(pico: i128, places: u32) -> String {
    let step = 10_u128.pow(12 - places.min(12));
    let (mut steps, rest) = (pico.unsigned_abs() / step, pico.unsigned_abs() % step);
    if rest * 2 > step || (rest * 2 == step && steps % 2 == 1) {
        steps += 1;
    }
    let sign = if pico < 0 && steps > 0 { "-" } else { "" };
    if places == 0 {
        return format!("{sign}{steps}");
    }
    let scale = 10_u128.pow(places.min(12));
    let width = usize::try_from(places.min(12)).unwrap_or(12);
    format!("{sign}{}.{:0width$}", steps / scale, steps % scale)
}
