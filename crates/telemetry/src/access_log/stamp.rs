//! When an exchange began, as RFC 3339 in UTC with milliseconds.
//!
//! Invariant: the date kept is that of the day kept. Exchanges that end together began seconds
//! apart, so it is the day that is kept and not the second.
//! Not here: the clock (`proxy`).

use super::decimal::{four, padded, two};
use super::pen::Pen;

const DAY_MS: u64 = 86_400_000;
/// Bytes of a date, until the year 10,000.
const DATE: usize = b"2026-08-01T".len();

/// Writes timestamps; remembers the date of the last one.
#[derive(Debug)]
pub(super) struct Stamp {
    day: u64,
    /// `2026-08-01T`.
    date: Vec<u8>,
}

impl Default for Stamp {
    fn default() -> Self {
        Self {
            day: 0,
            date: spelled(0),
        }
    }
}

impl Stamp {
    /// Writes the moment, `unix_ms` after 1970.
    #[inline]
    pub(super) fn write<'a>(&mut self, out: Pen<'a>, unix_ms: u64) -> Pen<'a> {
        let (day, ms) = (unix_ms / DAY_MS, (unix_ms % DAY_MS) as u32);
        if day != self.day {
            self.turn(day);
        }
        let out = match self.date.first_chunk::<DATE>() {
            Some(date) if self.date.len() == DATE => out.fixed(date),
            Some(_) | None => out.bytes(&self.date),
        };
        let [h, i] = two(ms / 3_600_000);
        let [m, n] = two(ms / 60_000 % 60);
        let [s, t] = two(ms / 1000 % 60);
        let [x, y, z] = padded(ms % 1000);
        let time = [h, i, b':', m, n, b':', s, t, b'.', x, y, z, b'Z'];
        out.fixed(&time)
    }
}

impl Stamp {
    #[cold]
    fn turn(&mut self, day: u64) {
        self.day = day;
        self.date = spelled(day);
    }
}

fn spelled(day: u64) -> Vec<u8> {
    let (year, month, day) = date(day);
    let mut out = Vec::with_capacity(16);
    match u32::try_from(year) {
        Ok(year @ ..10_000) => out.extend_from_slice(&four(year)),
        Ok(_) | Err(_) => out.extend_from_slice(year.to_string().as_bytes()),
    }
    let ([m, n], [d, e]) = (two(month), two(day));
    out.extend_from_slice(&[b'-', m, n, b'-', d, e, b'T']);
    out
}

/// Year, month and day of a day counted from 1970-01-01. Years are taken to begin in March, so
/// that the leap day is the last of its year; 719,468 days lie between 0000-03-01 and 1970.
fn date(days: u64) -> (u64, u32, u32) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let (month, carry) = if from_march < 10 {
        (from_march + 3, 0)
    } else {
        (from_march - 9, 1)
    };
    (era * 400 + year + carry, month as u32, day as u32)
}

#[cfg(test)]
mod tests;
