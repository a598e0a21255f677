//! How long an upstream asks to be left alone, and what it says of the quota that a call used.
//!
//! Invariant: no upstream is left alone for longer than [`WAIT_MAX`], whatever it says; a word that
//! cannot be read asks for nothing.
//! Not here: who waits (`cooldown`), when an answer is asked ([`crate::exchange`]).

use std::time::Duration;

use wire::date::{Date, month_of};
use wire::head::{Known, ResponseHead};

/// The longest that an upstream is left alone for one answer.
pub const WAIT_MAX: Duration = Duration::from_secs(300);

/// Statuses whose answers may ask for time, whatever a route retries.
pub(crate) fn may_ask_for_time(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 529)
}

/// What an answer with such a status asks for: `retry-after-ms`, else `retry-after`, else, of a
/// 429, the time until the quota that is used up is full again. `unix_ms` is the wall clock now.
#[must_use]
pub fn asked(head: &ResponseHead, unix_ms: u64) -> Option<Duration> {
    let wait = precise(head)
        .or_else(|| seconds_or_date(head.fields.get(Known::RetryAfter)?, unix_ms))
        .or_else(|| (head.status == 429).then(|| reset(head)).flatten())?;
    (!wait.is_zero()).then_some(wait.min(WAIT_MAX))
}

fn named<'h>(head: &'h ResponseHead, name: &[u8]) -> Option<&'h [u8]> {
    let mut fields = head.fields.iter();
    let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
    Some(field.value.trim_ascii())
}

/// What OpenAI's clients read first.
fn precise(head: &ResponseHead) -> Option<Duration> {
    let ms = named(head, b"retry-after-ms")?;
    seconds(ms).map(|ms| ms / 1000)
}

fn seconds_or_date(value: &[u8], unix_ms: u64) -> Option<Duration> {
    let value = value.trim_ascii();
    seconds(value).or_else(|| {
        let until = date(std::str::from_utf8(value).ok()?)?.checked_mul(1000)?;
        Some(Duration::from_millis(until.saturating_sub(unix_ms)))
    })
}

/// What a 429 says of the quota that its call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quota {
    /// Nothing is left of it, whoever asks.
    UsedUp,
    /// It never holds as much as this one call asks for: no time makes that better, and it is nothing to others.
    TooSmall,
    Unsaid,
}

/// What a 429 says of the quota, to a call that may use so many tokens for certain: by the headers of OpenAI, which Azure and most others have,
/// too (`x-ratelimit-limit-tokens`). Of what remains 0 alone is believed: providers refuse bursts with most of it left. Anthropic's limits are
/// of what is generated, and of what is in no cache: of no call it can be told beforehand. Google and Amazon say nothing in a head.
#[must_use]
pub(crate) fn quota(head: &ResponseHead, certain: u64) -> Quota {
    let mut found = Quota::Unsaid;
    for field in head.fields.iter() {
        let has = |part: &[u8]| {
            let mut parts = field.name.split(|b| *b == b'-');
            parts.any(|its| its.eq_ignore_ascii_case(part))
        };
        if !has(b"ratelimit") {
            continue;
        }
        let number = std::str::from_utf8(field.value.trim_ascii()).ok();
        let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) else {
            continue;
        };
        if has(b"remaining") && number == 0 {
            return Quota::UsedUp;
        }
        if has(b"limit") && has(b"tokens") && !has(b"anthropic") && number < certain {
            found = Quota::TooSmall;
        }
    }
    found
}

/// The longest reset among the quotas of which nothing is left.
fn reset(head: &ResponseHead) -> Option<Duration> {
    let of = |kind: &[u8]| {
        let name = |what: &[u8]| [b"x-ratelimit-", what, b"-", kind].concat();
        let is_used_up = named(head, &name(b"remaining")) == Some(b"0");
        let reset = named(head, &name(b"reset"))?;
        is_used_up.then(|| go_duration(reset)).flatten()
    };
    of(b"requests").max(of(b"tokens"))
}

/// A decimal number of seconds, such as `17` or `0.5`.
fn seconds(text: &[u8]) -> Option<Duration> {
    let is_plain = |b: &u8| b.is_ascii_digit() || *b == b'.';
    if text.is_empty() || text.len() > 18 || !text.iter().all(is_plain) {
        return None;
    }
    let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// A duration as Go writes it: `20ms`, `1.5s`, `6m0s`, `1h0m0s`.
fn go_duration(mut text: &[u8]) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    while !text.is_empty() {
        let digits = text
            .iter()
            .take_while(|b| b.is_ascii_digit() || **b == b'.')
            .count();
        let (number, rest) = text.split_at_checked(digits)?;
        let letters = rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (unit, after) = rest.split_at_checked(letters)?;
        let number = seconds(number)?;
        let part = match unit {
            b"ms" => number / 1000,
            b"s" => number,
            b"m" => number.checked_mul(60)?,
            b"h" => number.checked_mul(3600)?,
            _ => return None,
        };
        sum = sum.checked_add(part)?;
        text = after;
    }
    Some(sum)
}

/// Seconds since the Unix epoch of a date as HTTP writes it: `Wed, 21 Oct 2026 07:28:00 GMT`.
fn date(text: &str) -> Option<u64> {
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day: u32 = parts.next()?.parse().ok()?;
    let month = month_of(parts.next()?)?;
    let year: i64 = parts.next()?.parse().ok()?;
    let mut clock = parts
        .next()?
        .splitn(3, ':')
        .map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_sane = (1970..10_000).contains(&year)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_sane || parts.next() != Some("GMT") {
        return None;
    }
    let days = Date { year, month, day }.to_day();
    u64::try_from(((days * 24 + hour) * 60 + minute) * 60 + second).ok()
}

#[cfg(test)]
mod tests;
