//! A snapshot's names as they stand in a line: with their keys, quoted and escaped.
//!
//! Invariant: an exchange's names are [`Names`]; one that is not there is written as nothing.
//! Not here: names as metric labels (`view`), what only the exchange knows (`line`).

use std::cell::RefCell;

use policy::id::{BackendId, EndpointId, RouteId, WorkloadId};
use policy::operation::Operation;
use policy::record::{Names, Record};
use policy::snapshot::Snapshot;

use super::escape::{escape, is_plain};

/// Kept runs of members; a power of two.
const RUNS: usize = 32;

/// What the lines of one snapshot's exchanges share.
#[derive(Debug)]
pub(crate) struct NameCache {
    /// The last member and the end of the line.
    end: Box<[u8]>,
    /// Whole runs of members as lately written, each at a place that its ids choose: traffic has
    /// few of them at a time, and one copy takes the place of five.
    runs: RefCell<[Run; RUNS]>,
}

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

impl NameCache {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut end = Vec::new();
        member(&mut end, "config", &snapshot.version);
        end.extend_from_slice(b"}\n");
        Self {
            end: end.into(),
            runs: RefCell::default(),
        }
    }

    /// Gives the members that say whose exchange it was, and where it went.
    #[inline]
    pub(super) fn run<T>(
        &self,
        snapshot: &Snapshot,
        record: &Record,
        give: impl FnOnce(&[u8]) -> T,
    ) -> T {
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
            spell(&mut run.text, snapshot, record);
        }
        give(&run.text)
    }

    pub(super) fn end(&self) -> &[u8] {
        &self.end
    }
}

#[cold]
fn spell(out: &mut Vec<u8>, snapshot: &Snapshot, record: &Record) {
    let names = Names::of(snapshot, record);
    let members = [
        ("workload", names.workload.map(|name| &**name)),
        ("operation", record.operation.map(|o| o.as_str())),
        ("route", names.route.map(|name| &**name)),
        ("backend", names.backend.map(|name| &**name)),
        ("endpoint", names.endpoint.map(|e| &*e.name)),
    ];
    out.clear();
    for (key, name) in members {
        if let Some(name) = name {
            member(out, key, name);
        }
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

fn member(out: &mut Vec<u8>, key: &str, name: &str) {
    for text in [",\"", key, "\":\""] {
        out.extend_from_slice(text.as_bytes());
    }
    if is_plain(name.as_bytes()) {
        out.extend_from_slice(name.as_bytes());
    } else {
        escape(out, name.as_bytes());
    }
    out.push(b'"');
}
