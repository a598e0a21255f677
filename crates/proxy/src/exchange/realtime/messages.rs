//! How messages of a session come and go: each is read whole from one side before it passes to the other.
//!
//! Invariant: no more is read of a side while [`WAITING_BYTES`] wait for the other; while a message is looked through or an answer is
//! judged, what its client says behind it waits.
//! Not here: what messages say (`said`), frames (`wire::websocket`).

use std::task::{Context, Poll};

use bytes::Bytes;
use policy::refusal::Refusal;
use wire::call::realtime_error;
use wire::websocket::{self, Message};

use super::said::Heard;
use super::{BROKEN, End, Looking, Session};
use crate::client::Downstream;
use crate::stint::STINT_BYTES;
use crate::upstream::{Body, Chunk};

/// No more is read of a side while so much waits for the other.
const WAITING_BYTES: usize = 256 << 10;
/// A code that ends a session.
const NORMAL: u16 = 1000;
const ONLY_TEXT: u16 = 1003;
/// What the work on a message is, beside that on its bytes, in bytes.
const WORK_OF_MESSAGE: usize = 256;

/// Frames on their way to the server.
#[derive(Default)]
pub(super) struct ToService {
    /// What is being sent.
    sending: Bytes,
    /// What waits behind it.
    waiting: Vec<u8>,
}

impl ToService {
    pub(super) fn len(&self) -> usize {
        self.sending.len() + self.waiting.len()
    }

    /// Where the next frame is written.
    pub(super) fn last(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Sends what waits; ready once nothing does.
    pub(super) fn poll_send(
        &mut self,
        service: &mut Body,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), End>> {
        while self.len() > 0 {
            if self.sending.is_empty() {
                self.sending = std::mem::take(&mut self.waiting).into();
            }
            match service.poll_send(&mut self.sending, cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Err(End::Broke)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<D: Downstream> Session<'_, D> {
    /// A client's messages to the server.
    pub(super) fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let mut moved = false;
        let before = self.to_service.len();
        if before > 0 {
            match self.to_service.poll_send(self.service, cx) {
                Poll::Ready(Ok(())) => moved = true,
                Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
                Poll::Pending => moved = self.to_service.len() < before,
            }
        }
        self.waits_for_client = false;
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
            && !self.stint.is_over()
        {
            match self.from_client.message() {
                Ok(Some(message)) => {
                    moved = true;
                    self.stint.add(WORK_OF_MESSAGE);
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
                Poll::Pending => {
                    self.waits_for_client = true;
                    break;
                }
            }
        }
        match moved || self.stint.is_over() {
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
    pub(super) fn poll_down(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        match self.client.poll_flushed(cx) {
            Poll::Ready(Ok(())) => self.sending = 0,
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
        let mut heard = false;
        loop {
            match self.from_service.message() {
                Ok(Some(message)) => {
                    heard = true;
                    self.stint.add(WORK_OF_MESSAGE);
                    if let Some(end) = self.hear_service(message) {
                        return Poll::Ready(Err(end));
                    }
                    if self.stint.is_over() {
                        return Poll::Ready(Ok(()));
                    }
                }
                // What it says is for the client before more is read.
                Ok(None) if heard => return Poll::Ready(Ok(())),
                Ok(None) if self.service_is_over => return Poll::Ready(Err(End::Broke)),
                Ok(None) => return self.poll_service(cx),
                Err(_) => return Poll::Ready(Err(End::Broke)),
            }
        }
    }

    /// Reads what has come from the server.
    fn poll_service(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
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
        match read {
            Poll::Ready(Ok(is_over)) => self.service_is_over = is_over,
            Poll::Ready(Err(end)) => return Poll::Ready(Err(end)),
            Poll::Pending => return Poll::Pending,
        }
        self.service.taken();
        Poll::Ready(Ok(()))
    }

    fn hear_service(&mut self, message: Message) -> Option<End> {
        match message {
            Message::Text(text) => {
                self.service_said(text.as_bytes());
                None
            }
            Message::Ping(payload) => {
                let mask = self.mask();
                websocket::masked_pong(&payload, mask, self.to_service.last());
                None
            }
            Message::Pong => None,
            Message::Binary(_) => Some(End::Broke),
            Message::Close(code) => Some(End::Closed(code.unwrap_or(NORMAL))),
        }
    }

    /// Gives the client's side what waits for it; whether anything did.
    pub(super) fn send_down(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.to_client.is_empty() {
            return Ok(false);
        }
        let out = std::mem::take(&mut self.to_client);
        self.active.exchange.forwarded(out.len() as u64);
        self.sending = out.len();
        match self.client.send(cx, &[&out], false) {
            Ok(()) => Ok(true),
            Err(_) => Err(End::Gone),
        }
    }

    /// An event passes to the server.
    pub(super) fn pass_up(&mut self, event: &[u8]) {
        let mask = self.mask();
        websocket::masked_text(event, mask, self.to_service.last());
    }

    /// The mask of one frame.
    pub(super) fn mask(&self) -> [u8; 4] {
        let fresh = self.active.view().shard.borrow_mut().fresh();
        let [a, b, c, d, ..] = fresh.to_le_bytes();
        [a, b, c, d]
    }

    /// Tells the client why something is refused; `event` is its name for what it asked.
    pub(super) fn tell(&mut self, refusal: &Refusal, event: Option<&str>) {
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
}
