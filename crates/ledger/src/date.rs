//! Days and months of the calendar in UTC, to and from milliseconds since the Unix epoch.
//!
//! Invariant: `parse` reads what `day` writes. Leap seconds do not exist, as in Unix time.
//! Not here: the calendar itself (`wire::date`), time zones. A period of the ledger is a period in UTC.

use wire::date::Date;
pub use wire::date::timestamp;

/// Milliseconds of a day.
pub const DAY_MS: u64 = 86_400_000;

/// `2026-11-21` for a moment of that day.
#[must_use]
pub fn day(unix_ms: u64) -> String {
    let Date { year, month, day } = date_of(unix_ms);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The first moments of a day and of the next (`2026-11-21`), or of a month and of the next
/// (`2026-11`). `None` when it is neither.
#[must_use]
pub fn parse(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.splitn(3, '-');
    let year: i64 = digits(parts.next()?, 4)?.into();
    let month = digits(parts.next()?, 2)?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let date = |day| Date { year, month, day };
    let Some(day) = parts.next() else {
        return Some(month_with(date(1)));
    };
    let date = date(digits(day, 2)?);
    let first = date.to_day();
    (Date::of_day(first) == date).then_some((begins(first), begins(first + 1)))
}

/// The first moments of the month that holds `unix_ms`, and of the next.
#[must_use]
pub fn month_of(unix_ms: u64) -> (u64, u64) {
    month_with(date_of(unix_ms))
}

fn month_with(date: Date) -> (u64, u64) {
    let first_of = |month| begins(Date::first_of(month).to_day());
    (first_of(date.months()), first_of(date.months() + 1))
}

fn date_of(unix_ms: u64) -> Date {
    Date::of_day((unix_ms / DAY_MS).cast_signed())
}

/// The first moment of a day since 1970-01-01.
fn begins(day: i64) -> u64 {
    u64::try_from(day).unwrap_or(0) * DAY_MS
}

fn digits(text: &str, length: usize) -> Option<u32> {
    let all = text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
