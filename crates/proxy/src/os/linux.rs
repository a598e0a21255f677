//! Linux.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{Getter, ioctl};
use rustix::net::{SendFlags, SocketFlags, acceptfrom_with};
use socket2::Socket;

/// A connection that the peer has closed is an error, in a host that has not ignored SIGPIPE too.
pub(crate) const QUIET: SendFlags = SendFlags::NOSIGNAL;

/// Bytes that were written and that the peer has not acknowledged; the same number on every
/// architecture that the gate is built for.
const SIOCOUTQ: u32 = 0x5411;

/// The next connection, which does not block, and whose it is: one call of the system.
pub(crate) fn accept(listener: &TcpListener) -> Result<(TcpStream, Option<SocketAddr>), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (accepted, from) = acceptfrom_with(listener, flags)?;
    let from = from.and_then(|from| SocketAddr::try_from(from).ok());
    Ok((accepted.into(), from))
}

/// The bytes unsent with which a socket counts as full; connections inherit them from their listener.
pub(crate) fn limit_unsent(socket: &Socket, bytes: u32) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(bytes)
}

/// Bytes that were written and that the peer's kernel has not acknowledged; `None` where the kernel does not say.
pub(crate) fn unacknowledged(socket: impl AsFd) -> Option<usize> {
    #[expect(
        unsafe_code,
        reason = "a system call that `rustix` has no function for"
    )]
    // SAFETY: SIOCOUTQ of a socket writes one int, to where the getter has room for one.
    let unread = unsafe { ioctl(socket, Getter::<SIOCOUTQ, i32>::new()) };
    usize::try_from(unread.ok()?).ok()
}
