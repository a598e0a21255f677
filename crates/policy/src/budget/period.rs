//! Calendar periods: which day, week or month a moment belongs to, and when it ends.
//!
//! Invariant: periods of a calendar follow one another without gap or overlap; `span` holds every
//! moment that `of` maps to the period, and no other. Weeks begin on Monday. Leap seconds do not
//! exist, as in Unix time.
//! Not here: reading a clock; daylight saving, because a zone is a fixed offset from UTC.

/// How long a period is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Every {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday.
    Week,
    /// From the first of a month to the first of the next.
    Month,
}

impl Every {
    /// The word in configuration, labels and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The longest that one lasts, days.
    #[must_use]
    pub fn days_max(self) -> u64 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
        }
    }
}

/// Periods of one length, as a place on earth has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Calendar {
    /// How long one is.
    pub every: Every,
    /// How far its midnight is from UTC's, minutes east.
    pub east_min: i32,
}

/// One period of a calendar: its number since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Period(pub i64);

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// 1970-01-01 was a Thursday: its week began three days before it.
const THURSDAY: i64 = 3;

impl Calendar {
    /// The period of a moment, milliseconds since the Unix epoch.
    #[must_use]
    pub fn of(self, unix_ms: u64) -> Period {
        let here = i64::try_from(unix_ms)
            .unwrap_or(i64::MAX)
            .saturating_add(i64::from(self.east_min) * MINUTE_MS);
        let day = here.div_euclid(DAY_MS);
        Period(match self.every {
            Every::Day => day,
            Every::Week => (day + THURSDAY).div_euclid(7),
            Every::Month => {
                let (year, month, _) = civil(day);
                year * 12 + month - 1
            }
        })
    }

    /// Its first moment, and the first moment of the next; milliseconds since the Unix epoch.
    #[must_use]
    pub fn span(self, period: Period) -> (u64, u64) {
        (self.begins(period.0), self.begins(period.0 + 1))
    }

    fn begins(self, number: i64) -> u64 {
        let day = match self.every {
            Every::Day => number,
            Every::Week => number * 7 - THURSDAY,
            Every::Month => first_of(number.div_euclid(12), number.rem_euclid(12) + 1),
        };
        let ms = day.saturating_mul(DAY_MS) - i64::from(self.east_min) * MINUTE_MS;
        u64::try_from(ms).unwrap_or(0)
    }
}

/// `2026-11-21T07:05:09Z`, as RFC 3339 has it.
#[must_use]
pub fn stamp(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day since 1970-01-01. The year is taken to begin in March, so that the leap day
/// is its last, and counted in eras of 400 years.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// The day since 1970-01-01 on which a month begins.
pub(crate) fn first_of(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests;
