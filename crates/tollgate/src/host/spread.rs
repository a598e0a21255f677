//! Whether the kernel spreads connections over several listeners of one port, by trying.
//!
//! A kernel may take `SO_REUSEPORT` and give every connection to one listener all the same: sandboxes and emulations of
//! Linux do.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// How many are tried: by chance all of them are with one listener once in 10^19.
const CONNECTIONS: usize = 64;
const BACKLOG: i32 = 128;
/// Loopback answers in microseconds.
const WITHIN: Duration = Duration::from_millis(200);

/// `None` where it could not be tried.
pub(super) fn is_spread() -> Option<bool> {
    let first = listener(0)?;
    let address = first.local_addr().ok()?;
    let second = listener(address.port())?;
    let connections: Vec<TcpStream> = (0..CONNECTIONS)
        .map_while(|_| TcpStream::connect_timeout(&address, WITHIN).ok())
        .collect();
    let taken = [taken(&first), taken(&second)];
    (connections.len() == CONNECTIONS).then(|| taken.iter().all(|taken| *taken > 0))
}

fn listener(port: u16) -> Option<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.set_reuse_port(true).ok()?;
    socket.set_nonblocking(true).ok()?;
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    socket.bind(&address.into()).ok()?;
    socket.listen(BACKLOG).ok()?;
    Some(TcpListener::from(socket))
}

/// The connections that wait there.
fn taken(listener: &TcpListener) -> usize {
    std::iter::from_fn(|| listener.accept().ok()).count()
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use testing::eventually;

    use super::{is_spread, listener, taken};

    #[test]
    fn connections_that_wait_are_counted_once() {
        let (first, second) = (listener(0).expect("a port"), listener(0).expect("a port"));
        let address = first.local_addr().expect("an address");
        let connect = || TcpStream::connect(address).expect("a connection");
        let connections = [connect(), connect(), connect()];
        let mut counted = 0;
        // A busy kernel may hand them over a moment after they were made.
        eventually("all of them are counted", || {
            counted += taken(&first);
            counted >= connections.len()
        });
        assert_eq!([counted, taken(&second)], [connections.len(), 0]);
        assert_eq!(taken(&first), 0, "they are taken");
    }

    /// Which of the two is the kernel's: one that does not spread is told of, and fails no test.
    #[test]
    fn loopback_can_be_tried() {
        assert!(is_spread().is_some());
    }
}
