//! One exchange as one line of JSON.
//!
//! Invariant: valid JSON on one line, whatever the names and the id hold; what is not known is
//! left out, never null and never zero. docs/metrics.md lists the fields.
//! Not here: the pieces (`decimal`, `escape`, `spelled`, `stamp`), buffering and writing (`lines`,
//! `access_log`).

use std::time::Duration;

use policy::record::{Count, Record};

use super::decimal::decimal;
use super::escape::escaped;
use super::spelled::Spelled;
use super::stamp::Stamp;

/// Appends the line, newline included.
pub(super) fn write(out: &mut Vec<u8>, stamp: &mut Stamp, spelled: &Spelled, record: &Record) {
    out.extend_from_slice(b"{\"ts\":\"");
    stamp.write(out, record.started_unix_ms);
    text(out, b"\",\"request_id\":\"", Some(&record.id));
    if let Some(trace) = record.trace {
        out.extend_from_slice(b",\"trace_id\":\"");
        out.extend_from_slice(&trace.id_digits());
        out.push(b'"');
    }
    out.extend_from_slice(spelled.workload(record));
    word(
        out,
        b",\"operation\":\"",
        record.operation.map(|o| o.as_str()),
    );
    out.extend_from_slice(spelled.route(record));
    out.extend_from_slice(spelled.backend(record));
    out.extend_from_slice(spelled.endpoint(record));
    text(out, b",\"model\":\"", record.model_asked.as_deref());
    text(out, b",\"model_sent\":\"", record.model_sent.as_deref());
    let status = (record.status != 0).then_some(u64::from(record.status));
    number(out, b",\"status\":", status);
    word(out, b",\"outcome\":\"", Some(record.outcome.as_str()));
    text(
        out,
        b",\"code\":\"",
        Some(record.code).filter(|c| !c.is_empty()),
    );
    word(
        out,
        b",\"limited\":\"",
        record.limited.map(|kind| kind.as_str()),
    );
    flag(out, b",\"streamed\":", record.streamed);
    number(out, b",\"attempts\":", Some(u64::from(record.attempts)));
    tokens(out, record);
    number(out, b",\"bytes_in\":", Some(record.bytes_in));
    number(out, b",\"bytes_out\":", Some(record.bytes_out));
    micros(out, b",\"duration_us\":", Some(record.duration));
    micros(out, b",\"first_byte_us\":", record.first_byte);
    micros(out, b",\"own_us\":", record.own);
    micros(out, b",\"upstream_us\":", record.upstream);
    out.extend_from_slice(spelled.end());
}

fn tokens(out: &mut Vec<u8>, record: &Record) {
    let tokens = &record.tokens;
    let source = |count: Count| (count != Count::Unknown).then(|| count.source());
    number(out, b",\"prompt_tokens\":", tokens.prompt.tokens());
    word(out, b",\"prompt_source\":\"", source(tokens.prompt));
    number(out, b",\"completion_tokens\":", tokens.completion.tokens());
    word(out, b",\"completion_source\":\"", source(tokens.completion));
    number(out, b",\"cached_tokens\":", tokens.cached);
    number(out, b",\"reasoning_tokens\":", tokens.reasoning);
    if tokens.invalid {
        flag(out, b",\"usage_invalid\":", true);
    }
}

/// A member whose text may hold anything. Keys come whole and with their length in the type, so
/// that each is copied in a few instructions.
fn text<const N: usize>(out: &mut Vec<u8>, key: &[u8; N], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        escaped(out, value);
        out.push(b'"');
    }
}

/// A member whose text is one of the gate's own words.
fn word<const N: usize>(out: &mut Vec<u8>, key: &[u8; N], value: Option<&'static str>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }
}

fn flag<const N: usize>(out: &mut Vec<u8>, key: &[u8; N], value: bool) {
    out.extend_from_slice(key);
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn micros<const N: usize>(out: &mut Vec<u8>, key: &[u8; N], value: Option<Duration>) {
    number(out, key, value.map(whole_micros));
}

fn number<const N: usize>(out: &mut Vec<u8>, key: &[u8; N], value: Option<u64>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        decimal(out, value);
    }
}

fn whole_micros(duration: Duration) -> u64 {
    let seconds = duration.as_secs().checked_mul(1_000_000);
    let whole = seconds.and_then(|us| us.checked_add(u64::from(duration.subsec_micros())));
    whole.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
