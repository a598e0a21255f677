//! One worker's view of a revision: the snapshot, its levels, and what this worker remembers beside them.
//!
//! Invariant: ids are used only with the view they came from; an exchange keeps its view to its
//! end, so it is served wholly by one configuration.
//! Not here: what the memory means (`policy::shard`).

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use policy::clock::Mono;
use policy::front::Env;
use policy::id::{EndpointId, LimitId};
use policy::revision::Revision;
use policy::shard::Shard;
use policy::snapshot::{Origin, Snapshot};
use policy::trace::Sampling;

use crate::runtime_config::{RuntimeConfig, trusted};
use crate::tool_memory::Tools;
use crate::upstream::pool::{Opened, Pool};

/// A revision as one worker uses it.
pub(crate) struct WorkerSnapshot {
    pub(crate) revision: Arc<Revision>,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    /// By port, where there are several listeners.
    acceptors: Vec<(u16, tokio_rustls::TlsAcceptor)>,
    pub(crate) shard: RefCell<Shard>,
    pools: Vec<Rc<Pool>>,
    /// What is kept of servers of tools, where there are any.
    pub(crate) tools: Option<Box<Tools>>,
    /// For each limit its amount, as headers say it.
    amounts: Vec<Box<str>>,
}

impl WorkerSnapshot {
    /// An event at a moment, in this view.
    pub(crate) fn env<T>(&self, now: Mono, event: impl FnOnce(&mut Env<'_>) -> T) -> T {
        let revision = &*self.revision;
        event(&mut Env {
            snapshot: &revision.snapshot,
            levels: &revision.levels,
            shard: &mut self.shard.borrow_mut(),
            now,
        })
    }

    /// The first view of a worker, or the one after `old`. Pools of origins that stay are kept
    /// with their connections; of the others the counts go on as `retired`.
    pub(crate) fn adopt(
        publication: &RuntimeConfig,
        old: Option<&Self>,
        pools: &mut HashMap<Origin, Rc<Pool>>,
        retired: &mut Vec<Opened>,
        sampling: Option<Sampling>,
        seed: u64,
    ) -> Self {
        let snapshot = &publication.revision.snapshot;
        let shard = match old {
            Some(old) => Shard::carried(snapshot, old.snapshot(), &mut old.shard.borrow_mut()),
            None => Shard::new(snapshot, sampling, seed),
        };
        let stay: HashSet<&Origin> = snapshot.endpoints.iter().map(|e| &e.origin).collect();
        let gone = pools.extract_if(|origin, _| !stay.contains(origin));
        retired.extend(gone.map(|(_, pool)| pool.opened()));
        let of = snapshot.endpoints.iter().map(|endpoint| {
            let origin = &endpoint.origin;
            let connector = publication.connectors.get(&trusted(origin));
            let pool = pools
                .entry(origin.clone())
                .or_insert_with(|| Rc::new(Pool::new(origin.clone())));
            pool.trust(connector.cloned());
            if let Some(backend) = snapshot.backend(endpoint.backend) {
                pool.bound(backend.pool);
            }
            pool.names.keep_for(snapshot.bounds.address_age);
            Rc::clone(pool)
        });
        let amounts = snapshot
            .limits
            .iter()
            .map(|limit| limit.rate.amount.to_string().into())
            .collect();
        let acceptor = publication
            .acceptor
            .clone()
            .map(tokio_rustls::TlsAcceptor::from);
        let by_port = publication.acceptors.iter();
        let by_port = by_port.map(|(port, made)| (*port, Arc::clone(made).into()));
        Self {
            pools: of.collect(),
            tools: Tools::of(snapshot).map(Box::new),
            amounts,
            revision: Arc::clone(&publication.revision),
            acceptor,
            acceptors: by_port.collect(),
            shard: RefCell::new(shard),
        }
    }

    /// What was configured.
    #[inline]
    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.revision.snapshot
    }

    /// TLS for connections that came on a port; none where they are in clear.
    pub(crate) fn acceptor(&self, port: u16) -> Option<&tokio_rustls::TlsAcceptor> {
        if self.snapshot().listeners.is_empty() {
            return self.acceptor.as_ref();
        }
        let mut acceptors = self.acceptors.iter();
        acceptors
            .find(|(of, _)| *of == port)
            .map(|(_, acceptor)| acceptor)
    }

    /// The pool that serves an endpoint.
    pub(crate) fn pool(&self, endpoint: EndpointId) -> Option<&Rc<Pool>> {
        self.pools.get(endpoint.index())
    }

    /// The amount of a limit, as headers say it.
    #[inline]
    pub(crate) fn amount(&self, id: LimitId) -> Option<&str> {
        self.amounts.get(id.index()).map(|amount| &**amount)
    }
}
