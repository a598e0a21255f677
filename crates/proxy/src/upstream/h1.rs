//! One attempt over HTTP/1.1, and the body of its response.
//!
//! Invariant: a response is read strictly (`wire::http1`); anything ambiguous discards the
//! connection. A response that begins before the request was sent whole is read, and the
//! connection is not used again.
//! Not here: which connection (`pool`), the request's bytes (`sending`), the answer's head (`answer`), what is
//! done with the body (`exchange`).

mod answer;
mod sending;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use policy::attempt::Failure;
use policy::exchange::Lost;
use tokio::io::AsyncWrite;
use wire::head::Method;
use wire::http1::{ChunkStep, Chunked, Framing, HeadFault};

use self::answer::Ended;
pub(crate) use self::sending::Sending;
use super::pool::{Connection, Pool};
use super::{Answered, Chunk, Response, Watch};
use crate::buffer::PooledBuf;
use crate::deadline::Deadline;

/// A response body on an HTTP/1.1 connection.
pub(crate) struct Body {
    connection: Option<Connection>,
    pool: Rc<Pool>,
    framing: Remaining,
    /// Body bytes that came with the head, read before any others.
    early: Option<PooledBuf>,
    keep: bool,
}

enum Remaining {
    Nothing,
    Bytes(u64),
    Chunks(Box<Chunked>),
    UntilClose,
    /// Its framing broke after what was given last.
    Broken(HeadFault),
}

/// Sends the request and reads the head of the response, into `response`.
pub(crate) async fn exchange(
    pool: &Rc<Pool>,
    mut connection: Connection,
    mut sending: Sending<'_>,
    method: Method,
    response: &mut Option<Response>,
    deadline: &mut Deadline,
    watch: &mut impl Watch,
) -> Answered {
    let mut reader = answer::Reader::default();
    reader.may_switch = sending.asks_to_switch;
    let (mut is_sent, mut refused) = (false, false);
    let ready = poll_fn(|cx| {
        if !is_sent {
            // It takes no more and may have said why: reading tells, or ends.
            refused = matches!(
                sending.poll(&mut connection.stream, cx),
                Poll::Ready(Err(_))
            );
            is_sent = sending.is_over() || refused;
            if is_sent {
                watch.sent(!refused);
            }
        }
        // Read also while sending: an upstream may refuse a long body before it has all of it.
        match reader.poll(watch.buffers(), &mut connection, method, cx) {
            Poll::Ready(result) => return Poll::Ready(Some(result)),
            Poll::Pending => {}
        }
        if watch.poll_gone(cx).is_ready() {
            return Poll::Ready(None);
        }
        deadline
            .poll(cx)
            .map(|()| Some(Err(Ended::Failed(Failure::FirstByteTimeout))))
    });
    let (ended, taken) = match ready.await {
        None => return Answered::Gone,
        Some(Ok((head, framing, keep))) => {
            let has_switched = head.status == 101;
            let framing = match framing {
                Framing::None if has_switched => Remaining::UntilClose,
                Framing::None => Remaining::Nothing,
                Framing::Length(length) => Remaining::Bytes(length),
                Framing::Chunked => Remaining::Chunks(Box::new(Chunked::new())),
                Framing::UntilClose => Remaining::UntilClose,
            };
            *response = Some(Response {
                head: Some(head),
                body: super::Body::H1(Body {
                    connection: Some(connection),
                    pool: Rc::clone(pool),
                    framing,
                    early: reader.early,
                    keep: keep && sending.is_over() && !has_switched,
                }),
            });
            return Answered::Head;
        }
        Some(Err(ended)) => (ended, sending.taken()),
    };
    match ended {
        // Nothing can have run of a request that the connection took nothing of, or that came to a
        // peer which had closed it before.
        Ended::Failed(Failure::Reset) | Ended::InOrder if taken == 0 => {
            Answered::Lost(Lost::UNTAKEN)
        }
        Ended::InOrder if connection.stream.took_nothing(taken) => Answered::Lost(Lost::UNTAKEN),
        Ended::InOrder => Failure::Reset.into(),
        Ended::Failed(failure) => failure.into(),
    }
}

impl Body {
    /// The length of the whole body, when known before any of it was read.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.framing {
            Remaining::Nothing => Some(0),
            Remaining::Bytes(length) => Some(length),
            Remaining::Chunks(_) | Remaining::UntilClose | Remaining::Broken(_) => None,
        }
    }

    /// Sends what goes now of the bytes of a tunnel, and takes that off them. Ready when nothing is left.
    pub(crate) fn poll_send(
        &mut self,
        bytes: &mut Bytes,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let connection = self
            .connection
            .as_mut()
            .ok_or(io::ErrorKind::NotConnected)?;
        let mut slices = [IoSlice::new(bytes)];
        let mut unsent = &mut slices[..];
        let polled = connection.stream.poll_all(cx, &mut unsent);
        let left: usize = unsent.iter().map(|slice| slice.len()).sum();
        bytes.advance(bytes.len() - left);
        polled
    }

    /// Tells the other side that no more bytes come.
    pub(crate) fn poll_shut(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connection = self
            .connection
            .as_mut()
            .ok_or(io::ErrorKind::NotConnected)?;
        Pin::new(&mut connection.stream).poll_shutdown(cx)
    }

    /// Whether no body bytes are to come.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.framing, Remaining::Nothing)
    }

    /// The piece that was given is not needed any more. To be said of each: what came with the head has a
    /// buffer to itself.
    pub(crate) fn taken(&mut self) {
        self.early = None;
    }

    /// Reads, into `buffer` where it reads anew, and gives body data stripped of framing.
    /// An error means that the body broke off.
    pub(crate) fn poll_chunk<'b>(
        &'b mut self,
        cx: &mut Context<'_>,
        buffer: &'b mut [u8],
    ) -> Poll<io::Result<Chunk<'b>>> {
        let Self {
            framing,
            early,
            connection,
            ..
        } = self;
        let read = if let Some(early) = early {
            early.as_mut()
        } else if let Remaining::Broken(fault) = framing {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, *fault)));
        } else if matches!(framing, Remaining::Nothing) {
            &mut []
        } else {
            let connection = connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let read = ready!(connection.stream.poll_into(cx, buffer))?;
            &mut buffer[..read]
        };
        let (data, is_over, surplus) = unframe(framing, read)?;
        if is_over {
            // The connection is free.
            *framing = Remaining::Nothing;
            if let (true, Some(connection)) = (self.keep && surplus == 0, connection.take()) {
                self.pool.put(connection);
            }
        }
        let data = &read[..data];
        Poll::Ready(Ok(Chunk { data, is_over }))
    }
}

/// Moves body data to the start of `read`. Gives its bytes, whether the body is over, and bytes after it.
fn unframe(framing: &mut Remaining, read: &mut [u8]) -> io::Result<(usize, bool, usize)> {
    let length = read.len();
    Ok(match framing {
        Remaining::Nothing => (0, true, length),
        Remaining::UntilClose => (length, length == 0, 0),
        _ if length == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        Remaining::Bytes(left) => {
            let data = usize::try_from(*left).unwrap_or(usize::MAX).min(length);
            *left -= data as u64;
            (data, *left == 0, length - data)
        }
        Remaining::Chunks(chunked) => match unchunk(chunked, read) {
            Ok(unchunked) => unchunked,
            Err((data, fault)) => {
                tracing::debug!(%fault, "malformed chunked response from upstream");
                if data == 0 {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, fault));
                }
                // What was good before it is given first.
                *framing = Remaining::Broken(fault);
                (data, false, 0)
            }
        },
        Remaining::Broken(fault) => {
            return Err(io::Error::new(io::ErrorKind::InvalidData, *fault));
        }
    })
}

/// Moves the data of chunks to the start of `read`. Gives data bytes, whether the body is over,
/// and bytes after it; where the framing breaks, the data bytes before that.
fn unchunk(
    chunked: &mut Chunked,
    read: &mut [u8],
) -> Result<(usize, bool, usize), (usize, HeadFault)> {
    let (mut data, mut at) = (0, 0);
    loop {
        match chunked.next(&read[at..]).map_err(|fault| (data, fault))? {
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
