//! Spans of time, as people write them of keys.
//!
//! Not here: the clock.

use serde::Deserialize;

/// A span of time in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Time(u64);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl Time {
    /// How long a rotated secret is good yet, unless said.
    pub(crate) const OVERLAP: Self = Self(24 * 3600);

    /// `90s`, `15m`, `12h`, `90d`, `52w`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let units = [
            ('s', 1),
            ('m', 60),
            ('h', 3600),
            ('d', 86_400),
            ('w', 604_800),
        ];
        let read = units.iter().find_map(|(unit, seconds)| {
            let digits = text.strip_suffix(*unit)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let number: u64 = digits.parse().ok().filter(|_| is_number)?;
            number.checked_mul(*seconds)
        });
        let century = 100 * 366 * 86_400;
        let read = read.filter(|seconds| *seconds <= century);
        read.map(Self)
            .ok_or_else(|| "write a number and s, m, h, d or w, such as 90d".to_owned())
    }

    /// How many seconds.
    pub(crate) fn seconds(self) -> u64 {
        self.0
    }

    /// The second that is so far after another.
    pub(crate) fn after(self, unix_s: u64) -> u64 {
        unix_s.saturating_add(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_a_number_and_a_unit() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("2m", 120),
            ("12h", 43_200),
            ("1w", 604_800),
        ] {
            assert_eq!(Time::parse(text).map(Time::seconds), Ok(seconds), "{text}");
        }
        for text in [
            "",
            "d",
            "1",
            "-1d",
            "+1d",
            "1.5h",
            "1y",
            "1 d",
            "99999999999999999999w",
            "101000d",
        ] {
            assert!(Time::parse(text).is_err(), "{text}");
        }
    }
}
