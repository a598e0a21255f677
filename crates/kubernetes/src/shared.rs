//! What the tasks of the thread share: what is known, what is to be said, and who says it.
//!
//! Invariant: whatever changes is counted, so that nobody who waits for a change misses one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callout::{Fault, Objects};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::store::{Change, Store};

/// What is watched, and who writes.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Namespaces that are watched; all where there is none.
    pub namespaces: Vec<String>,
    /// Namespace and name of the lease of those who may write.
    pub lease: (String, String),
    /// Who this one is among them.
    pub identity: String,
}

/// What is said of an object as it is.
#[derive(Debug, Clone)]
pub struct Said {
    /// Its status as it should be.
    pub status: Value,
    /// What its readers are told of that, where it is refused for another reason than before.
    pub event: Option<Event>,
}

/// Why an object is refused.
#[derive(Debug, Clone)]
pub struct Event {
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Says what is to be said of an object as it is, at a time as the API writes it; none where its status says so already.
pub type Saying = dyn Fn(&Value, &str) -> Option<Said> + Send + Sync;

/// What is to be said of an object.
#[derive(Clone)]
pub struct Desired {
    /// Its kind, namespace and name.
    pub of: [String; 3],
    /// What is said.
    pub saying: Arc<Saying>,
}

impl std::fmt::Debug for Desired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desired")
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}

/// What the tasks of the thread share.
pub(crate) struct Shared {
    pub(crate) objects: Objects,
    pub(crate) settings: Settings,
    pub(crate) store: Mutex<Store>,
    /// It did not answer when it was asked last.
    pub(crate) is_away: AtomicBool,
    /// Counts how often it answered again.
    pub(crate) is_back: watch::Sender<u64>,
    /// Counts what changes of what objects say.
    pub(crate) changes: watch::Sender<u64>,
    /// Counts whatever changes.
    pub(crate) all_changes: watch::Sender<u64>,
    /// What is to be said of objects.
    pub(crate) desired: watch::Sender<Arc<Vec<Desired>>>,
    /// Whether this one writes.
    pub(crate) is_leader: watch::Sender<bool>,
    /// Until when it may: its lease is looked at beside what it writes.
    pub(crate) good_until: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes until when the lease is this one's.
    pub(crate) fn leads_until(&self, until: Instant) {
        *self.good_until() = Some(until);
    }

    /// Until when it may write; none where it never had the lease.
    pub(crate) fn good_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.good_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the lease is this one's now.
    pub(crate) fn leads(&self) -> bool {
        self.good_until()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Notes that the server answers: who waits to ask it again asks at once.
    pub(crate) fn hears(&self) {
        if self.is_away.swap(false, Ordering::SeqCst) {
            tracing::info!("the API server answers again");
            self.is_back.send_modify(|count| *count += 1);
        }
    }

    /// Notes that it does not; that is said once.
    pub(crate) fn misses(&self, query: &str, fault: &Fault) {
        if self.is_away.swap(true, Ordering::SeqCst) {
            tracing::debug!(query, %fault, "the API server does not answer");
        } else {
            tracing::warn!(query, %fault, "the API server does not answer: the gate keeps the objects that it knows");
        }
    }

    /// Changes what is known, and says so.
    pub(crate) fn change(&self, how: impl FnOnce(&mut Store) -> Change) -> Change {
        let change = how(&mut self.store());
        if change >= Change::Status {
            self.all_changes.send_modify(|count| *count += 1);
        }
        if change >= Change::Objects {
            self.changes.send_modify(|count| *count += 1);
        }
        change
    }
}
