//! Time zones, and the parts of a date and a time in one.

use chrono::{DateTime, Datelike, FixedOffset, Timelike, Utc};
use chrono_tz::Tz;

use super::name;

/// Where a clock hangs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Zone {
    Named(Tz),
    /// `+05:30`.
    Fixed(FixedOffset),
}

/// What is asked of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    /// From 0.
    Month,
    /// From 1.
    Date,
    /// From 0.
    DayOfMonth,
    /// From 0, which is Sunday.
    DayOfWeek,
    /// From 0.
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// The functions of a time.
pub(super) const PARTS: [(&str, Part); 10] = [
    ("getFullYear", Part::Year),
    ("getMonth", Part::Month),
    ("getDate", Part::Date),
    ("getDayOfMonth", Part::DayOfMonth),
    ("getDayOfWeek", Part::DayOfWeek),
    ("getDayOfYear", Part::DayOfYear),
    ("getHours", Part::Hours),
    ("getMinutes", Part::Minutes),
    ("getSeconds", Part::Seconds),
    ("getMilliseconds", Part::Milliseconds),
];

impl Zone {
    pub(super) const UTC: Self = Self::Named(Tz::UTC);

    /// A zone by its name, `Europe/Zurich`, or by its distance from UTC, `+01:00`; what is wrong with it otherwise.
    pub(super) fn read(written: &str) -> Result<Self, String> {
        if let Ok(zone) = written.parse::<Tz>() {
            return Ok(Self::Named(zone));
        }
        if let Some(zone) = fixed(written) {
            return Ok(Self::Fixed(zone));
        }
        let names = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
        let hint = match name::nearest(written, names) {
            Some(near) => format!("did you mean {near}?"),
            None => "write a name as Europe/Zurich, or a distance as +01:00".to_owned(),
        };
        Err(format!("{written:?} is no time zone; {hint}"))
    }

    /// A part of a time; `None` outside of the calendar.
    pub(super) fn part(self, part: Part, unix_ms: i64) -> Option<i64> {
        let utc = DateTime::<Utc>::from_timestamp_millis(unix_ms)?;
        // Near the calendar's ends a zone may lead out of it.
        let years = i64::from(utc.year());
        if !(1..=9999).contains(&years) {
            return None;
        }
        Some(match self {
            Self::Named(Tz::UTC) => read(part, &utc),
            Self::Named(zone) => read(part, &utc.with_timezone(&zone)),
            Self::Fixed(zone) => read(part, &utc.with_timezone(&zone)),
        })
    }
}

fn read(part: Part, at: &(impl Datelike + Timelike)) -> i64 {
    i64::from(match part {
        Part::Year => return i64::from(at.year()),
        Part::Month => at.month0(),
        Part::Date => at.day(),
        Part::DayOfMonth => at.day0(),
        Part::DayOfWeek => at.weekday().num_days_from_sunday(),
        Part::DayOfYear => at.ordinal0(),
        Part::Hours => at.hour(),
        Part::Minutes => at.minute(),
        Part::Seconds => at.second(),
        Part::Milliseconds => at.nanosecond() / 1_000_000,
    })
}

/// `+01:00`, `-03:30`.
fn fixed(written: &str) -> Option<FixedOffset> {
    let (east, rest) = match written.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let hours = two_digits(hours).filter(|hours| *hours < 24)?;
    let minutes = two_digits(minutes).filter(|minutes| *minutes < 60)?;
    FixedOffset::east_opt(east * (hours * 60 + minutes) * 60)
}

fn two_digits(written: &str) -> Option<i32> {
    let digits = written.len() == 2 && written.bytes().all(|byte| byte.is_ascii_digit());
    written.parse().ok().filter(|_| digits)
}

/// A time as RFC 3339 writes it, milliseconds since the epoch.
pub(super) fn timestamp(written: &str) -> Result<i64, String> {
    let time = DateTime::parse_from_rfc3339(written)
        .map_err(|_| format!("{written:?} is no time; write it as 2026-01-31T08:00:00Z"))?;
    if time.nanosecond() % 1_000_000 != 0 {
        return Err(format!("{written:?} is finer than a millisecond"));
    }
    Ok(time.timestamp_millis())
}
