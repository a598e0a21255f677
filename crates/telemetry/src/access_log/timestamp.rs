//! When an exchange began, as RFC 3339 in UTC with milliseconds.
//!
//! Invariant: the date kept is that of the day kept. Exchanges that end together began seconds
//! apart, so it is the day that is kept and not the second.
//! Not here: the calendar (`wire::date`), the clock (`proxy`).

use wire::date::Date;

use super::decimal::{four, padded, two};
use super::json_writer::JsonWriter;

const DAY_MS: u64 = 86_400_000;
/// Bytes of a date, until the year 10,000.
const DATE: usize = b"2026-08-01T".len();

/// Writes timestamps; remembers the date of the last one.
#[derive(Debug)]
pub(super) struct Timestamp {
    day: u64,
    /// `2026-08-01T`.
    date: Vec<u8>,
}

impl Default for Timestamp {
    fn default() -> Self {
        Self {
            day: 0,
            date: names_cached(0),
        }
    }
}

impl Timestamp {
    /// Writes the moment, `unix_ms` after 1970.
    #[inline]
    pub(super) fn write<'a>(&mut self, out: JsonWriter<'a>, unix_ms: u64) -> JsonWriter<'a> {
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

impl Timestamp {
    #[cold]
    fn turn(&mut self, day: u64) {
        self.day = day;
        self.date = names_cached(day);
    }
}

fn names_cached(day: u64) -> Vec<u8> {
    let Date { year, month, day } = Date::of_day(day.cast_signed());
    let mut out = Vec::with_capacity(16);
    match u32::try_from(year) {
        Ok(year @ ..10_000) => out.extend_from_slice(&four(year)),
        Ok(_) | Err(_) => out.extend_from_slice(year.to_string().as_bytes()),
    }
    let ([m, n], [d, e]) = (two(month), two(day));
    out.extend_from_slice(&[b'-', m, n, b'-', d, e, b'T']);
    out
}

#[cfg(test)]
mod tests;
