//! A settled row as columns: one list of names, and the values in its order.
//!
//! Invariant: what is stored is what is hashed, because both are these values in this order. Text is
//! bounded; a number that a column cannot hold is the largest that it can.
//! Not here: the tables (`schema`), the hash (`chain`).

pub use rusqlite::types::Value;
use rusqlite::types::ValueRef;

use crate::row::{Settlement, Witnesses};

/// What a column holds; each may be NULL where the row says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 64 bits.
    Number,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
}

/// Characters that a text column keeps.
const TEXT_MAX: usize = 512;

use Kind::{Bytes, Number, Text};

/// Columns of version 1 of the canonical encoding: the first ones of [`COLUMNS`]. A row whose other
/// columns are all NULL is encoded in version 1, so that rows of older files keep their hashes.
pub(crate) const WIDTH_V1: usize = 44;

/// All columns of a row, in the order of the canonical encoding. Version 2 of the encoding is this
/// list: a change is a new version, which adds columns at the end.
pub const COLUMNS: [(&str, Kind); 53] = [
    ("id", Bytes),
    ("state", Text),
    ("node", Text),
    ("request_id", Text),
    ("trace_id", Text),
    ("started_unix_ms", Number),
    ("ended_unix_ms", Number),
    ("workload", Text),
    ("budget_group", Text),
    ("route", Text),
    ("backend", Text),
    ("endpoint", Text),
    ("operation", Text),
    ("model_asked", Text),
    ("model_sent", Text),
    ("streamed", Number),
    ("status", Number),
    ("outcome", Text),
    ("code", Text),
    ("attempts", Number),
    ("prompt_tokens", Number),
    ("prompt_source", Text),
    ("prompt_reported", Number),
    ("prompt_counted", Number),
    ("completion_tokens", Number),
    ("completion_source", Text),
    ("completion_reported", Number),
    ("completion_counted", Number),
    ("cached_tokens", Number),
    ("reasoning_tokens", Number),
    ("audio_tokens", Number),
    ("usage_invalid", Number),
    ("reserved_tokens", Number),
    ("at_least_tokens", Number),
    ("at_most_tokens", Number),
    ("price_id", Text),
    ("currency", Text),
    ("cost_pico", Number),
    ("bytes_in", Number),
    ("bytes_out", Number),
    ("duration_us", Number),
    ("first_byte_us", Number),
    ("upstream_us", Number),
    ("own_us", Number),
    // Version 2.
    ("cache_write_5m_tokens", Number),
    ("cache_write_1h_tokens", Number),
    ("audio_prompt_tokens", Number),
    ("audio_completion_tokens", Number),
    ("usage_doubtful", Number),
    ("unconfirmed_attempts", Number),
    ("unconfirmed_tokens", Number),
    ("estimate_reason", Text),
    ("upstream_request_id", Text),
];

/// Number of columns.
pub(crate) const WIDTH: usize = COLUMNS.len();

/// Where a column stands in [`COLUMNS`].
pub(crate) const fn at(name: &str) -> usize {
    let mut i = 0;
    while i < WIDTH {
        let (is, wanted) = (COLUMNS[i].0.as_bytes(), name.as_bytes());
        let mut same = is.len() == wanted.len();
        let mut j = 0;
        while same && j < is.len() {
            same = is[j] == wanted[j];
            j += 1;
        }
        if same {
            return i;
        }
        i += 1;
    }
    panic!("there is no such column")
}

/// The values of a row that is written by `node`.
pub(crate) fn values<'a>(row: &'a Settlement, node: &'a str) -> [ValueRef<'a>; WIDTH] {
    let cost = row.price.as_ref().and_then(|price| price.cost);
    // One exchange that costs more than nine million is a fault of the price, not a bill: it is
    // kept as unknown and marked.
    let pico = cost.and_then(|cost| i64::try_from(cost.0).ok());
    let invalid = row.usage_invalid || (cost.is_some() && pico.is_none());
    let [p0, p1, p2, p3] = count(&row.prompt);
    let [c0, c1, c2, c3] = count(&row.completion);
    [
        ValueRef::Blob(&row.id.0),
        text(row.state.as_str()),
        text(node),
        text(&row.request_id),
        some_text(row.trace_id.as_deref()),
        number(row.started_unix_ms),
        number(row.ended_unix_ms),
        some_text(row.workload.as_deref()),
        some_text(row.budget_group.as_deref()),
        some_text(row.route.as_deref()),
        some_text(row.backend.as_deref()),
        some_text(row.endpoint.as_deref()),
        some_text(row.operation.as_deref()),
        some_text(row.model_asked.as_deref()),
        some_text(row.model_sent.as_deref()),
        ValueRef::Integer(row.streamed.into()),
        ValueRef::Integer(row.status.into()),
        text(row.outcome.as_str()),
        text(&row.code),
        ValueRef::Integer(row.attempts.into()),
        p0,
        p1,
        p2,
        p3,
        c0,
        c1,
        c2,
        c3,
        some_number(row.cached),
        some_number(row.reasoning),
        some_number(audio(row)),
        ValueRef::Integer(invalid.into()),
        some_number(row.reserved),
        some_number(row.at_least),
        some_number(row.at_most),
        some_text(row.price.as_ref().map(|price| &*price.id)),
        some_text(row.price.as_ref().map(|price| &*price.currency)),
        pico.map_or(ValueRef::Null, ValueRef::Integer),
        number(row.bytes_in),
        number(row.bytes_out),
        number(row.duration_us),
        some_number(row.first_byte_us),
        some_number(row.upstream_us),
        some_number(row.own_us),
        some_number(row.cache_write_5m),
        some_number(row.cache_write_1h),
        some_number(row.audio_prompt),
        some_number(row.audio_completion),
        some_number(row.usage_doubtful.then_some(1)),
        some_number((row.unconfirmed_attempts > 0).then_some(row.unconfirmed_attempts.into())),
        some_number((row.unconfirmed_attempts > 0).then_some(row.unconfirmed_tokens)),
        some_text((!row.estimate_reason.is_empty()).then_some(&row.estimate_reason)),
        some_text(row.upstream_request_id.as_deref()),
    ]
}

/// Audio tokens of both directions.
fn audio(row: &Settlement) -> Option<u64> {
    match (row.audio_prompt, row.audio_completion) {
        (None, None) => None,
        (prompt, completion) => Some(prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0))),
    }
}

fn count(count: &Witnesses) -> [ValueRef<'_>; 4] {
    [
        some_number(count.billed.tokens()),
        text(count.billed.source()),
        some_number(count.reported),
        some_number(count.counted),
    ]
}

/// A number as a column holds it.
pub(crate) fn number<'a>(n: u64) -> ValueRef<'a> {
    ValueRef::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

pub(crate) fn some_number<'a>(n: Option<u64>) -> ValueRef<'a> {
    n.map_or(ValueRef::Null, number)
}

/// Text as a column holds it.
pub(crate) fn text(text: &str) -> ValueRef<'_> {
    // Characters are counted only where there can be too many.
    let end = match text.len() {
        ..=TEXT_MAX => None,
        _ => text.char_indices().nth(TEXT_MAX),
    };
    let end = end.map_or(text.len(), |(at, _)| at);
    ValueRef::Text(text.get(..end).unwrap_or_default().as_bytes())
}

pub(crate) fn some_text(some: Option<&str>) -> ValueRef<'_> {
    some.map_or(ValueRef::Null, text)
}
