//! The request body as it comes in: by length, in chunks, long ones in place.
//!
//! Invariant: nothing after the body's end is taken from the connection's input; no buffer is larger than what
//! has arrived, but for the worker's own.
//! Not here: how long a body may be and how slow (`exchange`).

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use wire::http1::{ChunkStep, Chunked};

use super::Connection;
use crate::buffer::Buffers;
use crate::client::{BodyFault, Downstream};

/// A body of which so much has come, and more than that is to come, is read in place, without passing
/// through the scratch buffer.
const LARGE_FROM_BYTES: usize = 32 << 10;
/// The largest buffer for that. None is larger than what has come of the body: a declared length alone
/// buys no memory.
const LARGE_BYTES: usize = 256 << 10;

/// What is left of a request body.
pub(super) enum Incoming {
    Over,
    Bytes(u64),
    Chunks(Box<Chunked>),
    /// No body: whatever comes, until the client ends its side.
    Tunnel,
}

impl Connection {
    /// The next piece of the request body, after `100 Continue` where the client waits for it.
    pub(super) fn poll_request_body(
        &mut self,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        let none_came = self.input.is_empty() && self.ahead.is_empty();
        if self.must_continue && none_came && !matches!(self.body, Incoming::Over) {
            self.must_continue = false;
            self.output
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if matches!(self.body, Incoming::Tunnel) {
            return self.poll_tunnel(buffers, cx);
        }
        if !self.output.is_empty() && self.poll_flushed(cx).is_pending() {
            return Poll::Pending;
        }
        let result = match &self.body {
            Incoming::Over | Incoming::Tunnel => Ok(None),
            Incoming::Bytes(left) => {
                let left = *left;
                let wanted = usize::try_from(left).unwrap_or(usize::MAX);
                match ready!(self.poll_bytes(buffers, wanted, cx)) {
                    Ok(piece) => {
                        self.received = self.received.saturating_add(piece.len());
                        let left = left - piece.len() as u64;
                        self.body = if left == 0 {
                            Incoming::Over
                        } else {
                            Incoming::Bytes(left)
                        };
                        Ok(Some(piece))
                    }
                    Err(_) => Err(BodyFault::Gone),
                }
            }
            Incoming::Chunks(_) => ready!(self.poll_chunks(buffers, cx)),
        };
        match &result {
            Err(BodyFault::Gone) => self.gone = true,
            Err(BodyFault::Framing(_) | BodyFault::Head(_)) => self.refuse_rest(),
            Ok(_) => {}
        }
        Poll::Ready(result)
    }

    /// The next bytes of a tunnel, which do not wait for what goes the other way.
    #[cold]
    fn poll_tunnel(
        &mut self,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        // What is asked for at once is never read in place, which would wait for a whole buffer.
        self.received = 0;
        match ready!(self.poll_bytes(buffers, usize::MAX, cx)) {
            Ok(piece) => Poll::Ready(Ok(Some(piece))),
            Err(error) => {
                self.body = Incoming::Over;
                if error.kind() == io::ErrorKind::UnexpectedEof {
                    return Poll::Ready(Ok(None));
                }
                self.gone = true;
                Poll::Ready(Err(BodyFault::Gone))
            }
        }
    }

    /// Some of the next `wanted` body bytes.
    fn poll_bytes(
        &mut self,
        buffers: &Buffers,
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>> {
        if !self.ahead.is_empty() {
            return Poll::Ready(Ok(std::mem::take(&mut self.ahead)));
        }
        if !self.input.is_empty() && self.filling.is_none() {
            let rest = self.input.split_off(self.input.len().min(wanted));
            return Poll::Ready(Ok(Bytes::from(std::mem::replace(&mut self.input, rest))));
        }
        let is_large = wanted > LARGE_FROM_BYTES && self.received >= LARGE_FROM_BYTES;
        if is_large || self.filling.is_some() {
            return self.poll_large(wanted, cx);
        }
        buffers.scratch(|scratch| {
            let room = scratch.len().min(wanted);
            match ready!(self.stream.poll_into(cx, &mut scratch[..room]))? {
                0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => Poll::Ready(Ok(Bytes::copy_from_slice(&scratch[..read]))),
            }
        })
    }

    /// Reads a long body in place, without a copy, a buffer at a time.
    fn poll_large(&mut self, wanted: usize, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let size = wanted.min(LARGE_BYTES).min(self.received);
        let (buffer, filled) = self.filling.get_or_insert_with(|| (vec![0; size], 0));
        while *filled < buffer.len() {
            match ready!(self.stream.poll_into(cx, &mut buffer[*filled..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => *filled += read,
            }
        }
        let (buffer, _) = self.filling.take().unwrap_or_default();
        Poll::Ready(Ok(Bytes::from(buffer)))
    }

    /// The next data of a chunked body.
    fn poll_chunks(
        &mut self,
        buffers: &Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>> {
        let Incoming::Chunks(chunked) = &mut self.body else {
            return Poll::Ready(Ok(None));
        };
        loop {
            if self.input.is_empty() {
                let read =
                    buffers.scratch(|scratch| match ready!(self.stream.poll_into(cx, scratch)) {
                        Ok(read @ 1..) => {
                            self.input.extend_from_slice(&scratch[..read]);
                            Poll::Ready(true)
                        }
                        Ok(_) | Err(_) => Poll::Ready(false),
                    });
                if !ready!(read) {
                    return Poll::Ready(Err(BodyFault::Gone));
                }
            }
            let mut input = std::mem::take(&mut self.input);
            let mut data = Vec::new();
            let mut at = 0;
            let over = loop {
                match chunked.next(&input[at..]).map_err(BodyFault::Framing)? {
                    ChunkStep::NeedMore { .. } => break false,
                    ChunkStep::Data { skip, len } => {
                        data.extend_from_slice(&input[at + skip..at + skip + len]);
                        at += skip + len;
                    }
                    ChunkStep::End { consumed } => {
                        at += consumed;
                        break true;
                    }
                }
            };
            if over {
                self.input = input.split_off(at);
                self.body = Incoming::Over;
                return Poll::Ready(Ok((!data.is_empty()).then(|| Bytes::from(data))));
            }
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(Bytes::from(data))));
            }
        }
    }
}
