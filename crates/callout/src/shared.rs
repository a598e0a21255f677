//! Answers shared by all who ask the same: kept for a while, asked for once at a time, and not at all while the
//! service is down.
//!
//! Invariant: one question runs for one key, however many wait for it, and to its own end whoever gives up. Keys are
//! whole SHA-256 digests; what they were made of is not kept.
//! Not here: what is asked, and how long an answer is good (who asks).

mod cache;
mod circuit;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::questions::Questions;
use cache::Cache;
use circuit::Circuit;

/// Questions to one service that run at once.
const FLIGHTS_MAX: usize = 1024;
/// The most that all answers kept may weigh, by the bytes of the answers.
const WEIGHT_MAX: usize = 64 << 20;
/// One in so many of the answers kept may be a no, so that invented questions push out nobody's yes.
const NO_SHARE: usize = 8;

/// What was asked, as a digest.
pub(crate) type Key = [u8; 32];

/// An answer, and how long it is good.
pub(crate) struct Found<V> {
    pub(crate) value: V,
    pub(crate) is_yes: bool,
    pub(crate) good_for: Duration,
    /// In bytes, about.
    pub(crate) weight: usize,
}

/// Answers of one service.
pub(crate) struct Shared<V> {
    state: Mutex<State<V>>,
    questions: Arc<Questions>,
}

struct State<V> {
    yes: Cache<V>,
    no: Cache<V>,
    flights: HashMap<Key, Flight<V>>,
    circuit: Circuit,
}

type Flight<V> = watch::Receiver<Option<Result<V, Fault>>>;

impl<V: Clone + Send + Sync + 'static> Shared<V> {
    pub(crate) fn new(entries_max: usize) -> Arc<Self> {
        Self::counted(entries_max, Arc::default())
    }

    /// One whose questions are counted there.
    pub(crate) fn counted(entries_max: usize, questions: Arc<Questions>) -> Arc<Self> {
        let share = |of: usize| (of / NO_SHARE).max(1);
        let state = State {
            yes: Cache::new(entries_max, WEIGHT_MAX),
            no: Cache::new(share(entries_max), share(WEIGHT_MAX)),
            flights: HashMap::new(),
            circuit: Circuit::default(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            questions,
        })
    }

    /// The answer that is kept, if there is one and nobody else looks just now: a worker waits for nobody, and has the
    /// thread that asks look.
    pub(crate) fn kept(&self, key: &Key) -> Option<V> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let kept = state.kept(key, Instant::now());
        if kept.is_some() {
            self.questions.note_kept();
        }
        kept
    }

    /// The answer that is kept, or that comes of the one question that runs.
    pub(crate) async fn get<F>(
        self: &Arc<Self>,
        key: Key,
        question: impl FnOnce() -> F,
    ) -> Result<V, Fault>
    where
        F: Future<Output = Result<Found<V>, Fault>> + Send + 'static,
    {
        self.get_of(key, || key, question).await
    }

    /// The same of a question that is one of several about `whose`.
    pub(crate) async fn get_of<F>(
        self: &Arc<Self>,
        key: Key,
        whose: impl FnOnce() -> Key,
        question: impl FnOnce() -> F,
    ) -> Result<V, Fault>
    where
        F: Future<Output = Result<Found<V>, Fault>> + Send + 'static,
    {
        let mut flight = {
            let mut state = self.state();
            let now = Instant::now();
            if let Some(kept) = state.kept(&key, now) {
                self.questions.note_kept();
                return Ok(kept);
            }
            match state.flights.get(&key) {
                Some(flight) => flight.clone(),
                None => {
                    let departed = self.depart(&mut state, (key, whose()), now, question());
                    departed.inspect_err(|_| self.questions.note(false))?
                }
            }
        };
        let landed = flight.wait_for(Option::is_some).await;
        landed.map_or(Err(Fault::Closed), |found| {
            found.clone().unwrap_or(Err(Fault::Closed))
        })
    }

    /// Forgets the answer that is kept for a key, where it is to be.
    pub(crate) fn forget_if(&self, key: &Key, is_old: impl FnOnce(&V) -> bool) {
        let mut state = self.state();
        let kept = state.yes.get(key, Instant::now());
        if kept.is_some_and(|kept| is_old(&kept)) {
            state.yes.forget(key);
        }
    }

    fn depart(
        self: &Arc<Self>,
        state: &mut State<V>,
        (key, whose): (Key, Key),
        now: Instant,
        question: impl Future<Output = Result<Found<V>, Fault>> + Send + 'static,
    ) -> Result<Flight<V>, Fault> {
        if state.flights.len() >= FLIGHTS_MAX {
            return Err(Fault::Full);
        }
        state.circuit.admit(&key, now)?;
        let (landed, flight) = watch::channel(None);
        state.flights.insert(key, flight.clone());
        let landing = Landing(Arc::clone(self), key);
        tokio::spawn(async move {
            let found = question.await;
            landing.0.questions.note(found.is_ok());
            landing.0.state().take((key, whose), &found);
            // Gone before it is told, so that who comes later asks again or finds it kept.
            drop(landing);
            landed.send_replace(Some(found.map(|found| found.value)));
        });
        Ok(flight)
    }

    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Clone> State<V> {
    fn kept(&mut self, key: &Key, now: Instant) -> Option<V> {
        let kept = self.yes.get(key, now);
        kept.or_else(|| self.no.get(key, now))
    }

    fn take(&mut self, (key, whose): (Key, Key), found: &Result<Found<V>, Fault>) {
        let now = Instant::now();
        self.circuit.note((key, whose), now, found.as_ref().err());
        if let Ok(found) = found {
            let cache = if found.is_yes {
                &mut self.yes
            } else {
                &mut self.no
            };
            cache.keep(key, found, now);
        }
    }
}

/// However a question ends, the next for its key may begin.
struct Landing<V>(Arc<Shared<V>>, Key);

impl<V> Drop for Landing<V> {
    fn drop(&mut self) {
        let Self(shared, key) = self;
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.flights.remove(key);
    }
}

#[cfg(test)]
mod tests;
