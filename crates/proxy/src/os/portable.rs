//! Any other Unix.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::Socket;

/// Programs in Rust ignore SIGPIPE, and Apple's sockets are told to by `accept`.
pub(crate) const QUIET: SendFlags = SendFlags::empty();

/// The next connection, which does not block, and whose it is.
pub(crate) fn accept(listener: &TcpListener) -> Result<(TcpStream, Option<SocketAddr>), Errno> {
    let number = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    // Close-on-exec is set by the library.
    let (accepted, from) = listener.accept().map_err(number)?;
    accepted.set_nonblocking(true).map_err(number)?;
    #[cfg(target_vendor = "apple")]
    socket2::SockRef::from(&accepted)
        .set_nosigpipe(true)
        .map_err(number)?;
    Ok((accepted, Some(from)))
}

/// The system's own bound stays: megabytes at most.
#[expect(
    clippy::unnecessary_wraps,
    reason = "as its twin, which asks the kernel"
)]
pub(crate) const fn limit_unsent(_: &Socket, _: u32) -> io::Result<()> {
    Ok(())
}

/// It is not asked for: how is different on each system.
pub(crate) fn unacknowledged(_: impl AsFd) -> Option<usize> {
    None
}
