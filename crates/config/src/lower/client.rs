//! `client_address`: whose word about a client's address counts, and what of it is recorded.
//!
//! Not here: reading it from a request (`policy::client`), the PROXY protocol (`wire`, `proxy`).

use policy::client::Clients;

use super::set;
use crate::schema;

impl super::Lowering<'_> {
    pub(super) fn clients(&mut self, written: Option<&schema::ClientAddress>) -> Clients {
        let mut clients = Clients::default();
        let Some(written) = written else {
            return clients;
        };
        set(&written.record, &mut clients.recorded, |of| of.0);
        if let Some(proxies) = written.trusted_proxies.get() {
            clients.proxies = proxies.0.iter().map(|at| at.value.0).collect();
        }
        if let Some(at) = written.proxy_protocol.get() {
            clients.proxy_protocol = at.value.0;
            if at.value.0 && written.trusted_proxies.is_absent() {
                let says = "no proxy is trusted, so none would be believed";
                let hint = "name the proxies under trusted_proxies";
                self.fault(&at.place, says, hint);
            }
        }
        clients
    }
}
