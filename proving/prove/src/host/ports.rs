//! Ports on loopback.
//!
//! Invariant: a port handed out was free a moment ago; that it still is must be seen at readiness.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Below those that Linux gives to outgoing connections (from 32,768): no connection takes one in between.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// An address on loopback.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A port where nothing listens.
pub(crate) fn free() -> io::Result<u16> {
    Ok(held()?.local_addr()?.port())
}

/// Two of them that are not the same.
pub(crate) fn two_free() -> io::Result<[u16; 2]> {
    // Held both at once, as one port may be drawn twice.
    let held = [held()?, held()?];
    let [first, second] = &held;
    Ok([first.local_addr()?.port(), second.local_addr()?.port()])
}

/// A port drawn from [`PORTS`] that is free.
fn held() -> io::Result<TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..100 {
        let drawn = RandomState::new().build_hasher().finish() % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(drawn).unwrap_or(0);
        match TcpListener::bind(loopback(port)) {
            Ok(held) => return Ok(held),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

/// A port that is bound and where nobody listens: it refuses connections, and nobody else can have it meanwhile.
#[cfg(test)]
pub(crate) struct Closed {
    pub(crate) address: SocketAddr,
    _bound: tokio::net::TcpSocket,
}

#[cfg(test)]
impl Closed {
    pub(crate) fn new() -> Self {
        let bound = tokio::net::TcpSocket::new_v4().expect("a socket");
        bound.bind(loopback(0)).expect("a port");
        Self {
            address: bound.local_addr().expect("an address"),
            _bound: bound,
        }
    }
}

/// Whether somebody listens on `port`.
pub(crate) fn taken(port: u16) -> bool {
    TcpListener::bind(loopback(port)).is_err()
}
