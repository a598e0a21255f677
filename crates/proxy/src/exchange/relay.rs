//! The response on its way: measured, and forwarded as it arrives; or read to its end when its client has left.
//!
//! Invariant: body bytes pass as they came, but for the usage event that the gate asked for and the
//! client did not. No more than one read waits for a slow client.
//! Not here: what becomes of a response (`policy::exchange`), reading usage (`wire::meter`).

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use policy::credential;
use policy::exchange::{Relay, Verdict};
use policy::hosted::Hosted;
use policy::operation::Operation;
use policy::plain::fields;
use policy::record::{Closed, Gauge};
use wire::filter::Stop;
use wire::head::{Known, ResponseHead};
use wire::meter::Meter;

use super::active::ActiveExchange;
use crate::client::{BodyLength, Downstream};
use crate::deadline::Deadline;
use crate::stint::{STINT_BYTES, Stint};
use crate::upstream::{Body, Chunk, Response};
use crate::worker::Worker;

/// Forwards a response to its end.
pub(super) async fn run<D: Downstream>(
    active: &mut ActiveExchange,
    relay: Relay,
    response: &mut Response,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    active.meter = Meter::new(relay.form);
    let worker = Rc::clone(active.worker());
    begin(active, response, &relay, client);
    worker.buffers.answered.set(response.head.take());
    let _streaming = relay.is_stream.then(|| Streaming::new(&worker));
    active.begin_notes();
    let mut pump = Pump {
        worker: &worker,
        active,
        client,
        deadline,
        is_head_held: !relay.is_stream && !relay.pipe.is_empty(),
        relay,
        room: Room::of(&worker),
        is_first: true,
        has_waited: false,
        kept: Vec::new(),
        last: None,
        stint: Stint::default(),
    };
    match pump.run(&mut response.body).await {
        Ok(()) => {
            let heard = pump.active.meter.so_far();
            let (told_error, told_end) = (heard.told_error, heard.told_end);
            if !told_end && pump.owes_end() {
                return pump.active.exchange.sent_without_end();
            }
            pump.active.exchange.sent_whole(told_error)
        }
        Err(halt) => {
            let verdict = pump.halted(halt);
            if let Verdict::Cut = verdict {
                pump.release().await;
            }
            verdict
        }
    }
}

/// Reads the rest of a response that nobody waits for, in a task of its own, then ends the exchange.
pub(super) fn read_to_end(mut active: ActiveExchange, response: Option<Response>) {
    tokio::task::spawn_local(async move {
        if let Some(Response { mut body, .. }) = response {
            // It ends at its bounds too: whatever the last verdict is, nobody is left to be told.
            let _over = read_on(&mut active, &mut body).await;
        }
        active.finish();
    });
}

/// Reads until the response ends, breaks off or comes to a bound.
async fn read_on(active: &mut ActiveExchange, body: &mut Body) -> Verdict {
    let worker = Rc::clone(active.worker());
    let mut stint = Stint::default();
    loop {
        stint.pass().await;
        let read = poll_fn(|cx| {
            let Hosted { meter, host, .. } = &mut **active;
            let reading_on = &mut host.reading_on;
            let piece = worker.buffers.scratch(|scratch| {
                body.poll_chunk(cx, scratch).map(|piece| {
                    let Chunk { data, is_over } = piece.ok()?;
                    meter.observe(data);
                    stint.add(data.len());
                    Some((data.len() as u64, is_over))
                })
            });
            match (piece, reading_on) {
                (Poll::Ready(Some((bytes, is_over))), _) => {
                    if is_over {
                        meter.finish();
                    }
                    let events = meter.events();
                    Poll::Ready(Rest::Read {
                        bytes,
                        events,
                        is_over,
                    })
                }
                (Poll::Ready(None), _) => Poll::Ready(Rest::Broke),
                (Poll::Pending, Some(on)) => on.deadline.poll(cx).map(|()| Rest::TooLong),
                (Poll::Pending, None) => Poll::Ready(Rest::TooLong),
            }
        });
        let read = read.await;
        body.taken();
        let now = worker.clock.latest();
        let verdict = active.tell_at(now, |exchange, env| match read {
            Rest::Read {
                bytes,
                events,
                is_over,
            } => exchange.read_on(bytes, events, is_over, env),
            Rest::Broke => exchange.response_broke(false, false),
            Rest::TooLong => exchange.stalled(env),
        });
        match verdict {
            Verdict::ReadToEnd { .. } => {}
            over => return over,
        }
    }
}

/// What came of the rest of a response that nobody waits for.
enum Rest {
    Read {
        bytes: u64,
        events: Option<u64>,
        is_over: bool,
    },
    Broke,
    TooLong,
}

/// Why a response is stopped whose filters hold back more of it than its route permits.
const HELD_TOO_MUCH: &str = "filter_held_back_too_much";
/// Why a response is stopped of which an event is longer than a message to its client may be.
const EVENT_TOO_LONG: &str = "event_too_long";

/// Why a response does not go on.
#[derive(Clone, Copy)]
enum Halt {
    Broke {
        is_malformed: bool,
    },
    /// The upstream was silent for too long.
    Idle,
    Disconnected,
    /// The client took nothing for too long.
    WriteStall,
    /// A filter stopped it.
    Stopped(Stop),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The client is there; what it would be sent cannot be made of the answer.
            io::ErrorKind::InvalidData => Self::Stopped(Stop::Refused(EVENT_TOO_LONG)),
            _ => Self::Disconnected,
        }
    }
}

/// The copying of one response body.
struct Pump<'a, D> {
    active: &'a mut ActiveExchange,
    worker: &'a Worker,
    client: &'a mut D,
    deadline: &'a mut Deadline,
    relay: Relay,
    /// What its filters keep.
    room: Room<'a>,
    /// A document that is filtered has no piece yet: until then the client may be told something else.
    is_head_held: bool,
    /// No piece has come yet.
    is_first: bool,
    /// The first piece did not come with the head.
    has_waited: bool,
    /// What a sifted or translated piece leaves to forward; empty between pieces.
    kept: Vec<Bytes>,
    /// The last piece of a long document that its filters make anew, which they have not read yet.
    last: Option<Bytes>,
    stint: Stint,
}

impl<D: Downstream> Pump<'_, D> {
    /// Copies until the body ends.
    async fn run(&mut self, body: &mut Body) -> Result<(), Halt> {
        loop {
            self.deadline.set(self.relay.idle);
            let is_over = poll_fn(|cx| self.poll_chunk(body, cx)).await?;
            body.taken();
            if let Some(last) = self.last.take() {
                // Boxed: rare, and its state would make every exchange larger.
                Box::pin(self.make_beside(last)).await?;
            }
            if !self.is_head_held {
                self.deadline.set(self.relay.stall);
                poll_fn(|cx| self.poll_flushed(cx)).await?;
                self.room.taken();
            }
            if std::mem::replace(&mut self.is_first, false) {
                let now = self.worker.now();
                self.active.exchange.answers(now, is_over);
            }
            if is_over {
                return Ok(());
            }
            self.active.note();
            self.stint.pass().await;
        }
    }

    /// Forwards what one read brings. Gives whether the body is over with it.
    fn poll_chunk(&mut self, body: &mut Body, cx: &mut Context<'_>) -> Poll<Result<bool, Halt>> {
        let worker = self.worker;
        let forwarded = worker
            .buffers
            .scratch(|scratch| match body.poll_chunk(cx, scratch) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(error)) => Poll::Ready(Err(Halt::Broke {
                    is_malformed: error.kind() == io::ErrorKind::InvalidData,
                })),
                Poll::Ready(Ok(Chunk { data, is_over })) => {
                    let sent = self.forward(data, is_over, cx);
                    Poll::Ready(sent.map(|()| is_over))
                }
            });
        if forwarded.is_ready() {
            return forwarded;
        }
        // What is begun leaves even when the upstream pauses right after its head.
        if !self.is_head_held
            && let Poll::Ready(Err(_)) = self.client.poll_flushed(cx)
        {
            return Poll::Ready(Err(Halt::Disconnected));
        }
        // Until the first piece comes, the time is the upstream's.
        if self.is_first && !std::mem::replace(&mut self.has_waited, true) {
            self.active.pause();
        }
        if self.client.poll_gone(&worker.buffers, cx).is_ready() {
            return Poll::Ready(Err(Halt::Disconnected));
        }
        self.deadline.poll(cx).map(|()| Err(Halt::Idle))
    }

    #[cold]
    fn halted(&mut self, halt: Halt) -> Verdict {
        match halt {
            Halt::Broke { is_malformed } => {
                // Where nothing of the answer has left, the client gets an error instead.
                let is_retracted = self.is_held() && self.client.retract();
                let exchange = &mut self.active.exchange;
                exchange.response_broke(is_retracted, is_malformed)
            }
            Halt::Stopped(stop) => {
                let is_retracted = self.is_held() && self.client.retract();
                self.active.exchange.response_stopped(stop, is_retracted)
            }
            Halt::Idle => {
                let now = self.worker.now();
                self.active
                    .tell_at(now, |exchange, env| exchange.stalled(env))
            }
            Halt::Disconnected if self.is_all_sent() => {
                let told_error = self.active.meter.so_far().told_error;
                self.active.exchange.left_at_end(told_error)
            }
            Halt::Disconnected => self.active.disconnected(),
            Halt::WriteStall => {
                self.worker.closed(Closed::WriteStall);
                self.active.disconnected()
            }
        }
    }

    /// Whether a client that left has all of a stream, of which nothing but the end of the connection is to come.
    fn is_all_sent(&mut self) -> bool {
        let has_end = match self.relay.pipe.is_empty() {
            true => self.active.meter.has_end_mark(),
            false => self.relay.pipe.has_ended(),
        };
        let mut cx = Context::from_waker(Waker::noop());
        has_end && matches!(self.client.poll_flushed(&mut cx), Poll::Ready(Ok(())))
    }

    /// Whether it passes a stream that has to tell where its answer ends; what translates one sees to that itself.
    fn owes_end(&self) -> bool {
        let record = self.active.exchange.record();
        let generates = record.operation.is_some_and(Operation::generates);
        let is_good = (200..300).contains(&record.status);
        generates && is_good && self.relay.is_stream && self.relay.pipe.is_empty()
    }

    fn forward(&mut self, data: &[u8], is_over: bool, cx: &mut Context<'_>) -> Result<(), Halt> {
        if self.is_first && self.has_waited {
            self.active
                .exchange
                .timing
                .resume(self.worker.clock.arrival());
        }
        self.stint.add(data.len());
        if !self.relay.pipe.is_empty() {
            return self.forward_filtered(data, is_over, cx);
        }
        if self.active.meter.pass(data, is_over) {
            self.active.forwarded(data);
            return Ok(self.client.send(cx, &[data], is_over)?);
        } else {
            self.active.meter.sift(data, is_over, &mut self.kept);
        }
        Ok(self.send_kept(is_over, cx)?)
    }

    /// Whether nothing of the answer has left.
    fn is_held(&self) -> bool {
        self.is_head_held || (self.is_first && !self.has_waited)
    }

    /// Sends what is left to forward of a piece.
    fn send_kept(&mut self, is_over: bool, cx: &mut Context<'_>) -> io::Result<()> {
        let pieces = self.kept.iter();
        pieces.for_each(|piece| self.active.forwarded(piece));
        if !self.kept.is_empty() || is_over {
            self.is_head_held = false;
            if let [one] = &self.kept[..] {
                self.client.send(cx, &[&one[..]], is_over)?;
            } else {
                let pieces: Vec<&[u8]> = self.kept.iter().map(|b| &b[..]).collect();
                self.client.send(cx, &pieces, is_over)?;
            }
        }
        self.kept.clear();
        Ok(())
    }

    /// The same for a piece that is filtered on its way.
    #[cold]
    fn forward_filtered(
        &mut self,
        data: &[u8],
        is_over: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), Halt> {
        let (meter, pipe) = (&mut self.active.meter, &mut self.relay.pipe);
        let mut sifted = Vec::new();
        let passes = !pipe.meters_what_comes() || meter.pass(data, is_over);
        if !passes {
            meter.sift(data, is_over, &mut sifted);
        }
        // Of a document nothing is made before its end.
        let is_document = passes && is_over && self.is_head_held;
        if is_document && pipe.kept() + data.len() > STINT_BYTES {
            self.last = Some(Bytes::copy_from_slice(data));
            return Ok(());
        }
        let metered = |piece: &[u8], is_over| observe(meter, piece, is_over);
        let passed = match passes {
            true => pipe.pass_piece(data, is_over, &mut self.kept, metered),
            false => pipe.pass(sifted, is_over, &mut self.kept, metered),
        };
        self.send_filtered(passed, is_over, cx)
    }

    /// Has a long document made beside the worker, and sends it. That is done to its end, whatever its client does, for its usage.
    async fn make_beside(&mut self, last: Bytes) -> Result<(), Halt> {
        let mut pipe = std::mem::take(&mut self.relay.pipe);
        let mut meter = std::mem::take(&mut self.active.meter);
        let done = self.worker.beside.run(move || {
            let mut made = Vec::new();
            let metered = |piece: &[u8], is_over| observe(&mut meter, piece, is_over);
            let passed = pipe.pass_piece(&last, true, &mut made, metered);
            (pipe, meter, made, passed)
        });
        let Some((pipe, meter, made, passed)) = done.await else {
            return Err(Halt::Stopped(Stop::Malformed));
        };
        (self.relay.pipe, self.active.meter, self.kept) = (pipe, meter, made);
        let mut passed = Some(passed);
        poll_fn(|cx| match passed.take() {
            Some(passed) => Poll::Ready(self.send_filtered(passed, true, cx)),
            None => Poll::Pending,
        })
        .await
    }

    /// Sends what filters made of a piece, as far as they let it pass.
    #[cold]
    fn send_filtered(
        &mut self,
        mut passed: Result<(), Stop>,
        is_over: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), Halt> {
        let pipe = &self.relay.pipe;
        if pipe.held() > self.relay.hold_back_bytes {
            passed = passed.and(Err(Stop::Refused(HELD_TOO_MUCH)));
        }
        let bound = self.active.view().snapshot().bounds.bodies_bytes;
        if !self.room.keep(pipe.kept(), bound) {
            passed = passed.and(Err(Stop::NoRoom));
        }
        let made = self.kept.iter().map(Bytes::len).sum();
        if made > STINT_BYTES && !self.room.make(made) {
            passed = passed.and(Err(Stop::Untaken));
        }
        match passed {
            Ok(()) => self.send_kept(is_over, cx)?,
            // Nothing of it has left, and the client may be told instead.
            Err(_) if self.is_held() => self.kept.clear(),
            Err(_) => self.send_kept(false, cx)?,
        }
        passed.map_err(Halt::Stopped)
    }

    /// Ready when the client's side has taken everything. A slow client is waited for, a stuck one
    /// is not.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Halt>> {
        match self.client.poll_flushed(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(_)) => Poll::Ready(Err(Halt::Disconnected)),
            Poll::Pending => {
                if self.client.progressed() {
                    self.deadline.set(self.relay.stall);
                }
                self.deadline.poll(cx).map(|()| Err(Halt::WriteStall))
            }
        }
    }

    /// A stream that broke off: what was held back of it still goes out, as far as it goes at once.
    async fn release(&mut self) {
        let mut kept = Vec::new();
        self.active.meter.release(&mut kept);
        if !self.relay.pipe.is_empty() {
            let mut passed = Vec::new();
            let released = self.relay.pipe.pass(kept, false, &mut passed, |_, _| {});
            kept = passed;
            if released.is_ok() {
                self.relay.pipe.release(&mut kept);
            }
        }
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

pub(super) fn begin<D: Downstream>(
    active: &ActiveExchange,
    response: &Response,
    relay: &Relay,
    client: &mut D,
) {
    let Some(head) = &response.head else { return };
    let extent = match response.body.length(head) {
        Some(length) if !relay.withholds() && relay.pipe.is_empty() => BodyLength::Length(length),
        Some(_) | None => BodyLength::Open,
    };
    let shape = relay.pipe.shape();
    let record = active.exchange.record();
    let rule = record
        .route
        .and_then(|id| active.view().snapshot().route(id));
    let returned = rule.map_or(&[][..], |rule| &rule.return_headers);
    if head.status != 101 || !client.switch() {
        client.begin(head.status, extent);
    }
    let mut is_dated = false;
    if record.operation == Some(Operation::Http) {
        is_dated = begin_plain(active, head, client);
    } else {
        for field in head.fields.iter() {
            if shape.is_some_and(|shape| shape.replaces(field.name)) {
                continue;
            }
            if credential::returns(&field, &head.fields, returned)
                && !(field.known == Known::Date && std::mem::replace(&mut is_dated, true))
            {
                client.field(field.name, field.value);
            }
        }
    }
    if !is_dated {
        client.date();
    }
    if let Some(shape) = shape {
        client.field(b"content-type", shape.content_type.as_bytes());
        for (name, value) in &shape.headers {
            client.field(name.as_bytes(), value);
        }
    }
    if relay.is_stream {
        if head.fields.count(Known::CacheControl) == 0 {
            client.field(b"cache-control", b"no-cache");
        }
        client.field(b"x-accel-buffering", b"no");
    }
    client.field(b"x-request-id", record.id.as_bytes());
    let is_messages = record.operation == Some(Operation::Messages);
    if is_messages && head.fields.by_name(b"request-id").next().is_none() {
        // Where Anthropic's SDKs look for it.
        client.field(b"request-id", record.id.as_bytes());
    }
    if let Some(theirs) = &record.upstream_id {
        let name = policy::request_id::UPSTREAM_HEADER;
        client.field(name.as_bytes(), theirs.as_bytes());
    }
    active.rate_limits().write(client);
    active.cors().write(client);
    client.begun();
}

/// The fields of an answer of plain HTTP that go to its client. Whether its date is one of them.
#[cold]
#[inline(never)]
fn begin_plain<D: Downstream>(
    active: &ActiveExchange,
    head: &ResponseHead,
    client: &mut D,
) -> bool {
    let login = active.view().snapshot().login.as_ref();
    let cookies = login.map(|site| site.login.cookies());
    let has_cors = active.exchange.page().is_some();
    let route = active.exchange.record().route;
    let route = route.and_then(|id| active.view().snapshot().route(id));
    let actions = route.and_then(|route| route.actions.as_ref());
    let edits = actions.map(|of| &of.response);
    let mut is_dated = false;
    for field in head.fields.iter() {
        if edits.is_none_or(|edits| edits.keeps(field.name))
            && fields::returns(&field, &head.fields, cookies, has_cors)
            && !(field.known == Known::Date && std::mem::replace(&mut is_dated, true))
        {
            client.field(field.name, field.value);
        }
    }
    if let Some(edits) = edits {
        edits.put(|name, value| client.field(name, value));
    }
    let cors = actions.and_then(|of| of.cors.as_ref());
    if let Some((cors, page)) = cors.zip(active.exchange.page()) {
        cors.answer(page, |name, value| client.field(name, value));
    }
    is_dated
}

/// Has a meter read a piece that was made.
fn observe(meter: &mut Meter, piece: &[u8], is_over: bool) {
    meter.observe(piece);
    if is_over {
        meter.finish();
    }
}

/// Bytes of one response that filters keep, counted beside what the worker keeps of requests, and a long piece that they made, until
/// its client has taken it.
struct Room<'w> {
    worker: &'w Worker,
    kept: usize,
    made: usize,
}

impl<'w> Room<'w> {
    const fn of(worker: &'w Worker) -> Self {
        Self {
            worker,
            kept: 0,
            made: 0,
        }
    }

    /// So many are kept now; false where there is no room for them.
    fn keep(&mut self, bytes: usize, bound: usize) -> bool {
        if bytes <= self.kept {
            self.worker.drop_body(self.kept - bytes);
        } else if !self.worker.keep_body(bytes - self.kept, bound) {
            return false;
        }
        self.kept = bytes;
        true
    }

    /// So many more were made; false where there is no room for them.
    fn make(&mut self, bytes: usize) -> bool {
        let has_room = self.worker.keep_made(bytes);
        if has_room {
            self.made += bytes;
        }
        has_room
    }

    /// The client has taken what was made.
    fn taken(&mut self) {
        if self.made > 0 {
            self.worker.drop_made(std::mem::take(&mut self.made));
        }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.worker.drop_body(self.kept);
        self.taken();
    }
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
