//! Days of the calendar in UTC, to and from milliseconds since the Unix epoch.
//!
//! Invariant: `parse` reads what `day` writes. Leap seconds do not exist, as in Unix time.
//! Not here: time zones. A period of the ledger is a period in UTC.

/// Milliseconds of a day.
pub const DAY_MS: u64 = 86_400_000;

/// `2026-11-21` for a moment of that day.
#[must_use]
pub fn day(unix_ms: u64) -> String {
    let (year, month, day) = civil(unix_ms / DAY_MS);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `2026-11-21T07:05:09Z`, as RFC 3339 has it.
#[must_use]
pub fn stamp(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000 % 86_400;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", day(unix_ms))
}

/// The first moments of a day and of the next (`2026-11-21`), or of a month and of the next
/// (`2026-11`). `None` when it is neither.
#[must_use]
pub fn parse(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.splitn(3, '-');
    let year: u64 = digits(parts.next()?, 4)?;
    let month: u64 = digits(parts.next()?, 2)?;
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let Some(day) = parts.next() else {
        let (next_year, next_month) = if month == 12 {
            (year + 1, 1)
        } else {
            (year, month + 1)
        };
        return Some((
            days(year, month, 1) * DAY_MS,
            days(next_year, next_month, 1) * DAY_MS,
        ));
    };
    let first = days(year, month, digits(day, 2)?);
    (civil(first) == (year, month, digits(day, 2)?))
        .then_some((first * DAY_MS, (first + 1) * DAY_MS))
}

/// The first moments of the month that holds `unix_ms`, and of the next.
#[must_use]
pub fn month_of(unix_ms: u64) -> (u64, u64) {
    let (year, month, _) = civil(unix_ms / DAY_MS);
    let (next_year, next_month) = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    (
        days(year, month, 1) * DAY_MS,
        days(next_year, next_month, 1) * DAY_MS,
    )
}

fn digits(text: &str, length: usize) -> Option<u64> {
    let all = text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// Days since 1970-01-01 of a date. The year is taken to begin in March, so that the leap day is
/// its last, and counted in eras of 400 years.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.saturating_sub(1);
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).saturating_sub(719_468)
}

/// The date of a day since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests;
