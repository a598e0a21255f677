//! The fast path through a start line that is whole and plainly good.
//!
//! Invariant: what is accepted here is accepted by `parse`, with the same parts. `None` says nothing: the
//! head may be cut, bad, or just unusual.
//! Not here: the fields (`fields`), what is wrong with a head (`parse`).

use super::path::plain_path;
use crate::head::Method;

/// The parts of a request line.
pub(super) struct RequestLine<'a> {
    pub(super) method: Method,
    pub(super) target: Target<'a>,
    /// Where the fields start.
    pub(super) end: usize,
}

/// A request target, ASCII in any case.
pub(super) enum Target<'a> {
    /// A good path and nothing else.
    Path(&'a str),
    /// Still to be checked.
    Usual(&'a str),
}

/// Reads a line of a usual method, a target without unusual bytes, and `HTTP/1.1`.
pub(super) fn request_line(input: &[u8]) -> Option<RequestLine<'_>> {
    let (method, target_start) = method(input)?;
    let rest = input.get(target_start..)?;
    let (target, target_len) = match plain_path(rest) {
        Some(path) => (Target::Path(path), path.len()),
        None => {
            let target = rest.get(..run_of(TARGET, rest, 0))?;
            (Target::Usual(str::from_utf8(target).ok()?), target.len())
        }
    };
    let after = rest.get(target_len..)?;
    let good = target_len > 0 && after.first_chunk::<11>() == Some(b" HTTP/1.1\r\n");
    good.then_some(RequestLine {
        method,
        target,
        end: target_start + target_len + 11,
    })
}

/// A usual method, and where the target starts.
fn method(input: &[u8]) -> Option<(Method, usize)> {
    if input.first_chunk::<5>() == Some(b"POST ") {
        return Some((Method::Post, 5));
    }
    let end = run_of(METHOD, input, 0);
    let method = Method::of(input.get(..end)?);
    let good = method != Method::Other && input.get(end) == Some(&b' ');
    good.then_some((method, end + 1))
}

/// Reads `HTTP/1.1`, a status and a reason of plain text. Gives the status and where the fields start.
pub(super) fn status_line(input: &[u8]) -> Option<(u16, usize)> {
    let (version, rest) = input.split_first_chunk::<9>()?;
    let [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] = rest else {
        return None;
    };
    let end = run_of(REASON, input, 13);
    let good = version == b"HTTP/1.1 " && input.get(end..end + 2) == Some(b"\r\n");
    let status = [a, b, c]
        .iter()
        .fold(0, |sum, &digit| sum * 10 + u16::from(digit - b'0'));
    good.then_some((status, end + 2))
}

const TARGET: u8 = 1;
const REASON: u8 = 2;
const METHOD: u8 = 4;

/// Where the first byte is that is not of this class, at or after `from`.
#[inline]
fn run_of(class: u8, input: &[u8], from: usize) -> usize {
    static CLASSES: [u8; 256] = classes();
    let mut at = from;
    while let Some(&byte) = input.get(at)
        && CLASSES
            .get(usize::from(byte))
            .is_some_and(|of| of & class != 0)
    {
        at += 1;
    }
    at
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated when compiling"
)]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < classes.len() {
        let byte = at as u8;
        if byte.is_ascii_uppercase() {
            classes[at] |= METHOD;
        }
        if byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'/' | b'-' | b'.' | b'_' | b'~' | b'?' | b'=' | b'&' | b'%' | b':' | b'*' | b';'
            )
        {
            classes[at] |= TARGET;
        }
        if matches!(byte, b'\t' | b' '..=b'~') {
            classes[at] |= REASON;
        }
        at += 1;
    }
    classes
}
