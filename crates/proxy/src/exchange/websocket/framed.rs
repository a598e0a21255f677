//! The client of one call over a WebSocket: the message that it sent is the request's body, and the events of the answer become messages.
//!
//! Invariant: the client is told the end of every call, by the answer's last event or by an error of the gate's; what is no stream of
//! events is told as an error, by its status.
//! Not here: what comes between calls (`websocket`).

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use policy::caller::Peer;
use wire::call::{Ended, ends_call, error_event, error_event_of};
use wire::sse::DataReader;
use wire::websocket::{self, Message};

use super::{Last, Next, Session};
use crate::buffer::Buffers;
use crate::client::{BodyFault, BodyLength, Downstream};

/// Of a refusal, no more is read.
const DOCUMENT_BYTES: usize = 64 << 10;
/// An event of an answer has no more bytes: as many as are read of a whole answer.
const EVENT_BYTES: usize = 16 << 20;

/// One call.
pub(super) struct Framed<'s, 'c> {
    session: &'s mut Session<'c>,
    /// The body of the request, until it is read.
    body: Option<Bytes>,
    /// The same, for the call that goes on from this one.
    asked: Bytes,
    status: u16,
    /// The answer is a stream of events, which are read here.
    events: Option<DataReader>,
    /// An answer that is none.
    document: Vec<u8>,
    has_sent: bool,
    /// The client was told the end.
    is_over: bool,
}

impl<'s, 'c> Framed<'s, 'c> {
    pub(super) fn new(session: &'s mut Session<'c>, body: Vec<u8>) -> Self {
        let asked = Bytes::from(body);
        session.asked = asked.len();
        // Where there is no room for it, the call itself is refused.
        let _has_room = session.count();
        Self {
            session,
            body: Some(asked.clone()),
            asked,
            status: 0,
            events: None,
            document: Vec::new(),
            has_sent: false,
            is_over: false,
        }
    }

    /// The call is over: tells the client so, where nothing else did.
    pub(super) fn end(&mut self) {
        if !self.is_over && !self.session.is_gone && self.session.leaves.is_none() {
            let says = "the answer ended without its end";
            self.fail(502, "upstream_error", "upstream_cut", says);
        }
        (self.session.asked, self.session.event) = (0, 0);
    }

    fn fail(&mut self, status: u16, kind: &str, code: &str, says: &str) {
        let event = error_event(status, kind, code, says);
        self.tell(event.as_bytes());
    }

    /// Tells the client an event.
    fn tell(&mut self, event: &[u8]) {
        if self.is_over || event == b"[DONE]" {
            return;
        }
        self.is_over = ends_call(event);
        self.has_sent = true;
        websocket::text(event, &mut self.session.out);
        if let Some(ended) = Ended::read(event) {
            let items = ended.items(event, &self.asked);
            self.session.keep(items.map(|items| Last {
                id: ended.id,
                items,
            }));
        }
    }

    /// Takes a piece of the answer. An error is an event that nobody can keep, of which the client was told.
    fn take(&mut self, piece: &[u8]) -> Result<(), ()> {
        match self.events.take() {
            Some(mut events) => {
                events.push(piece, |event| self.tell(event));
                self.session.event = events.held();
                if events.held() > EVENT_BYTES {
                    let says = "an event of the answer is longer than 16 MiB";
                    self.fail(502, "upstream_error", "upstream_bad_response", says);
                    return Err(());
                }
                if !self.session.count() {
                    let says = "there is no room for an event of the answer";
                    self.fail(503, "server_error", "overloaded", says);
                    return Err(());
                }
                self.events = Some(events);
            }
            None => {
                let room = DOCUMENT_BYTES.saturating_sub(self.document.len());
                let taken = piece.get(..room).unwrap_or(piece);
                self.document.extend_from_slice(taken);
            }
        }
        Ok(())
    }

    /// The answer is whole.
    fn finish(&mut self) {
        if let Some(events) = self.events.take() {
            if let Some(event) = events.unfinished() {
                self.tell(&event);
            }
            return;
        }
        if let 200..=299 = self.status {
            let says = "the upstream answered without a stream";
            return self.fail(502, "upstream_error", "upstream_bad_response", says);
        }
        let document = std::mem::take(&mut self.document);
        match error_event_of(self.status, &document) {
            Some(event) => self.tell(&event),
            None => {
                let says = "the upstream answered an error that cannot be read";
                self.fail(self.status, "upstream_error", "upstream_bad_response", says);
            }
        }
    }
}

impl Downstream for Framed<'_, '_> {
    fn peer(&self) -> Peer {
        self.session.client.peer()
    }

    fn poll_body(
        &mut self,
        _buffers: &Buffers,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        Poll::Ready(Ok(self.body.take()))
    }

    fn poll_gone(&mut self, _buffers: &Buffers, cx: &mut Context<'_>) -> Poll<()> {
        let session = &mut *self.session;
        if session.leaves.is_some() {
            return Poll::Ready(());
        }
        loop {
            match session.reader.message() {
                Ok(Some(Message::Text(text))) => session.waiting.push_back(text),
                Ok(None) if session.has_much_waiting() => break,
                Ok(None) => match ready!(session.poll_read_or_sent(cx)) {
                    Ok(()) => {}
                    Err(code) => return session.leave(code),
                },
                Ok(Some(message)) => match session.hear(message) {
                    Some(Next::Over(code)) => return session.leave(code),
                    Some(Next::Message(_)) | None => {}
                },
                Err(fault) => return session.leave(Some(fault.code())),
            }
        }
        let _sent = session.poll_sent(cx);
        Poll::Pending
    }

    fn begin(&mut self, status: u16, _extent: BodyLength) {
        self.status = status;
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        const EVENTS: &[u8] = b"text/event-stream";
        let kind = value.get(..EVENTS.len()).unwrap_or_default();
        if name == b"content-type" && kind.eq_ignore_ascii_case(EVENTS) {
            self.events = Some(DataReader::new());
        }
    }

    fn date(&mut self) {}

    fn begun(&mut self) {}

    fn retract(&mut self) -> bool {
        if self.has_sent {
            return false;
        }
        (self.status, self.events) = (0, None);
        self.document.clear();
        true
    }

    fn send(&mut self, cx: &mut Context<'_>, pieces: &[&[u8]], end: bool) -> io::Result<()> {
        let taken = pieces.iter().try_for_each(|piece| self.take(piece));
        if end && taken.is_ok() {
            self.finish();
        }
        match self.session.poll_sent(cx) {
            Poll::Ready(Err(())) => Err(io::ErrorKind::ConnectionReset.into()),
            Poll::Ready(Ok(())) | Poll::Pending => {
                taken.map_err(|()| io::ErrorKind::InvalidData.into())
            }
        }
    }

    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = self.session.poll_sent(cx);
        sent.map_err(|()| io::ErrorKind::ConnectionReset.into())
    }

    fn progressed(&mut self) -> bool {
        self.session.client.progressed()
    }

    fn cut(&mut self) {
        let says = "the upstream's stream broke off";
        self.fail(502, "upstream_error", "upstream_cut", says);
    }

    fn abandon(&mut self) {
        self.session.is_gone |= self.session.leaves.is_none();
    }
}
