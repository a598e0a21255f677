//! A snapshot's names as they stand in a line: with their keys, quoted and escaped.
//!
//! Invariant: what a line says about an id is what the id's own snapshot calls it; an id that is
//! not known is spelled as nothing.
//! Not here: names as metric labels (`view`), what only the exchange knows (`line`).

use std::sync::Arc;

use policy::record::Record;
use policy::snapshot::Snapshot;

use super::escape::escaped;

/// Fragments of lines by id.
#[derive(Debug)]
pub(crate) struct Spelled {
    workloads: Vec<Fragment>,
    routes: Vec<Fragment>,
    backends: Vec<Fragment>,
    endpoints: Vec<Fragment>,
    /// The last member and the end of the line.
    end: Fragment,
}

type Fragment = Box<[u8]>;

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
        }
    }

    pub(super) fn workload(&self, record: &Record) -> &[u8] {
        look_up(&self.workloads, record.workload.map(|id| id.index()))
    }

    pub(super) fn route(&self, record: &Record) -> &[u8] {
        look_up(&self.routes, record.route.map(|id| id.index()))
    }

    pub(super) fn backend(&self, record: &Record) -> &[u8] {
        look_up(&self.backends, record.backend.map(|id| id.index()))
    }

    pub(super) fn endpoint(&self, record: &Record) -> &[u8] {
        look_up(&self.endpoints, record.endpoint.map(|id| id.index()))
    }

    pub(super) fn end(&self) -> &[u8] {
        &self.end
    }
}

fn members<'a>(key: &str, names: impl Iterator<Item = &'a Arc<str>>) -> Vec<Fragment> {
    names.map(|name| member(key, name)).collect()
}

fn member(key: &str, name: &str) -> Fragment {
    let mut out = format!(",\"{key}\":\"").into_bytes();
    escaped(&mut out, name);
    out.push(b'"');
    out.into()
}

fn look_up(fragments: &[Fragment], index: Option<usize>) -> &[u8] {
    index.and_then(|i| fragments.get(i)).map_or(&[], |f| f)
}
