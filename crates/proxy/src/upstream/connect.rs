//! A new connection to an origin: resolve, connect, TLS, ALPN.
//!
//! Invariant: the address that was resolved is the address that is connected to; TLS failures are
//! never answered by trying in clear.
//! Not here: reuse (`pool`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use policy::attempt::Failure;
use policy::snapshot::{Origin, Protocol};
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::socket::Socket;
use crate::stream::Stream;
use crate::timers::Timers;

/// How long one address may take before the next is tried too.
const PER_ADDRESS: Duration = Duration::from_millis(1500);

/// A connected stream and whether it speaks HTTP/2.
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    pub(crate) is_h2: bool,
}

/// Connects within `limit`.
pub(crate) async fn connect(
    origin: &Origin,
    trust: Option<Arc<ClientConfig>>,
    timers: &Timers,
    limit: Duration,
) -> Result<Connected, Failure> {
    timers
        .timeout(limit, attempt(origin, trust, timers))
        .await
        .unwrap_or(Err(Failure::ConnectTimeout))
}

async fn attempt(
    origin: &Origin,
    trust: Option<Arc<ClientConfig>>,
    timers: &Timers,
) -> Result<Connected, Failure> {
    let tcp = dial(origin, timers).await?;
    if !origin.tls {
        let is_h2 = origin.protocol == Protocol::Http2;
        return Ok(Connected {
            stream: Stream::Plain(tcp),
            is_h2,
        });
    }
    let mut config = ClientConfig::clone(&*trust.ok_or(Failure::Tls)?);
    config.alpn_protocols = match origin.protocol {
        Protocol::Http1 => vec![b"http/1.1".to_vec()],
        Protocol::Http2 => vec![b"h2".to_vec()],
        Protocol::Auto => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    let name = ServerName::try_from(origin.host.clone()).map_err(|_| Failure::Tls)?;
    let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.map_err(|error| {
        tracing::warn!(host = origin.host, port = origin.port, %error, "TLS to upstream failed");
        Failure::Tls
    })?;
    let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    if origin.protocol == Protocol::Http2 && !is_h2 {
        return Err(Failure::Tls);
    }
    Ok(Connected {
        stream: Stream::Dialled(Box::new(tls)),
        is_h2,
    })
}

/// Tries the addresses in turn. What an upstream did counts before what the gate had no room for.
async fn dial(origin: &Origin, timers: &Timers) -> Result<Socket, Failure> {
    let addresses = resolve(origin).await.map_err(|error| {
        tracing::warn!(host = origin.host, %error, "upstream's name does not resolve");
        blame(&error, Failure::Resolve)
    })?;
    let last = addresses.len().saturating_sub(1);
    let mut failure = Failure::Resolve;
    for (i, address) in addresses.into_iter().enumerate() {
        let dialled = if i == last {
            TcpStream::connect(address).await
        } else {
            timers
                .timeout(PER_ADDRESS, TcpStream::connect(address))
                .await
                .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
        };
        let dialled = dialled.and_then(TcpStream::into_std).and_then(Socket::new);
        match dialled {
            Ok(socket) => return Ok(socket),
            Err(error) => {
                tracing::debug!(%address, %error, "cannot connect to upstream");
                if failure != Failure::Connect {
                    failure = blame(&error, Failure::Connect);
                }
            }
        }
    }
    Err(failure)
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
        tracing::warn!(%error, "no connection to spare for upstreams");
        return Failure::LocalCapacity;
    }
    theirs
}

/// At most this many addresses of a name are tried.
const MAX_ADDRESSES: usize = 8;

async fn resolve(origin: &Origin) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = origin.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, origin.port)]);
    }
    let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await?;
    Ok(found.take(MAX_ADDRESSES).collect())
}
