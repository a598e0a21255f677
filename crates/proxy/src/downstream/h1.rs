//! A client's HTTP/1.1 connection.
//!
//! Invariant: a head is parsed once, by `wire::http1`, and what it says is what is served. After a
//! fault nothing more on the connection is trusted. Input waiting behind an exchange is at most
//! [`AHEAD_BYTES`].
//! Not here: HTTP/2 (`h2`), the exchange (`exchange`).

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use policy::refusal::Refusal;
use policy::snapshot::Bounds;
use tokio::io::AsyncWriteExt;
use wire::head::{HeadFault, RequestHead, Version};
use wire::http1::{
    ChunkStep, Chunked, Framing, Limits, RequestFraming, Step, chunk_prefix, parse_request,
    request_framing, write_field, write_status_line,
};

use super::{BodyFault, Downstream, Extent};
use crate::deadline::Deadline;
use crate::exchange;
use crate::stream::Stream;
use crate::worker::Worker;

/// Most bytes read ahead of the exchange that is being served.
const AHEAD_BYTES: usize = 64 << 10;
/// An unread request body up to this size is read and dropped to keep the connection.
const SKIPPED_BYTES: u64 = 64 << 10;
/// From this length on a body is read in place, without passing through the scratch buffer.
const LARGE_FROM_BYTES: usize = 32 << 10;
/// The buffer for that.
const LARGE_BYTES: usize = 256 << 10;
/// A response up to this size is copied together and leaves by a plain write: cheaper for the kernel
/// than a vector of parts.
const GATHERED_BYTES: usize = 2 << 10;
/// How long a refused client may go on sending before the connection is closed hard.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes that a refused client may go on sending.
const LINGER_BYTES: usize = 1 << 20;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The connection, with the exchange that is on it.
pub(crate) struct Connection {
    stream: Stream,
    /// Input not yet used.
    input: Vec<u8>,
    /// Output not yet taken by the kernel.
    output: Vec<u8>,
    body: Incoming,
    extent: Extent,
    version: Version,
    bodiless: bool,
    /// The connection can serve another request.
    keep: bool,
    /// The worker's: a response that begins in a drain is the last on its connection.
    draining: Rc<Cell<bool>>,
    must_continue: bool,
    gone: bool,
    /// Some waiting output has left.
    progressed: bool,
    /// A long body being read in place, and how much of it is there.
    filling: Option<(Vec<u8>, usize)>,
}

/// What is left of a request body.
enum Incoming {
    Over,
    Bytes(u64),
    Chunks(Box<Chunked>),
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
    let mut connection = Connection::new(stream, worker.draining());
    let mut head = RequestHead::new();
    let mut deadline = Deadline::new(&worker.clock);
    let waiting = Rc::clone(&worker);
    let mut drained = pin!(waiting.drained.notified());
    loop {
        let bounds = worker.view().snapshot.bounds;
        let next = connection
            .next(&worker, &bounds, &mut head, &mut deadline, &mut drained)
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
                connection.refuse_head();
                exchange::refuse(&worker, Refusal::Head(fault), &mut connection).await;
            }
            Next::TooSlow => {
                connection.refuse_head();
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
    }
}

/// Answers one request that there is no room for, and closes.
pub(crate) async fn turn_away(worker: Rc<Worker>, stream: Stream) {
    let mut connection = Connection::new(stream, worker.draining());
    let mut head = RequestHead::new();
    let mut deadline = Deadline::new(&worker.clock);
    let mut bounds = worker.view().snapshot.bounds;
    bounds.keep_alive = LINGER;
    bounds.head_time = LINGER;
    let waiting = Rc::clone(&worker);
    let mut drained = pin!(waiting.drained.notified());
    let next = connection
        .next(&worker, &bounds, &mut head, &mut deadline, &mut drained)
        .await;
    if matches!(next, Next::Request(_)) {
        connection.refuse_head();
        exchange::refuse(&worker, Refusal::Overloaded, &mut connection).await;
        connection.finish(&worker, &mut deadline).await;
    }
}

impl Connection {
    fn new(stream: Stream, draining: Rc<Cell<bool>>) -> Self {
        Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            body: Incoming::Over,
            extent: Extent::Nothing,
            version: Version::H11,
            bodiless: false,
            keep: true,
            draining,
            must_continue: false,
            gone: false,
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
        drained: &mut (impl Future<Output = ()> + Unpin),
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
                    if let Some(next) = self.parse(&input, &limits, head) {
                        return Poll::Ready(next);
                    }
                }
                fresh = true;
                if !self.input.is_empty() && !begun {
                    begun = true;
                    deadline.set(bounds.head_time);
                }
                let read = worker.scratch(|scratch| {
                    let read = ready!(self.stream.poll_into(cx, scratch));
                    Poll::Ready(match read {
                        Ok(0) | Err(_) => Some(Next::Closed),
                        Ok(read) if self.input.is_empty() => {
                            fresh = false;
                            self.parse(&scratch[..read], &limits, head)
                        }
                        Ok(read) => {
                            self.input.extend_from_slice(&scratch[..read]);
                            None
                        }
                    })
                });
                match read {
                    Poll::Ready(Some(next)) => return Poll::Ready(next),
                    Poll::Ready(None) => {}
                    Poll::Pending => break,
                }
            }
            if deadline.poll(cx).is_ready() {
                return Poll::Ready(if begun { Next::TooSlow } else { Next::Closed });
            }
            let idle = self.input.is_empty();
            if idle
                && (worker.is_draining() || std::pin::Pin::new(&mut *drained).poll(cx).is_ready())
            {
                return Poll::Ready(Next::Closed);
            }
            Poll::Pending
        })
        .await
    }

    /// Parses what has come; keeps it in `input` when more is needed.
    fn parse(&mut self, input: &[u8], limits: &Limits, head: &mut RequestHead) -> Option<Next> {
        if input.starts_with(&PREFACE[..input.len().min(PREFACE.len())]) && input.len() >= 3 {
            self.input = input.to_vec();
            return (input.len() >= PREFACE.len()).then_some(Next::Preface);
        }
        match parse_request(input, limits, head) {
            Ok(Step::Done { consumed }) => {
                self.input = input.get(consumed..).unwrap_or_default().to_vec();
                Some(
                    match head.check_host().and_then(|()| request_framing(head)) {
                        Ok(framing) => Next::Request(framing),
                        Err(fault) => Next::Fault(fault),
                    },
                )
            }
            Ok(Step::Partial) => {
                self.input = input.to_vec();
                None
            }
            Err(fault) => Some(Next::Fault(fault)),
        }
    }

    fn begin_request(&mut self, head: &RequestHead, framing: RequestFraming) {
        self.version = head.version;
        self.bodiless = head.method == wire::head::Method::Head;
        self.keep = framing.keep_alive;
        self.must_continue = framing.expect_continue;
        self.body = match framing.framing {
            Framing::None | Framing::UntilClose => Incoming::Over,
            Framing::Length(length) => Incoming::Bytes(length),
            Framing::Chunked => Incoming::Chunks(Box::new(Chunked::new())),
        };
    }

    /// After a fault in a head: answer, then close.
    fn refuse_head(&mut self) {
        self.version = Version::H11;
        self.bodiless = false;
        self.keep = false;
        self.body = Incoming::Over;
        self.input = Vec::new();
    }

    /// Whether what is unread of the request is little enough to skip.
    fn can_skip(&self) -> bool {
        match &self.body {
            Incoming::Over => true,
            Incoming::Bytes(left) => *left <= SKIPPED_BYTES && !self.must_continue,
            Incoming::Chunks(_) => false,
        }
    }

    /// Makes the connection ready for another request; `false` when it is over.
    async fn finish(&mut self, worker: &Worker, deadline: &mut Deadline) -> bool {
        self.filling = None;
        if self.output.capacity() > 4096 {
            self.output = Vec::new();
        }
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
                match self.poll_body(worker, cx) {
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
    /// before the client has read what we said.
    async fn linger(&mut self, worker: &Worker) {
        drop(self.stream.shutdown().await);
        let mut taken = 0;
        let read_on = poll_fn(|cx| {
            worker.scratch(|scratch| {
                while let Ok(read @ 1..) = ready!(self.stream.poll_into(cx, scratch)) {
                    taken += read;
                    if taken > LINGER_BYTES {
                        break;
                    }
                }
                Poll::Ready(())
            })
        });
        drop(tokio::time::timeout(LINGER, read_on).await);
    }

    /// Some of the next `wanted` body bytes.
    fn poll_bytes(
        &mut self,
        worker: &Worker,
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>> {
        if !self.input.is_empty() && self.filling.is_none() {
            let rest = self.input.split_off(self.input.len().min(wanted));
            return Poll::Ready(Ok(Bytes::from(std::mem::replace(&mut self.input, rest))));
        }
        if wanted > LARGE_FROM_BYTES || self.filling.is_some() {
            return self.poll_large(wanted, cx);
        }
        worker.scratch(|scratch| {
            let room = scratch.len().min(wanted);
            match ready!(self.stream.poll_into(cx, &mut scratch[..room]))? {
                0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => Poll::Ready(Ok(Bytes::copy_from_slice(&scratch[..read]))),
            }
        })
    }

    /// Reads a long body in place, without a copy, a buffer at a time.
    fn poll_large(&mut self, wanted: usize, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let size = wanted.min(LARGE_BYTES);
        let (buffer, filled) = self.filling.get_or_insert_with(|| (vec![0; size], 0));
        while *filled < buffer.len() {
            match ready!(self.stream.poll_into(cx, &mut buffer[*filled..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => *filled += read,
            }
        }
        let (buffer, _) = self.filling.take().unwrap_or_default();
        Poll::Ready(Ok(Bytes::from(buffer)))
    }

    /// The next data of a chunked body.
    fn poll_chunks(
        &mut self,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        let Incoming::Chunks(chunked) = &mut self.body else {
            return Poll::Ready(Ok(None));
        };
        loop {
            if self.input.is_empty() {
                let read =
                    worker.scratch(|scratch| match ready!(self.stream.poll_into(cx, scratch)) {
                        Ok(read @ 1..) => {
                            self.input.extend_from_slice(&scratch[..read]);
                            Poll::Ready(true)
                        }
                        Ok(_) | Err(_) => Poll::Ready(false),
                    });
                if !ready!(read) {
                    return Poll::Ready(Err(BodyFault::Gone));
                }
            }
            let mut input = std::mem::take(&mut self.input);
            let mut data = Vec::new();
            let mut at = 0;
            let over = loop {
                match chunked.next(&input[at..]).map_err(BodyFault::Framing)? {
                    ChunkStep::NeedMore { .. } => break false,
                    ChunkStep::Data { skip, len } => {
                        data.extend_from_slice(&input[at + skip..at + skip + len]);
                        at += skip + len;
                    }
                    ChunkStep::End { consumed } => {
                        at += consumed;
                        break true;
                    }
                }
            };
            if over {
                self.input = input.split_off(at);
                self.body = Incoming::Over;
                return Poll::Ready(Ok((!data.is_empty()).then(|| Bytes::from(data))));
            }
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(Bytes::from(data))));
            }
        }
    }
}

impl Downstream for Connection {
    fn poll_body(
        &mut self,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        if self.must_continue && self.input.is_empty() && !matches!(self.body, Incoming::Over) {
            self.must_continue = false;
            self.output
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if !self.output.is_empty() && self.poll_flushed(cx).is_pending() {
            return Poll::Pending;
        }
        let result = match &self.body {
            Incoming::Over => Ok(None),
            Incoming::Bytes(left) => {
                let left = *left;
                let wanted = usize::try_from(left).unwrap_or(usize::MAX);
                match ready!(self.poll_bytes(worker, wanted, cx)) {
                    Ok(piece) => {
                        let left = left - piece.len() as u64;
                        self.body = if left == 0 {
                            Incoming::Over
                        } else {
                            Incoming::Bytes(left)
                        };
                        Ok(Some(piece))
                    }
                    Err(_) => Err(BodyFault::Gone),
                }
            }
            Incoming::Chunks(_) => ready!(self.poll_chunks(worker, cx)),
        };
        match &result {
            Err(BodyFault::Gone) => self.gone = true,
            // Where the next request would begin is unknown.
            Err(BodyFault::Framing(_)) => self.refuse_head(),
            Ok(_) => {}
        }
        Poll::Ready(result)
    }

    fn poll_gone(&mut self, worker: &Worker, cx: &mut Context<'_>) -> Poll<()> {
        while !self.gone && self.input.len() < AHEAD_BYTES {
            let read = worker.scratch(|scratch| match self.stream.poll_into(cx, scratch) {
                Poll::Pending => None,
                Poll::Ready(Ok(read)) => Some(scratch[..read].to_vec()),
                Poll::Ready(Err(_)) => Some(Vec::new()),
            });
            match read {
                None => return Poll::Pending,
                Some(read) if read.is_empty() => self.gone = true,
                Some(read) => self.input.extend_from_slice(&read),
            }
        }
        if self.gone {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn begin(&mut self, status: u16, extent: Extent) {
        let has_none = self.bodiless || matches!(status, 204 | 304);
        let until_close = extent == Extent::Open && self.version == Version::H10;
        self.keep &= !self.draining.get() && self.can_skip() && !until_close;
        self.extent = if has_none { Extent::Nothing } else { extent };
        self.output.reserve(512);
        write_status_line(&mut self.output, status);
        match extent {
            Extent::Length(length) if !matches!(status, 204 | 304) => {
                self.output.extend_from_slice(b"content-length: ");
                crate::reply::decimal(length, &mut self.output);
                self.output.extend_from_slice(b"\r\n");
            }
            Extent::Open if !has_none && !until_close => {
                self.output
                    .extend_from_slice(b"transfer-encoding: chunked\r\n");
            }
            Extent::Length(_) | Extent::Open | Extent::Nothing => {}
        }
        if !self.keep {
            self.output.extend_from_slice(b"connection: close\r\n");
        } else if self.version == Version::H10 {
            self.output.extend_from_slice(b"connection: keep-alive\r\n");
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        write_field(&mut self.output, name, value);
    }

    fn begun(&mut self) {
        self.output.extend_from_slice(b"\r\n");
    }

    fn send(&mut self, cx: &mut Context<'_>, pieces: &[&[u8]], end: bool) -> io::Result<()> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let is_chunked = self.extent == Extent::Open && self.version != Version::H10;
        let mut prefix = [0; 18];
        let (mut before, mut after) = (&b""[..], &b""[..]);
        if is_chunked && length > 0 {
            let used = chunk_prefix(length, &mut prefix);
            before = &prefix[..used];
            after = if end { b"\r\n0\r\n\r\n" } else { b"\r\n" };
        } else if is_chunked && end {
            after = b"0\r\n\r\n";
        }
        let pieces = if self.extent == Extent::Nothing {
            &[][..]
        } else {
            pieces
        };
        let mut output = std::mem::take(&mut self.output);
        let (mut before, mut pieces, mut after) = (before, pieces, after);
        if output.len() + length <= GATHERED_BYTES {
            output.extend_from_slice(before);
            for piece in pieces {
                output.extend_from_slice(piece);
            }
            output.extend_from_slice(after);
            (before, pieces, after) = (b"", &[], b"");
        }
        let mut few = [IoSlice::new(b""); 8];
        let mut many = Vec::new();
        let parts = [&output[..], before]
            .into_iter()
            .chain(pieces.iter().copied())
            .chain([after])
            .filter(|part| !part.is_empty());
        let slices = if pieces.len() + 3 <= few.len() {
            let used = few
                .iter_mut()
                .zip(parts)
                .map(|(slot, part)| *slot = IoSlice::new(part))
                .count();
            &mut few[..used]
        } else {
            many.extend(parts.map(IoSlice::new));
            &mut many[..]
        };
        let mut unsent = slices;
        match self.stream.poll_all(cx, &mut unsent) {
            Poll::Ready(Ok(())) => {
                self.output = output;
                self.output.clear();
            }
            Poll::Ready(Err(error)) => {
                self.gone = true;
                return Err(error);
            }
            Poll::Pending => {
                let left: Vec<&[u8]> = unsent.iter().map(|slice| &**slice).collect();
                self.output = left.concat();
            }
        }
        Ok(())
    }

    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let output = std::mem::take(&mut self.output);
        let mut slices = [IoSlice::new(&output)];
        let mut unsent = &mut slices[..];
        match self.stream.poll_all(cx, &mut unsent) {
            Poll::Pending => {
                let left = unsent.iter().map(|s| s.len()).sum::<usize>();
                let sent = output.len() - left;
                self.output = output;
                self.output.drain(..sent);
                self.progressed |= sent > 0;
                Poll::Pending
            }
            Poll::Ready(Ok(())) => {
                self.output = output;
                self.output.clear();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                self.gone = true;
                Poll::Ready(Err(error))
            }
        }
    }

    fn progressed(&mut self) -> bool {
        std::mem::take(&mut self.progressed)
    }

    fn cut(&mut self) {
        self.gone = true;
        if let (Extent::Open, Version::H10, Stream::Plain(tcp)) =
            (self.extent, self.version, &self.stream)
        {
            // Without framing only a reset tells that the body is not whole.
            let reset = socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO));
            if let Err(error) = reset {
                tracing::debug!(%error, "cannot set SO_LINGER");
            }
        }
    }
}
