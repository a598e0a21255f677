//! One exchange as one line of JSON.
//!
//! Invariant: valid JSON on one line, whatever the names and the id hold; what is not known is
//! left out, never null and never zero. docs/metrics.md lists the fields.
//! Not here: the pieces (`words`, `json_writer`, `name_cache`, `timestamp`), buffering and writing (`lines`, `access_log`).

use std::time::Duration;

use policy::attribution::{kept, tags};
use policy::caller::Caller;
use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::{Count, Extra, Record};
use policy::snapshot::Snapshot;

use super::json_writer::JsonWriter;
use super::name_cache::NameCache;
use super::piece::Piece;
use super::timestamp::Timestamp;
use super::words::{COMPLETION_BY, ID, PROMPT_BY, STREAMED, WHOLE, key, opening, outcome};

/// Writes the line, newline included. How many bytes it has; `None` where there is no room for it.
pub(super) fn write(
    room: &mut [u8],
    timestamp: &mut Timestamp,
    names_cached: &NameCache,
    snapshot: &Snapshot,
    record: &Record,
) -> Option<usize> {
    // A new field of the record is asked for here: it is in the line, or is not.
    let Record {
        id: _,
        upstream_id: _,
        trace: _,
        started_unix_ms: _,
        client: _,
        operation: _,
        workload: _,
        caller: _,
        hides_user: _,
        route: _,
        endpoint: _,
        backend: _,
        model_asked: _,
        model_sent: _,
        streamed: _,
        status: _,
        outcome: _,
        code: _,
        reason: _,
        limited: _,
        attempts: _,
        tokens: _,
        unconfirmed: _,
        estimate_reason: _,
        prompt_doubt: _,
        extra: _,
        bytes_in: _,
        bytes_out: _,
        duration: _,
        first_byte: _,
        own: _,
        upstream: _,
        // Not in it.
        charge: _,
        uncounted: _,
        listed: _,
        mcp_path: _,
    } = record;
    let all = room.len();
    let out = JsonWriter::new(room).fixed(b"{\"ts\":\"");
    let mut out = timestamp.write(out, record.started_unix_ms);
    out = out.text(&ID, Some(&record.id));
    if let Some(trace) = record.trace {
        out = out.fixed(b",\"trace_id\":\"").fixed(&trace.id_digits());
        out = out.fixed(b"\"");
    }
    out = out.text(
        const { &opening("upstream_request_id") },
        record.upstream_id.as_deref(),
    );
    if let Some(client) = record.client {
        out = out
            .piece(const { &opening("client_address") })
            .address(client)
            .fixed(b"\"");
    }
    out = names_cached.run(snapshot, record, |names| out.bytes(names));
    if let Some(caller) = &record.caller {
        out = who(out, record, caller);
    }
    let status = (record.status != 0).then_some(u64::from(record.status));
    let code = Some(record.code).filter(|code| !code.is_empty());
    out = out
        .text(const { &opening("model") }, record.model_asked.as_deref())
        .text(
            const { &opening("model_sent") },
            record.model_sent.as_deref(),
        )
        .number(const { &key("status") }, status)
        .piece(outcome(record.outcome))
        .text(const { &opening("code") }, code);
    if let Some(reason) = record.reason.as_deref().and_then(kept) {
        out = out.text(const { &opening("reason") }, Some(&reason));
    }
    out = out
        .text(
            const { &opening("limited") },
            record.limited.map(Kind::as_str),
        )
        .piece(if record.streamed { &STREAMED } else { &WHOLE })
        .decimal(u64::from(record.attempts));
    let mut out = tokens(out, record);
    if !record.prompt_doubt.is_empty() {
        out = out.text(
            const { &opening("prompt_doubt") },
            Some(record.prompt_doubt),
        );
    }
    if !record.estimate_reason.is_empty() || record.unconfirmed.attempts > 0 {
        out = estimate(out, record);
    }
    if let Some(extra) = &record.extra {
        out = seldom(out, extra);
    }
    out.number(const { &key("bytes_in") }, Some(record.bytes_in))
        .number(const { &key("bytes_out") }, Some(record.bytes_out))
        .number(
            const { &key("duration_us") },
            Some(whole_micros(record.duration)),
        )
        .number(
            const { &key("first_byte_us") },
            record.first_byte.map(whole_micros),
        )
        .number(const { &key("own_us") }, record.own.map(whole_micros))
        .number(
            const { &key("upstream_us") },
            record.upstream.map(whole_micros),
        )
        .bytes(names_cached.end())
        .left()
        .map(|left| all - left)
}

/// The line alone, however long it is.
pub(super) fn long(
    timestamp: &mut Timestamp,
    names_cached: &NameCache,
    snapshot: &Snapshot,
    record: &Record,
) -> Vec<u8> {
    let mut line = vec![0; LONG_BYTES];
    loop {
        if let Some(written) = write(&mut line, timestamp, names_cached, snapshot, record) {
            line.truncate(written);
            return line;
        }
        line.resize(2 * line.len(), 0);
    }
}

/// Where the search begins for the room that a long line takes.
const LONG_BYTES: usize = 4 << 10;

fn tokens<'a>(out: JsonWriter<'a>, record: &Record) -> JsonWriter<'a> {
    let tokens = &record.tokens;
    let out = count(
        out,
        const { &key("prompt_tokens") },
        &PROMPT_BY,
        tokens.prompt,
    );
    let out = count(
        out,
        const { &key("completion_tokens") },
        &COMPLETION_BY,
        tokens.completion,
    );
    let out = out
        .number(const { &key("cached_tokens") }, tokens.cached)
        .number(const { &key("reasoning_tokens") }, tokens.reasoning)
        .number(
            const { &key("cache_write_5m_tokens") },
            tokens.cache_write_5m,
        )
        .number(
            const { &key("cache_write_1h_tokens") },
            tokens.cache_write_1h,
        )
        .number(const { &key("audio_prompt_tokens") }, tokens.audio_prompt)
        .number(
            const { &key("audio_completion_tokens") },
            tokens.audio_completion,
        );
    let out = match tokens.units {
        0 => out,
        units => self::units(out, record, units),
    };
    match (tokens.invalid, tokens.doubtful) {
        (false, false) => out,
        (true, _) => out.fixed(b",\"usage_invalid\":true"),
        (false, true) => out.fixed(b",\"usage_doubtful\":true"),
    }
}

/// What it is billed by beside tokens.
#[cold]
fn units<'a>(out: JsonWriter<'a>, record: &Record, units: u32) -> JsonWriter<'a> {
    let of_images = [Operation::Images, Operation::ImageEdits].map(Some);
    let key = match of_images.contains(&record.operation) {
        true => const { &key("images") },
        false => const { &key("search_units") },
    };
    out.number(key, Some(units.into()))
}

/// Who is behind it, as far as that is kept.
#[inline(never)]
fn who<'a>(mut out: JsonWriter<'a>, record: &Record, caller: &Caller) -> JsonWriter<'a> {
    if let Some(id) = caller.key.as_deref().and_then(kept) {
        out = out.text(const { &opening("key") }, Some(&id));
    }
    if let Some(user) = record.user() {
        out = out.text(const { &opening("user") }, Some(&user));
        if caller.is_user_said {
            out = out.fixed(b",\"user_said\":true");
        }
    }
    if let Some(tags) = tags(&caller.tags) {
        out = out.piece(const { &key("tags") }).bytes(tags.as_bytes());
    }
    out.text(const { &opening("identity") }, Some(caller.by.as_str()))
}

/// Why an estimate is charged.
#[cold]
fn estimate<'a>(out: JsonWriter<'a>, record: &Record) -> JsonWriter<'a> {
    let reason = Some(record.estimate_reason).filter(|reason| !reason.is_empty());
    let of = &record.unconfirmed;
    let attempts = (of.attempts > 0).then_some(u64::from(of.attempts));
    out.text(const { &opening("estimate_reason") }, reason)
        .number(const { &key("unconfirmed_attempts") }, attempts)
        .number(
            const { &key("unconfirmed_tokens") },
            attempts.map(|_| of.tokens()),
        )
}

/// What few exchanges have to say.
#[cold]
fn seldom<'a>(mut out: JsonWriter<'a>, extra: &Extra) -> JsonWriter<'a> {
    if !extra.dropped.is_empty() {
        let dropped = extra.dropped.join(",");
        out = out.text(const { &opening("dropped") }, Some(&dropped));
    }
    if let Some(chosen) = &extra.chosen {
        out = out.text(const { &opening("chosen_by") }, Some(chosen.why.as_str()));
        if chosen.prompt > 0 {
            out = out
                .number(const { &key("prefix_bytes") }, Some(chosen.seen))
                .number(const { &key("prompt_bytes") }, Some(chosen.prompt));
        }
    }
    let method = Some(extra.method).filter(|method| !method.is_empty());
    out = out.text(const { &opening("mcp_method") }, method);
    match extra.named.as_deref().and_then(kept) {
        Some(named) => out.text(const { &opening("mcp_name") }, Some(&named)),
        None => out,
    }
}

/// A count and its witness.
fn count<'a>(out: JsonWriter<'a>, key: &Piece, by: &[Piece; 3], of: Count) -> JsonWriter<'a> {
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
