//! The provider's side: connections, kept alive per worker, and one attempt on one of them.
//!
//! Invariant: a connection goes back to its pool only after a response that ended by its own
//! framing, with the request sent whole and nothing left over.
//! Not here: whether to try again (`policy::attempt`), what the response means (`exchange`).

pub(crate) mod connect;
pub(crate) mod h1;
pub(crate) mod h2;
mod names;
pub(crate) mod pool;
mod tunnel;

use std::io;
use std::task::{Context, Poll};

use std::rc::Rc;

use bytes::Bytes;
use policy::secret::Secret;
use policy::snapshot::Endpoint;
use wire::head::{Known, Method, ResponseHead};

use self::pool::Pool;
use crate::worker::Worker;

/// A request as it goes upstream: the same for every attempt but for host and credential.
pub(crate) struct Outgoing<'h> {
    /// Method, for framing of the answer.
    pub(crate) method: Method,
    /// Method as text.
    pub(crate) method_text: &'h str,
    /// What follows the endpoint's base path: `/chat/completions`.
    pub(crate) path: &'h str,
    /// The query, with its `?`; empty where there is none.
    pub(crate) query: String,
    /// Header lines that go to any endpoint, each ended by CRLF; names in lower case.
    pub(crate) lines: Vec<u8>,
    /// Where in them the `traceparent` stands, whose span is each attempt's own.
    pub(crate) traceparent_at: Option<usize>,
    /// The body, edited.
    pub(crate) body: Vec<Bytes>,
    /// Its length; `None` where there is no body at all.
    pub(crate) length: Option<u64>,
}

/// One try over HTTP/1.1: what goes where, as whom.
pub(crate) struct Trip<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) pool: &'a Rc<Pool>,
    pub(crate) request: &'a Outgoing<'a>,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) credential: &'a Secret,
}

/// An upstream's answer, its head read and its body to come.
pub(crate) struct Response {
    /// Boxed, as it is handed on through every layer of an attempt.
    pub(crate) head: Box<ResponseHead>,
    pub(crate) body: Body,
}

/// What one read brought of a body.
pub(crate) struct Piece<'b> {
    pub(crate) data: &'b [u8],
    /// The body is over with it.
    pub(crate) is_over: bool,
}

/// Where the body comes from.
pub(crate) enum Body {
    H1(h1::Body),
    H2(h2::Body),
}

impl Body {
    /// Reads, into `buffer` where it reads anew. An error: the body broke off.
    pub(crate) fn poll_piece<'b>(
        &'b mut self,
        cx: &mut Context<'_>,
        buffer: &'b mut [u8],
    ) -> Poll<io::Result<Piece<'b>>> {
        match self {
            Self::H1(body) => body.poll_piece(cx, buffer),
            Self::H2(body) => body.poll_piece(cx),
        }
    }

    /// The piece that was given is not needed any more; to be said of each.
    pub(crate) fn taken(&mut self) {
        if let Self::H1(body) = self {
            body.taken();
        }
    }

    /// The body's length, when its head declares it; after HEAD, of the body that GET would give.
    pub(crate) fn length(&self, head: &ResponseHead) -> Option<u64> {
        match self {
            Self::H1(body) if !body.is_over() => body.length(),
            Self::H1(_) | Self::H2(_) => {
                let declared = head.fields.only(Known::ContentLength).ok().flatten()?;
                std::str::from_utf8(declared).ok()?.parse().ok()
            }
        }
    }
}
