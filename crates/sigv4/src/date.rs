//! A moment as signatures have it: `20150830T123600Z`.
//!
//! Invariant: of any number of seconds; past the year 9999 it is the last moment of that year.
//! Not here: the calendar (`wire::date`).

use wire::date::Date;

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
        let Date { year, month, day } = Date::of_day(days.cast_signed());
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
