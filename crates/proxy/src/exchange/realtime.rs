//! A WebSocket of the Realtime API on its way: messages pass both ways, and each answer on it is a call of its own.
//!
//! Invariant: every message is read whole before it passes. A client's `response.create` passes once it is admitted, and is refused by an
//! event where it is not; an answer that the server makes by itself is admitted when it begins, and ends the session where it is not.
//! What is kept of either side has a bound. A long message of a client's is looked through beside the worker, and what its client says
//! behind it waits.
//! Not here: who may open a session, and the request for it (`policy::exchange`), how it opens (`handshake`), how messages come and go
//! (`messages`), what they say (`said`), one answer (`answer`), frames (`wire::websocket`).

mod answer;
mod handshake;
mod messages;
mod ran;
mod said;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use policy::attempt::Failure;
use policy::exchange::{Relay, Verdict};
use policy::record::Outcome;
use policy::refusal::Refusal;
use wire::call::Cap;
use wire::head::RequestHead;
use wire::meter::Meter;
use wire::usage::Reading;
use wire::websocket::{self, Reader};

use self::answer::{Answer, Opening, Wanted};
use self::handshake::{handshake, opening};
use self::messages::ToService;
use self::said::Heard;
use super::active::ActiveExchange;
use super::unfinished::Unfinished;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::stint::Stint;
use crate::upstream::{Body, Response};
use crate::worker::Worker;

/// As long as OpenAI keeps one.
const LIFE: Duration = Duration::from_secs(60 * 60);
/// How long either side may take for the end of a session.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Answers that may be asked for and not over at one time.
const ANSWERS_MAX: usize = 16;
/// Codes that end a session.
const GOING_AWAY: u16 = 1001;
const REFUSED: u16 = 1008;
/// A message was begun and not ended in time.
const UNFINISHED: u16 = 1008;
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
        return active.refuse_unread(Refusal::Upstream(Failure::BadResponse));
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
    let bounds = active.view().snapshot().bounds;
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
        from_client: Unfinished::new(&worker, &bounds, most),
        from_service: Reader::of_server(most),
        to_client: Vec::new(),
        sending: 0,
        to_service: ToService::default(),
        kept: 0,
        said: said::Said::new(model),
        looking: None,
        admitting: None,
        asked: VecDeque::new(),
        made: Vec::new(),
        answers: Vec::new(),
        transcribing: Vec::new(),
        stint: Stint::default(),
        waits_for_client: false,
        service_is_over: false,
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
    /// It is no part of the conversation.
    is_apart: bool,
}

/// One that was asked for, and that the server has not begun.
struct AskedFor {
    id: Box<str>,
    answer: Answer,
}

/// One that the server makes by itself, while it is judged.
struct Made<'s> {
    id: Box<str>,
    wanted: Wanted,
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
    from_client: Unfinished,
    from_service: Reader,
    to_client: Vec<u8>,
    /// Bytes that were given to the client's connection and have not left.
    sending: usize,
    to_service: ToService,
    /// Bytes that are counted as kept.
    kept: usize,
    said: said::Said,
    looking: Option<Looking<'s>>,
    admitting: Option<Create<'s>>,
    asked: VecDeque<AskedFor>,
    made: Vec<Made<'s>>,
    answers: Vec<(Box<str>, Answer)>,
    /// Items that are being written down, and the bytes of each so far.
    transcribing: Vec<(Box<str>, usize)>,
    stint: Stint,
    /// Nothing is left to do of what its client said.
    waits_for_client: bool,
    /// The server says no more.
    service_is_over: bool,
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
            if self.waits_for_client && self.from_client.poll(cx).is_ready() {
                return Poll::Ready(End::Closed(UNFINISHED));
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
        let now = held + self.to_client.len() + self.sending + self.to_service.len();
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
                    self.owes(made, Outcome::Aborted);
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
                (answer.runs, answer.is_apart) = (true, create.is_apart);
                let id = create.id;
                self.asked.push_back(AskedFor { id, answer });
            }
            Err(refusal) => self.tell(&refusal, create.named.as_deref()),
        }
    }

    fn wanted(&self, cap: Option<Cap>) -> Wanted {
        Wanted {
            model: self.said.model.clone(),
            told: self.said.told.clone(),
            context: self.said.context,
            cap: cap.or(self.said.cap),
            is_over: false,
            is_made: false,
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
        self.owes_all(outcome);
        let code = match end {
            End::Closed(code) => code,
            End::Gone => GOING_AWAY,
            End::Broke => BROKEN,
        };
        let mask = self.mask();
        websocket::masked_close(code, mask, self.to_service.last());
        if end != End::Gone {
            websocket::close(code, &mut self.to_client);
        }
        poll_fn(|cx| {
            let up = self.to_service.poll_send(self.service, cx);
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
        self.owes_all(Outcome::Aborted);
        self.worker.drop_body(self.kept);
    }
}
