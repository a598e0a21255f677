//! Responses that are kept for clients of the Responses API whose backends keep none: in memory, for so long, in so many bytes.
//!
//! Invariant: what is kept has the bound of the configuration, and no principal has more than half of it: who brings more loses its own
//! oldest first. What is used again is kept for as long again. A reload keeps what is kept; a restart forgets it.
//! Not here: whose a response is, and what is made of it (`policy::responses`).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use config::KeptResponses;
use jose::sign::{SecureRandom, SystemRandom};
use policy::responses::{Principal, ResponseStore};
use policy::wire::filter::KeptResponse;

/// What ids of the gate's own responses begin with.
const PREFIX: &str = "resp_tg_";
/// Bytes that one takes beside what it says: its keys, twice, and its places.
const OVERHEAD_BYTES: usize = 512;
/// No response goes on from more than so many.
const CHAIN_MAX: usize = 4096;

/// What of them is kept, for how long, and how much.
pub(crate) struct Responses {
    kept: Mutex<Kept>,
    now: fn() -> Instant,
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What people said is nobody's to print.
        f.debug_struct("Responses").finish_non_exhaustive()
    }
}

impl Default for Responses {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            now: Instant::now,
        }
    }
}

#[derive(Default)]
struct Kept {
    bounds: Option<KeptResponses>,
    bytes: usize,
    entries: HashMap<(Principal, Arc<str>), Entry>,
    /// By when they were last used, the oldest first.
    order: BTreeMap<u64, (Principal, Arc<str>)>,
    owners: HashMap<Principal, Owner>,
    next: u64,
}

struct Entry {
    response: Arc<KeptResponse>,
    bytes: usize,
    used: Instant,
    place: u64,
}

#[derive(Default)]
struct Owner {
    bytes: usize,
    /// Its own in the order.
    places: std::collections::BTreeSet<u64>,
}

impl Responses {
    /// Keeps them within these bounds from now on; with `None` no more, and forgets what is kept.
    pub(crate) fn bound(&self, bounds: Option<KeptResponses>) {
        let now = (self.now)();
        let mut kept = self.locked();
        kept.bounds = bounds;
        kept.make_room(now);
    }

    fn locked(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponseStore for Responses {
    fn fresh_id(&self) -> Arc<str> {
        use fmt::Write as _;
        let mut bytes = [0; 16];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.expect("the system gives random bytes");
        let mut id = String::from(PREFIX);
        for byte in bytes {
            let _never_fails = write!(id, "{byte:02x}");
        }
        id.into()
    }

    fn is_own(&self, id: &str) -> bool {
        id.starts_with(PREFIX)
    }

    fn keep(&self, of: &Principal, response: KeptResponse) {
        let now = (self.now)();
        let said = [&response.input, &response.output, &response.document];
        let bytes = OVERHEAD_BYTES + said.iter().map(|part| part.len()).sum::<usize>();
        let mut kept = self.locked();
        let key = (of.clone(), Arc::clone(&response.id));
        kept.remove(&key);
        let place = kept.next;
        kept.next += 1;
        kept.bytes += bytes;
        let owner = kept.owners.entry(of.clone()).or_default();
        owner.bytes += bytes;
        owner.places.insert(place);
        kept.order.insert(place, key.clone());
        let response = Arc::new(response);
        let entry = Entry {
            response,
            bytes,
            used: now,
            place,
        };
        kept.entries.insert(key, entry);
        kept.share(of);
        kept.make_room(now);
    }

    fn find(&self, of: &Principal, id: &str) -> Option<Arc<KeptResponse>> {
        let now = (self.now)();
        let mut kept = self.locked();
        kept.make_room(now);
        kept.used(&(of.clone(), id.into()), now)
    }

    fn chain(&self, of: &Principal, id: &str) -> Option<Vec<Arc<KeptResponse>>> {
        let now = (self.now)();
        let mut kept = self.locked();
        kept.make_room(now);
        let mut ids: Vec<Arc<str>> = Vec::new();
        let mut next: Option<Arc<str>> = Some(id.into());
        while let Some(id) = next {
            if ids.len() == CHAIN_MAX {
                return None;
            }
            let entry = kept.entries.get(&(of.clone(), Arc::clone(&id)))?;
            next = entry.response.previous.clone();
            ids.push(id);
        }
        // The newest is used last: the next call names it.
        let chain = ids.into_iter().rev();
        chain.map(|id| kept.used(&(of.clone(), id), now)).collect()
    }

    fn remove(&self, of: &Principal, id: &str) -> bool {
        self.locked().remove(&(of.clone(), id.into()))
    }
}

impl Kept {
    /// Takes one, and puts it behind all others.
    fn used(&mut self, key: &(Principal, Arc<str>), now: Instant) -> Option<Arc<KeptResponse>> {
        let place = self.next;
        let entry = self.entries.get_mut(key)?;
        self.next += 1;
        entry.used = now;
        let before = std::mem::replace(&mut entry.place, place);
        let response = Arc::clone(&entry.response);
        self.order.remove(&before);
        self.order.insert(place, key.clone());
        if let Some(owner) = self.owners.get_mut(&key.0) {
            owner.places.remove(&before);
            owner.places.insert(place);
        }
        Some(response)
    }

    fn remove(&mut self, key: &(Principal, Arc<str>)) -> bool {
        let Some(entry) = self.entries.remove(key) else {
            return false;
        };
        self.bytes -= entry.bytes;
        self.order.remove(&entry.place);
        if let Some(owner) = self.owners.get_mut(&key.0) {
            owner.bytes -= entry.bytes;
            owner.places.remove(&entry.place);
            if owner.places.is_empty() {
                self.owners.remove(&key.0);
            }
        }
        true
    }

    /// Lets go what is too old, and the oldest where there is too much.
    fn make_room(&mut self, now: Instant) {
        let (age, bytes) = self
            .bounds
            .as_ref()
            .map_or((Duration::ZERO, 0), |bounds| (bounds.keep, bounds.bytes));
        while let Some((_, key)) = self.order.first_key_value() {
            let entry = self.entries.get(key);
            let is_old = entry.is_none_or(|entry| now.duration_since(entry.used) >= age);
            if !is_old && self.bytes <= bytes {
                return;
            }
            let key = key.clone();
            if !self.remove(&key) {
                // It cannot be: what stands in the order is kept.
                self.order.pop_first();
            }
        }
    }

    /// Lets the oldest of a principal go where it has more than half.
    fn share(&mut self, of: &Principal) {
        let most = self.bounds.as_ref().map_or(0, |bounds| bounds.bytes) / 2;
        while let Some(owner) = self.owners.get(of).filter(|owner| owner.bytes > most) {
            let oldest = owner.places.first().and_then(|at| self.order.get(at));
            let Some(key) = oldest.cloned() else { return };
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
