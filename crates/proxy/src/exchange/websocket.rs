//! A WebSocket of the Responses API: each `response.create` of its client is a call like any other, and the events of the answer are its
//! messages.
//!
//! Invariant: every call is identified, admitted, held, settled and recorded as if it had come over HTTP, with the fields of the request
//! that opened the connection; one runs at a time. The last response that was done is kept for the connection, so that the next call can
//! go on from it whoever made it. What waits of a client has a bound, and counts as the bodies of requests do. What waits for a client has
//! one too: of its pings the latest alone is answered, and between calls nothing more is read until it took what it was sent.
//! Not here: frames (`wire::websocket`), what the client of one call sees (`framed`), events (`wire::call`).

mod framed;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use policy::clock::Mono;
use policy::exchange::Verdict;
use policy::record::Closed;
use wire::call::{ClientEvent, GoingOn, error_event};
use wire::head::{Known, RequestHead};
use wire::websocket::{self, Message};

use self::framed::Framed;
use super::active::ActiveExchange;
use super::unfinished::Unfinished;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::stint::STINT_BYTES;
use crate::worker::Worker;

/// As long as OpenAI keeps one: a connection is renewed within the hour.
const LIFE: Duration = Duration::from_secs(60 * 60);
/// Messages that wait while a call runs.
const WAITING: usize = 8;
/// What is added to a client's key (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Codes that end a connection.
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const ONLY_TEXT: u16 = 1003;
/// A message was begun and not ended in time.
const UNFINISHED: u16 = 1008;
const NO_ROOM: u16 = 1013;

/// Speaks with a client to the end of the connection.
pub(super) async fn serve(
    active: &mut ActiveExchange,
    head: &RequestHead,
    client: &mut dyn Downstream,
    deadline: &mut Deadline,
) -> Verdict {
    let worker = Rc::clone(active.worker());
    let key = head.fields.by_name(b"sec-websocket-key").next();
    if !client.switch() {
        return active.disconnected();
    }
    let accept = accept(key.unwrap_or_default());
    client.field(b"sec-websocket-accept", accept.as_bytes());
    client.field(b"x-request-id", active.exchange.record().id.as_bytes());
    client.begun();
    let now = worker.now();
    active.exchange.timing.first_byte(now, true);
    let bounds = active.view().snapshot().bounds;
    let most = usize::try_from(bounds.body_bytes).unwrap_or(usize::MAX);
    let mut session = Session {
        worker: Rc::clone(&worker),
        client,
        reader: Unfinished::new(&worker, &bounds, most),
        waiting: VecDeque::new(),
        out: Vec::new(),
        sending: 0,
        pong: None,
        asked: 0,
        event: 0,
        kept: 0,
        last: None,
        last_kept: 0,
        ends: now.after(LIFE),
        stall: bounds.write_stall,
        leaves: None,
        is_gone: false,
    };
    let call = call_head(head);
    deadline.set(LIFE);
    let code = session.run(&call, deadline).await;
    if let (Some(code), false) = (code, session.is_gone) {
        websocket::close(code, &mut session.out);
        deadline.set(session.stall);
        session.flush(deadline).await;
    }
    match session.is_gone {
        true => active.disconnected(),
        false => active.exchange.sent_whole(false),
    }
}

/// What proves that the key of a request was read.
pub(super) fn accept(key: &[u8]) -> String {
    use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat()))
}

/// The head that each call has: that of the request which opened the connection, but for what is of that alone.
fn call_head(opened: &RequestHead) -> RequestHead {
    let mut head = RequestHead::new();
    let is_set = head
        .set_method("POST")
        .and_then(|()| head.set_target(opened.path()));
    debug_assert!(is_set.is_ok(), "the path was served");
    for field in opened.fields.iter() {
        let is_of_the_connection = matches!(
            field.known,
            Known::Connection
                | Known::Upgrade
                | Known::ContentLength
                | Known::TransferEncoding
                | Known::ContentType
                | Known::ContentEncoding
                | Known::AcceptEncoding
                | Known::Expect
                | Known::KeepAlive
                | Known::Te
                | Known::XRequestId
        );
        if !is_of_the_connection && !field.name.starts_with(b"sec-websocket-") {
            // There is room for what was in a head.
            let _pushed = head.fields.push(field.name, field.value);
        }
    }
    let _pushed = head.fields.push(b"content-type", b"application/json");
    head
}

/// The last response that was done: what a call that names it goes on from.
#[derive(Debug)]
struct Last {
    id: Box<str>,
    /// All items to its end: a list.
    items: Vec<u8>,
}

/// What a client's message asks for.
enum Asked {
    /// A call with this body.
    Call(Vec<u8>),
    /// An event of this name, which is none of a call.
    Other(Box<str>),
    NoEvent,
}

impl Asked {
    /// Reads a message. A call that goes on from the last response of its connection is one with all turns before it.
    fn read(text: String, last: Option<&Last>) -> Self {
        let Some(event) = ClientEvent::read(text.as_bytes()) else {
            return Self::NoEvent;
        };
        if &*event.name != "response.create" {
            return Self::Other(event.name);
        }
        let body = event.body(text.as_bytes());
        drop(text);
        let Some(last) = last else {
            return Self::Call(body);
        };
        Self::Call(match GoingOn::read(&body) {
            Some(going) if going.previous.as_deref() == Some(&*last.id) => {
                going.with_items(&body, std::iter::once(&*last.items))
            }
            _ => body,
        })
    }
}

/// A connection, between its calls.
struct Session<'c> {
    worker: Rc<Worker>,
    client: &'c mut dyn Downstream,
    reader: Unfinished,
    /// Messages that came while a call ran.
    waiting: VecDeque<String>,
    /// Frames that have not left.
    out: Vec<u8>,
    /// Bytes of frames that were given to the client's connection and have not left.
    sending: usize,
    /// What the latest ping wants back: it goes when all before it has left (RFC 6455, 5.5.3).
    pong: Option<Vec<u8>>,
    /// Bytes of what the running call was asked.
    asked: usize,
    /// Bytes of the event of its answer that has not ended.
    event: usize,
    /// Bytes that are counted as kept, but for the last response.
    kept: usize,
    last: Option<Last>,
    /// Bytes that are counted of that.
    last_kept: usize,
    /// When its time is over.
    ends: Mono,
    /// A client that takes nothing for so long is gone.
    stall: Duration,
    /// The code by which it ends, for what came while a call ran.
    leaves: Option<u16>,
    is_gone: bool,
}

/// What is waited for between calls.
enum Next {
    Message(String),
    /// It is over, by this code; without one the client has left.
    Over(Option<u16>),
}

impl Session<'_> {
    /// Serves call after call. Gives the code by which the connection is ended, where it is the gate that ends it.
    async fn run(&mut self, head: &RequestHead, deadline: &mut Deadline) -> Option<u16> {
        let worker = Rc::clone(&self.worker);
        let mut calls = Deadline::new(&worker.clock.wheel);
        loop {
            let text = match self.next(deadline, &mut calls).await {
                Next::Message(text) => text,
                Next::Over(code) => return code,
            };
            match self.read(text).await {
                Asked::Call(body) => self.call(head, body, &mut calls).await,
                Asked::Other(name) => {
                    let says = format!("the event {name:?} is not served here");
                    self.refuse(&says);
                }
                Asked::NoEvent => {
                    self.refuse("a message has to be an event: an object with one `type`");
                }
            }
            // What was served or refused is kept no more.
            self.count();
            if self.is_gone || self.leaves.is_some() {
                return self.leaves;
            }
        }
    }

    /// Reads a message, a long one beside the worker.
    async fn read(&mut self, text: String) -> Asked {
        if text.len() <= STINT_BYTES {
            return Asked::read(text, self.last.as_ref());
        }
        let last = self.last.take();
        let worker = Rc::clone(&self.worker);
        let read = worker.beside.run(move || {
            let asked = Asked::read(text, last.as_ref());
            (asked, last)
        });
        match read.await {
            Some((asked, last)) => {
                self.last = last;
                asked
            }
            None => Asked::NoEvent,
        }
    }

    /// One call, from its message to the last event of its answer.
    async fn call(&mut self, head: &RequestHead, body: Vec<u8>, deadline: &mut Deadline) {
        let worker = Rc::clone(&self.worker);
        let view = worker.view();
        let length = Some(body.len() as u64);
        let mut framed = Framed::new(self, body);
        // Boxed, and no type of its own: an exchange that is served here is served as all others are.
        let serving: Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(super::serve(
            &worker,
            view,
            head,
            length,
            &mut framed,
            deadline,
        ));
        serving.await;
        framed.end();
    }

    /// Tells the client that a message of its own cannot be served.
    fn refuse(&mut self, says: &str) {
        let event = error_event(400, "invalid_request_error", "unknown_event", says);
        websocket::text(event.as_bytes(), &mut self.out);
    }

    /// The next message, when the client has taken what it was sent.
    async fn next(&mut self, deadline: &mut Deadline, stalled: &mut Deadline) -> Next {
        let worker = Rc::clone(&self.worker);
        let mut drained = pin!(worker.drained.notified());
        stalled.set(self.stall);
        let next = poll_fn(|cx| {
            loop {
                match self.poll_sent(cx) {
                    Poll::Ready(Ok(())) => stalled.set(self.stall),
                    Poll::Ready(Err(())) => return Poll::Ready(Next::Over(None)),
                    Poll::Pending => {
                        if self.client.progressed() {
                            stalled.set(self.stall);
                        }
                        return stalled.poll(cx).map(|()| self.stalled());
                    }
                }
                if worker.clock.latest() >= self.ends {
                    return Poll::Ready(Next::Over(Some(GOING_AWAY)));
                }
                if let Some(text) = self.waiting.pop_front() {
                    return Poll::Ready(Next::Message(text));
                }
                match self.reader.message() {
                    Ok(Some(message)) => match self.hear(message) {
                        Some(next) => return Poll::Ready(next),
                        None => continue,
                    },
                    Ok(None) => {}
                    Err(fault) => return Poll::Ready(Next::Over(Some(fault.code()))),
                }
                if worker.is_draining() || drained.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Next::Over(Some(GOING_AWAY)));
                }
                match self.poll_read(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(code)) => return Poll::Ready(Next::Over(code)),
                    Poll::Pending => {
                        if self.reader.poll(cx).is_ready() {
                            return Poll::Ready(Next::Over(Some(UNFINISHED)));
                        }
                        let over = || Next::Over(Some(GOING_AWAY));
                        return deadline.poll(cx).map(|()| over());
                    }
                }
            }
        })
        .await;
        stalled.clear();
        next
    }

    /// The client takes nothing.
    fn stalled(&mut self) -> Next {
        self.worker.closed(Closed::WriteStall);
        self.is_gone = true;
        Next::Over(None)
    }

    /// Takes a message; gives it on where it is one to be served.
    fn hear(&mut self, message: Message) -> Option<Next> {
        match message {
            Message::Text(text) => Some(Next::Message(text)),
            Message::Binary(_) => Some(Next::Over(Some(ONLY_TEXT))),
            Message::Ping(payload) => {
                self.pong = Some(payload);
                None
            }
            Message::Pong => None,
            Message::Close(code) => Some(Next::Over(Some(code.unwrap_or(NORMAL)))),
        }
    }

    /// What came while a call runs ends the connection, by this code unless the client has left: for the call its client is gone.
    fn leave(&mut self, code: Option<u16>) -> Poll<()> {
        self.leaves = code;
        self.is_gone |= code.is_none();
        Poll::Ready(())
    }

    /// Reads what has come. An error ends the connection, by its code unless the client has left.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Option<u16>>> {
        let piece = match self.client.poll_body(&self.worker.buffers, cx) {
            Poll::Ready(Ok(Some(piece))) => piece,
            Poll::Ready(Ok(None) | Err(_)) => {
                self.is_gone = true;
                return Poll::Ready(Err(None));
            }
            Poll::Pending => return Poll::Pending,
        };
        self.reader.push(&piece);
        match self.count() {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(Some(NO_ROOM))),
        }
    }

    /// Whether so much waits that no more is read until it was served.
    fn has_much_waiting(&self) -> bool {
        self.waiting.len() >= WAITING
    }

    /// Reads what has come, and sends what goes where nothing has.
    fn poll_read_or_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Option<u16>>> {
        let read = self.poll_read(cx);
        if read.is_pending()
            && let Poll::Ready(Err(())) = self.poll_sent(cx)
        {
            return Poll::Ready(Err(None));
        }
        read
    }

    /// Keeps the last response, where there is room for it: connections that wait for their next call leave half of it to calls.
    fn keep(&mut self, last: Option<Last>) {
        let bytes = last.as_ref().map_or(0, |last| last.items.len());
        let bound = self.worker.view().snapshot().bounds.bodies_bytes / 2;
        self.worker.drop_body(self.last_kept);
        (self.last, self.last_kept) = match self.worker.keep_body(bytes, bound) {
            true => (last, bytes),
            false => (None, 0),
        };
    }

    /// Counts what is kept but for the last response; false where there is no room for it.
    fn count(&mut self) -> bool {
        let waiting: usize = self.waiting.iter().map(String::len).sum();
        let unsent = self.out.len() + self.sending;
        let now = self.reader.held() + waiting + self.asked + self.event + unsent;
        let bound = self.worker.view().snapshot().bounds.bodies_bytes;
        if now <= self.kept {
            self.worker.drop_body(self.kept - now);
        } else if !self.worker.keep_body(now - self.kept, bound) {
            return false;
        }
        self.kept = now;
        true
    }

    /// Sends what has not left, as far as it goes. What comes after it waits here until it did.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let sent = self.poll_all(cx);
        self.is_gone |= matches!(sent, Poll::Ready(Err(_)));
        sent.map_err(|_| ())
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.client.poll_flushed(cx))?;
        if std::mem::take(&mut self.sending) > 0 {
            self.count();
        }
        if let Some(payload) = self.pong.take() {
            websocket::pong(&payload, &mut self.out);
        }
        if self.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let out = std::mem::take(&mut self.out);
        self.sending = out.len();
        self.client.send(cx, &[&out], false)?;
        ready!(self.client.poll_flushed(cx))?;
        self.sending = 0;
        self.count();
        Poll::Ready(Ok(()))
    }

    /// Waits until all has left, for so long.
    async fn flush(&mut self, deadline: &mut Deadline) {
        poll_fn(|cx| match self.poll_sent(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => deadline.poll(cx),
        })
        .await;
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.worker.drop_body(self.kept + self.last_kept);
    }
}

#[cfg(test)]
mod tests {
    //! The handshake.

    use super::accept;

    #[test]
    fn a_key_is_accepted_as_rfc_6455_has_it() {
        assert_eq!(
            accept(b"dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }
}
