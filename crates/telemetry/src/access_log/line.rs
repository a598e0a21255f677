//! One exchange as one line of JSON.
//!
//! Invariant: valid JSON on one line, whatever the names and the id hold; what is not known is
//! left out, never null and never zero. docs/metrics.md lists the fields.
//! Not here: buffering and writing (`lines`, `access_log`).

use std::time::Duration;

use policy::record::{Count, Record};
use policy::snapshot::Snapshot;

/// Appends the line, newline included.
pub(super) fn write(out: &mut Vec<u8>, snapshot: &Snapshot, record: &Record) {
    out.extend_from_slice(b"{\"ts\":\"");
    timestamp(out, record.started_unix_ms);
    out.push(b'"');
    text(out, "request_id", Some(&record.id));
    let workload = record.workload.and_then(|id| snapshot.workload(id));
    text(out, "workload", workload.map(|w| &*w.name));
    text(out, "operation", record.operation.map(|o| o.as_str()));
    let route = record.route.and_then(|id| snapshot.route(id));
    text(out, "route", route.map(|r| &*r.name));
    let backend = record.backend.and_then(|id| snapshot.backend(id));
    text(out, "backend", backend.map(|b| &*b.name));
    let endpoint = record.endpoint.and_then(|id| snapshot.endpoint(id));
    text(out, "endpoint", endpoint.map(|e| &*e.name));
    text(out, "model", record.model_asked.as_deref());
    text(out, "model_sent", record.model_sent.as_deref());
    let status = (record.status != 0).then_some(u64::from(record.status));
    number(out, "status", status);
    text(out, "outcome", Some(record.outcome.as_str()));
    text(out, "code", Some(record.code).filter(|c| !c.is_empty()));
    text(out, "limited", record.limited.map(|kind| kind.as_str()));
    flag(out, "streamed", record.streamed);
    number(out, "attempts", Some(u64::from(record.attempts)));
    tokens(out, record);
    number(out, "bytes_in", Some(record.bytes_in));
    number(out, "bytes_out", Some(record.bytes_out));
    micros(out, "duration_us", Some(record.duration));
    micros(out, "first_byte_us", record.first_byte);
    micros(out, "own_us", record.own);
    micros(out, "upstream_us", record.upstream);
    text(out, "config", Some(&snapshot.version));
    out.extend_from_slice(b"}\n");
}

fn tokens(out: &mut Vec<u8>, record: &Record) {
    let tokens = &record.tokens;
    let source = |count: Count| (count != Count::Unknown).then(|| count.source());
    number(out, "prompt_tokens", tokens.prompt.tokens());
    text(out, "prompt_source", source(tokens.prompt));
    number(out, "completion_tokens", tokens.completion.tokens());
    text(out, "completion_source", source(tokens.completion));
    number(out, "cached_tokens", tokens.cached);
    number(out, "reasoning_tokens", tokens.reasoning);
    if tokens.invalid {
        flag(out, "usage_invalid", true);
    }
}

fn member(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn text(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        member(out, name);
        out.push(b'"');
        escaped(out, value);
        out.push(b'"');
    }
}

fn flag(out: &mut Vec<u8>, name: &str, value: bool) {
    member(out, name);
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn micros(out: &mut Vec<u8>, name: &str, value: Option<Duration>) {
    let us = value.map(|d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX));
    number(out, name, us);
}

fn number(out: &mut Vec<u8>, name: &str, value: Option<u64>) {
    if let Some(value) = value {
        member(out, name);
        decimal(out, value, 1);
    }
}

/// `value` in at least `width` digits.
fn decimal(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        if value == 0 && used >= width {
            break;
        }
        *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        used += 1;
    }
    out.extend(digits.iter().skip(digits.len() - used));
}

/// The inside of a JSON string.
fn escaped(out: &mut Vec<u8>, value: &str) {
    let bytes = value.as_bytes();
    let is_plain = |b: &u8| *b >= 0x20 && *b != b'"' && *b != b'\\' && *b != 0x7f;
    if bytes.iter().all(is_plain) {
        out.extend_from_slice(bytes);
        return;
    }
    for b in bytes {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
            plain if is_plain(plain) => out.push(*plain),
            control => {
                let hex = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(hex[usize::from(control >> 4)]);
                out.push(hex[usize::from(control & 15)]);
            }
        }
    }
}

/// RFC 3339 in UTC with milliseconds.
fn timestamp(out: &mut Vec<u8>, unix_ms: u64) {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = date(days);
    let parts = [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (ms / 3_600_000, 2, b':'),
        (ms / 60_000 % 60, 2, b':'),
        (ms / 1000 % 60, 2, b'.'),
        (ms % 1000, 3, b'Z'),
    ];
    for (value, width, after) in parts {
        decimal(out, value, width);
        out.push(after);
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years are taken to begin in March, so
/// that the leap day is the last of its year; 719,468 days lie between 0000-03-01 and 1970.
fn date(days: u64) -> (u64, u64, u64) {
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
    (era * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests;
