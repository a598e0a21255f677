//! A line of Azure's traces of LLM inference (2023 and 2024): moment, prompt tokens, output tokens.
//!
//! Invariant: a moment is exact to its last digit (100 ns), over midnights and ends of years.
//! Not here: time zones; the form has none.

use std::time::Duration;

use super::Traced;

pub(super) const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

pub(super) fn read(line: &str) -> Result<Traced, String> {
    let mut fields = line.split(',');
    let (Some(moment), Some(prompt), Some(output), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(format!("has not the three fields of {HEADER}"));
    };
    let count = |text: &str| {
        text.trim()
            .parse()
            .map_err(|_| format!("{text:?} is no number of tokens"))
    };
    Ok(Traced {
        at: parse(moment).ok_or_else(|| {
            format!("{moment:?} is no moment such as 2023-11-16 18:17:03.9799600")
        })?,
        prompt_tokens: count(prompt)?,
        output_tokens: count(output)?,
        blocks: Vec::new(),
    })
}

/// Since the year 0.
fn parse(text: &str) -> Option<Duration> {
    let (date, time) = text.trim().split_once([' ', 'T'])?;
    let time = time.trim_end_matches('Z');
    let time = time.strip_suffix("+00:00").unwrap_or(time);
    let [year, month, day] = numbers(date, '-')?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(whole, ':')?;
    let fits = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60
        && (1..=9).contains(&fraction.len())
        && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    fits.then(|| Duration::new(seconds, nanos))
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let mut parts = text.split(between).map(|part| {
        let digits = part.len() <= 4 && part.bytes().all(|digit| digit.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Days of the Gregorian calendar before this one, counted with March as the first month of a year.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day
}
