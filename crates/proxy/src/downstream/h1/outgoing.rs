//! The response as it goes out, and the connection's face towards the exchange.
//!
//! Invariant: a response that cannot be framed to its end ends visibly broken.
//! Not here: what is sent (`exchange`), what comes in (`incoming`).

use std::io::{self, IoSlice};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use policy::caller::Peer;
use wire::head::Version;
use wire::http1::{chunk_prefix, write_field, write_status_line};

use super::incoming::Incoming;
use super::{AHEAD_BYTES, Connection};
use crate::buffer::{Buffers, decimal};
use crate::client::{BodyFault, BodyLength, Downstream};
use crate::stream::Stream;

/// A response up to this size is copied together and leaves by a plain write: cheaper for the kernel
/// than a vector of parts.
const GATHERED_BYTES: usize = 2 << 10;

impl Downstream for Connection {
    fn peer(&self) -> Peer {
        self.stream.peer()
    }

    fn poll_body(
        &mut self,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        self.poll_request_body(buffers, cx)
    }

    fn awaits_continue(&self) -> bool {
        self.must_continue
    }

    fn poll_gone(&mut self, buffers: &Buffers, cx: &mut Context<'_>) -> Poll<()> {
        while !self.gone && self.ended.is_none() && self.input.len() < AHEAD_BYTES {
            if self.stream.is_awaited() {
                self.is_settled = self.is_answering;
                return Poll::Pending;
            }
            let read = buffers.scratch(|scratch| match self.stream.poll_into(cx, scratch) {
                Poll::Pending => None,
                Poll::Ready(Ok(read)) => Some(Ok(scratch[..read].to_vec())),
                Poll::Ready(Err(_)) => Some(Err(())),
            });
            match read {
                None => {
                    self.is_settled = self.is_answering;
                    return Poll::Pending;
                }
                Some(Ok(read)) if !read.is_empty() => self.input.extend_from_slice(&read),
                Some(Ok(_)) => self.gone = !self.may_wait(cx),
                Some(Err(())) => self.gone = true,
            }
        }
        if self.gone {
            Poll::Ready(())
        } else if self.ended.is_some() {
            self.poll_left(cx)
        } else {
            Poll::Pending
        }
    }

    fn begin(&mut self, status: u16, extent: BodyLength) {
        let has_none = self.bodiless || matches!(status, 204 | 304);
        let until_close = extent == BodyLength::Open && self.version == Version::H10;
        // A response that begins in a drain is the last on its connection.
        self.keep &= !self.worker.is_draining() && self.can_skip() && !until_close;
        // A client that has ended its side sends no more than it has sent.
        self.keep &= self.ended.is_none() || !self.input.is_empty();
        self.is_answering = true;
        self.extent = if has_none {
            BodyLength::Nothing
        } else {
            extent
        };
        if self.output.capacity() == 0 {
            self.output = self.worker.buffers.answering.take();
        }
        self.output.reserve(512);
        write_status_line(&mut self.output, status);
        match extent {
            BodyLength::Length(length) if !matches!(status, 204 | 304) => {
                self.output.extend_from_slice(b"content-length: ");
                decimal(length, &mut self.output);
                self.output.extend_from_slice(b"\r\n");
            }
            BodyLength::Open if !has_none && !until_close => {
                self.output
                    .extend_from_slice(b"transfer-encoding: chunked\r\n");
            }
            BodyLength::Length(_) | BodyLength::Open | BodyLength::Nothing => {}
        }
        if !self.keep {
            self.output.extend_from_slice(b"connection: close\r\n");
        } else if self.version == Version::H10 {
            self.output.extend_from_slice(b"connection: keep-alive\r\n");
        }
    }

    fn switch(&mut self) -> bool {
        self.is_answering = true;
        self.keep = false;
        // As long as it may be, and never framed.
        self.extent = BodyLength::Length(u64::MAX);
        self.body = Incoming::Tunnel;
        write_status_line(&mut self.output, 101);
        let fields = b"connection: upgrade\r\nupgrade: websocket\r\n";
        self.output.extend_from_slice(fields);
        true
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        write_field(&mut self.output, name, value);
    }

    fn date(&mut self) {
        self.output.extend_from_slice(&self.worker.clock.date());
    }

    fn begun(&mut self) {
        self.output.extend_from_slice(b"\r\n");
    }

    fn retract(&mut self) -> bool {
        // What was answered before was flushed, so the head is all there is.
        self.output.clear();
        true
    }

    fn send(&mut self, cx: &mut Context<'_>, pieces: &[&[u8]], end: bool) -> io::Result<()> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let is_chunked = self.extent == BodyLength::Open && self.version != Version::H10;
        let mut prefix = [0; 18];
        let (mut before, mut after) = (&b""[..], &b""[..]);
        if is_chunked && length > 0 {
            let used = chunk_prefix(length, &mut prefix);
            before = &prefix[..used];
            after = if end { b"\r\n0\r\n\r\n" } else { b"\r\n" };
        } else if is_chunked && end {
            after = b"0\r\n\r\n";
        }
        let pieces = if self.extent == BodyLength::Nothing {
            &[][..]
        } else {
            pieces
        };
        let mut output = std::mem::take(&mut self.output);
        if output.capacity() == 0 {
            output = self.worker.buffers.answering.take();
        }
        let is_short = output.len() + length <= GATHERED_BYTES;
        if is_short {
            output.extend_from_slice(before);
            for piece in pieces {
                output.extend_from_slice(piece);
            }
            output.extend_from_slice(after);
        }
        let (mut one, mut few, mut many);
        let mut unsent = if is_short {
            one = [IoSlice::new(&output)];
            &mut one[..]
        } else {
            let parts = [&output[..], before]
                .into_iter()
                .chain(pieces.iter().copied())
                .chain([after])
                .filter(|part| !part.is_empty());
            few = [IoSlice::new(b""); 8];
            if pieces.len() + 3 <= few.len() {
                let slots = few.iter_mut().zip(parts);
                let used = slots.map(|(slot, part)| *slot = IoSlice::new(part));
                let used = used.count();
                &mut few[..used]
            } else {
                many = parts.map(IoSlice::new).collect::<Vec<_>>();
                &mut many[..]
            }
        };
        match self.stream.poll_all(cx, &mut unsent) {
            Poll::Ready(Ok(())) => self.worker.buffers.answering.give(output),
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
        if self.output.is_empty() && matches!(self.stream, Stream::Plain(_)) {
            return Poll::Ready(Ok(()));
        }
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
                self.worker.buffers.answering.give(output);
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
        if let (BodyLength::Open, Version::H10, Stream::Plain(socket)) =
            (self.extent, self.version, &self.stream)
        {
            // Without framing only a reset tells that the body is not whole.
            let reset = socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO));
            if let Err(error) = reset {
                tracing::debug!(%error, "cannot set SO_LINGER");
            }
        }
    }
}
