//! Several listeners of the data plane: their certificates, and the addresses that a gate listens on.
//!
//! Invariant: an address on which the gate cannot listen keeps no other from being served.
//! Not here: what is served at each (`policy::listener`).

use std::net::SocketAddr;
use std::sync::Arc;

use config::HostListener;
use proxy::gate::Gate;
use proxy::tls::{self, Shown};

/// TLS by port.
///
/// # Errors
/// A certificate is of no use, with its place in the document.
pub(crate) fn acceptors(
    listeners: &[HostListener],
) -> Result<Vec<(u16, Arc<tls::ServerConfig>)>, String> {
    let mut ports: Vec<u16> = listeners.iter().map(|one| one.address.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    let mut made = Vec::new();
    for port in ports {
        let there = listeners.iter().filter(|one| one.address.port() == port);
        let mut there: Vec<_> = there
            .filter_map(|one| Some((one, one.tls.as_ref()?)))
            .collect();
        // The most specific host first, and those without one last.
        there.sort_by_key(|(one, _)| std::cmp::Reverse(one.host.as_ref().map(|h| h.rank())));
        let Some((first, tls)) = there.first() else {
            continue;
        };
        let clients = tls.clients.as_ref();
        let clients = clients
            .map(|clients| tls::Clients::trusting(&clients.ca_pem, clients.is_optional))
            .transpose()
            .map_err(|fault| format!("{}.tls.client_ca: {fault}", first.place))?;
        let shown: Vec<Shown<'_>> = there
            .iter()
            .map(|(one, tls)| Shown {
                host: one.host.clone(),
                certificate: &tls.certificate_pem,
                key: tls.key_pem.expose(),
            })
            .collect();
        let config = tls::server_of(&shown, clients).map_err(|(at, fault)| {
            let place = there.get(at).map_or("", |(one, _)| &one.place);
            format!("{place}.tls: {fault}")
        })?;
        made.push((port, config));
    }
    Ok(made)
}

/// The addresses of listeners, each once.
pub(crate) fn addresses(listeners: &[HostListener]) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = listeners.iter().map(|one| one.address).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Has a gate listen on these addresses, where there are any.
pub(crate) fn listen(gate: &Gate, addresses: &[SocketAddr]) {
    if addresses.is_empty() {
        return;
    }
    for (address, error) in gate.listen(addresses) {
        tracing::error!(%address, %error, "the gate cannot listen there");
    }
}
