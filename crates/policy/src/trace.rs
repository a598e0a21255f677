//! Which trace an exchange belongs to, and whether its spans are kept: W3C Trace Context.
//!
//! Invariant: a client's trace is continued or, when its header is malformed, not touched at all: a
//! new one begins. A caller's own decision to sample or not is kept; without one, the trace id
//! decides, so that every gate decides alike.
//! Not here: what a span says and where it goes (`telemetry`), headers on the wire (`proxy`).

use std::time::Duration;

use wire::head::Known;

use crate::failure::Failure;
use crate::id::EndpointId;

/// Length of a `traceparent` of version 00.
pub const TRACEPARENT_BYTES: usize = 55;
/// Where the span's id begins in it.
const SPAN_AT: usize = 36;

/// What share of the traces that begin here is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Traces whose low 63 bits are below this are kept; 2^63 keeps all.
    below: u64,
}

impl Sampling {
    /// Keeps `millionths` of a million; more than a million is all.
    #[must_use]
    pub fn millionths(millionths: u32) -> Self {
        let share = u128::from(millionths.min(1_000_000));
        let below = (share << 63) / 1_000_000;
        Self {
            below: u64::try_from(below).unwrap_or(1 << 63),
        }
    }

    /// By the id alone, as OpenTelemetry's `TraceIdRatioBased` sampler decides.
    fn keeps(self, id: u128) -> bool {
        let low = u64::try_from(id & u128::from(u64::MAX)).unwrap_or(0);
        low >> 1 < self.below
    }
}

/// One exchange's place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// The trace; never 0.
    pub id: u128,
    /// The exchange's own span; never 0.
    pub span: u64,
    /// The caller's span, when the caller has one.
    pub parent: Option<u64>,
    /// Whether spans of it are kept.
    pub is_sampled: bool,
}

impl Trace {
    /// The trace of an exchange whose request carries these `traceparent` fields: the caller's if there
    /// is exactly one and it is well-formed, else a new one. `fresh` gives random bits.
    pub fn begin<'a>(
        mut traceparents: impl Iterator<Item = &'a [u8]>,
        sampling: Sampling,
        mut fresh: impl FnMut() -> u64,
    ) -> Self {
        let first = traceparents.next();
        let only = first.filter(|_| traceparents.next().is_none());
        // An id of nothing but zeros is invalid.
        let span = fresh() | 1;
        match only.and_then(parse) {
            Some(parent) => Self {
                id: parent.trace,
                span,
                parent: Some(parent.span),
                is_sampled: parent.is_sampled,
            },
            None => {
                let id = u128::from(fresh()) << 64 | u128::from(fresh() | 1);
                Self {
                    id,
                    span,
                    parent: None,
                    is_sampled: sampling.keeps(id),
                }
            }
        }
    }

    /// The trace's id as it is written: 32 lower-case hex digits.
    #[must_use]
    pub fn id_digits(&self) -> [u8; 32] {
        let mut out = [b'0'; 32];
        hex(&mut out, 0, &self.id.to_be_bytes());
        out
    }

    /// The same as text.
    #[must_use]
    pub fn id_text(&self) -> Box<str> {
        self.id_digits()
            .iter()
            .map(|digit| char::from(*digit))
            .collect()
    }

    /// The `traceparent` that tells an upstream of `span`.
    #[must_use]
    pub fn traceparent(&self, span: u64) -> [u8; TRACEPARENT_BYTES] {
        let mut out = *b"00-00000000000000000000000000000000-0000000000000000-00";
        hex(&mut out, 3, &self.id.to_be_bytes());
        hex(&mut out, SPAN_AT, &span.to_be_bytes());
        if self.is_sampled
            && let Some(last) = out.last_mut()
        {
            *last = b'1';
        }
        out
    }
}

/// Whether a client's field goes upstream from an exchange that has a place in a trace: its
/// `traceparent` never, because the gate writes one, and `tracestate` only with the trace that it
/// is about.
#[must_use]
pub fn forwards(trace: &Trace, field: Known) -> bool {
    match field {
        Known::Traceparent => false,
        Known::Tracestate => trace.parent.is_some(),
        _ => true,
    }
}

/// One try's span of a sampled exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptSpan {
    /// The exchange's place in its trace; its span is this one's parent.
    pub trace: Trace,
    /// This span's id.
    pub id: u64,
    /// Where the attempt went.
    pub endpoint: EndpointId,
    /// Which attempt of its exchange it was, from 1.
    pub number: u32,
    /// When the exchange began, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// From the exchange's beginning to the attempt's.
    pub after: Duration,
    /// From the attempt's beginning to its end: for the one whose answer was used, the end of the
    /// exchange.
    pub took: Duration,
    /// Upstream status, or why there was none; `None` when the client left before either.
    pub result: Option<Result<u16, Failure>>,
}

impl AttemptSpan {
    /// The attempt ended so long after its exchange began.
    pub(crate) fn end(&mut self, after: Duration) {
        self.took = after.saturating_sub(self.after);
    }
}

/// A caller's place in a trace.
struct Parent {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

/// Reads version 00 exactly, and of later versions the part that they share with it.
fn parse(value: &[u8]) -> Option<Parent> {
    let (known, rest) = value.split_at_checked(TRACEPARENT_BYTES)?;
    let field = |from: usize, to: usize| known.get(from..to).and_then(number);
    let dashes = [2, SPAN_AT - 1, 52];
    if dashes.iter().any(|at| known.get(*at) != Some(&b'-')) {
        return None;
    }
    let is_whole = match field(0, 2)? {
        0 => rest.is_empty(),
        255 => false,
        _ => rest.is_empty() || rest.first() == Some(&b'-'),
    };
    let trace = field(3, 35).filter(|id| *id != 0)?;
    let span = field(SPAN_AT, 52).filter(|id| *id != 0)?;
    let flags = field(53, 55)?;
    is_whole.then_some(Parent {
        trace,
        span: u64::try_from(span).ok()?,
        is_sampled: flags & 1 == 1,
    })
}

/// Lower-case hex digits as a number; upper case is not allowed.
fn number(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// Writes bytes at `at` as hex digits, two for each.
fn hex(out: &mut [u8], at: usize, bytes: &[u8]) {
    let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'a' - 10 };
    let places = out.get_mut(at..).unwrap_or_default();
    let (pairs, _) = places.as_chunks_mut();
    for (pair, byte) in pairs.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
}

/// Puts `span` into a `traceparent` that stands somewhere in `out`, at `at`.
pub fn put_span(out: &mut [u8], at: usize, span: u64) {
    hex(out, at + SPAN_AT, &span.to_be_bytes());
}

#[cfg(test)]
mod tests;
