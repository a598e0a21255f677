//! Answers of the gate's own, and messages with a part of them replaced.
//!
//! Not here: which status of HTTP goes with them (`policy::refusal`).

use std::ops::Range;

use policy::refusal::escape;

use crate::envelope::members;

/// What is not there: a tool, a prompt.
pub const INVALID_PARAMS: i32 = -32602;
/// A method that nobody has.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// A server's fault, or the gate's.
pub const INTERNAL: i32 = -32603;
/// What the gate refuses. Of the codes that are left to implementations.
pub const REFUSED: i32 = -32000;
/// A resource that is not there; in modern versions that is [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// Modern: a header says something else than the body, or is missing.
pub const HEADER_MISMATCH: i32 = -32020;
/// Modern: the client cannot do what the request needs.
pub const CAPABILITY_MISSING: i32 = -32021;
/// Modern: the version is not spoken.
pub const VERSION_UNSUPPORTED: i32 = -32022;
/// Modern: what the gate refuses. Of the codes that the protocol leaves to applications.
pub const REFUSED_MODERN: i32 = -31000;

/// An error, for a person and with a stable `code` in its data. `id` is the request's as written, or `null`.
#[must_use]
pub fn error(id: &[u8], number: i32, message: &str, code: &str) -> Vec<u8> {
    error_with(id, number, message, code, b"")
}

/// The same, with further members of its data, each behind a comma.
#[must_use]
pub fn error_with(id: &[u8], number: i32, message: &str, code: &str, further: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + message.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(number.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":\"");
    escape(message, &mut out);
    out.extend_from_slice(b"\"");
    if !code.is_empty() {
        out.extend_from_slice(b",\"data\":{\"code\":\"");
        escape(code, &mut out);
        out.push(b'"');
        out.extend_from_slice(further);
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
    out
}

/// The code of an answer that is an error.
#[must_use]
pub fn code_of(answer: &[u8]) -> Option<i32> {
    let [error] = members(answer, ["error"], 0).ok()?;
    let (_, error, _) = error?;
    let [code] = members(error, ["code"], 0).ok()?;
    let (_, code, _) = code?;
    std::str::from_utf8(code).ok()?.parse().ok()
}

/// An answer with this result.
#[must_use]
pub fn result(id: &[u8], result: &[u8]) -> Vec<u8> {
    [
        b"{\"jsonrpc\":\"2.0\",\"id\":".as_slice(),
        id,
        b",\"result\":",
        result,
        b"}",
    ]
    .concat()
}

/// A string of JSON.
#[must_use]
pub fn string(text: &str) -> Vec<u8> {
    let mut out = vec![b'"'];
    escape(text, &mut out);
    out.push(b'"');
    out
}

/// An object with further members before its own; `members` are written without a comma at their end.
#[must_use]
pub fn with_members(object: &[u8], members: &[u8]) -> Vec<u8> {
    let within = object.trim_ascii_start();
    let within = within.strip_prefix(b"{").unwrap_or(within);
    let is_empty = within.trim_ascii_start().starts_with(b"}");
    let comma: &[u8] = if is_empty || members.is_empty() {
        b""
    } else {
        b","
    };
    [b"{", members, comma, within].concat()
}

/// The text with each of these parts of it replaced; none of them overlaps another.
#[must_use]
pub fn edited(text: &[u8], mut edits: Vec<(Range<usize>, Vec<u8>)>) -> Vec<u8> {
    edits.sort_by_key(|(at, _)| at.start);
    let (mut out, mut from) = (Vec::with_capacity(text.len() + 64), 0);
    for (at, with) in edits {
        out.extend_from_slice(text.get(from..at.start).unwrap_or_default());
        out.extend(with);
        from = at.end;
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    out
}

/// The text with this part of it replaced.
#[must_use]
pub fn spliced(text: &[u8], at: Range<usize>, with: &[u8]) -> Vec<u8> {
    let before = text.get(..at.start).unwrap_or_default();
    let after = text.get(at.end..).unwrap_or_default();
    [before, with, after].concat()
}
