//! Answers of the gate's own, and the headers it adds to others'.
//!
//! Invariant: every error is JSON in OpenAI's shape, but for what a person sees of a login, and carries `x-request-id`.
//! Not here: which status and text (`policy::refusal`).

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use policy::clock::Mono;
use policy::exchange::{Exchange, Told};
use policy::limit::{Kind, Level};
use policy::login::LoginReply;
use policy::operation::Operation;
use policy::refusal::{ErrorFormat, LocalReply};
use policy::revision::Revision;
use wire::head::{Method, RequestHead};

use crate::buffer::decimal;
use crate::client::{BodyLength, Downstream};
use crate::cors::Cors;
use crate::deadline::Deadline;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;
use listing::Listing;
use listing::error_format;

/// How long a browser may remember the answer to a preflight, seconds.
const REMEMBERED: &[u8] = b"600";

/// A short text in place; what does not fit is left out.
#[derive(Default)]
struct Text {
    bytes: [u8; 32],
    length: usize,
}

impl Text {
    fn push(&mut self, part: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + part.len()) {
            place.copy_from_slice(part);
            self.length += part.len();
        }
    }

    fn decimal(&mut self, n: u64) {
        self.push(itoa::Buffer::new().format(n).as_bytes());
    }

    fn clear(&mut self) {
        self.length = 0;
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The state of a caller's limits, for `x-ratelimit-*`: of each kind the one with least left.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RateLimitStatus<'v> {
    requests: Option<(Amount<'v>, Level)>,
    tokens: Option<(Amount<'v>, Level)>,
}

/// What a limit has for each window.
#[derive(Debug, Clone, Copy)]
enum Amount<'v> {
    /// Of one that is configured, as headers say it.
    Text(&'v str),
    /// Of one that a caller brought.
    Number(u64),
}

impl<'v> RateLimitStatus<'v> {
    /// Reads the buckets that an exchange takes from.
    #[inline]
    pub(crate) fn of(exchange: &Exchange, view: &'v WorkerSnapshot, now: Mono) -> Self {
        let mut rate_limits = Self::default();
        let Revision { snapshot, levels } = &*view.revision;
        exchange.limits(snapshot, levels, now, |limit| {
            let slot = match limit.kind {
                Kind::Requests => &mut rate_limits.requests,
                Kind::Tokens => &mut rate_limits.tokens,
            };
            if slot.is_none_or(|(_, least)| limit.level.remaining < least.remaining) {
                let amount = limit.id.and_then(|id| view.amount(id));
                let amount = amount.map_or(Amount::Number(limit.amount), Amount::Text);
                *slot = Some((amount, limit.level));
            }
        });
        rate_limits
    }

    /// Adds OpenAI's six headers, as far as there are limits.
    #[inline]
    pub(crate) fn write(&self, to: &mut impl Downstream) {
        if self.requests.is_some() || self.tokens.is_some() {
            self.write_rows(to);
        }
    }

    #[inline(never)]
    fn write_rows(&self, to: &mut impl Downstream) {
        let (mut digits, mut text) = (itoa::Buffer::new(), Text::default());
        let rows = [
            (
                self.requests,
                [
                    &b"x-ratelimit-limit-requests"[..],
                    b"x-ratelimit-remaining-requests",
                    b"x-ratelimit-reset-requests",
                ],
            ),
            (
                self.tokens,
                [
                    b"x-ratelimit-limit-tokens",
                    b"x-ratelimit-remaining-tokens",
                    b"x-ratelimit-reset-tokens",
                ],
            ),
        ];
        for (state, [limit, remaining, reset]) in rows {
            let Some((amount, level)) = state else {
                continue;
            };
            match amount {
                Amount::Text(text) => to.field(limit, text.as_bytes()),
                Amount::Number(number) => to.field(limit, digits.format(number).as_bytes()),
            }
            to.field(remaining, digits.format(level.remaining).as_bytes());
            text.clear();
            go_duration(level.reset, &mut text);
            to.field(reset, text.as_slice());
        }
    }
}

/// A duration as OpenAI writes it: `20ms`, `1.5s`, `6m0s`, `1h0m0s`.
fn go_duration(d: Duration, out: &mut Text) {
    let ms = whole_ms(d);
    if ms < 1000 {
        out.decimal(ms);
        return out.push(b"ms");
    }
    let (h, m, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    if h > 0 {
        out.decimal(h);
        out.push(b"h");
    }
    if h > 0 || m > 0 {
        out.decimal(m);
        out.push(b"m");
    }
    out.decimal(s);
    if ms > 0 {
        let digits = [ms / 100, ms / 10 % 10, ms % 10].map(|digit| b"0123456789"[digit as usize]);
        let zeros = digits
            .iter()
            .rev()
            .take_while(|digit| **digit == b'0')
            .count();
        out.push(b".");
        out.push(&digits[..digits.len() - zeros]);
    }
    out.push(b"s");
}

/// Milliseconds, rounded up; in 64 bits, as a division in 128 is a call.
fn whole_ms(d: Duration) -> u64 {
    let parts = u64::from(d.subsec_nanos().div_ceil(1_000_000));
    d.as_secs().saturating_mul(1000).saturating_add(parts)
}

/// How a reply of the gate's own is waited for.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    pub(crate) worker: &'a Worker,
    /// A client that takes nothing for so long is gone.
    pub(crate) stall: Duration,
}

/// Sends a local reply as the whole response.
///
/// # Errors
/// The client left, or took nothing in time: the connection is of no use any more.
pub(crate) async fn refuse<D: Downstream>(
    to: &mut D,
    reply: &LocalReply,
    asked: &RequestHead,
    id: &str,
    rate_limits: &RateLimitStatus<'_>,
    cors: &Cors<'_>,
    patience: Patience<'_>,
) -> io::Result<u64> {
    let shape = error_format(asked);
    let body = reply.body(shape);
    to.begin(reply.status, BodyLength::Length(body.len() as u64));
    to.date();
    // Some clients read a body wherever one is named.
    if asked.method != Method::Head {
        to.field(b"content-type", b"application/json");
    }
    to.field(b"x-request-id", id.as_bytes());
    if shape == ErrorFormat::Anthropic {
        to.field(b"request-id", id.as_bytes());
    }
    rate_limits.write(to);
    cors.write(to);
    hints(to, reply);
    if let Some(should) = reply.should_retry {
        to.field(b"x-should-retry", if should { b"true" } else { b"false" });
    }
    to.begun();
    whole(to, &body, patience).await
}

/// Adds what a refusal says in fields: when to come again, how to prove who calls, what is allowed.
pub(crate) fn hints(to: &mut impl Downstream, reply: &LocalReply) {
    if let Some(wait) = reply.retry_after {
        let ms = whole_ms(wait);
        let mut text = Vec::new();
        decimal(ms.div_ceil(1000).max(1), &mut text);
        to.field(b"retry-after", &text);
        text.clear();
        decimal(ms.max(1), &mut text);
        to.field(b"retry-after-ms", &text);
    }
    if let Some(challenge) = reply.challenge {
        to.field(b"www-authenticate", challenge.as_bytes());
    }
    if let Some(location) = &reply.location {
        to.field(b"location", location.as_bytes());
    }
    if let Some(allow) = reply.allow {
        to.field(b"allow", allow.as_bytes());
    }
}

/// Tells a browser how its login goes on.
///
/// # Errors
/// As [`refuse`].
pub(crate) async fn login<D: Downstream>(
    to: &mut D,
    reply: &LoginReply,
    id: &str,
    cors: &Cors<'_>,
    patience: Patience<'_>,
) -> io::Result<u64> {
    let body = reply.page.as_bytes();
    to.begin(reply.status.code(), BodyLength::Length(body.len() as u64));
    to.date();
    if !body.is_empty() {
        to.field(b"content-type", b"text/html; charset=utf-8");
        let shown = b"default-src 'none'; frame-ancestors 'none'";
        to.field(b"content-security-policy", shown);
    }
    to.field(b"cache-control", b"no-store");
    to.field(b"referrer-policy", b"no-referrer");
    to.field(b"x-content-type-options", b"nosniff");
    to.field(b"x-request-id", id.as_bytes());
    cors.write(to);
    if let Some(location) = &reply.location {
        to.field(b"location", location.as_bytes());
    }
    for cookie in &reply.cookies {
        to.field(b"set-cookie", cookie.expose());
    }
    to.begun();
    whole(to, body, patience).await
}

/// Answers a preflight: the page may send whatever the gate takes.
pub(crate) async fn preflight<D: Downstream>(
    to: &mut D,
    cors: &Cors<'_>,
    head: &RequestHead,
    id: &str,
    patience: Patience<'_>,
) -> io::Result<()> {
    to.begin(204, BodyLength::Nothing);
    to.date();
    cors.allow(to);
    let methods = b"GET, HEAD, POST, PUT, PATCH, DELETE";
    to.field(b"access-control-allow-methods", methods);
    // Named one by one: a `*` would not stand for `authorization`.
    for names in head.fields.by_name(b"access-control-request-headers") {
        to.field(b"access-control-allow-headers", names);
    }
    let mut asks = head
        .fields
        .by_name(b"access-control-request-private-network");
    if asks.next() == Some(b"true") {
        to.field(b"access-control-allow-private-network", b"true");
    }
    to.field(b"access-control-max-age", REMEMBERED);
    let asked = b"access-control-request-method, access-control-request-headers";
    to.field(b"vary", asked);
    to.field(b"x-request-id", id.as_bytes());
    to.begun();
    whole(to, b"", patience).await.map(drop)
}

/// Tells a browser what a page may send, by what a route says.
pub(crate) async fn told<D: Downstream>(
    to: &mut D,
    told: &Told,
    id: &str,
    patience: Patience<'_>,
) -> io::Result<()> {
    to.begin(204, BodyLength::Nothing);
    to.date();
    for (name, value) in told {
        to.field(name, value);
    }
    to.field(b"x-request-id", id.as_bytes());
    to.begun();
    whole(to, b"", patience).await.map(drop)
}

/// Answers `/v1/models` with names from the configuration, or `/v1/models/{id}` with `one` of them, as the client's API has it.
pub(crate) async fn models<D: Downstream>(
    to: &mut D,
    (names, one): (&[Arc<str>], Option<&Arc<str>>),
    head: &RequestHead,
    id: &str,
    cors: &Cors<'_>,
    patience: Patience<'_>,
) -> io::Result<u64> {
    let body = Listing::of(head).answer(names, one.map(|one| &**one));
    document(to, &body, id, cors, patience).await
}

/// Answers with a document of the gate's own.
///
/// # Errors
/// As [`refuse`].
pub(crate) async fn document<D: Downstream>(
    to: &mut D,
    document: &[u8],
    id: &str,
    cors: &Cors<'_>,
    patience: Patience<'_>,
) -> io::Result<u64> {
    to.begin(200, BodyLength::Length(document.len() as u64));
    to.date();
    to.field(b"content-type", b"application/json");
    to.field(b"x-request-id", id.as_bytes());
    cors.write(to);
    to.begun();
    whole(to, document, patience).await
}

/// Answers what a prompt comes to, as the API of the call says it.
///
/// # Errors
/// As [`refuse`].
pub(crate) async fn counted<D: Downstream>(
    to: &mut D,
    asked: Operation,
    tokens: u64,
    id: &str,
    cors: &Cors<'_>,
    patience: Patience<'_>,
) -> io::Result<u64> {
    let name = match asked {
        Operation::CountContent => "\"totalTokens\"",
        Operation::InputTokens => "\"object\":\"response.input_tokens\",\"input_tokens\"",
        _ => "\"input_tokens\"",
    };
    let body = format!("{{{name}:{tokens}}}");
    document(to, body.as_bytes(), id, cors, patience).await
}

async fn whole<D: Downstream>(to: &mut D, body: &[u8], patience: Patience<'_>) -> io::Result<u64> {
    part(to, body, true, patience).await
}

/// Bytes that are given to a client at once: it keeps a copy of what it has not sent.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Sends part of a body, piece by piece; with `end` its last.
///
/// # Errors
/// As [`refuse`].
pub(crate) async fn part<D: Downstream>(
    to: &mut D,
    body: &[u8],
    end: bool,
    patience: Patience<'_>,
) -> io::Result<u64> {
    let mut deadline = Deadline::new(&patience.worker.clock.wheel);
    let mut rest = body;
    loop {
        let (piece, after) = rest.split_at(rest.len().min(PIECE_BYTES));
        let is_last = after.is_empty();
        let mut sent = false;
        deadline.set(patience.stall);
        poll_fn(|cx| {
            if !std::mem::replace(&mut sent, true) {
                to.send(cx, &[piece], end && is_last)?;
            }
            match to.poll_flushed(cx) {
                Poll::Ready(flushed) => Poll::Ready(flushed),
                Poll::Pending => {
                    if to.progressed() {
                        deadline.set(patience.stall);
                    }
                    let gone = || Err(io::ErrorKind::TimedOut.into());
                    deadline.poll(cx).map(|()| gone())
                }
            }
        })
        .await?;
        if is_last {
            return Ok(body.len() as u64);
        }
        rest = after;
    }
}

mod listing;

#[cfg(test)]
mod tests;
