//! What a worker keeps of servers of tools beside the snapshot: the key of sessions, and lists for a while.
//!
//! Invariant: a list is kept no longer than the configuration says, and not beyond it; what somebody may see of it is asked anew each time.
//! Not here: what is in a list (`mcp::catalog`), asking for one (`tools`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mcp::catalog::{Catalog, Kind};
use mcp::session::{Place, Sealer};
use mcp::version::Version;
use policy::clock::Mono;
use policy::snapshot::Snapshot;

/// What a worker keeps.
pub(crate) struct Tools {
    pub(crate) sealer: Sealer,
    /// By rule: what its sessions are bound to.
    pub(crate) places: Vec<Place>,
    lists: RefCell<HashMap<Key, (Mono, Rc<Catalog>)>>,
}

/// A server, what is listed, and the version that it is spoken to in.
type Key = (usize, Kind, Version);

impl Tools {
    /// What belongs to this snapshot, where it has servers of tools.
    pub(crate) fn of(snapshot: &Snapshot) -> Option<Self> {
        let config = snapshot.mcp.as_deref()?;
        let address = |server: &policy::mcp::Server| {
            let backend = snapshot.backend(server.backend);
            let endpoint = backend.and_then(|b| b.endpoints.first());
            let endpoint = endpoint.and_then(|id| snapshot.endpoint(*id));
            endpoint.map_or_else(String::new, |endpoint| {
                let scheme = if endpoint.origin.tls { "https" } else { "http" };
                format!("{scheme}://{}{}", endpoint.authority, endpoint.base_path)
            })
        };
        let places = config.routes.iter().map(|of| {
            let name = snapshot.route(of.route).map_or("", |route| &route.name);
            let servers = config.servers_of(of);
            Place::new(name, servers.map(|server| (&*server.name, address(server))))
        });
        Some(Self {
            sealer: Sealer::new(&config.secret, config.previous.as_ref())?,
            places: places.collect(),
            lists: RefCell::default(),
        })
    }

    /// A server's list, where it is at hand and not older than it may be.
    pub(crate) fn list(
        &self,
        key: Key,
        now: Mono,
        config: &policy::mcp::Mcp,
    ) -> Option<Rc<Catalog>> {
        let lists = self.lists.borrow();
        let (at, list) = lists.get(&key)?;
        (now.since(*at) < config.lists).then(|| Rc::clone(list))
    }

    /// Keeps it.
    pub(crate) fn keep(&self, key: Key, now: Mono, list: &Rc<Catalog>) {
        self.lists.borrow_mut().insert(key, (now, Rc::clone(list)));
    }

    /// A server says that it has others now.
    pub(crate) fn forget(&self, server: usize) {
        self.lists.borrow_mut().retain(|(of, ..), _| *of != server);
    }
}
