//! `strftime` as Python and the GNU library write it, for templates that ask for `strftime_now`.
//!
//! Not here: the calendar (`wire::date`), any clock; the moment is an argument, and its time zone has no name.

use wire::date::{Date, weekday_name};

/// A moment of some time zone's wall clock.
struct Moment {
    date: Date,
    /// Days since 1970.
    days: i64,
    second_of_day: i64,
}

/// The noon of a day that is written `YYYY-MM-DD`, in seconds since 1970; what it does not say is that of 1970-01-01.
#[must_use]
pub fn noon_of(date: &str) -> i64 {
    let mut parts = date.splitn(3, '-');
    let mut next = |other: i64| -> i64 {
        let said = parts.next().and_then(|part| part.parse().ok());
        said.unwrap_or(other)
    };
    let (year, month, day) = (next(1970), next(1), next(1));
    let date = Date {
        year,
        month: u32::try_from(month.clamp(1, 12)).unwrap_or(1),
        day: u32::try_from(day).unwrap_or(1),
    };
    date.to_day() * 86_400 + 43_200
}

/// Writes a moment, in seconds since 1970; a directive that is not known stays as it is.
#[must_use]
pub fn date(clock_s: i64, format: &str) -> String {
    let days = clock_s.div_euclid(86_400);
    let moment = Moment {
        date: Date::of_day(days),
        days,
        second_of_day: clock_s.rem_euclid(86_400),
    };
    let mut out = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let directive = after.trim_start_matches(['-', '_', '0', '^']);
        let flag = after
            .strip_suffix(directive)
            .and_then(|it| it.chars().last());
        let mut chars = directive.chars();
        let name = chars.next();
        match name.and_then(|name| moment.written(name, flag)) {
            Some(written) => {
                out.push_str(&written);
                rest = chars.as_str();
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

impl Moment {
    /// What a directive stands for; a flag says how numbers are filled up.
    fn written(&self, name: char, flag: Option<char>) -> Option<String> {
        let Date { year, month, day } = self.date;
        let (month, day) = (i64::from(month), i64::from(day));
        let hour = self.second_of_day / 3600;
        let (minute, second) = (self.second_of_day / 60 % 60, self.second_of_day % 60);
        let half_day = match hour % 12 {
            0 => 12,
            hour => hour,
        };
        let number = |value: i64, width: usize, fill: char| {
            Some(match (flag.unwrap_or(fill), fill) {
                ('-', _) => value.to_string(),
                ('_', _) | ('^', ' ') | (' ', _) => format!("{value:width$}"),
                _ => format!("{value:0width$}"),
            })
        };
        let text = |text: &str| {
            Some(match flag {
                Some('^') => text.to_uppercase(),
                _ => text.to_owned(),
            })
        };
        let whole = |format: &str| Some(date(self.days * 86_400 + self.second_of_day, format));
        let (week_year, week) = self.week_of_year();
        match name {
            'Y' => Some(year.to_string()),
            'C' => number(year.div_euclid(100), 2, '0'),
            'y' => number(year.rem_euclid(100), 2, '0'),
            'G' => Some(week_year.to_string()),
            'g' => number(week_year.rem_euclid(100), 2, '0'),
            'm' => number(month, 2, '0'),
            'd' => number(day, 2, '0'),
            'e' => number(day, 2, ' '),
            'j' => number(self.day_of_year() + 1, 3, '0'),
            'U' => number((self.day_of_year() + 7 - self.weekday()) / 7, 2, '0'),
            'W' => number(
                (self.day_of_year() + 7 - (self.weekday() + 6) % 7) / 7,
                2,
                '0',
            ),
            'V' => number(week, 2, '0'),
            'u' => number((self.weekday() + 6) % 7 + 1, 1, '0'),
            'w' => number(self.weekday(), 1, '0'),
            'H' => number(hour, 2, '0'),
            'k' => number(hour, 2, ' '),
            'I' => number(half_day, 2, '0'),
            'l' => number(half_day, 2, ' '),
            'M' => number(minute, 2, '0'),
            'S' => number(second, 2, '0'),
            'f' => Some("000000".to_owned()),
            'p' => text(if hour < 12 { "AM" } else { "PM" }),
            'P' => text(if hour < 12 { "am" } else { "pm" }),
            'B' => text(self.date.month_name()),
            'b' | 'h' => text(self.date.month_name().get(..3).unwrap_or_default()),
            'A' => text(weekday_name(self.days)),
            'a' => text(weekday_name(self.days).get(..3).unwrap_or_default()),
            'c' => whole("%a %b %e %H:%M:%S %Y"),
            'D' | 'x' => whole("%m/%d/%y"),
            'F' => whole("%Y-%m-%d"),
            'r' => whole("%I:%M:%S %p"),
            'R' => whole("%H:%M"),
            'T' | 'X' => whole("%H:%M:%S"),
            'n' => Some("\n".to_owned()),
            't' => Some("\t".to_owned()),
            // A moment without a zone has none to name.
            'z' | 'Z' => Some(String::new()),
            '%' => Some("%".to_owned()),
            _ => None,
        }
    }

    /// From 0.
    fn day_of_year(&self) -> i64 {
        self.days - first_of(self.date.year)
    }

    /// From 0, Sunday.
    fn weekday(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// Year and week of ISO 8601: weeks begin on Monday and belong to the year of their Thursday.
    fn week_of_year(&self) -> (i64, i64) {
        let monday = self.days - (self.weekday() + 6) % 7;
        let year = Date::of_day(monday + 3).year;
        (year, (monday + 3 - first_of(year)) / 7 + 1)
    }
}

/// The first day of a year.
fn first_of(year: i64) -> i64 {
    Date {
        year,
        month: 1,
        day: 1,
    }
    .to_day()
}

#[cfg(test)]
mod tests;
