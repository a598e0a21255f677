//! A WebSocket on its way: after the head of its 101, bytes pass both ways as they come.
//!
//! Invariant: of each direction one piece waits at most, and neither direction waits for the other; a tunnel in which
//! nothing moves for as long as its backend's answers may be silent is ended.
//! Not here: frames, which nobody reads; who may open one and what it counts (`policy::exchange`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use policy::exchange::{Relay, Verdict};
use wire::meter::Meter;

use super::active::ActiveExchange;
use super::relay;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::stint::Stint;
use crate::upstream::{Body, Chunk, Response};
use crate::worker::Worker;

/// How long a service may go on after its client ended its side.
const AFTER_CLIENT: Duration = Duration::from_secs(5);

/// Why a tunnel is over.
enum End {
    /// The service ended it, and the client has all of it; or nothing moved.
    Whole,
    /// The service broke it off.
    Broke,
    /// The client is gone.
    Gone,
}

/// Forwards the head, then both directions to the end.
pub(super) async fn run<D: Downstream>(
    active: &mut ActiveExchange,
    relay: &Relay,
    response: &mut Response,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    active.meter = Meter::new(relay.form);
    let worker = Rc::clone(active.worker());
    relay::begin(active, response, relay, client);
    let now = worker.now();
    active.exchange.answers(now, false);
    let mut tunnel = Tunnel {
        worker: &worker,
        active,
        client,
        service: &mut response.body,
        deadline,
        idle: relay.idle,
        waiting: Bytes::new(),
        client_end: ClientEnd::Open,
        is_over: false,
        stint: Stint::default(),
    };
    tunnel.deadline.set(tunnel.idle);
    match poll_fn(|cx| tunnel.poll(cx)).await {
        End::Whole => active.exchange.sent_whole(false),
        End::Broke => active.exchange.response_broke(false, false),
        End::Gone => active.disconnected(),
    }
}

/// How far a client's side has come to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientEnd {
    Open,
    /// It ended; the service is not told yet.
    Untold,
    Told,
}

struct Tunnel<'a, D> {
    worker: &'a Worker,
    active: &'a mut ActiveExchange,
    client: &'a mut D,
    service: &'a mut Body,
    deadline: &'a mut Deadline,
    idle: Duration,
    /// What the client sent and the service has not taken.
    waiting: Bytes,
    client_end: ClientEnd,
    /// The service ended its side.
    is_over: bool,
    stint: Stint,
}

impl<D: Downstream> Tunnel<'_, D> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if self.stint.poll_pass(cx).is_pending() {
                return Poll::Pending;
            }
            // Each turn moves one piece each way, so that neither side holds up the other.
            let up = match self.poll_up(cx) {
                Poll::Ready(Err(end)) => return Poll::Ready(end),
                Poll::Ready(Ok(())) => true,
                Poll::Pending => false,
            };
            let down = match self.poll_down(cx) {
                Poll::Ready(Err(end)) => return Poll::Ready(end),
                Poll::Ready(Ok(())) => true,
                Poll::Pending => false,
            };
            if !up && !down {
                return self.deadline.poll(cx).map(|()| End::Whole);
            }
            self.deadline.set(match self.client_end {
                ClientEnd::Open => self.idle,
                ClientEnd::Untold | ClientEnd::Told => AFTER_CLIENT.min(self.idle),
            });
        }
    }

    /// A piece from the client to the service. Ready where something moved.
    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        if !self.waiting.is_empty() {
            let before = self.waiting.len();
            return match self.service.poll_send(&mut self.waiting, cx) {
                Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
                // It may have said why before; what it said is read to its end.
                Poll::Ready(Err(_)) => {
                    self.waiting = Bytes::new();
                    self.client_end = ClientEnd::Told;
                    Poll::Ready(Ok(()))
                }
                Poll::Pending if self.waiting.len() < before => {
                    self.deadline.set(self.idle);
                    Poll::Pending
                }
                Poll::Pending => Poll::Pending,
            };
        }
        match self.client_end {
            ClientEnd::Told => Poll::Pending,
            ClientEnd::Untold => match self.service.poll_shut(cx) {
                Poll::Ready(_) => {
                    self.client_end = ClientEnd::Told;
                    Poll::Ready(Ok(()))
                }
                Poll::Pending => Poll::Pending,
            },
            ClientEnd::Open => match self.client.poll_body(&self.worker.buffers, cx) {
                Poll::Ready(Ok(Some(piece))) => {
                    self.stint.add(piece.len());
                    self.active.exchange.tunnelled(piece.len() as u64);
                    self.waiting = piece;
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Ok(None)) => {
                    self.client_end = ClientEnd::Untold;
                    Poll::Ready(Ok(()))
                }
                Poll::Ready(Err(_)) => Poll::Ready(Err(End::Gone)),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    /// A piece from the service to the client, once that has taken the one before.
    fn poll_down(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        match self.client.poll_flushed(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Poll::Ready(Err(End::Gone)),
            Poll::Pending => {
                if self.client.progressed() {
                    self.deadline.set(self.idle);
                }
                return Poll::Pending;
            }
        }
        if self.is_over {
            return Poll::Ready(Err(End::Whole));
        }
        let Self {
            active,
            client,
            service,
            ..
        } = self;
        let moved = self.worker.buffers.scratch(|scratch| {
            service.poll_chunk(cx, scratch).map(|read| {
                let Chunk { data, is_over } = read.map_err(|_| End::Broke)?;
                active.exchange.forwarded(data.len() as u64);
                if !data.is_empty() {
                    client.send(cx, &[data], false).map_err(|_| End::Gone)?;
                }
                Ok((data.len(), is_over))
            })
        });
        let (bytes, is_over) = match moved {
            Poll::Ready(Ok(moved)) => moved,
            Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
            Poll::Pending => return Poll::Pending,
        };
        self.service.taken();
        self.stint.add(bytes);
        self.is_over = is_over;
        Poll::Ready(Ok(()))
    }
}
