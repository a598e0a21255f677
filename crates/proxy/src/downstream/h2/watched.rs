//! The bytes of an HTTP/2 connection on their way to hyper and back, with a look at each frame's head.
//!
//! hyper neither counts the frames that carry no request nor bounds how long a client takes nothing.
//! Invariant: what hyper reads and writes passes unchanged, but for header blocks that are malformed; a client
//! that sends too many such frames, or takes nothing for `write_stall`, ends its connection; reading lets
//! others run.
//! Not here: how many frames are too many (`policy::glitch`), where frames begin (`wire::http2`), what is
//! malformed in a header block (`wire::hpack`).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use policy::glitch::Glitches;
use policy::record::Closed;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::hpack::HeaderBlocks;
use wire::http2::Frames;

use crate::deadline::Deadline;
use crate::stint::Stint;
use crate::stream::Stream;
use crate::worker::Worker;

/// A frame's share of a [`Stint`], beside its bytes: dealing with one costs as much as scanning so many.
const FRAME_BYTES: usize = 128;
/// GOAWAY for all streams with ENHANCE_YOUR_CALM.
const CALM_DOWN: [u8; 17] = [
    0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0x0b,
];

/// A client's stream, of which some was read already.
pub(super) struct Watched {
    /// That part.
    input: Vec<u8>,
    stream: Stream,
    worker: Rc<Worker>,
    received: Frames,
    blocks: HeaderBlocks,
    sent: Frames,
    glitches: Glitches,
    stint: Stint,
    /// Since when, at most how long the client may take nothing; set while it does.
    stalled: Deadline,
    is_stalled: bool,
    stall: Duration,
}

impl Watched {
    pub(super) fn new(
        worker: &Rc<Worker>,
        stream: Stream,
        input: Vec<u8>,
        stall: Duration,
    ) -> Self {
        Self {
            input,
            stream,
            worker: Rc::clone(worker),
            received: Frames::of_client(),
            blocks: HeaderBlocks::default(),
            sent: Frames::of_server(),
            glitches: Glitches::new(worker.clock.latest()),
            stint: Stint::default(),
            stalled: Deadline::new(&worker.clock.wheel),
            is_stalled: false,
            stall,
        }
    }

    fn poll_input(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.input.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let taken = self.input.len().min(buf.remaining());
        buf.put_slice(&self.input[..taken]);
        self.input.drain(..taken);
        Poll::Ready(Ok(()))
    }

    /// Looks at what the client sent. False when it is too much.
    fn observe(&mut self, mut bytes: &[u8]) -> bool {
        self.stint.add(bytes.len());
        while let Some(frame) = self.received.next(&mut bytes) {
            self.stint.add(FRAME_BYTES);
            if !self.glitches.received(frame, || self.worker.now()) {
                return false;
            }
        }
        true
    }

    /// Ends the connection of a client that sends too much, and says why where it still hears.
    #[cold]
    fn calm_down(&mut self, cx: &mut Context<'_>) -> io::Error {
        self.worker.closed(Closed::Http2Glitches);
        tracing::debug!("HTTP/2 connection closed: too many frames that carry no request");
        if self.sent.is_between() {
            let said = Pin::new(&mut self.stream).poll_write(cx, &CALM_DOWN);
            let _best_effort = (said, Pin::new(&mut self.stream).poll_flush(cx));
        }
        io::Error::other("too many HTTP/2 frames that carry no request")
    }

    /// What a try to write came to; one that stays pending for too long has failed.
    fn written<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if std::mem::take(&mut self.is_stalled) {
                self.stalled.clear();
            }
            return polled;
        }
        if !std::mem::replace(&mut self.is_stalled, true) {
            self.stalled.set(self.stall);
        }
        ready!(self.stalled.poll(cx));
        self.worker.closed(Closed::WriteStall);
        tracing::debug!("HTTP/2 connection closed: its client takes nothing");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn note_sent(&mut self, mut bytes: &[u8]) {
        while let Some(frame) = self.sent.next(&mut bytes) {
            self.glitches.sent(frame);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.stint.poll_pass(cx));
        let before = buf.filled().len();
        ready!(this.poll_input(cx, buf))?;
        let read = buf.filled_mut().get_mut(before..).unwrap_or_default();
        if this.observe(read) {
            return Poll::Ready(this.blocks.read(read).map_err(io::Error::other));
        }
        Poll::Ready(Err(this.calm_down(cx)))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(cx, buf);
        let written = ready!(this.written(polled, cx))?;
        this.note_sent(buf.get(..written).unwrap_or_default());
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        let written = ready!(this.written(polled, cx))?;
        let mut left = written;
        for buf in bufs {
            let part = buf.get(..left.min(buf.len())).unwrap_or_default();
            this.note_sent(part);
            left -= part.len();
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(cx);
        this.written(polled, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.written(polled, cx)
    }
}
