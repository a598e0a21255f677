//! The `date` of an answer, written once a second.
//!
//! Not here: the calendar (`wire::date`), when it is sent (`downstream`).

use wire::date::{Date, weekday_name};

/// A `date` line with its CRLF (RFC 9110, 6.6.1): `date: Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) type Line = [u8; 37];

/// The line of a second since the Unix epoch.
pub(crate) fn line(unix: u64) -> Line {
    let mut line = *b"date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    let (days, second) = (unix / 86_400, unix % 86_400);
    let days = days.cast_signed();
    let date = Date::of_day(days);
    let year = date.year.unsigned_abs();
    put(&mut line, 6, short(weekday_name(days)));
    put(&mut line, 11, &two(date.day.into()));
    put(&mut line, 14, short(date.month_name()));
    put(&mut line, 18, &two(year / 100));
    put(&mut line, 20, &two(year));
    put(&mut line, 23, &two(second / 3600));
    put(&mut line, 26, &two(second / 60 % 60));
    put(&mut line, 29, &two(second % 60));
    line
}

/// The first three letters.
fn short(name: &str) -> &[u8] {
    name.as_bytes().get(..3).unwrap_or_default()
}

fn put(line: &mut Line, at: usize, text: &[u8]) {
    if let Some(place) = line.get_mut(at..at + text.len()) {
        place.copy_from_slice(text);
    }
}

/// The last two digits of a number.
fn two(n: u64) -> [u8; 2] {
    [n / 10 % 10, n % 10].map(|digit| b"0123456789"[usize::try_from(digit).unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn seconds_are_written_as_http_dates() {
        for (unix, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_767_225_600, "Thu, 01 Jan 2026 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&line(unix)),
                format!("date: {date}\r\n")
            );
        }
    }
}
