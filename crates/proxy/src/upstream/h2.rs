//! One attempt over HTTP/2, and the body of its response; hyper speaks the protocol.
//!
//! Invariant: at most [`Pool::streams`] exchanges share a connection, and no more than its peer takes, once it has said how many;
//! dropping a [`Body`] resets its
//! stream and nothing else.
//! Not here: HTTP/1.1 (`h1`).

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use policy::attempt::Failure;
use policy::exchange::Lost;
use tokio::time::Instant;
use wire::head::{ResponseHead, Version};

use super::pool::{Open, Pool};
use super::{Answered, Chunk, Outgoing, Response, Watch};
use crate::deadline::Deadline;
use crate::stream::Stream;
use crate::timers::Local;
use crate::timers::Timers;

/// Streams that clients left in the last second and whose late frames are still known; the frames of
/// others are answered one by one.
const RESET_STREAMS: usize = 8192;
const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(30);

/// A connection that takes more requests.
#[derive(Clone)]
pub(crate) struct Handle {
    sender: SendRequest<Rope>,
    pub(super) address: IpAddr,
    busy: Rc<Cell<usize>>,
    /// How many streams its peer takes at one time, as it last said.
    takes: Rc<Cell<usize>>,
    /// When it was first seen to carry no exchange since it was last taken; kept by the one in the pool.
    rested: Cell<Option<Instant>>,
}

/// One exchange on a shared connection.
pub(super) struct Busy(Rc<Cell<usize>>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// A response body on an HTTP/2 stream.
pub(crate) struct Body {
    incoming: Incoming,
    /// The frame that was given last.
    frame: Bytes,
    _busy: Busy,
}

impl Handle {
    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Whether it may carry one more: of as many as the pool says, and as its peer does (SETTINGS_MAX_CONCURRENT_STREAMS). One more
    /// than that would wait on it unsent, while another connection is free to be opened.
    fn has_room(&self, streams: usize) -> bool {
        self.busy.get() < streams.min(self.takes.get())
    }

    /// Since when it carries no exchange, as often as this is asked.
    pub(super) fn rests_since(&self, now: Instant) -> Option<Instant> {
        let rests = self.busy.get() == 0;
        self.rested
            .set(rests.then(|| self.rested.get().unwrap_or(now)));
        self.rested.get()
    }

    /// Counts one more call in.
    pub(super) fn busy(&self) -> Busy {
        self.busy.set(self.busy.get() + 1);
        Busy(Rc::clone(&self.busy))
    }
}

/// A connection of the pool with room for one more exchange, to that address, or else to any that the name has.
pub(crate) fn take(pool: &Pool, to: Option<IpAddr>) -> Option<Handle> {
    let handles = pool.h2.borrow();
    let has_room =
        |h: &&Handle| h.is_open() && h.has_room(pool.streams()) && pool.fits(h.address, to);
    let taken = handles.iter().find(has_room)?;
    taken.rested.set(None);
    Some(taken.clone())
}

/// Begins HTTP/2 on a new connection and shares it through the pool.
pub(crate) async fn begin(
    pool: &Pool,
    timers: &Timers,
    stream: Stream,
    open: Open,
) -> Result<Handle, Failure> {
    let address = stream.peer_address();
    let handshake = Builder::new(Local)
        .timer(timers.clone())
        .keep_alive_interval(KEEP_ALIVE)
        .max_header_list_size(64 << 10)
        .max_concurrent_reset_streams(RESET_STREAMS)
        // Beyond the default, over the life of a connection, h2 would end it with every stream on it:
        // clients that leave must not cut those that stay, and upstreams are the operator's own choice.
        .max_local_error_reset_streams(None)
        .handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(|error| {
        crate::why::tell(error);
        Failure::Connect
    })?;
    let takes = Rc::new(Cell::new(usize::MAX));
    let said = Rc::clone(&takes);
    tokio::task::spawn_local(async move {
        let _open = open;
        let mut connection = pin!(connection);
        let ended = poll_fn(|cx| {
            let ended = connection.as_mut().poll(cx);
            if ended.is_pending() {
                said.set(connection.current_max_send_streams());
            }
            ended
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, "HTTP/2 connection to upstream ended");
        }
    });
    let handle = Handle {
        sender,
        address,
        busy: Rc::default(),
        takes,
        rested: Cell::default(),
    };
    pool.h2.borrow_mut().push(handle.clone());
    Ok(handle)
}

/// A request on its way out.
pub(crate) struct Sending {
    message: Option<http::Request<Rope>>,
    taken: Rc<Cell<bool>>,
}

impl Sending {
    /// A request with a body of `length` bytes; `None` for one that has no body at all.
    pub(crate) fn new(request: &impl Outgoing, body: &[Bytes], length: Option<u64>) -> Self {
        let taken = Rc::new(Cell::new(body.is_empty()));
        let rope = Rope {
            pieces: body.iter().cloned().collect(),
            left: length.unwrap_or(0),
            taken: Rc::clone(&taken),
        };
        Self {
            message: message(request, rope),
            taken,
        }
    }
}

/// Sends the request and reads the head of the response, into `response`.
pub(crate) async fn exchange(
    mut handle: Handle,
    sending: Sending,
    response: &mut Option<Response>,
    deadline: &mut Deadline,
    watch: &mut impl Watch,
) -> Answered {
    let Some(message) = sending.message else {
        crate::why::tell("the request cannot be written as HTTP/2");
        return Failure::Malformed.into();
    };
    let busy = handle.busy();
    let mut answer = std::pin::pin!(handle.sender.send_request(message));
    watch.sent(false);
    let mut told = Told {
        taken: sending.taken,
        watch,
    };
    let answered = poll_fn(|cx| {
        told.look();
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            return Poll::Ready(answer.map_err(|error| {
                tracing::debug!(%error, "HTTP/2 exchange with upstream failed");
                if is_untaken(&error) {
                    Answered::Lost(Lost::UNTAKEN)
                } else {
                    Failure::Reset.into()
                }
            }));
        }
        if told.watch.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Answered::Gone));
        }
        deadline
            .poll(cx)
            .map(|()| Err(Failure::FirstByteTimeout.into()))
    });
    let (parts, incoming) = match answered.await {
        Ok(answer) => answer.into_parts(),
        Err(ended) => return ended,
    };
    let mut head = Box::<ResponseHead>::default();
    head.status = parts.status.as_u16();
    head.version = Version::H2;
    for (name, value) in &parts.headers {
        let name = name.as_str().as_bytes();
        if let Err(fault) = head.fields.push(name, value.as_bytes()) {
            crate::why::tell(fault);
            return Failure::Malformed.into();
        }
    }
    *response = Some(Response {
        head: Some(head),
        body: super::Body::H2(Body {
            incoming,
            frame: Bytes::new(),
            _busy: busy,
        }),
    });
    Answered::Head
}

/// Tells once that the connection's task has taken the whole body; at the latest when the exchange is dropped,
/// because nothing wakes it between the two.
struct Told<'w, W: Watch> {
    taken: Rc<Cell<bool>>,
    watch: &'w mut W,
}

impl<W: Watch> Told<'_, W> {
    fn look(&mut self) {
        if self.taken.replace(false) {
            self.watch.sent(true);
        }
    }
}

impl<W: Watch> Drop for Told<'_, W> {
    fn drop(&mut self) {
        self.look();
    }
}

/// Whether the peer says, or it is certain, that it has done nothing with the request (RFC 9113, 8.7): the
/// stream was refused, lies above the last one that a GOAWAY names, or was never opened.
fn is_untaken(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(|cause| cause.downcast_ref::<h2::Error>());
    let is_refused = |cause: &h2::Error| {
        cause.is_remote()
            && (cause.is_go_away() || cause.reason() == Some(h2::Reason::REFUSED_STREAM))
    };
    error.is_canceled() || cause.is_some_and(is_refused)
}

fn message(request: &impl Outgoing, body: Rope) -> Option<http::Request<Rope>> {
    let endpoint = request.endpoint();
    let scheme = if endpoint.origin.tls { "https" } else { "http" };
    let (base, path, query) = (&endpoint.base_path, request.path(), request.query());
    let mut builder = http::Request::builder()
        .method(request.method_text())
        .uri(format!(
            "{scheme}://{}{base}{path}{query}",
            request.authority()
        ));
    let fields = builder.headers_mut()?;
    let mut is_whole = true;
    let mut put = |name: &[u8], value: &[u8], is_secret: bool| {
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value.trim_ascii());
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(is_secret);
            fields.append(name, value);
        } else {
            is_whole = false;
        }
    };
    request.fields(|name, value| put(name, value, false));
    request.secrets(|name, value| put(name.as_bytes(), value.expose(), true));
    builder.body(body).ok().filter(|_| is_whole)
}

impl Body {
    /// Gives the next data, a frame at a time.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Chunk<'_>>> {
        loop {
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                None => {
                    self.frame = Bytes::new();
                    break;
                }
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                Some(Ok(frame)) => self.frame = frame.into_data().unwrap_or_default(),
            }
            if !self.frame.is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(Chunk {
            data: &self.frame,
            is_over: self.frame.is_empty() || self.incoming.is_end_stream(),
        }))
    }
}

/// A request body in pieces.
pub(crate) struct Rope {
    pieces: std::collections::VecDeque<Bytes>,
    left: u64,
    /// Told when the last piece is taken.
    taken: Rc<Cell<bool>>,
}

/// A long piece goes in parts of this size: each is taken once the peer's window has room for it, so that
/// the last one is taken when about all of the body is out.
const PART_BYTES: usize = 16 << 10;

impl http_body::Body for Rope {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(mut piece) = self.pieces.pop_front() else {
            return Poll::Ready(None);
        };
        if piece.len() > PART_BYTES {
            let rest = piece.split_off(PART_BYTES);
            self.pieces.push_front(rest);
        }
        self.left = self.left.saturating_sub(piece.len() as u64);
        if self.pieces.is_empty() {
            self.taken.set(true);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
