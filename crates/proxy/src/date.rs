//! The `date` of an answer, written once a second.
//!
//! Not here: when it is sent (`downstream`).

/// A `date` line with its CRLF (RFC 9110, 6.6.1): `date: Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) type Line = [u8; 37];

/// The line of a second since the Unix epoch.
pub(crate) fn line(unix: u64) -> Line {
    let mut line = *b"date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    let (days, second) = (unix / 86_400, unix % 86_400);
    let (year, month, day) = civil(days);
    let name = |names: &'static [u8], nth: u64| {
        let at = usize::try_from(nth).unwrap_or(0) * 3;
        names.get(at..at + 3).unwrap_or_default()
    };
    // The epoch was a Thursday.
    let weekday = name(b"SunMonTueWedThuFriSat", (days + 4) % 7);
    let month = name(b"JanFebMarAprMayJunJulAugSepOctNovDec", month - 1);
    put(&mut line, 6, weekday);
    put(&mut line, 11, &two(day));
    put(&mut line, 14, month);
    put(&mut line, 18, &two(year / 100));
    put(&mut line, 20, &two(year));
    put(&mut line, 23, &two(second / 3600));
    put(&mut line, 26, &two(second / 60 % 60));
    put(&mut line, 29, &two(second % 60));
    line
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

/// Year, month and day of a number of days since the epoch: years begin in March, so that a leap day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    (year, month, of_year - (153 * march + 2) / 5 + 1)
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
