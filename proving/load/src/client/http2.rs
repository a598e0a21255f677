//! Several exchanges at once on each of a stated number of connections, over HTTP/2.
//!
//! Invariant: parts of a body are handed on as they are, as `Bytes`; windows are [`STREAM_WINDOW`] and [`CONNECTION_WINDOW`]
//! bytes, and what was heard is given back at once, so that a peer waits for us only when we are late.
//! Not here: frames (the crate `h2`).

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, SendStream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::uri::{Parts, PathAndQuery, Scheme};
use http::{Request, Uri};
use tokio::sync::{Mutex, Notify};

use super::failure::Failure;
use super::io::{Io, Unconnected};
use super::response::{Said, is_event_stream, retry_after};
use super::target::Target;
use super::{Answer, Client, ConnectionSlot, HeadWithId, Listener};
use crate::source::Payload;

/// Bytes of one answer that may be under way.
const STREAM_WINDOW: u32 = 4 << 20;
/// Bytes of all answers of a connection that may be under way.
const CONNECTION_WINDOW: u32 = 64 << 20;
/// Bytes of response headers.
const HEADERS_BYTES: u32 = 64 << 10;
/// Streams before the peer has said how many it allows: what is sent beyond that is refused.
const FIRST_STREAMS: usize = 1;

/// Between two looks at whether a peer has said how many streams it allows, or allows any again.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How long is looked for what a peer says at first; later it is noticed when a stream closes.
const LOOKS: u32 = 500;

/// The connections of one thread to one target.
pub(super) struct Pool {
    slots: Box<[Mutex<Option<Shared>>]>,
}

/// A connection that many requests use.
#[derive(Clone)]
struct Shared {
    sender: SendRequest<Bytes>,
    streams: Rc<Streams>,
}

/// Streams that are open on one connection.
#[derive(Default)]
struct Streams {
    open: Cell<usize>,
    closed: Notify,
}

/// The place of one stream among those that the peer allows; a request that has one leaves at once.
pub(super) struct Permit(Rc<Streams>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.closed.notify_one();
    }
}

impl Shared {
    fn new(sender: SendRequest<Bytes>) -> Self {
        Self {
            sender,
            streams: Rc::default(),
        }
    }

    /// Once the peer allows another stream; what is sent sooner would wait in the connection, and count as sent.
    async fn ready(self) -> Result<(SendRequest<Bytes>, Permit), h2::Error> {
        let sender = self.sender.ready().await?;
        let (streams, most) = (&self.streams, || sender.current_max_send_streams());
        while streams.open.get() >= most() {
            if streams.open.get() == 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            } else {
                streams.closed.notified().await;
            }
        }
        streams.open.set(streams.open.get() + 1);
        if streams.open.get() < most() {
            // Whoever waits for what is left is woken one by one.
            streams.closed.notify_one();
        }
        Ok((sender, Permit(self.streams)))
    }

    /// Wakes those who wait, once the peer has said how many streams it allows.
    async fn look(self) {
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK_AGAIN).await;
            if self.sender.current_max_send_streams() != FIRST_STREAMS {
                return self.streams.closed.notify_one();
            }
        }
    }
}

/// One request.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) target: &'a Target,
    pub(super) head: HeadWithId<'a>,
    pub(super) payload: &'a Payload,
}

impl Pool {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            slots: (0..connections).map(|_| Mutex::default()).collect(),
        }
    }

    /// Leaves the connection of a line: what has not answered in time may never answer again.
    pub(super) async fn leave(&self, line: &ConnectionSlot) {
        *self.slots[line.number % self.slots.len()].lock().await = None;
    }

    /// A connection that takes another request.
    pub(super) async fn ready(
        &self,
        client: &Client,
        line: &mut ConnectionSlot,
        target: &Target,
    ) -> Result<(SendRequest<Bytes>, Permit), Unconnected> {
        let slot = &self.slots[line.number % self.slots.len()];
        ready(slot, client, line, target).await
    }
}

/// One exchange on a connection that is ready.
pub(super) async fn exchange(
    (mut sender, _permit): (SendRequest<Bytes>, Permit),
    asked: Outgoing<'_>,
    listener: &mut impl Listener,
) -> Result<Answer, Failure> {
    let request = asked.request()?;
    listener.on_send(Instant::now());
    let is_empty = asked.payload.is_empty();
    let sent = sender.send_request(request, is_empty);
    let (answer, body) = sent.map_err(|error| before_an_answer(&error))?;
    if !is_empty {
        send(body, asked.payload)?;
    }
    let answer = answer.await.map_err(|error| before_an_answer(&error))?;
    listener.on_first_byte(Instant::now());
    let (head, mut body) = answer.into_parts();
    let content_type = head.headers.get(CONTENT_TYPE);
    let retry = head.headers.get(RETRY_AFTER);
    let said = Said {
        retry_after_s: retry.and_then(|value| retry_after(value.as_bytes())),
        status: head.status.as_u16(),
        is_event_stream: content_type.is_some_and(|kind| is_event_stream(kind.as_bytes())),
    };
    while let Some(data) = body.data().await {
        let now = Instant::now();
        let data = data.map_err(|error| within_an_answer(&error))?;
        listener.on_body(now, said, &data);
        let given_back = body.flow_control().release_capacity(data.len());
        given_back.map_err(|error| within_an_answer(&error))?;
    }
    let trailers = body.trailers().await;
    trailers.map_err(|error| within_an_answer(&error))?;
    Ok(Answer {
        said,
        last_byte: Instant::now(),
    })
}

/// A connection that takes another request; one that has ended is opened anew, for nothing was sent on it.
async fn ready(
    slot: &Mutex<Option<Shared>>,
    client: &Client,
    line: &mut ConnectionSlot,
    target: &Target,
) -> Result<(SendRequest<Bytes>, Permit), Unconnected> {
    let mut held = slot.lock().await;
    if let Some(shared) = &*held {
        let shared = shared.clone();
        // Waiting for room on a connection must not keep others from it.
        drop(held);
        if let Ok(ready) = shared.ready().await {
            return Ok(ready);
        }
        held = slot.lock().await;
        let known = match &*held {
            Some(other) => other.clone().ready().await.ok(),
            None => None,
        };
        if let Some(ready) = known {
            return Ok(ready);
        }
        line.reopened += 1;
        *held = None;
    }
    let (sender, connection) = open(client, target).await?;
    // Its end shows itself to whoever asks it next.
    tokio::task::spawn_local(async move { drop(connection.await) });
    let shared = Shared::new(sender);
    *held = Some(shared.clone());
    tokio::task::spawn_local(shared.clone().look());
    drop(held);
    let shut = |error| Unconnected::new(target, Failure::Connect, &error);
    shared.ready().await.map_err(shut)
}

/// A new connection, within the time that one exchange has.
async fn open(
    client: &Client,
    target: &Target,
) -> Result<(SendRequest<Bytes>, h2::client::Connection<Io, Bytes>), Unconnected> {
    let io = client.connect(target).await?;
    if !io.takes_http2() {
        let why = "HTTP/2 was not agreed on";
        return Err(Unconnected::new(target, Failure::Tls, &why));
    }
    let shaking = Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS_BYTES)
        .initial_max_send_streams(FIRST_STREAMS)
        // Of many small events, each in a frame of its own, none is kept.
        .data_frame_budget(usize::try_from(CONNECTION_WINDOW).unwrap_or(usize::MAX))
        .enable_push(false)
        .handshake(io);
    let shaken = tokio::time::timeout(client.reach.timeout, shaking).await;
    let shaken = shaken.map_err(|_| Unconnected::late(target))?;
    shaken.map_err(|error| Unconnected::new(target, Failure::Connect, &error))
}

impl Outgoing<'_> {
    fn request(&self) -> Result<Request<()>, Failure> {
        let (target, (head, id)) = (self.target, self.head);
        let host = head
            .host()
            .map_or(target.authority().as_bytes(), |host| host.as_bytes());
        let path = if target.prefix().is_empty() {
            PathAndQuery::try_from(head.path())
        } else {
            PathAndQuery::try_from(format!("{}{}", target.prefix(), head.path()))
        };
        let mut parts = Parts::default();
        parts.scheme = Some(if target.is_tls() {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        });
        parts.authority = host.try_into().ok();
        parts.path_and_query = path.ok();
        let mut request = Request::new(());
        *request.method_mut() = head.method().clone();
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Failure::Send)?;
        for (name, value) in head.headers() {
            request.headers_mut().append(name, value.clone());
        }
        if let Some((header, id)) = id {
            let value = id.value().ok_or(Failure::Send)?;
            request.headers_mut().append(header.name(), value);
        }
        if !self.payload.is_empty() {
            let length = self.payload.len().into();
            request.headers_mut().insert(CONTENT_LENGTH, length);
        }
        Ok(request)
    }
}

/// Hands every part on; what the peer's window does not take yet stays where it is, as the same bytes.
fn send(mut body: SendStream<Bytes>, payload: &Payload) -> Result<(), Failure> {
    let parts = || payload.parts().iter().filter(|part| !part.is_empty());
    let count = parts().count();
    for (at, part) in parts().enumerate() {
        let sent = body.send_data(part.clone(), at + 1 == count);
        sent.map_err(|_| Failure::Send)?;
    }
    Ok(())
}

fn before_an_answer(error: &h2::Error) -> Failure {
    if is_malformed(error) {
        Failure::Malformed
    } else {
        Failure::Closed
    }
}

fn within_an_answer(error: &h2::Error) -> Failure {
    if is_malformed(error) {
        Failure::Malformed
    } else {
        Failure::Truncated
    }
}

/// What we took for a breach of the protocol.
fn is_malformed(error: &h2::Error) -> bool {
    let breaches = [
        Reason::PROTOCOL_ERROR,
        Reason::FRAME_SIZE_ERROR,
        Reason::COMPRESSION_ERROR,
    ];
    error.is_library()
        && error
            .reason()
            .is_some_and(|reason| breaches.contains(&reason))
}
