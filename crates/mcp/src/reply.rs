//! Answers of the gate's own, and messages with a part of them replaced.
//!
//! Not here: which status of HTTP goes with them (`policy::refusal`).

use std::ops::Range;

use policy::refusal::escape;

/// What is not there: a tool, a prompt.
pub const INVALID_PARAMS: i32 = -32602;
/// A method that nobody has.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// A server's fault, or the gate's.
pub const INTERNAL: i32 = -32603;
/// What the gate refuses. Of the codes that are left to implementations.
pub const REFUSED: i32 = -32000;
/// A resource that is not there.
pub const RESOURCE_NOT_FOUND: i32 = -32002;

/// An error, for a person and with a stable `code` in its data. `id` is the request's as written, or `null`.
#[must_use]
pub fn error(id: &[u8], number: i32, message: &str, code: &str) -> Vec<u8> {
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
        out.extend_from_slice(b"\"}");
    }
    out.extend_from_slice(b"}}");
    out
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

/// The text with this part of it replaced.
#[must_use]
pub fn spliced(text: &[u8], at: Range<usize>, with: &[u8]) -> Vec<u8> {
    let before = text.get(..at.start).unwrap_or_default();
    let after = text.get(at.end..).unwrap_or_default();
    [before, with, after].concat()
}
