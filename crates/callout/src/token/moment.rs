//! The end of what was issued, where an answer says it as a moment (RFC 3339) and not as a length of time.
//!
//! Invariant: in UTC alone, as all who are asked here write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wire::date::Date;

use crate::fault::Fault;

/// How long it is until a moment such as `2026-01-31T12:30:00Z`; nothing where that has passed.
pub(super) fn until(moment: &str) -> Result<Duration, Fault> {
    let unix_s = unix_s(moment).ok_or(Fault::Garbage("its end is no moment in UTC"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(Duration::from_secs(unix_s).saturating_sub(now.unwrap_or_default()))
}

fn unix_s(moment: &str) -> Option<u64> {
    let (date, time) = moment.strip_suffix('Z')?.split_once('T')?;
    let time = time.split('.').next().unwrap_or_default();
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_sound = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let date = Date {
        year: year.into(),
        month,
        day,
    };
    let days = u64::try_from(date.to_day()).ok().filter(|_| is_sound)?;
    let of_day = hour * 3600 + minute * 60 + second;
    Some(days * 86_400 + u64::from(of_day))
}

fn numbers(text: &str, between: char, lengths: [usize; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(between);
    let mut numbers = [0; 3];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let part = parts.next().filter(|part| part.len() == length)?;
        let is_number = part.bytes().all(|b| b.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_in_utc_are_read_and_others_are_not() {
        let table = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T23:59:59Z", Some(951_868_799)),
            ("2015-08-30T12:36:00Z", Some(1_440_938_160)),
            ("2015-08-30T12:36:00.123456789Z", Some(1_440_938_160)),
            ("2100-03-01T00:00:00Z", Some(4_107_542_400)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799)),
            ("2015-08-30T12:36:00+00:00", None),
            ("2015-08-30 12:36:00Z", None),
            ("2015-8-30T12:36:00Z", None),
            ("2015-13-30T12:36:00Z", None),
            ("2015-08-30T24:00:00Z", None),
            ("2015-08-30-01T12:36:00Z", None),
            ("+015-08-30T12:36:00Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("", None),
        ];
        for (moment, expected) in table {
            assert_eq!(unix_s(moment), expected, "{moment}");
        }
        assert_eq!(until("2015-08-30T12:36:00Z"), Ok(Duration::ZERO));
        assert!(
            until("9999-12-31T23:59:59Z").is_ok_and(|left| left > Duration::from_secs(1 << 30))
        );
    }
}
