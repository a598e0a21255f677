//! A byte stream: TCP in clear or under TLS, on either side of the gate.
//!
//! Invariant: `TCP_NODELAY` is set on every one of them.
//! Not here: handshakes (`tls`, `upstream::connect`), timeouts (`deadline`).

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use policy::caller::{Peer, PeerCertificate};
use policy::snapshot::Snapshot;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::socket::Socket;

/// One connection's bytes.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Socket),
    /// The gate is the TLS server, and this is what its client has proven.
    Served(
        Box<tokio_rustls::server::TlsStream<Socket>>,
        Option<Arc<PeerCertificate>>,
    ),
    /// The gate is the TLS client.
    Dialled(Box<tokio_rustls::client::TlsStream<Socket>>),
    /// A test's, in memory.
    #[cfg(test)]
    Memory(crate::memory::Pipe),
}

impl Stream {
    /// Whether an idle stream is still good: nothing arrived and the peer has not closed.
    /// Looks at what the reactor already knows; no system call.
    pub(crate) fn is_quiet(&self) -> bool {
        #[cfg(test)]
        if let Self::Memory(pipe) = self {
            return pipe.is_quiet();
        }
        self.socket().is_quiet()
    }

    /// Whether whoever reads it in clear waits for it already, in this task, and nothing has come since.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self, Self::Plain(socket) if socket.is_awaited())
    }

    /// Whether the peer, which has ended in order, had acknowledged nothing of the last `written`
    /// bytes: it ended before it had any of them. Under TLS they are more on the wire, so that nothing
    /// is taken for unread that was not.
    pub(crate) fn took_nothing(&self, written: usize) -> bool {
        #[cfg(test)]
        if let Self::Memory(pipe) = self {
            return pipe.unread() >= written;
        }
        let unread = self.socket().unacknowledged();
        unread.is_some_and(|unread| unread >= written)
    }

    /// The address of the other end.
    pub(crate) fn peer_address(&self) -> IpAddr {
        #[cfg(test)]
        if let Self::Memory(_) = self {
            return std::net::Ipv4Addr::LOCALHOST.into();
        }
        self.socket().peer()
    }

    /// The port on which it was accepted.
    pub(crate) fn port(&self) -> u16 {
        #[cfg(test)]
        if let Self::Memory(_) = self {
            return 0;
        }
        self.socket().port()
    }

    /// The name by which the client asked for a certificate, where several listeners are told apart by their hosts.
    pub(crate) fn tls_name(&self, snapshot: &Snapshot) -> Option<Arc<str>> {
        match self {
            Self::Served(tls, _) if !snapshot.listeners.is_empty() => {
                tls.get_ref().1.server_name().map(Arc::from)
            }
            _ => None,
        }
    }

    /// Who is at the other end: its address, which a trusted proxy may have said, and what it has proven itself.
    pub(crate) fn peer(&self) -> Peer {
        Peer {
            address: self.peer_address(),
            certificate: match self {
                Self::Served(_, certificate) => certificate.clone(),
                _ => None,
            },
        }
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Served(tls, _) => tls.get_ref().0,
            Self::Dialled(tls) => tls.get_ref().0,
            #[cfg(test)]
            Self::Memory(_) => unreachable!("no socket in memory"),
        }
    }

    /// Whether the connection was reset, as far as the kernel has not said so already.
    pub(crate) fn is_broken(&self) -> bool {
        #[cfg(test)]
        if let Self::Memory(pipe) = self {
            return pipe.is_broken();
        }
        self.socket().is_broken()
    }

    /// Reads what is there into `buffer` and gives how much that was; 0 is the end.
    pub(crate) fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(self).poll_read(cx, &mut buffer) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(buffer.filled().len())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Writes as much of `slices` as goes now, removing it from them. Ready when nothing is left.
    pub(crate) fn poll_all(
        &mut self,
        cx: &mut Context<'_>,
        slices: &mut &mut [IoSlice<'_>],
    ) -> Poll<io::Result<()>> {
        while let Some(first) = slices.first() {
            if first.is_empty() {
                IoSlice::advance_slices(slices, 0);
                continue;
            }
            let asked = first.len();
            // A single slice goes by a plain write, which costs the kernel less than a vector of one.
            let polled = if slices.len() == 1 {
                Pin::new(&mut *self).poll_write(cx, first)
            } else {
                Pin::new(&mut *self).poll_write_vectored(cx, slices)
            };
            let written = match polled {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => written,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            };
            if slices.len() == 1 && written == asked {
                *slices = &mut [];
                break;
            }
            IoSlice::advance_slices(slices, written);
        }
        // TLS may hold records back; in clear this does nothing.
        if matches!(self, Self::Plain(_)) {
            Poll::Ready(Ok(()))
        } else {
            Pin::new(self).poll_flush(cx)
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_read(cx, buf),
            Self::Served(s, _) => Pin::new(s).poll_read(cx, buf),
            Self::Dialled(s) => Pin::new(s).poll_read(cx, buf),
            #[cfg(test)]
            Self::Memory(s) => Pin::new(s).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_write(cx, buf),
            Self::Served(s, _) => Pin::new(s).poll_write(cx, buf),
            Self::Dialled(s) => Pin::new(s).poll_write(cx, buf),
            #[cfg(test)]
            Self::Memory(s) => Pin::new(s).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_write_vectored(cx, bufs),
            Self::Served(s, _) => Pin::new(s).poll_write_vectored(cx, bufs),
            Self::Dialled(s) => Pin::new(s).poll_write_vectored(cx, bufs),
            #[cfg(test)]
            Self::Memory(s) => Pin::new(s).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_flush(cx),
            Self::Served(s, _) => Pin::new(s).poll_flush(cx),
            Self::Dialled(s) => Pin::new(s).poll_flush(cx),
            #[cfg(test)]
            Self::Memory(s) => Pin::new(s).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(s) => Pin::new(s).poll_shutdown(cx),
            Self::Served(s, _) => Pin::new(s).poll_shutdown(cx),
            Self::Dialled(s) => Pin::new(s).poll_shutdown(cx),
            #[cfg(test)]
            Self::Memory(s) => Pin::new(s).poll_shutdown(cx),
        }
    }
}
