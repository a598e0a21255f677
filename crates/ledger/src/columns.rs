//! A settled row as columns: one list of their names, with what each says of a row.
//!
//! Invariant: what is stored is what is hashed, because both are these values in this order. Text is
//! bounded; a number that a column cannot hold is the largest that it can.
//! Not here: the tables (`schema`), the hash (`chain`).

use std::time::Duration;

use policy::record::{Tokens, Unconfirmed};
pub use rusqlite::types::Value;
use rusqlite::types::ValueRef;

use crate::row::Settlement;

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
/// Columns of version 2, for rows whose columns after these are all NULL.
pub(crate) const WIDTH_V2: usize = 53;
/// Columns of version 3, likewise.
pub(crate) const WIDTH_V3: usize = 56;
/// Columns of version 4, likewise.
pub(crate) const WIDTH_V4: usize = 58;
/// Columns of version 5, likewise.
pub(crate) const WIDTH_V5: usize = 59;

/// Columns of version 6, likewise.
pub(crate) const WIDTH_V6: usize = 61;

/// What a column says of a row that is written by a node.
type Of = for<'a> fn(&'a Settlement, &'a str) -> ValueRef<'a>;

/// All there is to say of each column. Tables, statements, encodings and exports follow from this list.
const ROW: &[(&str, Kind, Of)] = &[
    ("id", Bytes, |row, _| ValueRef::Blob(&row.id.0)),
    ("state", Text, |row, _| text(row.state.as_str())),
    ("node", Text, |_, node| text(node)),
    ("request_id", Text, |row, _| text(&row.record.id)),
    ("trace_id", Text, |row, _| {
        some_text(row.named.trace_id.as_deref())
    }),
    ("started_unix_ms", Number, |row, _| {
        number(row.record.started_unix_ms)
    }),
    ("ended_unix_ms", Number, |row, _| number(row.ended_unix_ms)),
    ("workload", Text, |row, _| {
        some_text(row.named.workload.as_deref())
    }),
    ("budget_group", Text, |row, _| {
        some_text(row.named.budget_group.as_deref())
    }),
    ("route", Text, |row, _| {
        some_text(row.named.route.as_deref())
    }),
    ("backend", Text, |row, _| {
        some_text(row.named.backend.as_deref())
    }),
    ("endpoint", Text, |row, _| {
        some_text(row.endpoint.as_deref())
    }),
    ("operation", Text, |row, _| {
        some_text(row.record.operation.map(|o| o.as_str()))
    }),
    ("model_asked", Text, |row, _| {
        some_text(row.record.model_asked.as_deref())
    }),
    ("model_sent", Text, |row, _| {
        some_text(row.record.model_sent.as_deref())
    }),
    ("streamed", Number, |row, _| flag(row.record.streamed)),
    ("status", Number, |row, _| number(row.record.status.into())),
    ("outcome", Text, |row, _| text(row.record.outcome.as_str())),
    ("code", Text, |row, _| text(row.record.code)),
    ("attempts", Number, |row, _| {
        number(row.record.attempts.into())
    }),
    ("prompt_tokens", Number, |row, _| {
        some_number(row.record.tokens.prompt.tokens())
    }),
    ("prompt_source", Text, |row, _| {
        text(row.record.tokens.prompt.source())
    }),
    ("prompt_reported", Number, |row, _| {
        some_number(row.prompt.reported)
    }),
    ("prompt_counted", Number, |row, _| {
        some_number(row.prompt.counted)
    }),
    ("completion_tokens", Number, |row, _| {
        some_number(row.record.tokens.completion.tokens())
    }),
    ("completion_source", Text, |row, _| {
        text(row.record.tokens.completion.source())
    }),
    ("completion_reported", Number, |row, _| {
        some_number(row.completion.reported)
    }),
    ("completion_counted", Number, |row, _| {
        some_number(row.completion.counted)
    }),
    ("cached_tokens", Number, |row, _| {
        some_number(row.record.tokens.cached)
    }),
    ("reasoning_tokens", Number, |row, _| {
        some_number(row.record.tokens.reasoning)
    }),
    ("audio_tokens", Number, |row, _| {
        some_number(audio(&row.record.tokens))
    }),
    ("usage_invalid", Number, |row, _| {
        flag(row.record.tokens.invalid || is_too_dear(row))
    }),
    ("reserved_tokens", Number, |row, _| {
        some_number(row.reserved)
    }),
    ("at_least_tokens", Number, |row, _| {
        some_number(row.at_least)
    }),
    ("at_most_tokens", Number, |row, _| some_number(row.at_most)),
    ("price_id", Text, |row, _| {
        some_text(row.price.as_ref().map(|price| &*price.id))
    }),
    ("currency", Text, |row, _| {
        some_text(row.price.as_ref().map(|price| &*price.currency))
    }),
    ("cost_pico", Number, |row, _| {
        pico(row).map_or(ValueRef::Null, ValueRef::Integer)
    }),
    ("bytes_in", Number, |row, _| number(row.record.bytes_in)),
    ("bytes_out", Number, |row, _| number(row.record.bytes_out)),
    ("duration_us", Number, |row, _| {
        number(micros(row.record.duration))
    }),
    ("first_byte_us", Number, |row, _| {
        some_number(row.record.first_byte.map(micros))
    }),
    ("upstream_us", Number, |row, _| {
        some_number(row.record.upstream.map(micros))
    }),
    ("own_us", Number, |row, _| {
        some_number(row.record.own.map(micros))
    }),
    // Version 2.
    ("cache_write_5m_tokens", Number, |row, _| {
        some_number(row.record.tokens.cache_write_5m)
    }),
    ("cache_write_1h_tokens", Number, |row, _| {
        some_number(row.record.tokens.cache_write_1h)
    }),
    ("audio_prompt_tokens", Number, |row, _| {
        some_number(row.record.tokens.audio_prompt)
    }),
    ("audio_completion_tokens", Number, |row, _| {
        some_number(row.record.tokens.audio_completion)
    }),
    ("usage_doubtful", Number, |row, _| {
        some_number(row.record.tokens.doubtful.then_some(1))
    }),
    ("unconfirmed_attempts", Number, |row, _| {
        some_number(unconfirmed(row).map(|of| of.attempts.into()))
    }),
    ("unconfirmed_tokens", Number, |row, _| {
        some_number(unconfirmed(row).map(Unconfirmed::tokens))
    }),
    ("estimate_reason", Text, |row, _| {
        some_text(estimate_reason(row))
    }),
    ("upstream_request_id", Text, |row, _| {
        some_text(row.record.upstream_id.as_deref())
    }),
    // Version 3. Their bounds are `policy::attribution`'s.
    ("key_id", Text, |row, _| {
        some_text(row.named.who.key.as_deref())
    }),
    ("user_id", Text, |row, _| {
        some_text(row.named.who.user.as_deref())
    }),
    ("tags", Text, |row, _| {
        whole_text(row.named.who.tags.as_deref())
    }),
    // Version 4.
    ("prompt_uncounted", Text, |row, _| {
        some_text(row.prompt.uncounted)
    }),
    ("completion_uncounted", Text, |row, _| {
        some_text(row.completion.uncounted)
    }),
    // Version 5.
    ("prompt_doubt", Text, |row, _| some_text(row.prompt.doubt)),
    // Version 6.
    ("mcp_method", Text, |row, _| {
        some_text(row.named.method.as_deref())
    }),
    ("mcp_name", Text, |row, _| {
        some_text(row.named.tool.as_deref())
    }),
    // Version 7.
    ("user_issuer", Text, |row, _| {
        some_text(row.named.issuer.as_deref())
    }),
];

/// Number of columns.
pub(crate) const WIDTH: usize = ROW.len();

/// All columns of a row, in the order of the canonical encoding. Version 6 of the encoding is this
/// list: a change is a new version, which adds columns at the end.
pub const COLUMNS: [(&str, Kind); WIDTH] = {
    let mut columns = [("", Bytes); WIDTH];
    let mut i = 0;
    while i < WIDTH {
        columns[i] = (ROW[i].0, ROW[i].1);
        i += 1;
    }
    columns
};

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

/// The values of a row that is written by `node`, in the order of the columns.
pub(crate) fn values<'a>(row: &'a Settlement, node: &'a str) -> impl Iterator<Item = ValueRef<'a>> {
    ROW.iter().map(move |(_, _, of)| of(row, node))
}

/// What it cost. One exchange that costs more than nine million is a fault of the price, not a bill:
/// it is kept as unknown and marked.
fn pico(row: &Settlement) -> Option<i64> {
    i64::try_from(row.price.as_ref()?.cost?.0).ok()
}

fn is_too_dear(row: &Settlement) -> bool {
    let cost = row.price.as_ref().and_then(|price| price.cost);
    cost.is_some() && pico(row).is_none()
}

/// Audio tokens of both directions.
fn audio(tokens: &Tokens) -> Option<u64> {
    match (tokens.audio_prompt, tokens.audio_completion) {
        (None, None) => None,
        (prompt, completion) => Some(prompt.unwrap_or(0).saturating_add(completion.unwrap_or(0))),
    }
}

fn unconfirmed(row: &Settlement) -> Option<&Unconfirmed> {
    Some(&row.record.unconfirmed).filter(|of| of.attempts > 0)
}

fn estimate_reason(row: &Settlement) -> Option<&str> {
    Some(row.record.estimate_reason).filter(|reason| !reason.is_empty())
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn flag<'a>(is: bool) -> ValueRef<'a> {
    ValueRef::Integer(is.into())
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

/// Text that has a bound of its own and would be another one if it were cut.
pub(crate) fn whole_text(some: Option<&str>) -> ValueRef<'_> {
    some.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()))
}
