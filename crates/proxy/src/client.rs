//! A client's side of one exchange, whichever version of HTTP it speaks.
//!
//! Invariant: a response that cannot end well ends visibly broken.
//! Not here: who speaks it (`downstream`), what is said (`exchange`).

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use policy::caller::Peer;
use wire::head::HeadFault;

use crate::buffer::Buffers;

/// How a response's body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    /// There is none, and none may be declared (204, 304, HEAD).
    Nothing,
    /// So many bytes.
    Length(u64),
    /// Known only at its end.
    Open,
}

/// Why a request body did not come whole.
#[derive(Debug)]
pub(crate) enum BodyFault {
    /// Its framing is broken.
    Framing(HeadFault),
    /// It is not what its head allows.
    Head(HeadFault),
    /// The client left.
    Gone,
}

/// One exchange as its client's connection offers it. All waiting is by poll, so that one task can
/// wait for both sides at once.
pub(crate) trait Downstream {
    /// Whose connection it is: the client, or a proxy of connections.
    fn peer(&self) -> Peer;
    /// The next piece of the request body; `None` at its end.
    fn poll_body(
        &mut self,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>>;
    /// Whether the client sends nothing of its body before it is asked to.
    fn awaits_continue(&self) -> bool {
        false
    }
    /// Ready when the client has left. Must not be called with the scratch buffer borrowed.
    fn poll_gone(&mut self, buffers: &Buffers, cx: &mut Context<'_>) -> Poll<()>;
    /// Begins the response head.
    fn begin(&mut self, status: u16, extent: BodyLength);
    /// Adds a response header; the name in lower case.
    fn field(&mut self, name: &[u8], value: &[u8]);
    /// Adds the `date`, where the answer has none of its own.
    fn date(&mut self);
    /// Begins the head of a 101: from then on bytes pass as they come, both ways. False where its version of HTTP has none.
    fn switch(&mut self) -> bool {
        false
    }
    /// Ends the head; it leaves with the first body bytes or the next flush.
    fn begun(&mut self);
    /// Takes back a response that was begun and of which nothing has left; whether that was so.
    fn retract(&mut self) -> bool;
    /// Takes body bytes, sends what goes now and keeps the rest. `end` ends the response.
    fn send(&mut self, cx: &mut Context<'_>, pieces: &[&[u8]], end: bool) -> io::Result<()>;
    /// Ready when everything taken is on its way.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Whether some of what waited has left since this was last asked: a slow client is not gone.
    fn progressed(&mut self) -> bool;
    /// Ends the response so that the client sees it is not whole.
    fn cut(&mut self);
    /// Ends it for a client that left or takes nothing: what it has not taken is dropped.
    fn abandon(&mut self) {
        self.cut();
    }
}
