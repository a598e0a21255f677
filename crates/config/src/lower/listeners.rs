//! `listen.listeners`: several addresses and hosts of the data plane.
//!
//! Invariant: of listeners on one address all speak TLS or none does, all ask for the same certificates of clients, and no two are
//! for the same host. Who is asked for a certificate is decided before anybody knows for which host a call is.
//! Not here: which of them a call is of (`policy::listener`), sockets (the host).

use std::path::Path;

use policy::listener::{Listener, Listeners};

use crate::decode::At;
use crate::host::HostListener;
use crate::scalar::{Address, ListenerName};
use crate::schema::{self, Document};

impl super::Lowering<'_> {
    /// What is written there; nothing where there are none, or where one of them is faulty.
    pub(super) fn listeners(&mut self, document: &Document) -> (Listeners, Vec<HostListener>) {
        let Some(listen) = document.listen.get() else {
            return Default::default();
        };
        let (mut all, mut of_host) = (Vec::new(), Vec::new());
        let mut seen: Vec<&schema::Listener> = Vec::new();
        for (place, item) in listen.listeners.items() {
            let Some(item) = item else { continue };
            let (Some(name), Some(data)) = (item.name.get(), item.data.get()) else {
                continue;
            };
            for other in &seen {
                self.against(item, (name, data), other);
            }
            seen.push(item);
            let host = item.host.get().map(|at| at.value.0.clone());
            let tls = item.tls.get().map(|tls| self.tls(tls));
            all.push(Listener {
                name: name.value.0.as_str().into(),
                port: data.value.0.port(),
                host: host.clone(),
                is_tls: !item.tls.is_absent(),
                serves_models: item.models.value().is_none_or(|flag| flag.0),
            });
            let made = HostListener {
                name: name.value.0.as_str().to_owned(),
                place: place.path.clone(),
                address: data.value.0,
                host,
                tls: match tls {
                    Some(tls) => match tls {
                        Some(tls) => Some(tls),
                        None => continue,
                    },
                    None => None,
                },
            };
            of_host.push(made);
        }
        if let (Some(data), false) = (listen.data.get(), all.is_empty()) {
            let says = "says one address beside `listeners`, which say all";
            self.fault(&data.place, says, "leave it out");
        }
        (Listeners::new(all), of_host)
    }

    /// What cannot be of two listeners.
    fn against(
        &mut self,
        one: &schema::Listener,
        (name, data): (&At<ListenerName>, &At<Address>),
        other: &schema::Listener,
    ) {
        let (Some(their), Some(there)) = (other.name.get(), other.data.get()) else {
            return;
        };
        if name.value.0 == their.value.0 {
            self.twice(name);
        }
        if data.value.0.port() != there.value.0.port() {
            return;
        }
        if data.value.0 != there.value.0 {
            let says = "is another address of a port that an earlier one is on";
            self.fault(&data.place, says, "give each port one address");
        } else if one.tls.is_absent() != other.tls.is_absent() {
            let says = "is an address at which an earlier one speaks TLS, or this one alone does";
            self.fault(&data.place, says, "give it a port of its own");
        } else if asked_of_clients(one) != asked_of_clients(other) {
            let says = format!(
                "is an address at which {} asks for other certificates of clients, and a handshake asks for one kind",
                their.shown
            );
            let hint =
                "give it a port of its own, or the same `client_ca` and `client_certificates`";
            self.fault(&data.place, says, hint);
        }
        let host = |of: &schema::Listener| of.host.get().map(|at| at.value.0.clone());
        if host(one) == host(other) {
            let says = "is an address and a host that an earlier one is for";
            self.fault(&data.place, says, "give it a host of its own");
        }
    }
}

/// Whose signatures of clients' certificates a listener takes, and whether it insists on one.
fn asked_of_clients(of: &schema::Listener) -> Option<(&Path, bool)> {
    let tls = of.tls.get()?;
    let roots = tls.client_ca.value()?;
    let is_optional = tls.client_certificates.value();
    Some((roots.as_ref(), is_optional.is_some_and(|of| of.0)))
}
