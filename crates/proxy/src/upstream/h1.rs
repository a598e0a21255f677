//! One attempt over HTTP/1.1, and the body of its response.
//!
//! Invariant: a response is read strictly (`wire::http1`); anything ambiguous discards the
//! connection. A response that begins before the request was sent whole is read, and the
//! connection is not used again.
//! Not here: which connection (`pool`), what is done with the bytes (`exchange`).

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use policy::attempt::Failure;
use policy::secret::Secret;
use policy::snapshot::Endpoint;
use wire::head::{Method, ResponseHead};
use wire::http1::{
    ChunkStep, Chunked, Framing, INFORMATIONAL_CAP, Limits, Step, parse_response, response_framing,
    write_field, write_request_line,
};

use super::pool::{Connection, Pool};
use super::{Outgoing, Response, Trip};
use crate::deadline::Deadline;
use crate::worker::Worker;

/// The head of a response is bounded as a request's is.
const LIMITS: Limits = Limits {
    head_bytes: 64 << 10,
    fields: 100,
};

/// A response body on an HTTP/1.1 connection.
pub(crate) struct Body {
    connection: Option<Connection>,
    pool: Rc<Pool>,
    framing: Remaining,
    /// Body bytes that came with the head.
    early: Vec<u8>,
    keep: bool,
}

enum Remaining {
    Nothing,
    Bytes(u64),
    Chunks(Chunked),
    UntilClose,
}

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// So many bytes at the start of the buffer; whether the body is over with them.
    Data(usize, bool),
}

/// Why no response head came.
pub(crate) enum Broken {
    /// Closed before the first byte of a response: on a reused connection nobody's fault.
    Untouched,
    Failed(Failure),
}

/// Builds the head up to the credential.
fn head(request: &Outgoing<'_>, endpoint: &Endpoint) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + request.lines.len());
    let target = [&endpoint.base_path, request.path, &request.query];
    write_request_line(&mut out, request.method_text, &target);
    write_field(&mut out, b"host", endpoint.authority.as_bytes());
    out.extend_from_slice(&request.lines);
    if let Some(length) = request.length {
        out.extend_from_slice(b"content-length: ");
        crate::reply::decimal(length, &mut out);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A request of more parts than this is rare: its body was long, or edited in several places.
const FEW: usize = 6;

/// Head, credential with the head's end, and body, as slices to write.
fn slices<'a, 'b>(
    head: &'a [u8],
    credential: &'a Secret,
    body: &'a [Bytes],
    few: &'b mut [IoSlice<'a>; FEW],
    many: &'b mut Vec<IoSlice<'a>>,
) -> &'b mut [IoSlice<'a>] {
    let parts = [head, credential.expose()]
        .into_iter()
        .chain(body.iter().map(|piece| &piece[..]));
    let parts = parts.map(IoSlice::new);
    match few.get_mut(..body.len() + 2) {
        Some(few) => {
            few.iter_mut()
                .zip(parts)
                .for_each(|(slot, part)| *slot = part);
            few
        }
        None => {
            many.extend(parts);
            many
        }
    }
}

/// Sends the request and reads the response head. `sent` is called when the request is out.
pub(crate) async fn exchange(
    trip: &Trip<'_>,
    mut connection: Connection,
    deadline: &mut Deadline,
    gone: &mut impl FnMut(&mut Context<'_>) -> Poll<()>,
    sent: impl FnOnce(),
) -> Option<Result<Response, Broken>> {
    let head = head(trip.request, trip.endpoint);
    let mut few = [IoSlice::new(b""); FEW];
    let mut many = Vec::new();
    let mut unsent = slices(
        &head,
        trip.credential,
        &trip.request.body,
        &mut few,
        &mut many,
    );
    let mut reader = HeadReader::default();
    let mut sent = Some(sent);
    let mut refused = false;
    let ready = poll_fn(|cx| {
        if !unsent.is_empty()
            && let Poll::Ready(Err(_)) = connection.stream.poll_all(cx, &mut unsent)
        {
            // It takes no more and may have said why: reading tells, or ends.
            refused = true;
            unsent = &mut [];
        }
        if unsent.is_empty()
            && let Some(sent) = sent.take()
        {
            sent();
        }
        // Read also while sending: an upstream may refuse a long body before it has all of it.
        match reader.poll(trip.worker, &mut connection, trip.request.method, cx) {
            Poll::Ready(result) => return Poll::Ready(Some(result)),
            Poll::Pending => {}
        }
        if gone(cx).is_ready() {
            return Poll::Ready(None);
        }
        deadline
            .poll(cx)
            .map(|()| Some(Err(Broken::Failed(Failure::FirstByteTimeout))))
    })
    .await?;
    let whole = unsent.is_empty() && !refused;
    Some(ready.map(|(head, framing, keep)| {
        let framing = match framing {
            Framing::None => Remaining::Nothing,
            Framing::Length(length) => Remaining::Bytes(length),
            Framing::Chunked => Remaining::Chunks(Chunked::new()),
            Framing::UntilClose => Remaining::UntilClose,
        };
        let body = Body {
            connection: Some(connection),
            pool: Rc::clone(trip.pool),
            framing,
            early: reader.rest,
            keep: keep && whole,
        };
        Response {
            head,
            body: super::Body::H1(body),
        }
    }))
}

/// Reads a response head, skipping informational ones.
#[derive(Default)]
struct HeadReader {
    /// Bytes of an unfinished head; after it, the body's first bytes.
    rest: Vec<u8>,
    informational: usize,
    touched: bool,
}

type Head = (ResponseHead, Framing, bool);

impl HeadReader {
    fn broken(&self) -> Broken {
        if self.touched {
            Broken::Failed(Failure::Reset)
        } else {
            Broken::Untouched
        }
    }

    fn poll(
        &mut self,
        worker: &Worker,
        connection: &mut Connection,
        method: Method,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Broken>> {
        worker.scratch(|scratch| {
            loop {
                let read = match connection.stream.poll_into(cx, scratch) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(self.broken())),
                    Poll::Ready(Ok(read)) => &scratch[..read],
                };
                self.touched = true;
                let parsed = if self.rest.is_empty() {
                    self.parse(read, method)
                } else {
                    let mut whole = std::mem::take(&mut self.rest);
                    whole.extend_from_slice(read);
                    self.parse(&whole, method)
                };
                match parsed {
                    Some(Ok(head)) => return Poll::Ready(Ok(head)),
                    Some(Err(failure)) => return Poll::Ready(Err(Broken::Failed(failure))),
                    None => {}
                }
            }
        })
    }

    /// A final head, or `None` with the unfinished input kept.
    fn parse(&mut self, mut input: &[u8], method: Method) -> Option<Result<Head, Failure>> {
        let mut head = ResponseHead::new();
        loop {
            match parse_response(input, &LIMITS, &mut head) {
                Ok(Step::Done { consumed }) => {
                    input = input.get(consumed..).unwrap_or_default();
                    if head.is_informational() {
                        self.informational += 1;
                        if self.informational > INFORMATIONAL_CAP {
                            return Some(Err(Failure::Malformed));
                        }
                        continue;
                    }
                    self.rest = input.to_vec();
                    let framing = response_framing(&head, method);
                    return Some(
                        framing
                            .map(|(framing, keep)| (head, framing, keep))
                            .map_err(|_| Failure::Malformed),
                    );
                }
                Ok(Step::Partial) => {
                    self.rest = input.to_vec();
                    return None;
                }
                Err(fault) => {
                    tracing::warn!(%fault, "malformed response head from upstream");
                    return Some(Err(Failure::Malformed));
                }
            }
        }
    }
}

impl Body {
    /// The length of the whole body, when known before any of it was read.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.framing {
            Remaining::Nothing => Some(0),
            Remaining::Bytes(length) => Some(length),
            Remaining::Chunks(_) | Remaining::UntilClose => None,
        }
    }

    /// Whether no body bytes are to come.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.framing, Remaining::Nothing)
    }

    /// Reads into `buffer` and leaves body data, stripped of framing, at its start.
    /// An error means that the body broke off.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Piece>> {
        if matches!(self.framing, Remaining::Nothing) {
            if !self.early.is_empty() {
                self.keep = false;
            }
            self.over();
            return Poll::Ready(Ok(Piece::Data(0, true)));
        }
        let read = if self.early.is_empty() {
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
            };
            match connection.stream.poll_into(cx, buffer) {
                Poll::Ready(Ok(read)) => read,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        } else {
            let early = std::mem::take(&mut self.early);
            let taken = early.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&early[..taken]);
            if taken < early.len() {
                self.early = early[taken..].to_vec();
            }
            taken
        };
        Poll::Ready(self.unframe(&mut buffer[..read]))
    }

    fn unframe(&mut self, read: &mut [u8]) -> io::Result<Piece> {
        let length = read.len();
        let (data, over, surplus) = match &mut self.framing {
            Remaining::Nothing => (0, true, length),
            Remaining::UntilClose => (length, length == 0, 0),
            _ if length == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Remaining::Bytes(left) => {
                let data = usize::try_from(*left).unwrap_or(usize::MAX).min(length);
                *left -= data as u64;
                (data, *left == 0, length - data)
            }
            Remaining::Chunks(chunked) => unchunk(chunked, read)?,
        };
        if over {
            self.keep &= surplus == 0 && self.early.is_empty();
            self.over();
        }
        Ok(Piece::Data(data, over))
    }

    /// The body is over: the connection is free.
    fn over(&mut self) {
        self.framing = Remaining::Nothing;
        if let (true, Some(connection)) = (self.keep, self.connection.take()) {
            self.pool.put(connection);
        }
    }
}

/// Moves the data of chunks to the start of `read`. Gives data bytes, whether the body is over,
/// and bytes after it.
fn unchunk(chunked: &mut Chunked, read: &mut [u8]) -> io::Result<(usize, bool, usize)> {
    let (mut data, mut at) = (0, 0);
    loop {
        let step = chunked.next(&read[at..]).map_err(|fault| {
            tracing::warn!(%fault, "malformed chunked response from upstream");
            io::Error::new(io::ErrorKind::InvalidData, fault)
        })?;
        match step {
            ChunkStep::NeedMore { .. } => return Ok((data, false, 0)),
            ChunkStep::End { consumed } => return Ok((data, true, read.len() - at - consumed)),
            ChunkStep::Data { skip, len } => {
                read.copy_within(at + skip..at + skip + len, data);
                data += len;
                at += skip + len;
            }
        }
    }
}
