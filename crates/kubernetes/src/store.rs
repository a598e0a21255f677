//! What is known of the cluster.
//!
//! Invariant: no more than [`OBJECTS_MAX`] objects, nor [`BYTES_MAX`] of them together, are kept, nor are more than a page of a list
//! beside them; that something found no room is known, and what it was before stays. A list replaces what was known of its query, and
//! nothing else.
//! Not here: asking (`watcher`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::object::{Key, Object};
use crate::query::Query;

/// Most objects.
pub(crate) const OBJECTS_MAX: usize = 50_000;
/// Most of their texts together, bytes.
pub(crate) const BYTES_MAX: usize = 128 << 20;

/// What is known of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody has answered yet.
    Asked,
    Known,
    /// It was never answered but with this.
    Refused(String),
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Nothing,
    /// What is said of objects, or how they are numbered.
    Status,
    /// What objects say, or whether they are there.
    Objects,
}

/// Objects, and how far they are known.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) objects: BTreeMap<Key, Arc<Object>>,
    pub(crate) queries: BTreeMap<Query, State>,
    bytes: usize,
    /// Something found no room.
    pub(crate) is_full: bool,
}

impl Store {
    /// Notes that somebody asks.
    pub(crate) fn asks(&mut self, query: &Query) {
        self.queries.entry(query.clone()).or_insert(State::Asked);
    }

    /// Forgets a query and its objects.
    pub(crate) fn forget(&mut self, query: &Query) -> Change {
        self.queries.remove(query);
        self.keep(query, |_| false)
    }

    /// Some of what there is now.
    pub(crate) fn page(&mut self, query: &Query, objects: Vec<Object>) -> Change {
        let mut change = Change::Nothing;
        for object in objects {
            change = change.max(self.put(query, object));
        }
        change
    }

    /// A list ended before its end. Of a query that was never answered nothing is known.
    pub(crate) fn broke_off(&mut self, query: &Query) -> Change {
        match self.queries.get(query) {
            Some(State::Known) => Change::Nothing,
            Some(State::Asked | State::Refused(_)) | None => self.keep(query, |_| false),
        }
    }

    /// A list is at its end: these, whose pages have come, are all that there is now.
    pub(crate) fn list(&mut self, query: &Query, there: &BTreeSet<Key>) -> Change {
        let was = self.queries.insert(query.clone(), State::Known);
        let change = if was == Some(State::Known) {
            Change::Nothing
        } else {
            Change::Objects
        };
        change.max(self.keep(query, |key| there.contains(key)))
    }

    /// One that is new, or other than it was.
    pub(crate) fn put(&mut self, query: &Query, object: Object) -> Change {
        // A server that answers with what was not asked for would lay it over what is another query's.
        if !query.holds(&object.key) {
            return Change::Nothing;
        }
        let before = self.objects.get(&object.key);
        let (others, bytes) = match before {
            Some(before) => (self.objects.len() - 1, self.bytes - before.bytes()),
            None => (self.objects.len(), self.bytes),
        };
        if others >= OBJECTS_MAX || bytes + object.bytes() > BYTES_MAX {
            self.is_full = true;
            return Change::Nothing;
        }
        let before = self.remove(&object.key);
        let change = match &before {
            Some(before) if before.says_as(&object) => Change::Status,
            _ => Change::Objects,
        };
        self.bytes += object.bytes();
        self.objects.insert(object.key.clone(), Arc::new(object));
        change
    }

    /// One that is gone.
    pub(crate) fn delete(&mut self, query: &Query, key: &Key) -> Change {
        match query.holds(key).then(|| self.remove(key)).flatten() {
            Some(_) => Change::Objects,
            None => Change::Nothing,
        }
    }

    /// Notes why nobody answers; what was known stays.
    pub(crate) fn refuse(&mut self, query: &Query, why: String) -> Change {
        let state = self.queries.entry(query.clone()).or_insert(State::Asked);
        let now = State::Refused(why);
        if *state == State::Known || *state == now {
            return Change::Nothing;
        }
        *state = now;
        Change::Objects
    }

    /// Whether a query was ever answered.
    pub(crate) fn is_known(&self, query: &Query) -> bool {
        self.queries.get(query) == Some(&State::Known)
    }

    /// Whether objects of a query are known.
    pub(crate) fn has_any(&self, query: &Query) -> bool {
        self.objects.keys().any(|key| query.holds(key))
    }

    fn keep(&mut self, query: &Query, is_kept: impl Fn(&Key) -> bool) -> Change {
        let of_it = self
            .objects
            .keys()
            .filter(|key| query.holds(key) && !is_kept(key));
        let gone: Vec<Key> = of_it.cloned().collect();
        for key in &gone {
            self.remove(key);
        }
        if gone.is_empty() {
            Change::Nothing
        } else {
            Change::Objects
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let gone = self.objects.remove(key)?;
        self.bytes -= gone.bytes();
        Some(gone)
    }
}
