//! Bodies of answers: in one piece, one event, and streams that say something every second.
//!
//! Invariant: a stream ends with its connection alone.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Interval, interval_at};

/// Between two messages of a stream.
pub(super) const TICK: Duration = Duration::from_secs(1);
const TOLD: &[u8] = b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"still here\"}}\n\n";

/// A body.
pub(super) struct Said {
    first: Option<Bytes>,
    then: Then,
}

enum Then {
    /// Its length is known.
    End,
    /// It comes in chunks, as servers of events send them.
    EndOfEvents,
    /// Nothing, and it stays open.
    Silence,
    Ticks(Interval),
}

impl Said {
    pub(super) const fn whole(body: Bytes) -> Self {
        Self {
            first: Some(body),
            then: Then::End,
        }
    }

    /// One event, and the end.
    pub(super) const fn event(event: Bytes) -> Self {
        Self {
            first: Some(event),
            then: Then::EndOfEvents,
        }
    }

    /// One event, and no end.
    pub(super) const fn opened(event: Bytes) -> Self {
        Self {
            first: Some(event),
            then: Then::Silence,
        }
    }

    /// A log message at once and every second.
    pub(super) fn ticking() -> Self {
        Self {
            first: Some(Bytes::from_static(TOLD)),
            then: Then::Ticks(interval_at(Instant::now() + TICK, TICK)),
        }
    }
}

impl Body for Said {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match &mut self.then {
            Then::End | Then::EndOfEvents => Poll::Ready(None),
            Then::Silence => Poll::Pending,
            Then::Ticks(ticks) => {
                ready!(ticks.poll_tick(cx));
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(TOLD)))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && matches!(self.then, Then::End)
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.first.as_ref().map_or(0, Bytes::len) as u64;
        match self.then {
            Then::End => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }
}
