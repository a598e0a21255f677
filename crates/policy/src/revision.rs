//! A revision of the configuration in use: what was configured, and the levels of what runs by it.
//!
//! Invariant: a snapshot and its levels are made, published and dropped together, so that an exchange keeps both to its
//! end, and so does a settlement that comes after it.
//! Not here: when one takes the place of another (the host), what the levels are ([`crate::levels`]).

use std::sync::Arc;

use crate::clock::Mono;
use crate::id::EndpointId;
use crate::levels::Levels;
use crate::mcp::Mcp;
use crate::snapshot::Snapshot;

/// A snapshot with its levels.
#[derive(Debug)]
pub struct Revision {
    /// What was configured.
    pub snapshot: Snapshot,
    /// What its limits and budgets hold now.
    pub levels: Levels,
}

impl Revision {
    /// The first one of a process that asks nothing of chance: for tests, and to look at a configuration.
    #[must_use]
    pub fn first(snapshot: Snapshot) -> Self {
        Self::seeded(snapshot, [0, 0])
    }

    /// The first one of a process. Nobody outside it may know `seed`: which keys and users share a place in a table
    /// follows from it.
    #[must_use]
    pub fn seeded(snapshot: Snapshot, seed: [u64; 2]) -> Self {
        let levels = Levels::seeded(&snapshot, seed);
        Self { snapshot, levels }
    }

    /// Whether a snapshot says what this one does.
    #[must_use]
    pub fn says(&self, snapshot: &Snapshot) -> bool {
        is_same(snapshot, &self.snapshot)
    }

    /// The one that takes the place of this one: its version counts on from this one's, and its levels are carried.
    #[must_use]
    pub fn next(&self, mut snapshot: Snapshot, now: Mono) -> Self {
        snapshot.version = version(&snapshot, &self.snapshot).into();
        if let (Some(next), Some(old)) = (&mut snapshot.mcp, &self.snapshot.mcp) {
            next.ended = Arc::clone(&old.ended);
            next.kept = Arc::clone(&old.kept);
            next.held = Arc::clone(&old.held);
            next.waiting = Arc::clone(&old.waiting);
            carry_changes(next, old);
            next.seen = Arc::clone(&old.seen);
            next.known = Arc::clone(&old.known);
            next.known
                .keep(next.servers.iter().map(|server| &*server.at));
            next.seen.keep(
                next.servers
                    .iter()
                    .filter_map(|server| server.pins.as_ref()),
            );
        }
        if snapshot.is_balanced {
            carry_balance(&mut snapshot, &self.snapshot);
        }
        let levels = Levels::carried(&snapshot, &self.snapshot, &self.levels, now);
        Self { snapshot, levels }
    }
}

/// Streams that began before tell those that list by now what has changed.
fn carry_changes(next: &mut Mcp, old: &Mcp) {
    for server in &mut next.servers {
        if let Some(before) = old.servers.iter().find(|of| of.name == server.name) {
            server.changes = Arc::clone(&before.changes);
        }
    }
}

/// What is known of endpoints goes on for those that a backend of the same name still has.
fn carry_balance(next: &mut Snapshot, old: &Snapshot) {
    let Snapshot {
        backends,
        endpoints,
        ..
    } = next;
    for backend in backends {
        let named = old.backends.iter().find(|of| of.name == backend.name);
        let (Some(balancer), Some(named)) = (&mut backend.balancer, named) else {
            continue;
        };
        let Some(known) = &named.balancer else {
            continue;
        };
        for (place, id) in backend.endpoints.iter().enumerate() {
            let Some(endpoint) = endpoints.get(id.index()) else {
                continue;
            };
            let is_it = |id: &EndpointId| {
                let old = old.endpoint(*id);
                old.is_some_and(|old| {
                    old.origin == endpoint.origin && old.base_path == endpoint.base_path
                })
            };
            let at = named.endpoints.iter().position(is_it);
            if let Some(shared) = at.and_then(|at| known.endpoint(at)) {
                balancer.take(place, shared);
            }
        }
    }
}

/// Whether neither the document nor a secret or a file that it refers to changed.
fn is_same(next: &Snapshot, old: &Snapshot) -> bool {
    let mut endpoints = old.endpoints.iter().zip(&next.endpoints);
    parts(&old.version).0 == parts(&next.version).0
        && old.contents == next.contents
        && old.tokenizers == next.tokenizers
        && old.prices == next.prices
        && old.endpoints.len() == next.endpoints.len()
        && endpoints.all(|(old, next)| old.auth == next.auth && old.origin == next.origin)
}

/// The hash of `next` and the number of changes since the process began. That stands still where neither the document
/// nor a secret or a file that it refers to changed.
fn version(next: &Snapshot, old: &Snapshot) -> String {
    let (hash, _) = parts(&next.version);
    let (_, changes) = parts(&old.version);
    let is_same = is_same(next, old);
    format!("{hash}-{}", changes.saturating_add(u64::from(!is_same)))
}

/// The content hash of a version, and its number.
fn parts(version: &str) -> (&str, u64) {
    let (hash, number) = version.split_once('-').unwrap_or((version, "0"));
    (hash, number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests;
