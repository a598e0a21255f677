//! A WebSocket of the Realtime API on its way: messages pass both ways, and each answer on it is a call of its own.
//!
//! Invariant: every message is read whole before it passes. A client's `response.create` passes once it is admitted, and is refused by an
//! event where it is not; an answer that the server makes by itself is admitted when it begins, and ends the session where it is not.
//! What is kept of either side has a bound. A long message of a client's is looked through beside the worker, and what its client says
//! behind it waits.
//! Not here: who may open a session, and the request for it (`policy::exchange`), one answer (`answer`), frames (`wire::websocket`).

mod answer;
mod said;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use policy::credential::protocols;
use policy::exchange::{Relay, Verdict};
use policy::record::Outcome;
use policy::refusal::Refusal;
use wire::call::{Cap, realtime_error};
use wire::head::{Known, RequestHead, ResponseHead};
use wire::meter::Meter;
use wire::usage::Reading;
use wire::websocket::{self, Message, Reader};

use self::answer::{Answer, Opening, Wanted};
use self::said::Heard;
use super::active::ActiveExchange;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::stint::{STINT_BYTES, Stint};
use crate::upstream::{Body, Chunk, Response};
use crate::worker::Worker;

/// As long as OpenAI keeps one.
const LIFE: Duration = Duration::from_secs(60 * 60);
/// How long either side may take for the end of a session.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Answers that may be asked for and not over at one time.
const ANSWERS_MAX: usize = 16;
/// No more is read of a side while so much waits for the other.
const WAITING_BYTES: usize = 256 << 10;
/// Codes that end a session.
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const ONLY_TEXT: u16 = 1003;
const REFUSED: u16 = 1008;
const BROKEN: u16 = 1011;
const NO_ROOM: u16 = 1013;

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client left without a word.
    Gone,
    /// The server did.
    Broke,
    /// One of the three ended it, by this code.
    Closed(u16),
}

/// Forwards the head, then messages to the end of the session.
pub(super) async fn run<D: Downstream>(
    active: &mut ActiveExchange,
    (head, relay): (&RequestHead, &Relay),
    response: &mut Response,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    active.meter = Meter::new(relay.form);
    let worker = Rc::clone(active.worker());
    let Some(opening) = opening(active, head, client) else {
        return active.refuse_unread(Refusal::Bug("a session without endpoint"));
    };
    let Some(answered) = response.head.take() else {
        return active.refuse_unread(Refusal::Bug("a session of no response"));
    };
    let Some(fields) = handshake(head, &answered) else {
        return active.refuse_unread(Refusal::UpstreamFormat);
    };
    if !client.switch() {
        return active.disconnected();
    }
    for (name, value) in &fields {
        client.field(name, value);
    }
    client.field(b"x-request-id", active.exchange.record().id.as_bytes());
    client.begun();
    active.exchange.answers(worker.now(), false);
    let bounds = &active.view().snapshot().bounds;
    let most = usize::try_from(bounds.body_bytes).unwrap_or(usize::MAX);
    let model = active.exchange.record().model_asked.clone();
    let mut life = Deadline::new(&worker.clock.wheel);
    life.set(LIFE);
    let stall = relay.stall;
    let mut session = Session {
        worker: &worker,
        opening: &opening,
        active,
        client,
        service: &mut response.body,
        from_client: Reader::new(most),
        from_service: Reader::of_server(most),
        to_client: Vec::new(),
        to_service: Bytes::new(),
        kept: 0,
        said: said::Said::new(model),
        looking: None,
        admitting: None,
        asked: VecDeque::new(),
        made: Vec::new(),
        answers: Vec::new(),
        stint: Stint::default(),
    };
    deadline.set(relay.idle);
    let mut drained = pin!(worker.drained.notified());
    let idle = relay.idle;
    let end = poll_fn(|cx| {
        let is_drained = worker.is_draining() || drained.as_mut().poll(cx).is_ready();
        session.poll(cx, is_drained, (&mut *deadline, idle), &mut life)
    });
    let end = end.await;
    deadline.set(LAST_WORDS.min(stall));
    session.end(end, deadline).await;
    drop(session);
    match end {
        End::Gone => active.disconnected(),
        End::Broke => active.exchange.response_broke(false, false),
        End::Closed(_) => active.exchange.sent_whole(false),
    }
}

/// What each answer has from the request that opened the session.
fn opening<'h, D: Downstream>(
    active: &ActiveExchange,
    head: &'h RequestHead,
    client: &D,
) -> Option<Opening<'h>> {
    let (record, s) = (active.exchange.record(), active.view().snapshot());
    let endpoint = s.endpoint(record.endpoint?)?;
    Some(Opening {
        worker: Rc::clone(active.worker()),
        head,
        peer: client.peer(),
        workload: (&*s.workload(record.workload?)?.name).into(),
        backend: (&*s.backend(endpoint.backend)?.name).into(),
        authority: endpoint.authority.as_str().into(),
    })
}

/// The fields by which a client is told that its connection is a WebSocket now. `None` where the server did not agree to what was asked.
fn handshake(
    asked: &RequestHead,
    answered: &ResponseHead,
) -> Option<Vec<(&'static [u8], Vec<u8>)>> {
    let key = asked.fields.by_name(b"sec-websocket-key").next()?;
    let accept = super::websocket::accept(key).into_bytes();
    let mut theirs = answered.fields.by_name(b"sec-websocket-accept");
    let has_extension = answered
        .fields
        .by_name(b"sec-websocket-extensions")
        .next()
        .is_some();
    if theirs.next() != Some(&accept[..]) || has_extension {
        return None;
    }
    let mut fields = vec![(&b"sec-websocket-accept"[..], accept)];
    if let Some(chosen) = answered.fields.of(Known::SecWebsocketProtocol).next() {
        let offered = protocols::offered(asked);
        let mut offered = offered.split(|b| *b == b',').map(<[u8]>::trim_ascii);
        if !offered.any(|one| one == chosen) {
            return None;
        }
        fields.push((&b"sec-websocket-protocol"[..], chosen.to_vec()));
    }
    Some(fields)
}

type Admitting<'s> = Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + 's>>;

/// A long message of a client's, while it is looked through beside the worker.
struct Looking<'s> {
    bytes: usize,
    heard: Pin<Box<dyn Future<Output = Option<Heard>> + 's>>,
}

/// An answer that its client asked for, while it is judged.
struct Create<'s> {
    admitting: Admitting<'s>,
    /// The event, as it goes to the server.
    event: Vec<u8>,
    /// Its id there, and the client's own name for it.
    id: Box<str>,
    named: Option<Box<str>>,
}

/// One that was asked for, and that the server has not begun.
struct AskedFor {
    id: Box<str>,
    answer: Answer,
}

/// One that the server makes by itself, while it is judged.
struct Made<'s> {
    id: Box<str>,
    admitting: Admitting<'s>,
    /// Pieces that came meanwhile: bytes, and whether they are sound.
    pieces: Vec<(usize, bool)>,
    /// How it ended meanwhile.
    over: Option<Over>,
}

/// How an answer ended.
enum Over {
    Done(Box<Reading>, bool),
    Seconds(u64),
}

struct Session<'s, D> {
    worker: &'s Rc<Worker>,
    opening: &'s Opening<'s>,
    active: &'s mut ActiveExchange,
    client: &'s mut D,
    service: &'s mut Body,
    from_client: Reader,
    from_service: Reader,
    to_client: Vec<u8>,
    to_service: Bytes,
    /// Bytes that are counted as kept.
    kept: usize,
    said: said::Said,
    looking: Option<Looking<'s>>,
    admitting: Option<Create<'s>>,
    asked: VecDeque<AskedFor>,
    made: Vec<Made<'s>>,
    answers: Vec<(Box<str>, Answer)>,
    stint: Stint,
}

impl<D: Downstream> Session<'_, D> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        is_drained: bool,
        (deadline, idle): (&mut Deadline, Duration),
        life: &mut Deadline,
    ) -> Poll<End> {
        loop {
            ready!(self.stint.poll_pass(cx));
            let steps = [
                self.poll_admitting(cx),
                self.poll_up(cx),
                self.poll_down(cx),
            ];
            let mut moved = false;
            for step in steps {
                match step {
                    Poll::Ready(Ok(())) => moved = true,
                    Poll::Ready(Err(end)) => return Poll::Ready(end),
                    Poll::Pending => {}
                }
            }
            if !self.count() {
                return Poll::Ready(End::Closed(NO_ROOM));
            }
            if moved {
                deadline.set(idle);
                continue;
            }
            if is_drained && self.is_still() {
                return Poll::Ready(End::Closed(GOING_AWAY));
            }
            let is_over = life.poll(cx).is_ready() || deadline.poll(cx).is_ready();
            return match is_over {
                true => Poll::Ready(End::Closed(GOING_AWAY)),
                false => Poll::Pending,
            };
        }
    }

    /// Whether no answer is asked for or made.
    fn is_still(&self) -> bool {
        self.looking.is_none()
            && self.admitting.is_none()
            && self.asked.is_empty()
            && self.made.is_empty()
            && self.answers.is_empty()
    }

    /// Counts what is kept; false where there is no room for it.
    fn count(&mut self) -> bool {
        let pending = self.admitting.as_ref().map_or(0, |of| of.event.len());
        let looked_at = self.looking.as_ref().map_or(0, |of| of.bytes);
        let held = self.from_client.held() + self.from_service.held() + pending + looked_at;
        let now = held + self.to_client.len() + self.to_service.len();
        let bound = self.worker.view().snapshot().bounds.bodies_bytes;
        if now <= self.kept {
            self.worker.drop_body(self.kept - now);
        } else if !self.worker.keep_body(now - self.kept, bound) {
            return false;
        }
        self.kept = now;
        true
    }

    /// Looks whether answers are judged by now.
    fn poll_admitting(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let mut moved = false;
        if let Some(create) = &mut self.admitting
            && let Poll::Ready(judged) = create.admitting.as_mut().poll(cx)
        {
            moved = true;
            if let Some(create) = self.admitting.take() {
                self.judged(create, judged);
            }
        }
        let mut at = 0;
        while let Some(made) = self.made.get_mut(at) {
            let Poll::Ready(judged) = made.admitting.as_mut().poll(cx) else {
                at += 1;
                continue;
            };
            moved = true;
            let made = self.made.swap_remove(at);
            match judged {
                Ok(answer) => self.made(made, answer),
                Err(refusal) => {
                    self.tell(&refusal, None);
                    return Poll::Ready(Err(End::Closed(REFUSED)));
                }
            }
        }
        match moved {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// A client's wish for an answer was judged.
    fn judged(&mut self, create: Create<'_>, judged: Result<Answer, Refusal>) {
        match judged {
            Ok(mut answer) => {
                self.pass_up(&create.event);
                answer.runs = true;
                let id = create.id;
                self.asked.push_back(AskedFor { id, answer });
            }
            Err(refusal) => self.tell(&refusal, create.named.as_deref()),
        }
    }

    /// An answer of the server's own may be made.
    fn made(&mut self, made: Made<'_>, mut answer: Answer) {
        answer.runs = true;
        for (bytes, is_audio) in made.pieces {
            answer.take(bytes, is_audio);
        }
        match made.over {
            Some(Over::Done(usage, is_good)) => answer.end(&usage, is_good),
            Some(Over::Seconds(seconds)) => answer.end_by_seconds(seconds),
            None => self.answers.push((made.id, answer)),
        }
    }

    /// A client's messages to the server.
    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let mut moved = false;
        if !self.to_service.is_empty() {
            let before = self.to_service.len();
            match self.service.poll_send(&mut self.to_service, cx) {
                Poll::Ready(Ok(())) => moved = true,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(End::Broke)),
                Poll::Pending => moved = self.to_service.len() < before,
            }
        }
        if let Some(looking) = &mut self.looking
            && let Poll::Ready(heard) = looking.heard.as_mut().poll(cx)
        {
            moved = true;
            self.looking = None;
            match heard {
                Some(heard) => self.client_said(&heard),
                None => return Poll::Ready(Err(End::Closed(BROKEN))),
            }
        }
        // In order: while a message is looked through or an answer is judged, what its client says behind it waits.
        while self.looking.is_none()
            && self.admitting.is_none()
            && self.to_service.len() < WAITING_BYTES
            && self.to_client.len() < WAITING_BYTES
        {
            match self.from_client.message() {
                Ok(Some(message)) => {
                    moved = true;
                    if let Some(end) = self.hear_client(message) {
                        return Poll::Ready(Err(end));
                    }
                    continue;
                }
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Err(End::Closed(fault.code()))),
            }
            match self.client.poll_body(&self.worker.buffers, cx) {
                Poll::Ready(Ok(Some(piece))) => {
                    moved = true;
                    self.stint.add(piece.len());
                    self.active.exchange.tunnelled(piece.len() as u64);
                    self.from_client.push(&piece);
                }
                Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(Err(End::Gone)),
                Poll::Pending => break,
            }
        }
        match moved {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    }

    /// Looks through a message, beside the worker where it is long.
    fn look(&mut self, text: String) {
        let bytes = text.len();
        let shares_account = self.shares_account();
        if bytes <= STINT_BYTES {
            return self.client_said(&Heard::of(text, shares_account));
        }
        let places = &self.worker.beside;
        let heard = Box::pin(places.run(move || Heard::of(text, shares_account)));
        self.looking = Some(Looking { bytes, heard });
    }

    fn hear_client(&mut self, message: Message) -> Option<End> {
        match message {
            Message::Text(text) => {
                self.look(text);
                None
            }
            Message::Ping(payload) => {
                websocket::pong(&payload, &mut self.to_client);
                None
            }
            Message::Pong => None,
            Message::Binary(_) => Some(End::Closed(ONLY_TEXT)),
            Message::Close(code) => Some(End::Closed(code.unwrap_or(NORMAL))),
        }
    }

    /// The server's messages to the client, once that has taken those before.
    fn poll_down(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        match self.client.poll_flushed(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Poll::Ready(Err(End::Gone)),
            Poll::Pending if self.client.progressed() => return Poll::Ready(Ok(())),
            Poll::Pending => return Poll::Pending,
        }
        // What it has not taken grows no more, and neither does what the server has not.
        if self.send_down(cx)? {
            return Poll::Ready(Ok(()));
        }
        if self.to_service.len() >= WAITING_BYTES {
            return Poll::Pending;
        }
        let Self {
            service,
            from_service,
            stint,
            ..
        } = self;
        let read = self.worker.buffers.scratch(|scratch| {
            service.poll_chunk(cx, scratch).map(|read| {
                let Chunk { data, is_over } = read.map_err(|_| End::Broke)?;
                stint.add(data.len());
                from_service.push(data);
                Ok(is_over)
            })
        });
        let is_over = match read {
            Poll::Ready(Ok(is_over)) => is_over,
            Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
            Poll::Pending => return Poll::Pending,
        };
        self.service.taken();
        loop {
            match self.from_service.message() {
                Ok(Some(message)) => {
                    if let Some(end) = self.hear_service(message) {
                        return Poll::Ready(Err(end));
                    }
                }
                Ok(None) if is_over => return Poll::Ready(Err(End::Broke)),
                Ok(None) => return Poll::Ready(Ok(())),
                Err(_) => return Poll::Ready(Err(End::Broke)),
            }
        }
    }

    fn hear_service(&mut self, message: Message) -> Option<End> {
        match message {
            Message::Text(text) => {
                self.service_said(text.as_bytes());
                None
            }
            Message::Ping(payload) => {
                let mut out = std::mem::take(&mut self.to_service).to_vec();
                websocket::masked_pong(&payload, self.mask(), &mut out);
                self.to_service = out.into();
                None
            }
            Message::Pong => None,
            Message::Binary(_) => Some(End::Broke),
            Message::Close(code) => Some(End::Closed(code.unwrap_or(NORMAL))),
        }
    }

    /// Gives the client's side what waits for it; whether anything did.
    fn send_down(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.to_client.is_empty() {
            return Ok(false);
        }
        let out = std::mem::take(&mut self.to_client);
        self.active.exchange.forwarded(out.len() as u64);
        match self.client.send(cx, &[&out], false) {
            Ok(()) => Ok(true),
            Err(_) => Err(End::Gone),
        }
    }

    /// An event passes to the server.
    fn pass_up(&mut self, event: &[u8]) {
        let mut out = std::mem::take(&mut self.to_service).to_vec();
        websocket::masked_text(event, self.mask(), &mut out);
        self.to_service = out.into();
    }

    /// The mask of one frame.
    fn mask(&self) -> [u8; 4] {
        let fresh = self.active.view().shard.borrow_mut().fresh();
        let [a, b, c, d, ..] = fresh.to_le_bytes();
        [a, b, c, d]
    }

    /// Tells the client why something is refused; `event` is its name for what it asked.
    fn tell(&mut self, refusal: &Refusal, event: Option<&str>) {
        let reply = refusal.reply();
        let own = self.said.next_id();
        let told = realtime_error(
            reply.kind,
            reply.code,
            &reply.message,
            reply.param,
            (&own, event),
        );
        websocket::text(told.as_bytes(), &mut self.to_client);
    }

    fn wanted(&self, cap: Option<Cap>) -> Wanted {
        Wanted {
            model: self.said.model.clone(),
            told: self.said.told.clone(),
            context: self.said.context,
            cap: cap.or(self.said.cap),
            is_over: false,
        }
    }

    /// Ends what runs, and both sides.
    async fn end(&mut self, end: End, deadline: &mut Deadline) {
        let outcome = match end {
            End::Gone => Outcome::Aborted,
            End::Broke => Outcome::Failed,
            End::Closed(_) => Outcome::Aborted,
        };
        for asked in self.asked.drain(..) {
            asked.answer.cut(outcome);
        }
        for (_, answer) in self.answers.drain(..) {
            answer.cut(outcome);
        }
        let code = match end {
            End::Closed(code) => code,
            End::Gone => GOING_AWAY,
            End::Broke => BROKEN,
        };
        let mut out = std::mem::take(&mut self.to_service).to_vec();
        websocket::masked_close(code, self.mask(), &mut out);
        self.to_service = out.into();
        if end != End::Gone {
            websocket::close(code, &mut self.to_client);
        }
        poll_fn(|cx| {
            let up = self.service.poll_send(&mut self.to_service, cx);
            let down = match end {
                End::Gone => Poll::Ready(()),
                End::Broke | End::Closed(_) => match self.send_down(cx) {
                    Ok(_) => self.client.poll_flushed(cx).map(|_| ()),
                    Err(_) => Poll::Ready(()),
                },
            };
            match (up, down) {
                (Poll::Ready(_), Poll::Ready(())) => Poll::Ready(()),
                _ => deadline.poll(cx),
            }
        })
        .await;
    }
}

impl<D> Drop for Session<'_, D> {
    fn drop(&mut self) {
        self.worker.drop_body(self.kept);
    }
}
