//! A moment as signatures have it: `20150830T123600Z`.
//!
//! Invariant: of any number of seconds; past the year 9999 it is the last moment of that year.

/// The last second of the year 9999.
const LAST_S: u64 = 253_402_300_799;
const DAY_S: u64 = 86_400;

/// A moment, to the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(String);

impl Stamp {
    pub(crate) fn of(unix_s: u64) -> Self {
        let unix_s = unix_s.min(LAST_S);
        let (days, of_day) = (unix_s / DAY_S, unix_s % DAY_S);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        Self(format!(
            "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"
        ))
    }

    pub(crate) fn time(&self) -> &str {
        &self.0
    }

    pub(crate) fn day(&self) -> &str {
        self.0.get(..8).unwrap_or_default()
    }
}

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that a leap day is the last of its year; 400 years are 146,097 days.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::Stamp;

    #[test]
    fn moments_of_the_calendar() {
        let table = [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_440_938_160, "20150830T123600Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
            (super::LAST_S, "99991231T235959Z"),
            (u64::MAX, "99991231T235959Z"),
        ];
        for (unix_s, expected) in table {
            let stamp = Stamp::of(unix_s);
            assert_eq!((stamp.time(), stamp.day()), (expected, &expected[..8]));
        }
    }
}
