//! A connection's bytes, plain or over TLS.
//!
//! Invariant: what is written leaves at once: no delay for small segments, nothing kept back in TLS.
//! Not here: what the bytes are (`http1`, `http2`).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Listener;
use super::failure::Failure;
use super::target::Target;

pub(super) enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// No connection, and why.
pub(super) struct Unconnected {
    failure: Failure,
    says: String,
}

impl Unconnected {
    pub(super) fn new(target: &Target, failure: Failure, why: &dyn std::fmt::Display) -> Self {
        Self {
            failure,
            says: format!("{}: {why}", target.authority()),
        }
    }

    /// Not in time.
    pub(super) fn late(target: &Target) -> Self {
        Self::new(target, Failure::Connect, &"no connection in time")
    }

    /// Says why, and gives the failure.
    pub(super) fn tell(self, listener: &mut impl Listener) -> Failure {
        listener.on_fault(&self.says);
        self.failure
    }
}

impl Io {
    pub(super) async fn connect(
        target: &Target,
        connector: Option<&TlsConnector>,
    ) -> Result<Self, Unconnected> {
        let fault = |error| Unconnected::new(target, Failure::Connect, &error);
        let stream = tcp(target).await.map_err(fault)?;
        stream.set_nodelay(true).map_err(fault)?;
        let (Some(name), Some(connector)) = (target.server_name(), connector) else {
            return Ok(Self::Plain(stream));
        };
        let shaken = connector.connect(name.clone(), stream).await;
        let stream = shaken.map_err(|error| Unconnected::new(target, Failure::Tls, &error))?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// Whether the peer chose HTTP/2; a plain connection has no choice.
    pub(super) fn takes_http2(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

async fn tcp(target: &Target) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in target.addresses() {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
