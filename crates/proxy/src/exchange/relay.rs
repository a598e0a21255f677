//! The response on its way: checked, measured, forwarded as it arrives.
//!
//! Invariant: body bytes pass as they came, but for the usage event that the gate asked for and the
//! client did not. No more than one read waits for a slow client. An upstream's word that our
//! credential is bad never becomes the client's 401.
//! Not here: reading usage (`wire::sse`, `wire::usage`).

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use policy::attempt::Failure;
use policy::credential;
use policy::record::{Closed, Gauge};
use policy::refusal::Refusal;
use wire::encoding::{Coding, Decoder};
use wire::head::{Known, ResponseHead};
use wire::sse::{Mode, Scanner};
use wire::usage::UnaryUsage;

use super::Stop;
use super::entry::Marks;
use super::leave;
use super::open::{Coded, Meter, Open};
use crate::deadline::Deadline;
use crate::downstream::{Downstream, Extent};
use crate::stint::Stint;
use crate::upstream::{Body, Piece, Response};
use crate::worker::Worker;

/// Decoded text of a compressed answer for which the room is kept from chunk to chunk.
const KEPT_TEXT_BYTES: usize = 64 << 10;

/// What kind of body a response has, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Json,
    Events,
    Other,
}

/// Forwards a response to its end.
pub(super) async fn relay<D: Downstream>(
    open: &mut Open,
    response: Response,
    request: Vec<Bytes>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    let Response { head, mut body } = response;
    let content = content(&head);
    let has_left = open.leaving.is_some();
    open.record.upstream_id = policy::request_id::of_upstream(&head.fields).map(Box::from);
    if !has_left && let Err(refusal) = check(open, &head, content) {
        if (200..=299).contains(&head.status) {
            open.unread();
            open.unanswered(request);
        }
        return Err(refusal.into());
    }
    let withhold = content == Content::Events
        && head.status == 200
        && head.fields.count(Known::ContentEncoding) == 0
        && open
            .admitted
            .as_ref()
            .is_some_and(|calling| calling.withhold_usage);
    open.meter = meter(open, &head, content, withhold);
    open.record.streamed = content == Content::Events;
    open.answered(request);
    if has_left {
        return Err(Stop::Left(Box::new(body)));
    }
    open.record.status = head.status;
    begin(open, &head, &body, content, withhold, client);
    open.worker.answered.set(Some(head));
    let _streaming = (content == Content::Events).then(|| Streaming::new(&open.worker));
    let marks = Marks::of(open);
    let pump = Pump {
        marks,
        worker: Rc::clone(&open.worker),
        open,
        client,
        deadline,
        withhold,
        is_first: true,
        has_waited: false,
        kept: Vec::new(),
        stint: Stint::default(),
    };
    match pump.run(&mut body).await {
        Err(Stop::Gone) if leave::reads_on(open) => Err(Stop::Left(Box::new(body))),
        ended => ended,
    }
}

/// The copying of one response body.
struct Pump<'a, D> {
    open: &'a mut Open,
    worker: Rc<Worker>,
    client: &'a mut D,
    deadline: &'a mut Deadline,
    marks: Marks,
    withhold: bool,
    /// No piece has come yet.
    is_first: bool,
    /// The first piece did not come with the head.
    has_waited: bool,
    /// What a sifted piece leaves to forward; empty between pieces.
    kept: Vec<Bytes>,
    stint: Stint,
}

impl<D: Downstream> Pump<'_, D> {
    /// Copies until the body ends.
    async fn run(mut self, body: &mut Body) -> Result<(), Stop> {
        let view = Rc::clone(&self.open.view);
        let backend = self
            .open
            .record
            .backend
            .and_then(|b| view.snapshot.backend(b));
        let idle = backend.map_or(Duration::ZERO, |b| b.timeouts.idle);
        let stall = view.snapshot.bounds.write_stall;
        loop {
            self.deadline.set(idle);
            let is_over = match poll_fn(|cx| self.poll_piece(body, cx)).await {
                Ok(is_over) => is_over,
                Err(stop) => {
                    if matches!(stop, Stop::Cut) {
                        self.release().await;
                    }
                    return Err(stop);
                }
            };
            body.taken();
            self.deadline.set(stall);
            poll_fn(|cx| self.poll_flushed(stall, cx)).await?;
            if std::mem::replace(&mut self.is_first, false) {
                self.first_byte(is_over);
            }
            if is_over {
                return Ok(());
            }
            self.marks.pass(self.open);
            self.stint.pass().await;
        }
    }

    /// Forwards what one read brings. Gives whether the body is over with it.
    fn poll_piece(&mut self, body: &mut Body, cx: &mut Context<'_>) -> Poll<Result<bool, Stop>> {
        let worker = Rc::clone(&self.worker);
        let forwarded = worker.scratch(|scratch| match body.poll_piece(cx, scratch) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.broke(&error))),
            Poll::Ready(Ok(Piece { data, is_over })) => {
                let sent = self.forward(data, is_over, cx);
                Poll::Ready(sent.map(|()| is_over).map_err(|_| Stop::Gone))
            }
        });
        if forwarded.is_ready() {
            return forwarded;
        }
        // What is begun leaves even when the upstream pauses right after its head.
        if let Poll::Ready(Err(_)) = self.client.poll_flushed(cx) {
            return Poll::Ready(Err(Stop::Gone));
        }
        // Until the first piece comes, the time is the upstream's.
        if self.is_first && !std::mem::replace(&mut self.has_waited, true) {
            self.open.own_ns += worker.now().0 - self.open.mark.0;
        }
        if self.client.poll_gone(&worker, cx).is_ready() {
            return Poll::Ready(Err(Stop::Gone));
        }
        self.deadline.poll(cx).map(|()| Err(Stop::Cut))
    }

    /// The body broke off. Where nothing of the answer has left, the client gets an error instead.
    #[cold]
    fn broke(&mut self, error: &io::Error) -> Stop {
        let is_held = self.is_first && !self.has_waited;
        if !(is_held && self.client.retract()) {
            return Stop::Cut;
        }
        if (200..300).contains(&self.open.record.status) {
            self.open.unread();
        } else {
            self.open.error_unread();
        }
        let is_malformed = error.kind() == io::ErrorKind::InvalidData;
        Stop::Refused(Refusal::Upstream(if is_malformed {
            Failure::Malformed
        } else {
            Failure::Reset
        }))
    }

    fn forward(&mut self, data: &[u8], is_over: bool, cx: &mut Context<'_>) -> io::Result<()> {
        if self.is_first && self.has_waited {
            self.open.mark = self.worker.arrival();
        }
        self.stint.add(data.len());
        if !self.withhold || self.open.meter.passes(data) {
            if !self.withhold {
                self.open.meter.observe(data);
                if is_over {
                    self.open.meter.finish();
                }
            }
            self.open.forwarded(data);
            return self.client.send(cx, &[data], is_over);
        }
        self.open.meter.sift(data, is_over, &mut self.kept);
        let pieces: Vec<&[u8]> = self.kept.iter().map(|b| &b[..]).collect();
        pieces.iter().for_each(|piece| self.open.forwarded(piece));
        if !pieces.is_empty() || is_over {
            self.client.send(cx, &pieces, is_over)?;
        }
        self.kept.clear();
        Ok(())
    }

    /// Ready when the client's side has taken everything. A slow client is waited for, a stuck one
    /// is not.
    fn poll_flushed(&mut self, stall: Duration, cx: &mut Context<'_>) -> Poll<Result<(), Stop>> {
        match self.client.poll_flushed(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map_err(|_| Stop::Gone)),
            Poll::Pending => {
                if self.client.progressed() {
                    self.deadline.set(stall);
                }
                self.deadline.poll(cx).map(|()| {
                    self.worker.closed(Closed::WriteStall);
                    Err(Stop::Gone)
                })
            }
        }
    }

    /// The first piece has left: the gate's own time is known.
    fn first_byte(&mut self, is_over: bool) {
        let now = self.worker.now();
        let open = &mut *self.open;
        open.finished = is_over.then_some(now);
        open.own_ns += now.0 - open.mark.0;
        open.record.first_byte = Some(now.since(open.began));
        open.record.own = Some(Duration::from_nanos(
            u64::try_from(open.own_ns).unwrap_or(0),
        ));
    }

    /// A stream that broke off: what was held back of it still goes out, as far as it goes at once.
    async fn release(&mut self) {
        let (true, Meter::Stream(scanner)) = (self.withhold, &mut self.open.meter) else {
            return;
        };
        let mut kept = Vec::new();
        scanner.finish(&mut kept);
        if kept.is_empty() {
            return;
        }
        poll_fn(|cx| {
            let pieces: Vec<&[u8]> = kept.iter().map(|b| &b[..]).collect();
            drop(self.client.send(cx, &pieces, false));
            Poll::Ready(())
        })
        .await;
    }
}

impl Meter {
    /// Takes a chunk of a stream from which our own usage event is withheld, if that event is not in it.
    fn passes(&mut self, data: &[u8]) -> bool {
        match self {
            Self::Stream(scanner) => scanner.pass(data),
            Self::Nothing | Self::Unary(_) | Self::Coded(_) | Self::Blind | Self::Error(_) => true,
        }
    }

    /// Takes a chunk of a stream from which our own usage event is withheld; what is forwarded of
    /// it goes to `out`.
    fn sift(&mut self, data: &[u8], is_over: bool, out: &mut Vec<Bytes>) {
        let Self::Stream(scanner) = self else {
            out.push(Bytes::copy_from_slice(data));
            return;
        };
        if !data.is_empty() {
            scanner.push(Bytes::copy_from_slice(data), out);
        }
        if is_over {
            scanner.finish(out);
        }
    }

    pub(super) fn observe(&mut self, data: &[u8]) {
        match self {
            Self::Unary(usage) | Self::Error(usage) => usage.push(data),
            Self::Stream(scanner) => scanner.observe(data),
            Self::Coded(coded) => coded.observe(data),
            Self::Nothing | Self::Blind => {}
        }
    }
}

impl Coded {
    /// Decodes a chunk and reads it. What cannot be decoded makes the rest unreadable, not the answer bad.
    fn observe(&mut self, data: &[u8]) {
        self.text.clear();
        self.text.shrink_to(KEPT_TEXT_BYTES);
        let Self {
            decoder,
            meter,
            text,
        } = self;
        let decoded = decoder.push(data, |piece| {
            meter.observe(piece);
            text.extend_from_slice(piece);
        });
        if decoded.is_err() {
            *meter = Meter::Blind;
            text.clear();
        }
    }
}

/// Whether a content type is this one, whatever its parameters.
fn is_kind(value: &[u8], kind: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    value
        .split_at_checked(kind.len())
        .is_some_and(|(begins, rest)| {
            begins.eq_ignore_ascii_case(kind) && matches!(rest.trim_ascii_start(), [] | [b';', ..])
        })
}

fn content(head: &ResponseHead) -> Content {
    let value = head.fields.get(Known::ContentType).unwrap_or_default();
    if is_kind(value, b"application/json") {
        Content::Json
    } else if is_kind(value, b"text/event-stream") {
        Content::Events
    } else {
        Content::Other
    }
}

/// Refuses what must not be passed on.
fn check(open: &Open, head: &ResponseHead, content: Content) -> Result<(), Refusal> {
    let reads = open
        .record
        .operation
        .is_some_and(policy::operation::Operation::answers_json);
    match head.status {
        401 | 403 => Err(Refusal::UpstreamCredential),
        300..=399 => Err(Refusal::UpstreamFormat),
        200..=299 if reads && content == Content::Other => Err(Refusal::UpstreamFormat),
        400.. if content == Content::Other => Err(unreadable(open, head)),
        _ => Ok(()),
    }
}

/// An error in a form that is not the API's. What it says of waiting is passed on.
#[cold]
fn unreadable(open: &Open, head: &ResponseHead) -> Refusal {
    let unix_ms = open.worker.wall_ms(open.mark);
    match policy::attempt::asked(head, unix_ms) {
        Some(wait) => Refusal::UpstreamBusy {
            status: head.status,
            wait,
        },
        None => Refusal::Upstream(Failure::Status(head.status)),
    }
}

fn meter(open: &Open, head: &ResponseHead, content: Content, withhold: bool) -> Meter {
    if open.is_charged_as_written() {
        let is_good = (200..300).contains(&head.status);
        return if is_good {
            Meter::Blind
        } else {
            Meter::Nothing
        };
    }
    let reads = open
        .record
        .operation
        .is_some_and(policy::operation::Operation::reports_usage);
    if !reads {
        return Meter::Nothing;
    }
    if head.status != 200 {
        let may_tell = content == Content::Json && head.fields.count(Known::ContentEncoding) == 0;
        return if may_tell {
            Meter::Error(UnaryUsage::default())
        } else {
            Meter::Nothing
        };
    }
    let plain = plain_meter(content, withhold);
    if head.fields.count(Known::ContentEncoding) == 0 {
        return plain;
    }
    let coding = head.fields.only(Known::ContentEncoding).ok().flatten();
    match (coding.and_then(Coding::of), plain) {
        (Some(coding), meter @ (Meter::Unary(_) | Meter::Stream(_))) => {
            Meter::Coded(Box::new(Coded {
                decoder: Decoder::new(coding),
                meter,
                text: Vec::new(),
            }))
        }
        _ => Meter::Blind,
    }
}

/// What reads an answer that is not compressed.
fn plain_meter(content: Content, withhold: bool) -> Meter {
    match content {
        Content::Json => Meter::Unary(UnaryUsage::default()),
        Content::Events => {
            let mode = if withhold {
                Mode::Withhold
            } else {
                Mode::Observe
            };
            Meter::Stream(Box::new(Scanner::new(mode)))
        }
        Content::Other => Meter::Blind,
    }
}

fn begin<D: Downstream>(
    open: &Open,
    head: &ResponseHead,
    body: &Body,
    content: Content,
    withhold: bool,
    client: &mut D,
) {
    let extent = match body.length(head) {
        Some(length) if !withhold => Extent::Length(length),
        Some(_) | None => Extent::Open,
    };
    let rule = open
        .record
        .route
        .and_then(|id| open.view.snapshot.route(id));
    let returned = rule.map_or(&[][..], |rule| &rule.return_headers);
    client.begin(head.status, extent);
    let mut is_dated = false;
    for field in head.fields.iter() {
        if credential::returns(&field, &head.fields, returned)
            && !(field.known == Known::Date && std::mem::replace(&mut is_dated, true))
        {
            client.field(field.name, field.value);
        }
    }
    if !is_dated {
        client.date();
    }
    if content == Content::Events {
        if head.fields.count(Known::CacheControl) == 0 {
            client.field(b"cache-control", b"no-cache");
        }
        client.field(b"x-accel-buffering", b"no");
    }
    client.field(b"x-request-id", open.record.id.as_bytes());
    if let Some(theirs) = &open.record.upstream_id {
        let name = policy::request_id::UPSTREAM_HEADER;
        client.field(name.as_bytes(), theirs.as_bytes());
    }
    open.standing().write(client);
    open.cors().write(client);
    client.begun();
}

/// One open stream in the gauge.
struct Streaming(Rc<Worker>);

impl Streaming {
    fn new(worker: &Rc<Worker>) -> Self {
        worker.sink(|s| s.gauge(Gauge::Streams, 1));
        Self(Rc::clone(worker))
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.sink(|s| s.gauge(Gauge::Streams, -1));
    }
}
