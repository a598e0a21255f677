//! TCP sockets, by bare system calls.
//!
//! In a process of several threads the C library makes each of its socket calls a place at which the thread may
//! be cancelled: two exchanges of an atomic word around every call, 20 ns. The calls here have none.
//! Invariant: a socket is taken for empty or full when a call moved less than was asked for, as the reactor tells
//! of it again only after a change.
//! Not here: TLS (`stream`), how connections come about (`listener`, `upstream::connect`).

use std::io::{self, IoSlice};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, SendAncillaryBuffer, recv, send, sendmsg};
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::task::coop::has_budget_remaining;
use wire::proxy_protocol::{self, Found};

use crate::os;

/// A connection.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: AsyncFd<std::net::TcpStream>,
    peer: IpAddr,
    /// The port on which it was accepted; 0 of a connection that the gate made.
    port: u16,
    /// Its reader waits, and is woken by what comes: the reactor need not be asked to do that again.
    is_awaited: bool,
}

impl Socket {
    /// A connection with a peer that does not block, to be served by this thread.
    pub(crate) fn new(tcp: std::net::TcpStream, peer: IpAddr, port: u16) -> io::Result<Self> {
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        #[expect(unsafe_code, reason = "the reactor must be promised the descriptor")]
        // SAFETY: the stream owns its descriptor, which stays the same and open until it is dropped, and it is
        // dropped by the `AsyncFd`, after its registration.
        let registered = unsafe { AsyncFd::register(tcp) };
        Ok(Self {
            descriptor: registered?,
            peer,
            port,
            is_awaited: false,
        })
    }

    /// The port on which it was accepted.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Takes the header with which a trusted proxy begins a connection: the client that it names is the
    /// peer from then on.
    pub(crate) async fn introduced(&mut self) -> io::Result<()> {
        let mut room = [0; proxy_protocol::HEADER_BYTES];
        loop {
            let mut guard = self.descriptor.readable().await?;
            // Looked at and not taken, as what follows is TLS's or HTTP's.
            let seen = match recv(self.descriptor.get_ref(), &mut room, RecvFlags::PEEK) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((seen, _)) => seen,
                Err(Errno::AGAIN) => {
                    guard.clear_ready();
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let found = proxy_protocol::find(room.get(..seen).unwrap_or_default());
            match found.map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))? {
                // The rest cannot come: a closed side stays ready, so that this loop would never wait again.
                Found::Partial if guard.ready().is_read_closed() => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Found::Partial => guard.clear_ready(),
                Found::Header(length, source) => {
                    let header = room.get_mut(..length).unwrap_or_default();
                    recv(self.descriptor.get_ref(), header, RecvFlags::empty())?;
                    self.peer = source.unwrap_or(self.peer);
                    return Ok(());
                }
            }
        }
    }

    /// Whether an error waits that no call was told of, such as a reset after the peer's FIN. It is told once.
    pub(crate) fn is_broken(&self) -> bool {
        !matches!(socket_error(self), Ok(Ok(())))
    }

    /// Makes this call, which is to write so many bytes, as soon as the socket takes some.
    fn poll_out(
        &self,
        cx: &mut Context<'_>,
        asked: usize,
        call: impl Fn() -> Result<usize, Errno>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut called = Err(Errno::AGAIN);
            // Nobody waits for what is ready already.
            let _told_by_called = self.descriptor.try_io(Interest::WRITABLE, |_| {
                called = call();
                let is_full = match called {
                    Ok(moved) => (1..asked).contains(&moved),
                    Err(errno) => errno == Errno::AGAIN,
                };
                match is_full {
                    true => Err(io::ErrorKind::WouldBlock.into()),
                    false => Ok(()),
                }
            });
            match called {
                Ok(moved) => return Poll::Ready(Ok(moved)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let _ready = ready!(self.descriptor.poll_write_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Whether a reader that waits has still nothing to read.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited && self.is_quiet()
    }

    /// Whether nothing has arrived and the peer has not closed, as far as the reactor knows.
    pub(crate) fn is_quiet(&self) -> bool {
        let told = self.descriptor.try_io(Interest::READABLE, |_| Ok(()));
        told.is_err()
    }
}

impl Socket {
    /// Bytes of what was written that the peer's kernel has not acknowledged. After the peer's orderly
    /// end this tells whether it ended before it had them: its last segment acknowledges what came
    /// before. `None` where the kernel does not say.
    pub(crate) fn unacknowledged(&self) -> Option<usize> {
        os::unacknowledged(self)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.get_ref().as_fd()
    }
}

/// What became of a call that asked for so many bytes; `None` when it is to be made again once the socket is
/// ready.
fn settled(
    mut guard: AsyncFdReadyGuard<'_, std::net::TcpStream>,
    called: Result<usize, Errno>,
    asked: usize,
) -> Option<io::Result<usize>> {
    match called {
        Ok(moved) => {
            if (1..asked).contains(&moved) {
                guard.clear_ready();
            }
            Some(Ok(moved))
        }
        Err(Errno::AGAIN) => {
            guard.clear_ready();
            None
        }
        Err(Errno::INTR) => None,
        Err(error) => Some(Err(error.into())),
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self {
            descriptor,
            is_awaited,
            ..
        } = self.get_mut();
        let room = buf.initialize_unfilled();
        loop {
            let Poll::Ready(guard) = descriptor.poll_read_ready(cx) else {
                // A task that has had its turn is not registered: it is polled again.
                *is_awaited = has_budget_remaining();
                return Poll::Pending;
            };
            *is_awaited = false;
            let (guard, from) = (guard?, descriptor.get_ref());
            let read = recv(from, &mut *room, RecvFlags::empty()).map(|(read, _)| read);
            if let Some(read) = settled(guard, read, room.len()) {
                buf.advance(read?);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_out(cx, buf.len(), || send(&*self, buf, os::QUIET))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = bufs.iter().map(|buf| buf.len()).sum();
        self.poll_out(cx, asked, || {
            let mut nothing_beside = SendAncillaryBuffer::default();
            sendmsg(&*self, bufs, &mut nothing_beside, os::QUIET)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.descriptor.get_ref().shutdown(Shutdown::Write))
    }
}
