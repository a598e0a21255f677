//! One worker's view of a snapshot: the snapshot and what this worker remembers beside it.
//!
//! Invariant: ids are used only with the view they came from; an exchange keeps its view to its
//! end, so it is served wholly by one configuration.
//! Not here: what the memory means (`policy::attempt`, `policy::meter`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use policy::attempt::Upstreams;
use policy::credential::Injection;
use policy::id::{EndpointId, LimitId, RouteId};
use policy::meter::Estimator;
use policy::secret::Secret;
use policy::snapshot::{Endpoint, Limit, Origin, Snapshot};

use crate::gate::Publication;
use crate::upstream::pool::Pool;

/// A snapshot as one worker uses it.
pub(crate) struct View {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) acceptor: Option<tokio_rustls::TlsAcceptor>,
    pub(crate) upstreams: RefCell<Upstreams>,
    estimators: RefCell<Vec<Estimator>>,
    pools: Vec<Rc<Pool>>,
    /// For each limit its amount, as headers say it.
    amounts: Vec<Box<str>>,
    /// For each endpoint the credential's header line and the empty line that ends a head.
    credentials: Vec<Secret>,
}

impl View {
    /// The first view of a worker, or the one after `old`. Pools of origins that stay are kept
    /// with their connections.
    pub(crate) fn adopt(
        publication: &Publication,
        old: Option<&Self>,
        pools: &mut HashMap<Origin, Rc<Pool>>,
        seed: u64,
    ) -> Self {
        let snapshot = Arc::clone(&publication.snapshot);
        let upstreams = match old {
            Some(old) => Upstreams::carried(&snapshot, &old.snapshot, &old.upstreams.borrow()),
            None => Upstreams::new(&snapshot, seed),
        };
        let upstreams = RefCell::new(upstreams);
        let estimators = snapshot.routes.iter().map(|route| {
            let same = |old: &&View| {
                old.snapshot
                    .routes
                    .iter()
                    .position(|r| r.name == route.name)
            };
            let known = old.as_ref().and_then(|old| Some((*old, same(old)?)));
            known.map_or_else(Estimator::default, |(old, i)| old.estimators.borrow()[i])
        });
        let estimators = RefCell::new(estimators.collect());
        pools.retain(|origin, _| snapshot.endpoints.iter().any(|e| e.origin == *origin));
        let of = snapshot.endpoints.iter().map(|endpoint| {
            let connector = publication.connectors.get(&endpoint.origin.ca_file);
            let pool = pools
                .entry(endpoint.origin.clone())
                .or_insert_with(|| Rc::new(Pool::new(endpoint.origin.clone())));
            pool.trust(connector.cloned());
            pool.names.keep_for(snapshot.bounds.address_age);
            Rc::clone(pool)
        });
        let credentials = snapshot.endpoints.iter().map(credential).collect();
        let amounts = snapshot
            .limits
            .iter()
            .map(|limit| limit.bucket.rate().amount.to_string().into())
            .collect();
        let acceptor = publication
            .acceptor
            .clone()
            .map(tokio_rustls::TlsAcceptor::from);
        Self {
            pools: of.collect(),
            amounts,
            credentials,
            snapshot,
            acceptor,
            upstreams,
            estimators,
        }
    }

    /// The pool that serves an endpoint.
    pub(crate) fn pool(&self, endpoint: EndpointId) -> Option<&Rc<Pool>> {
        self.pools.get(endpoint.index())
    }

    /// What ends a request head to this endpoint: the credential's line and an empty one.
    pub(crate) fn credential(&self, endpoint: EndpointId) -> Option<&Secret> {
        self.credentials.get(endpoint.index())
    }

    /// A limit and its amount, as headers say it.
    pub(crate) fn limit(&self, id: LimitId) -> Option<(&Limit, &str)> {
        let limit = self.snapshot.limit(id)?;
        Some((limit, self.amounts.get(id.index())?))
    }

    /// What this worker has learnt of a route's sizes.
    pub(crate) fn estimator(&self, route: RouteId) -> Estimator {
        self.estimators
            .borrow()
            .get(route.index())
            .copied()
            .unwrap_or_default()
    }

    /// Learns from a finished exchange.
    pub(crate) fn learn(&self, route: RouteId, bytes: u64, prompt: Option<u64>, out: Option<u64>) {
        if let Some(estimator) = self.estimators.borrow_mut().get_mut(route.index()) {
            estimator.learn(bytes, prompt, out);
        }
    }
}

fn credential(endpoint: &Endpoint) -> Secret {
    let own: [&[u8]; 4] = match &endpoint.injection {
        Injection::None => [b""; 4],
        Injection::Header { name, value } => [name.as_bytes(), b": ", value.expose(), b"\r\n"],
    };
    let proxy = endpoint.origin.proxy.as_deref();
    let proxy = proxy.filter(|_| endpoint.origin.is_relayed());
    let to_proxy: [&[u8]; 3] = match proxy.and_then(|proxy| proxy.authorization.as_ref()) {
        None => [b""; 3],
        Some(value) => [b"proxy-authorization: ", value.expose(), b"\r\n"],
    };
    Secret::new([&own[..], &to_proxy[..], &[b"\r\n"]].concat().concat())
}
