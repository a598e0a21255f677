//! One exchange as one line of JSON.
//!
//! Invariant: valid JSON on one line, whatever the names and the id hold; what is not known is
//! left out, never null and never zero. docs/metrics.md lists the fields.
//! Not here: the pieces (`words`, `pen`, `spelled`, `stamp`), buffering and writing (`lines`, `access_log`).

use std::time::Duration;

use policy::limit::Kind;
use policy::record::{Count, Record, Tokens};

use super::pen::Pen;
use super::piece::Piece;
use super::spelled::Spelled;
use super::stamp::Stamp;
use super::words::{
    AUDIO_COMPLETION, AUDIO_PROMPT, BYTES_IN, BYTES_OUT, CACHE_WRITE_1H, CACHE_WRITE_5M, CACHED,
    CLIENT, CODE, COMPLETION, COMPLETION_BY, DURATION, FIRST_BYTE, ID, LIMITED, MODEL, MODEL_SENT,
    OWN, PROMPT, PROMPT_BY, REASON, REASONING, STATUS, STREAMED, UNCONFIRMED, UNCONFIRMED_TOKENS,
    UPSTREAM, UPSTREAM_ID, WHOLE, outcome,
};

/// Writes the line, newline included. How many bytes it has; `None` where there is no room for it.
pub(super) fn write(
    room: &mut [u8],
    stamp: &mut Stamp,
    spelled: &Spelled,
    record: &Record,
) -> Option<usize> {
    let all = room.len();
    let out = Pen::new(room).fixed(b"{\"ts\":\"");
    let mut out = stamp.write(out, record.started_unix_ms);
    out = out.text(&ID, Some(&record.id));
    if let Some(trace) = record.trace {
        out = out.fixed(b",\"trace_id\":\"").fixed(&trace.id_digits());
        out = out.fixed(b"\"");
    }
    out = out.text(&UPSTREAM_ID, record.upstream_id.as_deref());
    if let Some(client) = record.client {
        out = out.piece(&CLIENT).address(client).fixed(b"\"");
    }
    out = spelled.run(record, |names| out.bytes(names));
    let status = (record.status != 0).then_some(u64::from(record.status));
    let code = Some(record.code).filter(|code| !code.is_empty());
    out = out
        .text(&MODEL, record.model_asked.as_deref())
        .text(&MODEL_SENT, record.model_sent.as_deref())
        .number(&STATUS, status)
        .piece(outcome(record.outcome))
        .text(&CODE, code)
        .text(&LIMITED, record.limited.map(Kind::as_str))
        .piece(if record.streamed { &STREAMED } else { &WHOLE })
        .decimal(u64::from(record.attempts));
    let mut out = tokens(out, &record.tokens);
    if !record.estimate_reason.is_empty() || record.unconfirmed.attempts > 0 {
        out = estimate(out, record);
    }
    out.number(&BYTES_IN, Some(record.bytes_in))
        .number(&BYTES_OUT, Some(record.bytes_out))
        .number(&DURATION, Some(whole_micros(record.duration)))
        .number(&FIRST_BYTE, record.first_byte.map(whole_micros))
        .number(&OWN, record.own.map(whole_micros))
        .number(&UPSTREAM, record.upstream.map(whole_micros))
        .bytes(spelled.end())
        .left()
        .map(|left| all - left)
}

/// The line alone, however long it is.
pub(super) fn long(stamp: &mut Stamp, spelled: &Spelled, record: &Record) -> Vec<u8> {
    let mut line = vec![0; LONG_BYTES];
    loop {
        if let Some(written) = write(&mut line, stamp, spelled, record) {
            line.truncate(written);
            return line;
        }
        line.resize(2 * line.len(), 0);
    }
}

/// Where the search begins for the room that a long line takes.
const LONG_BYTES: usize = 4 << 10;

fn tokens<'a>(out: Pen<'a>, tokens: &Tokens) -> Pen<'a> {
    let out = count(out, &PROMPT, &PROMPT_BY, tokens.prompt);
    let out = count(out, &COMPLETION, &COMPLETION_BY, tokens.completion);
    let out = out
        .number(&CACHED, tokens.cached)
        .number(&REASONING, tokens.reasoning)
        .number(&CACHE_WRITE_5M, tokens.cache_write_5m)
        .number(&CACHE_WRITE_1H, tokens.cache_write_1h)
        .number(&AUDIO_PROMPT, tokens.audio_prompt)
        .number(&AUDIO_COMPLETION, tokens.audio_completion);
    match (tokens.invalid, tokens.doubtful) {
        (false, false) => out,
        (true, _) => out.fixed(b",\"usage_invalid\":true"),
        (false, true) => out.fixed(b",\"usage_doubtful\":true"),
    }
}

/// Why an estimate is charged.
#[cold]
fn estimate<'a>(out: Pen<'a>, record: &Record) -> Pen<'a> {
    let reason = Some(record.estimate_reason).filter(|reason| !reason.is_empty());
    let of = &record.unconfirmed;
    let attempts = (of.attempts > 0).then_some(u64::from(of.attempts));
    out.text(&REASON, reason)
        .number(&UNCONFIRMED, attempts)
        .number(&UNCONFIRMED_TOKENS, attempts.map(|_| of.tokens()))
}

/// A count and its witness.
fn count<'a>(out: Pen<'a>, key: &Piece, by: &[Piece; 3], of: Count) -> Pen<'a> {
    let [reported, counted, estimated] = by;
    let (n, witness) = match of {
        Count::Unknown => return out,
        Count::Reported(n) => (n, reported),
        Count::Counted(n) => (n, counted),
        Count::Estimated(n) => (n, estimated),
    };
    out.number(key, Some(n)).piece(witness)
}

fn whole_micros(duration: Duration) -> u64 {
    let seconds = duration.as_secs().checked_mul(1_000_000);
    let whole = seconds.and_then(|us| us.checked_add(u64::from(duration.subsec_micros())));
    whole.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
