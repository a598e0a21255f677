//! A client's HTTP/2 connection; hyper speaks the protocol, we keep the exchange.
//!
//! Invariant: what one read of the upstream brought waits for the client's window before the next
//! read; a reset stream is seen at once; a response that breaks off is reset, never ended.
//! Not here: HTTP/1.1 (`h1`), the exchange (`exchange`), frames and stalls of the connection (`watched`), how many exchanges are
//! made at one time (`turns`).

mod watched;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use policy::caller::Peer;
use policy::refusal::Refusal;
use tokio::sync::{Notify, oneshot};
use wire::head::{HeadFault, HeadFaultKind, Method, RequestHead, Version};
use wire::http1::{Framing, request_framing};

use self::watched::Watched;
use crate::buffer::Buffers;
use crate::client::{BodyFault, BodyLength, Downstream};
use crate::deadline::Deadline;
use crate::exchange;
use crate::stream::Stream;
use crate::timers::Local;
use crate::timers::Timers;
use crate::worker::Worker;

const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How long a connection that was idle may take to end after GOAWAY.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves a connection; `input` was read from it already.
pub(crate) async fn serve(worker: Rc<Worker>, stream: Stream, input: Vec<u8>) {
    let bounds = worker.view().snapshot().bounds;
    let list = u32::try_from(bounds.head_bytes).unwrap_or(u32::MAX);
    let mut builder = Builder::new(Local);
    builder
        .timer(worker.timers.clone())
        .max_concurrent_streams(bounds.streams)
        .max_header_list_size(list)
        .max_pending_accept_reset_streams(64)
        .max_local_error_reset_streams(Some(256))
        .keep_alive_interval(KEEP_ALIVE)
        .max_send_buf_size(64 << 10);
    let serving = Rc::clone(&worker);
    let (peer, port) = (stream.peer(), stream.port());
    let tls_name = stream.tls_name(worker.view().snapshot());
    let exchanges = Rc::new(Exchanges::default());
    let counted = Rc::clone(&exchanges);
    let service = service_fn(move |request| {
        let counted = Counted::begin(&counted);
        let worker = Rc::clone(&serving);
        let at = (peer.clone(), (port, tls_name.clone()));
        async move {
            let turn = worker.h2_turns.next().await;
            let (answer, answered) = oneshot::channel();
            tokio::task::spawn_local(async move {
                let _counted = counted;
                // Made here, it is kept once; handed in, it would be kept twice.
                turn.begun(pin!(begin(worker, at, request, answer))).await;
            });
            // A task that ended without an answer was cut off: the stream is reset.
            answered
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))
        }
    });
    let watched = Watched::new(&worker, stream, input, bounds.write_stall);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(watched), service));
    let mut drained = pin!(worker.drained.notified());
    let mut draining = worker.is_draining();
    if draining {
        connection.as_mut().graceful_shutdown();
    }
    let mut idle = pin!(exchanges.idle(&worker.timers, bounds.keep_alive));
    let mut leaving = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "HTTP/2 connection ended");
                }
                return;
            }
            () = drained.as_mut(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            () = idle.as_mut() => {
                if leaving {
                    tracing::debug!("idle HTTP/2 connection did not end");
                    return;
                }
                leaving = true;
                connection.as_mut().graceful_shutdown();
                idle.set(exchanges.idle(&worker.timers, FAREWELL));
            }
        }
    }
}

/// The exchanges of one connection.
#[derive(Default)]
struct Exchanges {
    now: Cell<usize>,
    /// How many began so far.
    count: Cell<u64>,
    ended: Notify,
}

impl Exchanges {
    /// Ready when there was no exchange for so long.
    async fn idle(&self, timers: &Timers, limit: Duration) {
        loop {
            if self.now.get() > 0 {
                self.ended.notified().await;
                continue;
            }
            let since = self.count.get();
            timers.sleep(limit).await;
            if self.now.get() == 0 && self.count.get() == since {
                return;
            }
        }
    }
}

/// One exchange in the count.
struct Counted(Rc<Exchanges>);

impl Counted {
    fn begin(exchanges: &Rc<Exchanges>) -> Self {
        exchanges.now.set(exchanges.now.get() + 1);
        exchanges.count.set(exchanges.count.get().wrapping_add(1));
        Self(Rc::clone(exchanges))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.set(self.0.now.get() - 1);
        self.0.ended.notify_one();
    }
}

async fn begin(
    worker: Rc<Worker>,
    (peer, (port, tls_name)): (Peer, (u16, Option<Arc<str>>)),
    request: Request<Incoming>,
    answer: oneshot::Sender<Response<Body>>,
) {
    let (parts, body) = request.into_parts();
    let mut head = RequestHead::new();
    head.port = port;
    head.tls_name = tls_name;
    let converted = convert(
        &parts,
        &mut head,
        worker.view().snapshot().bounds.head_fields,
    );
    let mut stream = Exchange {
        peer,
        incoming: Some(body),
        answer: Some(answer),
        response: Response::new(()),
        queue: Rc::default(),
        begun: false,
        gone: false,
        takes_body: head.method.takes_body(),
        is_head: head.method == Method::Head,
    };
    match converted {
        Err(fault) => exchange::refuse(&worker, Refusal::Head(fault), &mut stream).await,
        Ok(length) => {
            let mut deadline = Deadline::new(&worker.clock.wheel);
            let view = worker.view();
            exchange::serve(&worker, view, &head, length, &mut stream, &mut deadline).await;
        }
    }
}

/// The same head that an HTTP/1.1 request would give, checked by the same rules.
fn convert(
    parts: &http::request::Parts,
    head: &mut RequestHead,
    max_fields: usize,
) -> Result<Option<u64>, HeadFault> {
    head.version = Version::H2;
    head.set_method(parts.method.as_str())?;
    let authority = parts.uri.authority().map(|a| a.as_str().as_bytes());
    if let Some(authority) = authority {
        head.fields.push(b"host", authority)?;
    }
    if parts.headers.len() > max_fields {
        return Err(HeadFaultKind::TooManyFields.into());
    }
    let mut hosts = 0;
    for (name, value) in &parts.headers {
        // HTTP/1.1 drops these blanks; in HTTP/2 they are part of the value, and malformed (RFC 9113, 8.2.1).
        if let [b' ' | b'\t', ..] | [.., b' ' | b'\t'] = value.as_bytes() {
            return Err(HeadFaultKind::FieldBlanks.into());
        }
        if name == http::header::HOST && authority.is_some() {
            hosts += 1;
            if hosts > 1 || authority != Some(value.as_bytes()) {
                return Err(HeadFaultKind::HostRepeated.into());
            }
            continue;
        }
        head.fields
            .push(name.as_str().as_bytes(), value.as_bytes())?;
    }
    head.set_target(parts.uri.path_and_query().map_or("/", |t| t.as_str()))?;
    head.check_host()?;
    Ok(match request_framing(head)?.framing {
        Framing::Length(length) => Some(length),
        Framing::None | Framing::Chunked | Framing::UntilClose => None,
    })
}

/// One stream's exchange.
struct Exchange {
    peer: Peer,
    incoming: Option<Incoming>,
    answer: Option<oneshot::Sender<Response<Body>>>,
    response: Response<()>,
    queue: Rc<RefCell<Queue>>,
    /// The head is whole; hyper has it once there is no `answer` any more.
    begun: bool,
    gone: bool,
    takes_body: bool,
    /// Its answer has no body, whatever is said of it.
    is_head: bool,
}

/// What the exchange has said and hyper has not taken yet.
#[derive(Default)]
struct Queue {
    pieces: VecDeque<Bytes>,
    end: End,
    taker: Option<Waker>,
    giver: Option<Waker>,
    dropped: bool,
    progressed: bool,
}

#[derive(Default, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    Whole,
    Cut,
}

/// The response body that hyper reads.
struct Body(Rc<RefCell<Queue>>);

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut queue = self.queue.borrow_mut();
        if queue.end == End::Open {
            queue.end = End::Cut;
        }
        if let Some(taker) = queue.taker.take() {
            taker.wake();
        }
    }
}

impl Exchange {
    /// Gives hyper a head that was begun.
    fn hand_over(&mut self) {
        if !self.begun {
            return;
        }
        let Some(answer) = self.answer.take() else {
            return;
        };
        let body = Body(Rc::clone(&self.queue));
        let response = std::mem::take(&mut self.response).map(|()| body);
        self.gone |= answer.send(response).is_err();
    }
}

impl Downstream for Exchange {
    fn peer(&self) -> Peer {
        self.peer.clone()
    }

    fn poll_body(
        &mut self,
        _: &Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        while let Some(incoming) = &mut self.incoming {
            match ready!(Pin::new(incoming).poll_frame(cx)) {
                None => self.incoming = None,
                Some(Err(_)) => {
                    self.gone = true;
                    return Poll::Ready(Err(BodyFault::Gone));
                }
                // Trailers are dropped.
                Some(Ok(frame)) => match frame.into_data() {
                    // Sent on, it would be the next request to a server that expects none.
                    Ok(data) if !data.is_empty() && !self.takes_body => {
                        let fault = HeadFaultKind::BodyNotExpected.into();
                        return Poll::Ready(Err(BodyFault::Head(fault)));
                    }
                    Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                    Ok(_) | Err(_) => {}
                },
            }
        }
        Poll::Ready(Ok(None))
    }

    fn poll_gone(&mut self, _: &Buffers, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(answer) = &mut self.answer {
            self.gone |= answer.poll_closed(cx).is_ready();
        } else {
            let mut queue = self.queue.borrow_mut();
            self.gone |= queue.dropped;
            queue.giver = Some(cx.waker().clone());
        }
        if self.gone {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn begin(&mut self, status: u16, extent: BodyLength) {
        *self.response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let (BodyLength::Length(length), false) = (extent, matches!(status, 204 | 304)) {
            self.response
                .headers_mut()
                .insert(http::header::CONTENT_LENGTH, length.into());
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        else {
            return;
        };
        self.response.headers_mut().append(name, value);
    }

    fn date(&mut self) {
        // hyper adds it.
    }

    fn begun(&mut self) {
        self.begun = true;
    }

    fn retract(&mut self) -> bool {
        let is_held = self.begun && self.answer.is_some();
        if is_held {
            self.begun = false;
            self.response = Response::new(());
        }
        is_held
    }

    fn send(&mut self, _: &mut Context<'_>, pieces: &[&[u8]], end: bool) -> io::Result<()> {
        self.hand_over();
        let mut queue = self.queue.borrow_mut();
        if self.gone || queue.dropped {
            self.gone = true;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let has_body = !self.is_head;
        let pieces = pieces.iter().filter(|p| has_body && !p.is_empty());
        queue
            .pieces
            .extend(pieces.map(|piece| Bytes::copy_from_slice(piece)));
        if end {
            queue.end = End::Whole;
        }
        if let Some(taker) = queue.taker.take() {
            taker.wake();
        }
        Ok(())
    }

    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.hand_over();
        let mut queue = self.queue.borrow_mut();
        if queue.dropped && (!queue.pieces.is_empty() || queue.end == End::Open) {
            self.gone = true;
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if queue.pieces.is_empty() {
            return Poll::Ready(Ok(()));
        }
        queue.giver = Some(cx.waker().clone());
        Poll::Pending
    }

    fn progressed(&mut self) -> bool {
        std::mem::take(&mut self.queue.borrow_mut().progressed)
    }

    fn cut(&mut self) {
        self.gone = true;
        let mut queue = self.queue.borrow_mut();
        queue.end = End::Cut;
        if let Some(taker) = queue.taker.take() {
            taker.wake();
        }
    }

    fn abandon(&mut self) {
        // Without a window hyper asks for nothing, and so does not reset either.
        self.queue.borrow_mut().pieces = VecDeque::new();
        self.cut();
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let mut queue = self.0.borrow_mut();
        let piece = queue.pieces.pop_front();
        queue.progressed |= piece.is_some();
        if queue.pieces.is_empty()
            && let Some(giver) = queue.giver.take()
        {
            giver.wake();
        }
        match (piece, &queue.end) {
            (Some(piece), _) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            (None, End::Whole) => Poll::Ready(None),
            (None, End::Cut) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
            (None, End::Open) => {
                queue.taker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let queue = self.0.borrow();
        queue.pieces.is_empty() && queue.end == End::Whole
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let mut queue = self.0.borrow_mut();
        queue.dropped = true;
        if let Some(giver) = queue.giver.take() {
            giver.wake();
        }
    }
}
