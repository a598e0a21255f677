//! Where clients connect: a listener for each worker, on each address.
//!
//! Not here: what becomes of a connection (`downstream`), how many there may be (`worker`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::unix::AsyncFd;

use crate::os;

/// Pending connections that the kernel keeps for one listener.
pub(crate) const BACKLOG: i32 = 4096;
/// Bytes that the kernel holds unsent before a socket counts as full; connections inherit it. By
/// default megabytes: a client that reads slowly would then seem to take nothing for minutes.
const UNSENT_BYTES: u32 = 128 << 10;

/// Fails when another process listens there: sharing a port is for our own workers, and a second
/// gate that quietly took half of the connections would be a riddle.
pub(crate) fn claim(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

/// A listener of its own for each worker on one address: the kernel spreads connections.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_tcp_nodelay(true)?;
    os::limit_unsent(&socket, UNSENT_BYTES)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The listeners of a worker: at least one, each on an address of its own.
pub(crate) struct Listeners {
    all: Vec<(SocketAddr, Listener)>,
    /// The one that is asked first next time, so that none keeps others waiting.
    next: usize,
}

impl Listeners {
    pub(crate) fn new(first: TcpListener) -> io::Result<Self> {
        let address = first.local_addr()?;
        Ok(Self {
            all: vec![(address, Listener::new(first)?)],
            next: 0,
        })
    }

    /// Keeps those of its own that are on one of these addresses, and has the new ones beside; connections that were accepted stay.
    ///
    /// # Errors
    /// One of the new ones cannot be served: it has all others.
    pub(crate) fn become_these(
        &mut self,
        kept: &[SocketAddr],
        new: Vec<TcpListener>,
    ) -> io::Result<()> {
        self.all.retain(|(address, _)| kept.contains(address));
        let mut served = Ok(());
        for listener in new {
            let address = listener.local_addr();
            match address.and_then(|address| Ok((address, Listener::new(listener)?))) {
                Ok(one) => self.all.push(one),
                Err(error) => served = Err(error),
            }
        }
        served
    }

    /// The next connection, whose it is, and the port on which it came.
    pub(crate) async fn accept(&mut self) -> io::Result<(std::net::TcpStream, IpAddr, u16)> {
        if let [(address, one)] = self.all.as_slice() {
            let (tcp, peer) = one.accept().await?;
            return Ok((tcp, peer, address.port()));
        }
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(std::net::TcpStream, IpAddr, u16)>> {
        let count = self.all.len();
        for turn in 0..count {
            let at = (self.next + turn) % count;
            let Some((address, listener)) = self.all.get(at) else {
                continue;
            };
            if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                self.next = at + 1;
                return Poll::Ready(accepted.map(|(tcp, peer)| (tcp, peer, address.port())));
            }
        }
        Poll::Pending
    }
}

/// A listener.
pub(crate) struct Listener(AsyncFd<TcpListener>);

impl Listener {
    /// A listener that does not block, to be served by this thread.
    pub(crate) fn new(listener: TcpListener) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "the reactor must be promised the descriptor")]
        // SAFETY: the listener owns its descriptor, which stays the same and open until it is dropped, and it is
        // dropped by the `AsyncFd`, after its registration.
        let registered = unsafe { AsyncFd::register(listener) };
        Ok(Self(registered?))
    }

    /// The next connection, and whose it is.
    async fn accept(&self) -> io::Result<(std::net::TcpStream, IpAddr)> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(std::net::TcpStream, IpAddr)>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            match os::accept(self.0.get_ref()) {
                Ok((accepted, from)) => {
                    let peer = from.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |from| from.ip());
                    return Poll::Ready(Ok((accepted, peer.to_canonical())));
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}
