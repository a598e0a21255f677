//! A client's HTTP/1.1 connection.
//!
//! Invariant: a head is parsed once, by `wire::http1`, and what it says is what is served. After a
//! fault nothing more on the connection is trusted. Input waiting behind an exchange is at most
//! [`AHEAD_BYTES`].
//! Not here: request bodies (`incoming`), responses (`outgoing`), half-closed connections (`ended`), HTTP/2 (`h2`), the exchange
//! (`exchange`).

mod ended;
mod incoming;
mod outgoing;

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use policy::refusal::Refusal;
use policy::snapshot::Bounds;
use tokio::io::AsyncWriteExt;
use tokio::sync::futures::Notified;
use wire::head::{HeadFault, HeadFaultKind, RequestHead, Version};
use wire::http1::{
    Chunked, Framing, Limits, MAX_EMPTY_LINES, RequestFraming, Step, empty_lines, parse_request,
    request_framing,
};

use self::ended::Ended;
use self::incoming::Incoming;
use crate::client::BodyLength;
use crate::deadline::Deadline;
use crate::exchange;
use crate::stream::Stream;
use crate::worker::Worker;

/// Most bytes read ahead of the exchange that is being served.
const AHEAD_BYTES: usize = 64 << 10;
/// An unread request body up to this size is read and dropped to keep the connection.
const SKIPPED_BYTES: u64 = 64 << 10;
/// How long a refused client may go on sending before the connection is closed hard.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes that a refused client may go on sending.
const LINGER_BYTES: usize = 1 << 20;
/// Body bytes that come with a head are copied out of the read buffer up to this many; more keep it.
/// A waiting request thus holds at most four times its body.
const HANDED_OVER_BYTES: usize = 16 << 10;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The connection, with the exchange that is on it.
pub(crate) struct Connection {
    stream: Stream,
    /// Input not yet used.
    input: Vec<u8>,
    /// The same, where it is long and lies in the read buffer still; taken before all other input.
    ahead: Bytes,
    /// Where in the read buffer it lies, until that is handed over.
    handing: Option<Range<usize>>,
    /// Output not yet taken by the kernel.
    output: Vec<u8>,
    body: Incoming,
    /// Bytes that have come of it, where it has a length.
    received: usize,
    extent: BodyLength,
    version: Version,
    bodiless: bool,
    /// The connection can serve another request.
    keep: bool,
    worker: Rc<Worker>,
    must_continue: bool,
    gone: bool,
    /// The head of the answer is begun.
    is_answering: bool,
    /// After that the client was seen to be there: if it ends its side from now on, it has left.
    is_settled: bool,
    /// The client ended its side and may wait for its answer.
    ended: Option<Box<Ended>>,
    /// Bytes of empty lines before the next request.
    blank: usize,
    /// Nothing came yet: HTTP/2 may begin here, and nowhere else.
    is_first: bool,
    /// Some waiting output has left.
    progressed: bool,
    /// A long body being read in place, and how much of it is there.
    filling: Option<(Vec<u8>, usize)>,
}

/// What came instead of a request.
enum Next {
    Request(RequestFraming),
    Preface,
    Fault(HeadFault),
    TooSlow,
    Closed,
}

/// Serves requests until one side closes.
pub(crate) async fn serve(worker: Rc<Worker>, stream: Stream) {
    let mut head = RequestHead::new();
    head.port = stream.port();
    head.tls_name = stream.tls_name(worker.view().snapshot());
    let mut connection = Connection::new(stream, &worker);
    let mut deadline = Deadline::new(&worker.clock.wheel);
    let waiting = Rc::clone(&worker);
    let mut drained = pin!(waiting.drained.notified());
    hear(drained.as_mut()).await;
    loop {
        let bounds = worker.view().snapshot().bounds;
        let next = connection
            .next(&worker, &bounds, &mut head, &mut deadline)
            .await;
        match next {
            Next::Request(framing) => {
                connection.begin_request(&head, framing);
                let length = match framing.framing {
                    Framing::Length(length) => Some(length),
                    Framing::None | Framing::Chunked | Framing::UntilClose => None,
                };
                let view = worker.view();
                exchange::serve(&worker, view, &head, length, &mut connection, &mut deadline).await;
            }
            Next::Fault(fault) => {
                connection.refuse_head(&head);
                exchange::refuse(&worker, Refusal::Head(fault), &mut connection).await;
            }
            Next::TooSlow => {
                connection.refuse_head(&head);
                exchange::refuse(&worker, Refusal::Slow, &mut connection).await;
            }
            Next::Preface => {
                let input = std::mem::take(&mut connection.input);
                return Box::pin(super::h2::serve(worker, connection.stream, input)).await;
            }
            Next::Closed => return,
        }
        if !connection.finish(&worker, &mut deadline).await {
            return;
        }
        if !connection.input.is_empty() {
            // Who sends many requests at once waits for its turn with each.
            tokio::task::yield_now().await;
        }
    }
}

/// Has this task be woken when a drain begins, whatever it waits for then.
async fn hear(mut drained: Pin<&mut Notified<'_>>) {
    poll_fn(|cx| Poll::Ready(drained.as_mut().poll(cx).is_ready())).await;
}

/// Answers one request that there is no room for, and closes.
pub(crate) async fn turn_away(worker: Rc<Worker>, stream: Stream) {
    let mut connection = Connection::new(stream, &worker);
    let mut head = RequestHead::new();
    let mut deadline = Deadline::new(&worker.clock.wheel);
    let mut bounds = worker.view().snapshot().bounds;
    bounds.keep_alive = LINGER;
    bounds.head_time = LINGER;
    let waiting = Rc::clone(&worker);
    let mut drained = pin!(waiting.drained.notified());
    hear(drained.as_mut()).await;
    let next = connection
        .next(&worker, &bounds, &mut head, &mut deadline)
        .await;
    if matches!(next, Next::Request(_)) {
        connection.refuse_head(&head);
        exchange::refuse(&worker, Refusal::Overloaded, &mut connection).await;
        connection.finish(&worker, &mut deadline).await;
    }
}

impl Connection {
    fn new(stream: Stream, worker: &Rc<Worker>) -> Self {
        Self {
            stream,
            input: Vec::new(),
            ahead: Bytes::new(),
            handing: None,
            output: Vec::new(),
            body: Incoming::Over,
            received: 0,
            extent: BodyLength::Nothing,
            version: Version::H11,
            bodiless: false,
            keep: true,
            worker: Rc::clone(worker),
            must_continue: false,
            gone: false,
            is_answering: false,
            is_settled: false,
            ended: None,
            blank: 0,
            is_first: true,
            progressed: false,
            filling: None,
        }
    }

    /// Waits for the next request head.
    async fn next(
        &mut self,
        worker: &Worker,
        bounds: &Bounds,
        head: &mut RequestHead,
        deadline: &mut Deadline,
    ) -> Next {
        let limits = Limits {
            head_bytes: bounds.head_bytes,
            fields: bounds.head_fields,
        };
        deadline.set(bounds.keep_alive);
        let mut begun = false;
        let mut fresh = !self.input.is_empty();
        poll_fn(|cx| {
            loop {
                if fresh && !self.input.is_empty() {
                    let input = std::mem::take(&mut self.input);
                    if let Some(next) = self.parse(&input, false, &limits, head) {
                        return Poll::Ready(next);
                    }
                }
                fresh = true;
                if !self.input.is_empty() && !begun {
                    begun = true;
                    deadline.set(bounds.head_time);
                }
                let read = worker.buffers.scratch(|scratch| {
                    let read = ready!(self.stream.poll_into(cx, scratch));
                    Poll::Ready(match read {
                        Ok(0) | Err(_) => Some(Next::Closed),
                        Ok(read) if self.input.is_empty() => {
                            fresh = false;
                            self.parse(&scratch[..read], true, &limits, head)
                        }
                        Ok(read) => {
                            self.input.extend_from_slice(&scratch[..read]);
                            None
                        }
                    })
                });
                match read {
                    Poll::Ready(Some(next)) => {
                        self.hand_over(worker);
                        return Poll::Ready(next);
                    }
                    Poll::Ready(None) => {}
                    Poll::Pending => break,
                }
            }
            if deadline.poll(cx).is_ready() {
                return Poll::Ready(if begun { Next::TooSlow } else { Next::Closed });
            }
            if self.input.is_empty() && worker.is_draining() {
                return Poll::Ready(Next::Closed);
            }
            Poll::Pending
        })
        .await
    }

    /// Parses what has come; keeps it in `input` when more is needed.
    fn parse(
        &mut self,
        input: &[u8],
        is_read_buffer: bool,
        limits: &Limits,
        head: &mut RequestHead,
    ) -> Option<Next> {
        if self.is_first
            && input.len() >= 3
            && input.starts_with(&PREFACE[..input.len().min(PREFACE.len())])
        {
            self.input = input.to_vec();
            return (input.len() >= PREFACE.len()).then_some(Next::Preface);
        }
        match parse_request(input, limits, head) {
            Ok(Step::Done { consumed }) => {
                let framing = request_framing(head);
                let rest = input.get(consumed..).unwrap_or_default();
                let is_body = framing.as_ref().is_ok_and(
                    |f| matches!(f.framing, Framing::Length(n) if n >= rest.len() as u64),
                );
                if is_read_buffer && is_body && rest.len() >= HANDED_OVER_BYTES {
                    self.handing = Some(consumed..input.len());
                } else {
                    self.input = rest.to_vec();
                }
                Some(match framing {
                    Ok(framing) => Next::Request(framing),
                    Err(fault) => Next::Fault(fault),
                })
            }
            Ok(Step::Partial) => {
                let blank = empty_lines(input);
                if blank < input.len() {
                    self.input = input.to_vec();
                    return None;
                }
                // No request has begun yet.
                self.is_first = false;
                self.blank += blank;
                (self.blank > 2 * MAX_EMPTY_LINES)
                    .then(|| Next::Fault(HeadFaultKind::StartLine.into()))
            }
            Err(fault) => Some(Next::Fault(fault)),
        }
    }

    /// Takes the read buffer where it holds much of a body.
    fn hand_over(&mut self, worker: &Worker) {
        if let Some(range) = self.handing.take() {
            self.ahead = worker.buffers.hand_over(range);
        }
    }

    fn begin_request(&mut self, head: &RequestHead, framing: RequestFraming) {
        self.version = head.version;
        (self.is_answering, self.is_settled) = (false, false);
        (self.is_first, self.blank) = (false, 0);
        self.bodiless = head.method == wire::head::Method::Head;
        self.keep = framing.keep_alive;
        self.must_continue = framing.expect_continue;
        self.received = 0;
        self.body = match framing.framing {
            Framing::None | Framing::UntilClose => Incoming::Over,
            Framing::Length(length) => Incoming::Bytes(length),
            Framing::Chunked => Incoming::Chunks(Box::new(Chunked::new())),
        };
    }

    /// After a fault in a head: answer, then close. What was understood of it says whether its answer has a body.
    fn refuse_head(&mut self, head: &RequestHead) {
        self.bodiless = head.method == wire::head::Method::Head;
        self.refuse_rest();
    }

    /// Where the next request would begin is unknown: answer, then close.
    fn refuse_rest(&mut self) {
        self.version = Version::H11;
        self.keep = false;
        self.body = Incoming::Over;
        self.input = Vec::new();
        self.ahead = Bytes::new();
    }

    /// Whether what is unread of the request is little enough to skip.
    fn can_skip(&self) -> bool {
        match &self.body {
            Incoming::Over => true,
            Incoming::Bytes(left) => *left <= SKIPPED_BYTES && !self.must_continue,
            Incoming::Chunks(_) | Incoming::Tunnel => false,
        }
    }

    /// Makes the connection ready for another request; `false` when it is over.
    async fn finish(&mut self, worker: &Worker, deadline: &mut Deadline) -> bool {
        self.filling = None;
        if self.gone {
            return false;
        }
        if !self.keep {
            Box::pin(self.linger(worker)).await;
            return false;
        }
        if matches!(self.body, Incoming::Over) {
            return true;
        }
        deadline.set(LINGER);
        poll_fn(|cx| {
            loop {
                match self.poll_request_body(&worker.buffers, cx) {
                    Poll::Ready(Ok(Some(_))) => {}
                    Poll::Ready(Ok(None)) => return Poll::Ready(true),
                    Poll::Ready(Err(_)) => return Poll::Ready(false),
                    Poll::Pending => return deadline.poll(cx).map(|()| false),
                }
            }
        })
        .await
    }

    /// Closes without losing the answer: a close with unread input would reset the connection
    /// before the client has read what we said. Within [`LINGER`], whatever the client does.
    async fn linger(&mut self, worker: &Worker) {
        let mut taken = 0;
        let parting = async {
            // Under TLS this waits for room in the socket.
            drop(self.stream.shutdown().await);
            poll_fn(|cx| {
                worker.buffers.scratch(|scratch| {
                    while let Ok(read @ 1..) = ready!(self.stream.poll_into(cx, scratch)) {
                        taken += read;
                        if taken > LINGER_BYTES {
                            break;
                        }
                    }
                    Poll::Ready(())
                })
            })
            .await;
        };
        drop(worker.timers.timeout(LINGER, parting).await);
    }
}
