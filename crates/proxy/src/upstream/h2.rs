//! One attempt over HTTP/2, and the body of its response; hyper speaks the protocol.
//!
//! Invariant: at most [`STREAMS`] exchanges share a connection; dropping a [`Body`] resets its
//! stream and nothing else.
//! Not here: HTTP/1.1 (`h1`).

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use policy::attempt::Failure;
use policy::credential::Injection;
use policy::snapshot::Endpoint;
use wire::head::{ResponseHead, Version};

use super::h1::Broken;
use super::pool::{Open, Pool};
use super::{Outgoing, Piece, Response};
use crate::deadline::Deadline;
use crate::downstream::Local;
use crate::stream::Stream;
use crate::timers::Timers;

/// Exchanges on one connection; servers commonly allow 100.
const STREAMS: usize = 100;
/// Streams that clients left in the last second and whose late frames are still known; the frames of
/// others are answered one by one.
const RESET_STREAMS: usize = 8192;
const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(30);

/// A connection that takes more requests.
#[derive(Clone)]
pub(crate) struct Handle {
    sender: SendRequest<Rope>,
    busy: Rc<Cell<usize>>,
}

/// One exchange on a shared connection.
struct Busy(Rc<Cell<usize>>);

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
}

/// A connection of the pool with room for one more exchange.
pub(crate) fn take(pool: &Pool) -> Option<Handle> {
    let handles = pool.h2.borrow();
    handles
        .iter()
        .find(|h| h.is_open() && h.busy.get() < STREAMS)
        .cloned()
}

/// Begins HTTP/2 on a new connection and shares it through the pool.
pub(crate) async fn begin(
    pool: &Pool,
    timers: &Timers,
    stream: Stream,
    open: Open,
) -> Result<Handle, Failure> {
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
    tokio::task::spawn_local(async move {
        let _open = open;
        if let Err(error) = connection.await {
            tracing::debug!(%error, "HTTP/2 connection to upstream ended");
        }
    });
    let handle = Handle {
        sender,
        busy: Rc::default(),
    };
    pool.h2.borrow_mut().push(handle.clone());
    Ok(handle)
}

/// Sends the request and waits for the response head. `sent` is called when the request is handed
/// over, and once more when all of its body went.
pub(crate) async fn exchange(
    mut handle: Handle,
    request: &Outgoing<'_>,
    endpoint: &Endpoint,
    deadline: &mut Deadline,
    gone: &mut impl FnMut(&mut Context<'_>) -> Poll<()>,
    sent: impl FnMut(bool),
) -> Option<Result<Response, Broken>> {
    let taken = Rc::new(Cell::new(request.body.is_empty()));
    let Some(message) = message(request, endpoint, &taken) else {
        crate::why::tell("the request cannot be written as HTTP/2");
        return Some(Err(Broken::Failed(Failure::Malformed)));
    };
    handle.busy.set(handle.busy.get() + 1);
    let busy = Busy(Rc::clone(&handle.busy));
    let mut answer = std::pin::pin!(handle.sender.send_request(message));
    let mut sending = Sending { taken, sent };
    (sending.sent)(false);
    let answer = poll_fn(|cx| {
        sending.look();
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            return Poll::Ready(Some(answer.map_err(|error| {
                tracing::debug!(%error, "HTTP/2 exchange with upstream failed");
                if is_untaken(&error) {
                    Broken::Untaken
                } else {
                    Broken::Failed(Failure::Reset)
                }
            })));
        }
        if gone(cx).is_ready() {
            return Poll::Ready(None);
        }
        deadline
            .poll(cx)
            .map(|()| Some(Err(Broken::Failed(Failure::FirstByteTimeout))))
    })
    .await?;
    Some(answer.and_then(|answer| {
        let (parts, incoming) = answer.into_parts();
        let mut head = Box::<ResponseHead>::default();
        head.status = parts.status.as_u16();
        head.version = Version::H2;
        for (name, value) in &parts.headers {
            head.fields
                .push(name.as_str().as_bytes(), value.as_bytes())
                .map_err(|fault| {
                    crate::why::tell(fault);
                    Broken::Failed(Failure::Malformed)
                })?;
        }
        let body = Body {
            incoming,
            frame: Bytes::new(),
            _busy: busy,
        };
        Ok(Response {
            head,
            body: super::Body::H2(body),
        })
    }))
}

/// Tells once that the connection's task has taken the whole body; at the latest when the exchange is dropped,
/// because nothing wakes it between the two.
struct Sending<F: FnMut(bool)> {
    taken: Rc<Cell<bool>>,
    sent: F,
}

impl<F: FnMut(bool)> Sending<F> {
    fn look(&mut self) {
        if self.taken.replace(false) {
            (self.sent)(true);
        }
    }
}

impl<F: FnMut(bool)> Drop for Sending<F> {
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

fn message(
    request: &Outgoing<'_>,
    endpoint: &Endpoint,
    taken: &Rc<Cell<bool>>,
) -> Option<http::Request<Rope>> {
    let scheme = if endpoint.origin.tls { "https" } else { "http" };
    let (base, path, query) = (&endpoint.base_path, request.path, &request.query);
    let mut builder = http::Request::builder()
        .method(request.method_text)
        .uri(format!(
            "{scheme}://{}{base}{path}{query}",
            endpoint.authority
        ));
    let lines = request
        .lines
        .split(|b| *b == b'\n')
        .filter_map(|l| l.strip_suffix(b"\r"));
    for line in lines {
        let colon = line.iter().position(|b| *b == b':')?;
        builder = builder.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    if let Injection::Header { name, value } = &endpoint.injection {
        let mut value = http::HeaderValue::from_bytes(value.expose()).ok()?;
        value.set_sensitive(true);
        builder = builder.header(name.as_str(), value);
    }
    let pieces = request.body.clone().into();
    builder
        .body(Rope {
            pieces,
            left: request.length.unwrap_or(0),
            taken: Rc::clone(taken),
        })
        .ok()
}

impl Body {
    /// Gives the next data, a frame at a time.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Piece<'_>>> {
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
        Poll::Ready(Ok(Piece {
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
