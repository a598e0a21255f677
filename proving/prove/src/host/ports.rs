//! Ports on loopback.
//!
//! Invariant: a port handed out was free a moment ago, and no process that draws its ports here hands it out again while the one
//! that did lives; that no stranger took it must be seen at readiness.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpSocket;

/// Below those that are given to outgoing connections (by Linux from 32,768, by gVisor from 16,000): no connection takes one in
/// between, and none that asks a server that has ended reaches itself.
const PORTS: std::ops::Range<u16> = 10_000..16_000;

/// What holds the ports handed out last: whoever got one may not listen yet, or end and listen again. The UDP port of the same
/// number, which nobody here needs: other processes see it taken, and it is let go however this one ends.
static HANDED_OUT: Mutex<VecDeque<UdpSocket>> = Mutex::new(VecDeque::new());
/// So many are held: fewer than the files that a process may have open by default.
const HELD: usize = 256;

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
        match hand_out(port) {
            Ok(()) => return Ok(port),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

/// Two of them that are not the same.
pub(crate) fn two_free() -> io::Result<[u16; 2]> {
    Ok([free()?, free()?])
}

/// Holds `port` as handed out.
///
/// # Errors
/// It is held already, by this process or by another, or somebody listens there.
fn hand_out(port: u16) -> io::Result<()> {
    let hold = UdpSocket::bind(loopback(port))?;
    drop(look(port)?);
    let mut held = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    if held.len() == HELD {
        held.pop_front();
    }
    held.push_back(hold);
    Ok(())
}

/// Binds `port` beside whoever bound it so too, and listens not: as long as it lives, and in a child that was forked meanwhile and did
/// not start its program yet, whoever was handed the port can listen there.
///
/// # Errors
/// Somebody listens there.
fn look(port: u16) -> io::Result<TcpSocket> {
    let look = TcpSocket::new_v4()?;
    look.set_reuseaddr(true)?;
    look.bind(loopback(port))?;
    Ok(look)
}

/// A port that is bound and where nobody listens: it refuses connections, and nobody else can have it meanwhile.
#[cfg(test)]
pub(crate) struct Closed {
    pub(crate) address: SocketAddr,
    _bound: TcpSocket,
}

#[cfg(test)]
impl Closed {
    pub(crate) fn new() -> Self {
        let bound = TcpSocket::new_v4().expect("a socket");
        bound.bind(loopback(0)).expect("a port");
        Self {
            address: bound.local_addr().expect("an address"),
            _bound: bound,
        }
    }
}

/// Whether somebody listens on `port`.
pub(crate) fn taken(port: u16) -> bool {
    look(port).is_err()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::{free, hand_out, look, loopback, taken};

    #[test]
    fn a_port_that_was_handed_out_is_not_handed_out_again() {
        let port = free().expect("a port");
        hand_out(port).expect_err("it is held");
    }

    #[test]
    fn a_look_takes_the_port_from_nobody_and_sees_who_listens() {
        let port = free().expect("a port");
        let looks = [
            look(port).expect("nobody listens"),
            look(port).expect("a look is no listener"),
        ];
        let listener = TcpListener::bind(loopback(port)).expect("looks take nothing");
        assert!(taken(port));
        drop((looks, listener));
    }
}
