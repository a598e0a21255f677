//! Reads a request or response head.
//!
//! Most heads go the short way (`plain`, `fields`), all others the long one (`long`): an answer depends on the
//! bytes of the head, never on how they were cut.
//! Not here: what the fields say about the body (`framing`).

use super::fields::fields;
use super::long::{long_request, long_response};
use super::plain::{self, Target};
use crate::head::{HeadFault, HeadFaultKind, RequestHead, ResponseHead, is_token};

/// The most fields that `Limits::fields` can allow.
pub const MAX_FIELDS: usize = 256;

/// The most empty lines before a request line that are skipped.
pub const MAX_EMPTY_LINES: usize = 8;

/// Bounds on a head.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes, from the start line to the empty line, both included.
    pub head_bytes: usize,
    /// Fields; at most `MAX_FIELDS` count.
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 65_536,
            fields: 100,
        }
    }
}

/// How far a head has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The head is not whole yet: read more and parse again from its first byte.
    Partial,
    /// The head is whole.
    Done {
        /// Bytes of the input that the head took.
        consumed: usize,
    },
}

/// Reads a request head from the start of `input`. Up to [`MAX_EMPTY_LINES`] before the request line are skipped.
///
/// `out` is cleared first; after a fault it holds what was understood before the fault.
///
/// # Errors
/// The first thing wrong with the head. Limits are enforced before the head is whole, too.
pub fn parse_request(
    input: &[u8],
    limits: &Limits,
    out: &mut RequestHead,
) -> Result<Step, HeadFault> {
    out.clear();
    let skipped = empty_lines(input);
    let input = input.get(skipped..).unwrap_or_default();
    match input.first() {
        None => return Ok(Step::Partial),
        Some(b'\r') if input.len() == 1 && skipped < 2 * MAX_EMPTY_LINES => {
            return Ok(Step::Partial);
        }
        Some(&first) if !is_token(first) => return Err(HeadFaultKind::StartLine.into()),
        Some(_) => {}
    }
    let within = input.get(..limits.head_bytes).unwrap_or(input);
    if let Some(step) = plain_request(within, limits, out) {
        return step.map(|consumed| Step::Done {
            consumed: consumed + skipped,
        });
    }
    long_request(input, limits, out).map(|step| match step {
        Step::Done { consumed } => Step::Done {
            consumed: consumed + skipped,
        },
        Step::Partial => Step::Partial,
    })
}

/// Bytes of the empty lines at the start of `input` that are skipped.
#[must_use]
pub fn empty_lines(input: &[u8]) -> usize {
    let mut at = 0;
    while at < 2 * MAX_EMPTY_LINES
        && input
            .get(at..)
            .is_some_and(|rest| rest.starts_with(b"\r\n"))
    {
        at += 2;
    }
    at
}

/// The short way: how many bytes the head took. `None` where the long way must look.
fn plain_request(
    input: &[u8],
    limits: &Limits,
    out: &mut RequestHead,
) -> Option<Result<usize, HeadFault>> {
    let line = plain::request_line(input)?;
    let most = limits.fields.min(MAX_FIELDS);
    let consumed = fields(input, line.end, most, &mut out.fields)?;
    out.method = line.method;
    let checked = match line.target {
        Target::Path(path) => out.set_good_path(path),
        Target::Usual(target) => out.set_target(target),
    };
    Some(checked.and_then(|()| out.check_host()).map(|()| consumed))
}

/// Reads a response head from the start of `input`.
///
/// `out` is cleared first; after a fault it holds what was understood before the fault.
///
/// # Errors
/// The first thing wrong with the head. Limits are enforced before the head is whole, too.
pub fn parse_response(
    input: &[u8],
    limits: &Limits,
    out: &mut ResponseHead,
) -> Result<Step, HeadFault> {
    out.clear();
    match input.first() {
        None => return Ok(Step::Partial),
        Some(b'H') => {}
        Some(_) => return Err(HeadFaultKind::StartLine.into()),
    }
    let within = input.get(..limits.head_bytes).unwrap_or(input);
    if let Some((status, line_end)) = plain::status_line(within)
        && let most = limits.fields.min(MAX_FIELDS)
        && let Some(consumed) = fields(within, line_end, most, &mut out.fields)
    {
        out.status = status;
        return check_status(status).map(|()| Step::Done { consumed });
    }
    long_response(input, limits, out)
}

pub(super) fn check_status(status: u16) -> Result<(), HeadFault> {
    match status {
        101 => Err(HeadFaultKind::SwitchedProtocols.into()),
        100..=599 => Ok(()),
        _ => Err(HeadFaultKind::Status.into()),
    }
}
