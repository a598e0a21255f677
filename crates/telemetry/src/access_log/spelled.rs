//! A snapshot's names as they stand in a line: with their keys, quoted and escaped.
//!
//! Invariant: what a line says about an id is what the id's own snapshot calls it; an id that is
//! not known is spelled as nothing.
//! Not here: names as metric labels (`view`), what only the exchange knows (`line`).

use std::cell::RefCell;
use std::sync::Arc;

use policy::id::{BackendId, EndpointId, RouteId, WorkloadId};
use policy::operation::Operation;
use policy::record::Record;
use policy::snapshot::Snapshot;

use super::escape::escape;

/// Kept runs of members; a power of two.
const RUNS: usize = 32;

/// Fragments of lines by id.
#[derive(Debug)]
pub(crate) struct Spelled {
    workloads: Vec<Fragment>,
    routes: Vec<Fragment>,
    backends: Vec<Fragment>,
    endpoints: Vec<Fragment>,
    /// The last member and the end of the line.
    end: Fragment,
    /// Whole runs of members as lately written, each at a place that its ids choose: traffic has
    /// few of them at a time, and one copy takes the place of five.
    runs: RefCell<[Run; RUNS]>,
}

type Fragment = Box<[u8]>;

/// The members that say whose exchange it was, and where it went.
#[derive(Debug, Default)]
struct Run {
    of: Option<Ids>,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ids {
    workload: Option<WorkloadId>,
    operation: Option<Operation>,
    route: Option<RouteId>,
    backend: Option<BackendId>,
    endpoint: Option<EndpointId>,
}

impl Spelled {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut end = member("config", &snapshot.version).into_vec();
        end.extend_from_slice(b"}\n");
        Self {
            workloads: members("workload", snapshot.workloads.iter().map(|w| &w.name)),
            routes: members("route", snapshot.routes.iter().map(|r| &r.name)),
            backends: members("backend", snapshot.backends.iter().map(|b| &b.name)),
            endpoints: members("endpoint", snapshot.endpoints.iter().map(|e| &e.name)),
            end: end.into(),
            runs: RefCell::default(),
        }
    }

    /// Gives the members that say whose exchange it was, and where it went.
    #[inline]
    pub(super) fn run<T>(&self, record: &Record, give: impl FnOnce(&[u8]) -> T) -> T {
        let ids = Ids {
            workload: record.workload,
            operation: record.operation,
            route: record.route,
            backend: record.backend,
            endpoint: record.endpoint,
        };
        let mut runs = self.runs.borrow_mut();
        let run = &mut runs[ids.place()];
        if run.of != Some(ids) {
            run.of = Some(ids);
            self.spell(&mut run.text, ids);
        }
        give(&run.text)
    }

    pub(super) fn end(&self) -> &[u8] {
        &self.end
    }

    #[cold]
    fn spell(&self, out: &mut Vec<u8>, ids: Ids) {
        out.clear();
        out.extend_from_slice(look_up(&self.workloads, ids.workload.map(|id| id.index())));
        if let Some(operation) = ids.operation {
            out.extend_from_slice(&member("operation", operation.as_str()));
        }
        out.extend_from_slice(look_up(&self.routes, ids.route.map(|id| id.index())));
        out.extend_from_slice(look_up(&self.backends, ids.backend.map(|id| id.index())));
        out.extend_from_slice(look_up(&self.endpoints, ids.endpoint.map(|id| id.index())));
    }
}

impl Ids {
    fn place(&self) -> usize {
        let workload = self.workload.map_or(0, WorkloadId::index);
        let endpoint = self.endpoint.map_or(0, EndpointId::index);
        let operation = self.operation.map_or(0, |operation| operation as usize);
        (workload + 5 * endpoint + 11 * operation) % RUNS
    }
}

fn members<'a>(key: &str, names: impl Iterator<Item = &'a Arc<str>>) -> Vec<Fragment> {
    names.map(|name| member(key, name)).collect()
}

fn member(key: &str, name: &str) -> Fragment {
    let mut out = format!(",\"{key}\":\"").into_bytes();
    escape(&mut out, name.as_bytes());
    out.push(b'"');
    out.into()
}

fn look_up(fragments: &[Fragment], index: Option<usize>) -> &[u8] {
    index.and_then(|i| fragments.get(i)).map_or(&[], |f| f)
}
