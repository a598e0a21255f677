//! Ports on loopback.
//!
//! Invariant: a port handed out was free a moment ago; that it still is must be seen at readiness.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// An address on loopback.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A port where nothing listens.
pub(crate) fn free() -> io::Result<u16> {
    Ok(TcpListener::bind(loopback(0))?.local_addr()?.port())
}

/// Two of them that are not the same.
pub(crate) fn two_free() -> io::Result<[u16; 2]> {
    // Held both at once, as the kernel may give one port twice.
    let held = [
        TcpListener::bind(loopback(0))?,
        TcpListener::bind(loopback(0))?,
    ];
    let [first, second] = &held;
    Ok([first.local_addr()?.port(), second.local_addr()?.port()])
}

/// Whether somebody listens on `port`.
pub(crate) fn taken(port: u16) -> bool {
    TcpListener::bind(loopback(port)).is_err()
}
