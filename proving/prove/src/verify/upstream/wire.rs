//! A connection of an upstream that writes down every byte that it brings.
//!
//! Invariant: a byte is in the book before anybody makes sense of it: what is no HTTP and what is never finished are there, too.
//! Not here: what the bytes are (`serve`), what may not be among them (`check::leak`).

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{BYTES_MAX, Shared, open};

/// The connection, and its place in the book.
pub(super) struct Wire {
    stream: TcpStream,
    shared: Shared,
    at: usize,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, shared: &Shared) -> Self {
        let mut book = open(shared);
        let at = book.wires.len();
        book.wires.push((peer, Vec::new()));
        Self {
            stream,
            shared: Arc::clone(shared),
            at,
        }
    }

    fn note(&self, bytes: &[u8]) {
        let mut book = open(&self.shared);
        if book.wire_bytes >= BYTES_MAX {
            return;
        }
        book.wire_bytes += bytes.len();
        if let Some((_, wire)) = book.wires.get_mut(self.at) {
            wire.extend_from_slice(bytes);
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.note(buffer.filled().get(before..).unwrap_or_default());
        read
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
