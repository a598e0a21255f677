//! A listening socket made for many short-lived clients, and the loop that accepts them.
//!
//! Invariant: non-blocking, address reuse on, a backlog deep enough for a burst; an error names the address. When
//! serving stops, every connection is cut.
//! Not here: what is spoken on a connection (`server`, `fixed`, `dcgm`).

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

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

/// Serves every connection until `stop` resolves.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    stop: impl Future,
    mut connection: impl FnMut(TcpStream) -> F,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            biased;
            _ = &mut stop => return Ok(()),
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream))),
                // Out of descriptors: let some connections end before trying again.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    }
}
