//! Ports on loopback.
//!
//! Invariant: a port handed out was free a moment ago, and this process hands it to nobody else soon; that it still is free
//! must be seen at readiness.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Below those that Linux gives to outgoing connections (from 32,768): no connection takes one in between.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Ports handed out last: whoever got one may not listen yet.
static HANDED_OUT: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());
/// So many are remembered: far fewer than there are.
const REMEMBERED: usize = 1_024;

/// An address on loopback.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A port where nothing listens.
pub(crate) fn free() -> io::Result<u16> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..100 {
        let drawn = RandomState::new().build_hasher().finish() % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(drawn).unwrap_or(0);
        match TcpListener::bind(loopback(port)) {
            Ok(_held) if is_first_handed_out(port) => return Ok(port),
            Ok(_) => {}
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

/// Two of them that are not the same.
pub(crate) fn two_free() -> io::Result<[u16; 2]> {
    Ok([free()?, free()?])
}

/// Remembers that `port` is handed out. False where it was, lately.
fn is_first_handed_out(port: u16) -> bool {
    let mut ports = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = !ports.contains(&port);
    if is_first {
        if ports.len() == REMEMBERED {
            ports.pop_front();
        }
        ports.push_back(port);
    }
    is_first
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
