//! The response on its way: measured, and forwarded as it arrives; or read to its end when its client has left.
//!
//! Invariant: body bytes pass as they came, but for the usage event that the gate asked for and the
//! client did not. No more than one read waits for a slow client.
//! Not here: what becomes of a response (`policy::exchange`), reading usage (`wire::meter`), the head (`head`), a response
//! whose filters change it (`filtered`), the rest of one that nobody waits for (`unattended`).

mod filtered;
mod head;
mod unattended;

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use policy::exchange::{Relay, Verdict};
use policy::operation::Operation;
use policy::record::{Closed, Gauge};
use wire::filter::Stop;
use wire::meter::Meter;

use self::filtered::Room;
pub(super) use self::head::begin;
pub(super) use self::unattended::read_to_end;
use super::active::ActiveExchange;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::stint::Stint;
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
