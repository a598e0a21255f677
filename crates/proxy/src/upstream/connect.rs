//! A new connection to an origin: look its name up, connect, through a proxy where there is one, TLS, ALPN.
//!
//! Invariant: the address that was resolved is the address that is connected to; TLS failures are
//! never answered by trying in clear.
//! Not here: reuse (`pool`), names (`names`), what is said to a proxy (`tunnel`).

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use policy::address::{is_allowed, is_of_machine};
use policy::attempt::Failure;
use policy::snapshot::Protocol;
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::pool::Pool;
use super::tunnel;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::timers::Timers;
use crate::why;

/// How long one address may take before the next is tried too.
const APART: Duration = Duration::from_millis(250);

/// A connected stream and whether it speaks HTTP/2.
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    pub(crate) is_h2: bool,
}

/// Connects within `limit`, first to the address `to`; over TLS HTTP/2 is offered unless `only_h1` is said.
pub(crate) async fn connect(
    pool: &Pool,
    to: Option<IpAddr>,
    timers: &Timers,
    limit: Duration,
    only_h1: bool,
) -> Result<Connected, Failure> {
    timers
        .timeout(limit, attempt(pool, to, timers, only_h1))
        .await
        .unwrap_or(Err(Failure::ConnectTimeout))
}

async fn attempt(
    pool: &Pool,
    to: Option<IpAddr>,
    timers: &Timers,
    only_h1: bool,
) -> Result<Connected, Failure> {
    #[cfg(test)]
    if let Some(dialled) = crate::memory::dial(&pool.origin) {
        let is_h2 = false;
        return dialled.map(|stream| Connected { stream, is_h2 });
    }
    let (origin, trust) = (&pool.origin, pool.connector());
    let mut tcp = dial(pool, to, timers).await?;
    if let Some(proxy) = origin.proxy.as_deref().filter(|_| !origin.is_relayed()) {
        tunnel::open(&mut tcp, origin, proxy).await?;
    }
    if !origin.tls {
        let is_h2 = origin.protocol == Protocol::Http2;
        return Ok(Connected {
            stream: Stream::Plain(tcp),
            is_h2,
        });
    }
    let Some(trust) = trust else {
        why::tell("there are no roots to trust");
        return Err(Failure::Tls);
    };
    let mut config = ClientConfig::clone(&*trust);
    config.alpn_protocols = match origin.protocol {
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
        Protocol::Auto if only_h1 => vec![b"http/1.1".to_vec()],
        Protocol::Http2 => vec![b"h2".to_vec()],
        Protocol::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    let name = origin.tls_name.as_deref().unwrap_or(&origin.host);
    let name = ServerName::try_from(name.to_owned()).map_err(|error| {
        why::tell(error);
        Failure::Tls
    })?;
    let tls = TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
        .map_err(|error| {
            why::tell(error);
            Failure::Tls
        })?;
    let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    if origin.protocol == Protocol::Http2 && !is_h2 {
        why::tell("the upstream does not offer HTTP/2 (ALPN)");
        return Err(Failure::Tls);
    }
    Ok(Connected {
        stream: Stream::Dialled(Box::new(tls)),
        is_h2,
    })
}

/// A TCP connection to the origin, or to the proxy before it.
async fn dial(pool: &Pool, to: Option<IpAddr>, timers: &Timers) -> Result<Socket, Failure> {
    let (origin, (host, port)) = (&pool.origin, pool.dialled());
    let addresses = pool.names.addresses(host, port, timers).await;
    let addresses = addresses.map_err(|error| {
        let failure = blame(&error, Failure::Resolve);
        why::tell(format_args!("{host}: {error}"));
        failure
    })?;
    let addresses = if origin.is_kept_off_the_link && origin.proxy.is_none() {
        kept_off(&addresses, host, origin.is_kept_off_the_machine)?
    } else {
        addresses
    };
    let first = to.and_then(|to| addresses.iter().position(|address| address.ip() == to));
    let (before, from) = addresses
        .split_at_checked(first.unwrap_or(0))
        .unwrap_or_default();
    let dialled = race(from.iter().chain(before).copied(), timers).await;
    match (&dialled, to) {
        (Ok(socket), Some(to)) if socket.peer() != to => pool.names.avoid(to),
        (Ok(_), _) => {}
        (Err(_), _) => pool.names.doubt(),
    }
    dialled
}

/// Those of the addresses that may be connected to, whatever its name was looked up to: none of the link, and of the machine none
/// where that is said.
fn kept_off(
    found: &[SocketAddr],
    host: &str,
    is_off_the_machine: bool,
) -> Result<Rc<[SocketAddr]>, Failure> {
    let is_good = |found: &&SocketAddr| {
        is_allowed(found.ip(), false) && !(is_off_the_machine && is_of_machine(found.ip()))
    };
    let allowed: Rc<[SocketAddr]> = found.iter().filter(is_good).copied().collect();
    if allowed.is_empty() {
        let whose = match is_off_the_machine {
            true => {
                "an address of the gate's own machine, of its link or of a metadata service, where nothing is sent"
            }
            false => {
                "a link-local address or one of a metadata service, where no server of tools is asked"
            }
        };
        why::tell(format_args!("{host}: {whose}"));
        return Err(Failure::Resolve);
    }
    Ok(allowed)
}

/// A connection that is being made.
type Dialling = Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>;

/// Tries the addresses side by side, each a moment after the one before or once that has failed; the first
/// connection counts (RFC 8305, 5). Where all fail, what an upstream did counts before what the gate had no room for.
async fn race(
    addresses: impl Iterator<Item = SocketAddr>,
    timers: &Timers,
) -> Result<Socket, Failure> {
    let mut waiting = addresses.peekable();
    let mut racing: Vec<(SocketAddr, Dialling)> = Vec::new();
    let (mut failure, mut reason) = (None, "the name has no address".to_owned());
    let mut is_due = true;
    let mut apart = Box::pin(timers.sleep(APART));
    poll_fn(|cx| {
        loop {
            let mut at = 0;
            while let Some((address, dialling)) = racing.get_mut(at) {
                let Poll::Ready(dialled) = dialling.as_mut().poll(cx) else {
                    at += 1;
                    continue;
                };
                let dialled = dialled.and_then(TcpStream::into_std);
                match dialled.and_then(|tcp| Socket::new(tcp, address.ip(), 0)) {
                    Ok(socket) => return Poll::Ready(Ok(socket)),
                    Err(error) => {
                        tracing::debug!(%address, %error, "cannot connect to upstream");
                        reason = format!("{address}: {error}");
                        if failure != Some(Failure::Connect) {
                            failure = Some(blame(&error, Failure::Connect));
                        }
                    }
                }
                drop(racing.swap_remove(at));
                is_due = true;
            }
            if waiting.peek().is_none() {
                return if racing.is_empty() {
                    why::tell(&reason);
                    Poll::Ready(Err(failure.unwrap_or(Failure::Resolve)))
                } else {
                    Poll::Pending
                };
            }
            if !is_due {
                ready!(apart.as_mut().poll(cx));
            }
            if let Some(address) = waiting.next() {
                racing.push((address, Box::pin(TcpStream::connect(address))));
                apart = Box::pin(timers.sleep(APART));
                is_due = false;
            }
        }
    })
    .await
}

/// Whose fault an error is: the gate's own where it is out of descriptors, local ports or memory.
fn blame(error: &io::Error, theirs: Failure) -> Failure {
    let is_local = error
        .raw_os_error()
        .map(Errno::from_raw_os_error)
        .is_some_and(|errno| {
            matches!(
                errno,
                Errno::MFILE | Errno::NFILE | Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM
            )
        });
    if is_local {
        return Failure::LocalCapacity;
    }
    theirs
}

#[cfg(test)]
mod tests;
