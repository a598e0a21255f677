//! Dates of the civil calendar in UTC, by the number of days since 1970-01-01.
//!
//! The algorithms are Howard Hinnant's ("chrono-Compatible Low-Level Date Algorithms", public domain): a year is taken
//! to begin in March, so that the leap day is its last, and years are counted in eras of 400.
//! Invariant: `of_day` and `to_day` are inverse. Leap seconds do not exist, as in Unix time.
//! Not here: clocks and time zones.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// 1970-01-01 was a Thursday.
const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
}

impl Date {
    /// The date of a day since 1970-01-01.
    #[inline]
    #[must_use]
    pub fn of_day(day: i64) -> Self {
        let day = day.saturating_add(719_468);
        let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let march = (5 * of_year + 2) / 153;
        let month = if march < 10 { march + 3 } else { march - 9 };
        Self {
            year: era * 400 + year + i64::from(month <= 2),
            month: month as u32,
            day: (of_year - (153 * march + 2) / 5 + 1) as u32,
        }
    }

    /// The day since 1970-01-01. A day beyond its month's last is one of the months after it.
    #[inline]
    #[must_use]
    pub fn to_day(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((i64::from(self.month) + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// The first day of a month, from 0, counted from January of the year 0.
    #[inline]
    #[must_use]
    pub fn first_of(month: i64) -> Self {
        Self {
            year: month.div_euclid(12),
            month: month.rem_euclid(12) as u32 + 1,
            day: 1,
        }
    }

    /// The month's number, as [`first_of`](Self::first_of) takes it.
    #[inline]
    #[must_use]
    pub fn months(self) -> i64 {
        self.year * 12 + i64::from(self.month) - 1
    }

    /// The English name of the month.
    #[must_use]
    pub fn month_name(self) -> &'static str {
        let at = self.month.wrapping_sub(1) as usize;
        MONTHS.get(at).copied().unwrap_or_default()
    }
}

/// The month of which this is the English name in three letters, from 1.
#[must_use]
pub fn month_of(short_name: &str) -> Option<u32> {
    let is_it = |name: &&str| name.get(..3) == Some(short_name);
    let at = MONTHS.iter().position(is_it)?;
    u32::try_from(at + 1).ok()
}

/// The English name of the weekday of a day since 1970-01-01.
#[must_use]
pub fn weekday_name(day: i64) -> &'static str {
    let at = day.rem_euclid(7) as usize;
    WEEKDAYS.get(at).copied().unwrap_or_default()
}

/// `2026-11-21T07:05:09Z`, as RFC 3339 has it.
#[must_use]
pub fn timestamp(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let Date { year, month, day } = Date::of_day((seconds / 86_400).cast_signed());
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests;
