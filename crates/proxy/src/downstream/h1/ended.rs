//! A client that ended its side of the connection while its exchange runs.
//!
//! A FIN says the same of a client that has said all it has to say (`nc -N`) and of one that has left. Bytes tell
//! them apart: a host answers bytes for a socket that nobody holds any more by a reset. Before the answer has begun
//! those bytes are a `100 Continue`, which any client of HTTP/1.1 passes over (RFC 9110, 15.2); after that the
//! answer itself is sent anyway.
//! Invariant: a client that left is known to have left one round trip after its FIN, at the latest at the next
//! look below; whoever ends its side after its answer began has left.
//! Not here: clients that leave by a reset (`outgoing`), HTTP/2, where streams are reset.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Sleep;

use super::Connection;
use crate::client::Downstream;
use crate::timers::Timers;

/// When to look first for the reset; the time doubles with each look.
const FIRST_LOOK: Duration = Duration::from_millis(5);
/// The longest time between two looks.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// When to look next whether the client is there.
pub(super) struct Ended {
    timers: Timers,
    next: Pin<Box<Sleep>>,
    wait: Duration,
}

impl Connection {
    /// The client has ended its side: whether it may wait for its answer nevertheless.
    #[cold]
    pub(super) fn may_wait(&mut self, cx: &mut Context<'_>) -> bool {
        if self.is_settled || self.version != wire::head::Version::H11 {
            return false;
        }
        if !self.is_answering {
            self.output
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            if matches!(self.poll_flushed(cx), Poll::Ready(Err(_))) {
                return false;
            }
        }
        let timers = self.worker.timers.clone();
        self.ended = Some(Box::new(Ended {
            next: Box::pin(timers.sleep(FIRST_LOOK)),
            timers,
            wait: FIRST_LOOK,
        }));
        true
    }

    /// Ready when a client that has ended its side turns out to have left.
    #[cold]
    pub(super) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(ended) = &mut self.ended {
            ready!(ended.next.as_mut().poll(cx));
            if self.stream.is_broken() {
                self.gone = true;
                return Poll::Ready(());
            }
            ended.wait = (2 * ended.wait).min(LAST_LOOK);
            ended.next = Box::pin(ended.timers.sleep(ended.wait));
        }
        Poll::Pending
    }
}
