//! The provider's side: connections, kept alive per worker, and one attempt on one of them.
//!
//! Invariant: a connection goes back to its pool only after a response that ended by its own
//! framing, with the request sent whole and nothing left over.
//! Not here: whether to try again (`policy::attempt`), what the response means (`exchange`).

pub(crate) mod connect;
pub(crate) mod h1;
pub(crate) mod h2;
pub(crate) mod line;
mod names;
pub(crate) mod pool;
mod spread;
mod tunnel;

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use policy::attempt::Failure;
use policy::exchange::{AttemptRequest, Lost};
use policy::secret::Secret;
use policy::snapshot::Endpoint;
use wire::head::{Known, ResponseHead};

use crate::buffer::Buffers;

/// A request on its way to an endpoint, whoever makes it.
pub(crate) trait Outgoing {
    /// Where it goes.
    fn endpoint(&self) -> &Endpoint;
    /// Its method.
    fn method_text(&self) -> &str;
    /// What follows the endpoint's base path.
    fn path(&self) -> &str;
    /// The query, with its `?`; empty where there is none.
    fn query(&self) -> &str;
    /// The host that it names, with its port.
    fn authority(&self) -> &str {
        &self.endpoint().authority
    }
    /// Whether it asks that its connection become a WebSocket.
    fn asks_for_websocket(&self) -> bool {
        false
    }
    /// Gives `put` each field but `host`, the body's length and those with secrets; names in lower case.
    fn fields(&self, put: impl FnMut(&[u8], &[u8]));
    /// Gives `put` each field with a secret.
    fn secrets(&self, put: impl FnMut(&str, &Secret));
}

impl Outgoing for AttemptRequest<'_> {
    #[inline(always)]
    fn authority(&self) -> &str {
        self.authority()
    }

    #[inline(always)]
    fn endpoint(&self) -> &Endpoint {
        self.endpoint
    }

    #[inline(always)]
    fn method_text(&self) -> &str {
        self.method_text
    }

    #[inline(always)]
    fn path(&self) -> &str {
        self.path()
    }

    #[inline(always)]
    fn query(&self) -> &str {
        self.query()
    }

    #[inline(always)]
    fn asks_for_websocket(&self) -> bool {
        self.asks_for_websocket()
    }

    #[inline(always)]
    fn fields(&self, put: impl FnMut(&[u8], &[u8])) {
        self.fields(put);
    }

    #[inline(always)]
    fn secrets(&self, put: impl FnMut(&str, &Secret)) {
        self.secrets(put);
    }
}

/// What the wait for a response tells, and what else it waits for.
pub(crate) trait Watch {
    /// Whose buffers are used.
    fn buffers(&self) -> &Buffers;
    /// The request begins to leave, or with `is_whole` has left.
    fn sent(&mut self, is_whole: bool);
    /// Ready when nobody waits for the response any more.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

/// A wait that nobody but its deadline ends, or whoever drops it.
pub(crate) struct Unwatched<'a>(pub(crate) &'a Buffers);

impl Watch for Unwatched<'_> {
    fn buffers(&self) -> &Buffers {
        self.0
    }

    fn sent(&mut self, _: bool) {}

    fn poll_gone(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// What became of the wait for a response.
pub(crate) enum Answered {
    /// Its head came; it stands where it was asked for.
    Head,
    /// It does not come.
    Lost(Lost),
    /// Nobody waits for it any more.
    Gone,
}

impl From<Failure> for Answered {
    fn from(failure: Failure) -> Self {
        Self::Lost(failure.into())
    }
}

/// An upstream's answer, its head read and its body to come.
pub(crate) struct Response {
    /// Boxed, as it is handed on; until it is given back for the next one.
    pub(crate) head: Option<Box<ResponseHead>>,
    pub(crate) body: Body,
}

/// What one read brought of a body.
pub(crate) struct Chunk<'b> {
    pub(crate) data: &'b [u8],
    /// The body is over with it.
    pub(crate) is_over: bool,
}

/// Where the body comes from.
pub(crate) enum Body {
    H1(h1::Body),
    H2(h2::Body),
    Begun(Box<Begun>),
}

/// A body whose beginning was read before it was known what becomes of it.
pub(crate) struct Begun {
    /// What was read.
    data: Vec<u8>,
    /// How that ended, where it did not merely pause: the body is over, or broke off.
    end: Option<io::Result<()>>,
    is_given: bool,
    then: Body,
}

impl Begun {
    pub(crate) fn of(then: Body) -> Self {
        Self {
            data: Vec::new(),
            end: None,
            is_given: false,
            then,
        }
    }

    /// What was read of it so far.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Reads on; ready with whether there is nothing more to read.
    pub(crate) fn poll_more(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<bool> {
        match ready!(self.then.poll_chunk(cx, buffer)) {
            Ok(Chunk { data, is_over }) => {
                self.data.extend_from_slice(data);
                if is_over {
                    self.end = Some(Ok(()));
                }
            }
            Err(error) => self.end = Some(Err(error)),
        }
        self.then.taken();
        Poll::Ready(self.end.is_some())
    }

    fn poll_chunk<'b>(
        &'b mut self,
        cx: &mut Context<'_>,
        buffer: &'b mut [u8],
    ) -> Poll<io::Result<Chunk<'b>>> {
        if !self.is_given {
            self.is_given = true;
            let is_over = matches!(self.end, Some(Ok(())));
            let data = &self.data;
            if is_over || !data.is_empty() {
                return Poll::Ready(Ok(Chunk { data, is_over }));
            }
        }
        match self.end.take() {
            Some(Err(error)) => Poll::Ready(Err(error)),
            Some(Ok(())) | None => self.then.poll_chunk(cx, buffer),
        }
    }
}

impl Body {
    /// Reads, into `buffer` where it reads anew. An error: the body broke off.
    pub(crate) fn poll_chunk<'b>(
        &'b mut self,
        cx: &mut Context<'_>,
        buffer: &'b mut [u8],
    ) -> Poll<io::Result<Chunk<'b>>> {
        match self {
            Self::H1(body) => body.poll_chunk(cx, buffer),
            Self::H2(body) => body.poll_chunk(cx),
            Self::Begun(begun) => begun.poll_chunk(cx, buffer),
        }
    }

    /// Sends what goes now of the bytes of a tunnel, and takes that off them. Ready when nothing is left.
    #[cold]
    pub(crate) fn poll_send(
        &mut self,
        bytes: &mut Bytes,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::H1(body) => body.poll_send(bytes, cx),
            Self::Begun(begun) => begun.then.poll_send(bytes, cx),
            Self::H2(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Tells the other side that no more bytes come through a tunnel.
    #[cold]
    pub(crate) fn poll_shut(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::H1(body) => body.poll_shut(cx),
            Self::Begun(begun) => begun.then.poll_shut(cx),
            Self::H2(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// The piece that was given is not needed any more; to be said of each.
    pub(crate) fn taken(&mut self) {
        match self {
            Self::H1(body) => body.taken(),
            Self::H2(_) => {}
            Self::Begun(begun) => begun.then.taken(),
        }
    }

    /// The body's length, when its head declares it; after HEAD, of the body that GET would give.
    pub(crate) fn length(&self, head: &ResponseHead) -> Option<u64> {
        match self {
            Self::H1(body) if !body.is_over() => body.length(),
            Self::H1(_) | Self::H2(_) | Self::Begun(_) => {
                let declared = head.fields.only(Known::ContentLength).ok().flatten()?;
                std::str::from_utf8(declared).ok()?.parse().ok()
            }
        }
    }
}
