//! A body with a fault in it.
//!
//! Invariant: up to the fault the bytes are the true ones; every frame of the inner body is one event, or the whole.
//! Not here: asking for faults (the parent), false counts of tokens (`usage`).

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use super::{Fault, UsageFault};

const BEFORE_RESET: Duration = Duration::from_millis(10);

/// Wraps a body in its fault.
pub(crate) struct Faulty<B> {
    inner: B,
    fault: Fault,
    /// Number of the next event.
    event: usize,
    pieces: VecDeque<Bytes>,
    stalled: Option<Pin<Box<Sleep>>>,
    /// An event that a stall holds back.
    held: Option<Bytes>,
    end: Option<End>,
}

enum End {
    Quiet,
    Reset,
}

impl<B> Faulty<B> {
    pub(crate) fn new(inner: B, fault: Fault) -> Self {
        Self {
            inner,
            fault,
            event: 0,
            pieces: VecDeque::new(),
            stalled: None,
            held: None,
            end: None,
        }
    }

    fn take(&mut self, event: Bytes, is_stream: bool) {
        let number = self.event;
        self.event += 1;
        if self.fault.reset == Some(number) || (self.fault.reset.is_some() && !is_stream) {
            if !is_stream {
                self.push(event.slice(..event.len() / 2));
            }
            // What was sent before is let out first, or the server drops it with the connection.
            self.stalled = Some(Box::pin(sleep(BEFORE_RESET)));
            self.end = Some(End::Reset);
        } else if self.fault.garble == Some(number) || (self.fault.garble.is_some() && !is_stream) {
            self.push(garbled(&event, is_stream));
        } else if self.fault.truncate == Some(number)
            || (self.fault.truncate.is_some() && !is_stream)
        {
            self.push(event.slice(..event.len() / 2));
            self.end = Some(End::Quiet);
        } else {
            self.send(event, is_stream);
        }
    }

    /// Sends an event with the false usage that was asked for.
    fn send(&mut self, event: Bytes, is_stream: bool) {
        let Some(usage_fault) = self.fault.usage else {
            return self.push(event);
        };
        let start = if is_stream {
            find(&event, b"data: ").map_or(0, |at| at + 6)
        } else {
            0
        };
        let Some(changed) = usage_fault.apply(event.slice(start..).trim_ascii_end()) else {
            return self.push(event);
        };
        if usage_fault == UsageFault::Repeated {
            self.push(event.clone());
            if is_stream {
                self.push(event);
            }
            return;
        }
        let mut whole = event.slice(..start).to_vec();
        whole.extend(changed);
        if is_stream {
            whole.extend(b"\n\n");
        }
        self.push(Bytes::from(whole));
    }

    fn push(&mut self, mut bytes: Bytes) {
        let most = self.fault.split.unwrap_or(usize::MAX);
        while bytes.len() > most {
            self.pieces.push_back(bytes.split_to(most));
        }
        self.pieces.push_back(bytes);
    }
}

/// The same length of something that is no JSON; an event keeps its frame.
fn garbled(event: &Bytes, is_stream: bool) -> Bytes {
    let (start, end) = if is_stream {
        (6.min(event.len()), event.len().saturating_sub(2))
    } else {
        (0, event.len())
    };
    let mut bytes = event.to_vec();
    for (i, byte) in bytes.iter_mut().enumerate().take(end).skip(start) {
        *byte = b"{\"\x07]}\xff:,"[i % 8];
    }
    Bytes::from(bytes)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

impl<B> Body for Faulty<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        loop {
            if let Some(piece) = this.pieces.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if let Some(stall) = &mut this.stalled {
                ready!(stall.as_mut().poll(cx));
                this.stalled = None;
            }
            match this.end {
                Some(End::Quiet) => return Poll::Ready(None),
                Some(End::Reset) => {
                    return Poll::Ready(Some(Err(io::Error::new(
                        io::ErrorKind::ConnectionReset,
                        "asked for",
                    ))));
                }
                None => {}
            }
            if let Some(event) = this.held.take() {
                this.take(event, true);
                continue;
            }
            let frame = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(frame) => frame.map_err(io::Error::other)?,
                None => return Poll::Ready(None),
            };
            let Ok(event) = frame.into_data() else {
                continue;
            };
            let is_stream = event.starts_with(b"data: ") || event.starts_with(b"event: ");
            match this.fault.stall {
                Some((at, wait)) if is_stream && at == this.event => {
                    this.stalled = Some(Box::pin(sleep(wait)));
                    this.held = Some(event);
                }
                _ => this.take(event, is_stream),
            }
        }
    }
}
