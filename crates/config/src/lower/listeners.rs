//! `listen.listeners`: several addresses and hosts of the data plane.
//!
//! Invariant: of listeners on one address all speak TLS or none does, all ask clients for the same certificates, and no two are for the
//! same host.
//! Not here: which of them a call is of (`policy::listener`), sockets (the host).

use policy::listener::{Listener, Listeners};

use crate::decode::At;
use crate::host::HostListener;
use crate::scalar::{Address, Name};
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
            self.clients_against(item, &made, &of_host);
            of_host.push(made);
        }
        if let (Some(data), false) = (listen.data.get(), all.is_empty()) {
            let says = "says one address beside `listeners`, which say all";
            self.fault(&data.place, says, "leave it out");
        }
        (Listeners::new(all), of_host)
    }

    /// Clients are asked for certificates before they say which listener a call is of.
    fn clients_against(
        &mut self,
        item: &schema::Listener,
        made: &HostListener,
        others: &[HostListener],
    ) {
        let (Some(at), Some(tls)) = (item.tls.get(), &made.tls) else {
            return;
        };
        let mut others = others.iter().filter(|of| of.address == made.address);
        let asks_otherwise = |of: &HostListener| {
            let other = of.tls.as_ref();
            other.is_some_and(|other| other.clients != tls.clients)
        };
        if !others.any(asks_otherwise) {
            return;
        }
        let place = match (
            at.client_certificates.get(),
            at.client_ca.get(),
            item.data.get(),
        ) {
            (Some(said), ..) => &said.place,
            (None, Some(said), _) => &said.place,
            (None, None, Some(said)) => &said.place,
            (None, None, None) => return,
        };
        let says = "asks for other certificates of clients than an earlier one at the same address";
        let hint = "write the same client_ca and client_certificates, or give it a port of its own";
        self.fault(place, says, hint);
    }

    /// What cannot be of two listeners.
    fn against(
        &mut self,
        one: &schema::Listener,
        (name, data): (&At<Name>, &At<Address>),
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
        }
        let host = |of: &schema::Listener| of.host.get().map(|at| at.value.0.clone());
        if host(one) == host(other) {
            let says = "is an address and a host that an earlier one is for";
            self.fault(&data.place, says, "give it a host of its own");
        }
    }
}
