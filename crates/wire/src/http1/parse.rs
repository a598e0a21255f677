//! Reads a request or response head.
//!
//! Most heads take the fast path (`fast_path`, `fields`), all others the slow one (`slow_path`): an answer depends on
//! the bytes of the head, never on how they were cut.
//! Not here: what the fields say about the body (`framing`).

use super::fast_path::{self, Target};
use super::fields::fields;
use super::limits::{Limits, MAX_EMPTY_LINES, MAX_FIELDS, Step};
use super::slow_path::{check_status, slow_request, slow_response};
use crate::head::{HeadFault, HeadFaultKind, RequestHead, ResponseHead, is_token};

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
    if let Some(step) = fast_request(within, limits, out) {
        return step.map(|consumed| Step::Done {
            consumed: consumed + skipped,
        });
    }
    slow_request(input, limits, out).map(|step| match step {
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

/// The fast path: how many bytes the head took. `None` where the slow path must look.
fn fast_request(
    input: &[u8],
    limits: &Limits,
    out: &mut RequestHead,
) -> Option<Result<usize, HeadFault>> {
    let line = fast_path::request_line(input)?;
    let most = limits.fields.min(MAX_FIELDS);
    let consumed = fields(input, line.end, most, &mut out.fields)?;
    out.method = line.method;
    let checked = match line.target {
        Target::Path(path) => out.set_good_path(path),
        Target::Usual(target) => out.set_target(target),
    };
    Some(checked.and_then(|()| out.check_host()).map(|()| consumed))
}

/// From here on another protocol is spoken.
const SWITCHED: u16 = 101;

/// Reads a response head from the start of `input`.
///
/// `out` is cleared first; after a fault it holds what was understood before the fault.
///
/// # Errors
/// The first thing wrong with the head, a switch of protocols included. Limits are enforced before the head is whole, too.
pub fn parse_response(
    input: &[u8],
    limits: &Limits,
    out: &mut ResponseHead,
) -> Result<Step, HeadFault> {
    let step = read_response(input, limits, out)?;
    match out.status {
        SWITCHED => Err(HeadFaultKind::SwitchedProtocols.into()),
        _ => Ok(step),
    }
}

/// The same for a request that asked for another protocol, which a 101 takes up.
///
/// # Errors
/// As [`parse_response`], but for the switch.
pub fn parse_response_or_switch(
    input: &[u8],
    limits: &Limits,
    out: &mut ResponseHead,
) -> Result<Step, HeadFault> {
    read_response(input, limits, out)
}

/// In line: two calls for each answer cost more than the code twice.
#[inline(always)]
fn read_response(input: &[u8], limits: &Limits, out: &mut ResponseHead) -> Result<Step, HeadFault> {
    out.clear();
    match input.first() {
        None => return Ok(Step::Partial),
        Some(b'H') => {}
        Some(_) => return Err(HeadFaultKind::StartLine.into()),
    }
    let within = input.get(..limits.head_bytes).unwrap_or(input);
    if let Some((status, line_end)) = fast_path::status_line(within)
        && let most = limits.fields.min(MAX_FIELDS)
        && let Some(consumed) = fields(within, line_end, most, &mut out.fields)
    {
        out.status = status;
        return check_status(status).map(|()| Step::Done { consumed });
    }
    slow_response(input, limits, out)
}
