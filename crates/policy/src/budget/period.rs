//! Calendar periods: which day, week or month a moment belongs to, and when it ends.
//!
//! Invariant: periods of a calendar follow one another without gap or overlap; `span` holds every
//! moment that `of` maps to the period, and no other. Weeks begin on Monday. Leap seconds do not
//! exist, as in Unix time.
//! Not here: the calendar (`wire::date`), reading a clock; daylight saving, because a zone is a fixed offset from UTC.

use wire::date::Date;
pub use wire::date::timestamp;

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
            Every::Month => Date::of_day(day).months(),
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
            Every::Month => Date::first_of(number).to_day(),
        };
        let ms = day.saturating_mul(DAY_MS) - i64::from(self.east_min) * MINUTE_MS;
        u64::try_from(ms).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
