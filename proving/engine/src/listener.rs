//! A listening socket made for many short-lived clients.
//!
//! Invariant: non-blocking, address reuse on, a backlog deep enough for a burst; an error names the address.
//! Not here: accepting.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

const BACKLOG: i32 = 4096;

pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    listen(address).map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
