//! A snapshot's ids as names that survive it.
//!
//! Invariant: an id is read with the snapshot it came with, however many reloads ago that was;
//! only texts of the configuration become names, and a model that it does not know is `other`.
//! Not here: counting (`series`).

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::sync::Arc;

use policy::attempt::Failure;
use policy::fast_hash::Mix;
use policy::id::{BackendId, EndpointId, PriceId, RouteId, WorkloadId};
use policy::limit::Kind;
use policy::retry::Retry;
use policy::snapshot::Snapshot;

use crate::access_log::NameCache;
use crate::names::{NameId, Names};
use crate::series::{Series, result_index};

/// Views kept, so that exchanges begun before some reloads are not resolved anew each time.
const KEPT: usize = 8;

/// The views of one worker.
#[derive(Debug, Default)]
pub(crate) struct Views {
    kept: Vec<View>,
    current: usize,
    oldest: usize,
}

impl Views {
    /// The view of `snapshot`, made if need be.
    pub(crate) fn of(&mut self, snapshot: &Snapshot, series: &mut Series) -> &View {
        let hit = self.kept.get(self.current);
        if !hit.is_some_and(|view| view.is_of(snapshot)) {
            let known = self.kept.iter().position(|view| view.is_of(snapshot));
            self.current = known.unwrap_or_else(|| self.add(View::new(snapshot, series)));
        }
        &self.kept[self.current]
    }

    fn add(&mut self, view: View) -> usize {
        if self.kept.len() < KEPT {
            self.kept.push(view);
            return self.kept.len() - 1;
        }
        let at = self.oldest;
        self.kept[at] = view;
        self.oldest = (at + 1) % KEPT;
        at
    }
}

/// One snapshot's ids as names.
#[derive(Debug)]
pub(crate) struct View {
    /// Where the snapshot lay. Another one may come to lie there, so that it is asked whose version it has: that is kept alive here, and
    /// equal versions are equal content, hence equal ids.
    address: usize,
    version: Arc<str>,
    workloads: Vec<NameId>,
    routes: Vec<NameId>,
    backends: Vec<NameId>,
    /// Places in `Series::attempts`.
    endpoints: Vec<usize>,
    models: HashMap<Arc<str>, NameId, Mix>,
    /// The same by where the snapshot's own texts lie, which is what exchanges hold. Kept alive
    /// here, so that nothing else can come to lie there.
    models_at: HashMap<usize, (Arc<str>, NameId), Mix>,
    /// The last of those that was asked for: traffic comes in runs. No text lies at 0.
    last_model: Cell<(usize, NameId)>,
    /// Of the snapshot's prices, by their ids.
    currencies: Vec<NameId>,
    /// Made for the first line.
    names_cached: OnceCell<NameCache>,
}

impl View {
    #[cold]
    fn new(snapshot: &Snapshot, series: &mut Series) -> Self {
        let names = &mut series.names;
        let workloads: Vec<NameId> = intern(names, snapshot.workloads.iter().map(|w| &w.name));
        let routes: Vec<NameId> = intern(names, snapshot.routes.iter().map(|r| &r.name));
        let backends: Vec<NameId> = intern(names, snapshot.backends.iter().map(|b| &b.name));
        let mut by_text = HashMap::default();
        let mut models_at = HashMap::default();
        for model in snapshot.models() {
            let name = names.intern(model);
            by_text.insert(Arc::clone(model), name);
            models_at.insert(address(model), (Arc::clone(model), name));
        }
        let currencies = intern(names, snapshot.prices.all().iter().map(|p| &p.currency));
        let named = |e: &policy::snapshot::Endpoint| {
            let backend = backends.get(e.backend.index()).copied();
            let backend = backend.unwrap_or(NameId::NONE);
            let endpoint = series.names.intern(&e.name);
            series.endpoint(backend, endpoint)
        };
        let endpoints = snapshot.endpoints.iter().map(named).collect();
        register(snapshot, series);
        Self {
            address: std::ptr::from_ref(snapshot).addr(),
            version: Arc::clone(&snapshot.version),
            workloads,
            routes,
            backends,
            endpoints,
            models: by_text,
            models_at,
            last_model: Cell::new((0, NameId::NONE)),
            currencies,
            names_cached: OnceCell::new(),
        }
    }

    fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.address == std::ptr::from_ref(snapshot).addr()
            && Arc::ptr_eq(&self.version, &snapshot.version)
    }

    pub(crate) fn workload(&self, id: Option<WorkloadId>) -> NameId {
        look_up(&self.workloads, id.map(WorkloadId::index))
    }

    pub(crate) fn route(&self, id: Option<RouteId>) -> NameId {
        look_up(&self.routes, id.map(RouteId::index))
    }

    pub(crate) fn backend(&self, id: Option<BackendId>) -> NameId {
        look_up(&self.backends, id.map(BackendId::index))
    }

    pub(crate) fn model(&self, model: Option<&Arc<str>>) -> NameId {
        let Some(model) = model else {
            return NameId::NONE;
        };
        let at = address(model);
        let (last_at, last) = self.last_model.get();
        if last_at == at {
            return last;
        }
        match self.models_at.get(&at) {
            Some((_, name)) => {
                self.last_model.set((at, *name));
                *name
            }
            None => self.models.get(model).copied().unwrap_or(NameId::OTHER),
        }
    }

    /// The currency of one of the snapshot's prices.
    pub(crate) fn currency(&self, price: PriceId) -> NameId {
        look_up(&self.currencies, Some(price.index()))
    }

    /// The names of `snapshot`, of which this view is, for lines.
    pub(crate) fn names_cached(&self, snapshot: &Snapshot) -> &NameCache {
        self.names_cached.get_or_init(|| NameCache::of(snapshot))
    }

    /// Counts an attempt.
    pub(crate) fn tried(
        &self,
        series: &mut Series,
        endpoint: EndpointId,
        result: Result<u16, Failure>,
        retry: Retry,
    ) {
        let Some(place) = self.endpoints.get(endpoint.index()) else {
            return;
        };
        let tries = series.attempts.at(*place);
        tries.by_result[result_index(result)] += 1;
        match retry {
            Retry::No => {}
            Retry::Granted => tries.retried += 1,
            Retry::Refused => tries.refused += 1,
        }
    }
}

/// Makes the counters of every configured limit exist, at 0, so that a rate can be taken from
/// the first refusal on.
pub(crate) fn register(snapshot: &Snapshot, series: &mut Series) {
    for limit in &snapshot.limits {
        let (Some(workload), Some(route)) = (
            snapshot.workload(limit.workload),
            snapshot.route(limit.route),
        ) else {
            continue;
        };
        let workload = series.names.intern(&workload.name);
        let route = series.names.intern(&route.name);
        series.limit(workload, route, limit.kind);
    }
}

/// Counts a refusal by a limit of `kind`.
pub(crate) fn refused(series: &mut Series, workload: NameId, route: NameId, kind: Kind) {
    let place = series.limit(workload, route, kind);
    *series.limited.at(place) += 1;
}

fn address(text: &Arc<str>) -> usize {
    Arc::as_ptr(text).addr()
}

fn intern<'a>(names: &mut Names, texts: impl Iterator<Item = &'a Arc<str>>) -> Vec<NameId> {
    texts.map(|text| names.intern(text)).collect()
}

fn look_up(names: &[NameId], index: Option<usize>) -> NameId {
    match index {
        None => NameId::NONE,
        Some(index) => names.get(index).copied().unwrap_or(NameId::OTHER),
    }
}
