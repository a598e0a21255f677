//! A connection to a service: its name looked up, its addresses checked, the first that answers taken.
//!
//! Invariant: what is connected to is an address that was checked; the name is not looked up again after the check.
//! Proxies that the environment names are not used.
//! Not here: what is spoken (`client`), which addresses are allowed (`address`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::fault::Fault;
use crate::url::{Host, Origin};
use policy::address::is_allowed;

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;
/// How long an address is waited for before the next is tried beside it.
const NEXT_AFTER: Duration = Duration::from_millis(250);

/// Bytes both ways.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// A connection, and whether both ends agreed on HTTP/2.
pub(crate) struct Dialled {
    pub(crate) stream: Box<dyn Socket>,
    pub(crate) is_http2: bool,
}

/// What tests dial in place of the network.
#[cfg(test)]
pub(crate) type Memory = Arc<dyn Fn(&str) -> io::Result<tokio::io::DuplexStream> + Send + Sync>;

/// How connections are made.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) allow_link_local: bool,
    #[cfg(test)]
    pub(crate) memory: Option<Memory>,
}

impl Dialer {
    pub(crate) async fn dial(&self, origin: &Origin) -> Result<Dialled, Fault> {
        #[cfg(test)]
        if let Some(dial) = &self.memory {
            let stream = dial(&origin.authority()).map_err(|error| unreachable(origin, &error))?;
            let stream = Box::new(stream);
            return Ok(Dialled {
                stream,
                is_http2: false,
            });
        }
        let addresses = self.addresses(origin).await?;
        let connected = first_of(addresses).await;
        let tcp = connected.map_err(|error| unreachable(origin, &error))?;
        if !origin.is_tls {
            return Ok(Dialled {
                stream: Box::new(tcp),
                is_http2: false,
            });
        }
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let tls = connector.connect(server_name(&origin.host)?, tcp).await;
        let tls = tls.map_err(|error| unreachable(origin, &error))?;
        let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Dialled {
            stream: Box::new(tls),
            is_http2,
        })
    }

    async fn addresses(&self, origin: &Origin) -> Result<Vec<SocketAddr>, Fault> {
        let found: Vec<SocketAddr> = match &origin.host {
            Host::Address(address) => vec![SocketAddr::new(*address, origin.port)],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((&**name, origin.port)).await;
                found
                    .map_err(|error| unreachable(origin, &error))?
                    .collect()
            }
        };
        let is_allowed = |found: &SocketAddr| is_allowed(found.ip(), self.allow_link_local);
        let allowed = found.into_iter().filter(is_allowed).take(ADDRESSES_MAX);
        let allowed: Vec<SocketAddr> = allowed.collect();
        if allowed.is_empty() {
            let place = origin.authority();
            return Err(Fault::Address { place });
        }
        Ok(allowed)
    }
}

/// The first address that takes a connection; each is given a moment before the next is tried beside it.
async fn first_of(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut trying = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    loop {
        if let Some(address) = waiting.next() {
            trying.spawn(TcpStream::connect(address));
        } else if trying.is_empty() {
            return Err(last);
        }
        let moment = async {
            if waiting.len() == 0 {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(NEXT_AFTER).await;
        };
        tokio::select! {
            () = moment => {}
            Some(tried) = trying.join_next() => match tried.map_err(io::Error::other).flatten() {
                Ok(tcp) => {
                    tcp.set_nodelay(true)?;
                    return Ok(tcp);
                }
                Err(error) => last = error,
            },
        }
    }
}

fn server_name(host: &Host) -> Result<ServerName<'static>, Fault> {
    match host {
        Host::Address(IpAddr::V4(address)) => Ok(ServerName::from(*address)),
        Host::Address(IpAddr::V6(address)) => Ok(ServerName::from(*address)),
        Host::Name(name) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_owned();
            ServerName::try_from(name)
                .map_err(|_| Fault::Unaskable("its host is no name of a certificate"))
        }
    }
}

fn unreachable(origin: &Origin, error: &io::Error) -> Fault {
    Fault::Unreachable {
        place: origin.authority(),
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
