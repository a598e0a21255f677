//! A window of few requests: the moment of each is kept.
//!
//! There is a place for each request that a window admits. A request takes a place whose last one is a window ago, and
//! none other: a place gives at most one in any window, so that all of them give at most the amount. Where no place can
//! be taken, so many requests *are* in the window.
//! Invariant: exact, in both directions and to the nanosecond, whatever the number of workers; 8 bytes a request. What a
//! smaller amount has no place for is kept beside, so that a larger one that follows counts it.
//! Not here: tokens, and windows of more requests (`cells`).

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::Mono;

/// In a place: nobody had it.
const NEVER: i64 = i64::MIN;

#[derive(Debug)]
pub(super) struct Times {
    per: i64,
    places: Box<[AtomicI64]>,
    /// Where the earliest probably is.
    next: AtomicUsize,
    /// Earlier requests of a window that admitted more. No take looks at them: while the latest fill all places, none is free.
    beyond: Mutex<Vec<i64>>,
}

/// Of those the latest are kept: as many as a window has places at most.
const BEYOND: usize = 1024;

impl Times {
    pub(super) fn new(amount: u64, per: i64) -> Self {
        Self {
            per,
            places: (0..amount).map(|_| AtomicI64::new(NEVER)).collect(),
            next: AtomicUsize::new(0),
            beyond: Mutex::default(),
        }
    }

    fn beyond(&self) -> MutexGuard<'_, Vec<i64>> {
        self.beyond.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_beyond(&self, at: i64) {
        if at == NEVER {
            return;
        }
        let mut beyond = self.beyond();
        if beyond.len() == BEYOND {
            let earliest = (0..).zip(&*beyond).min_by_key(|(_, at)| **at);
            if let Some((nth, _)) = earliest {
                beyond.swap_remove(nth);
            }
        }
        beyond.push(at);
    }

    /// Takes a place, or says how many nanoseconds there is none.
    pub(super) fn take(&self, now: i64) -> Result<(), i64> {
        loop {
            let (nth, place, seen) = self.free(now)?;
            let taken = place.compare_exchange(seen, now, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() {
                self.next.store(nth + 1, Ordering::Relaxed);
                return Ok(());
            }
        }
    }

    pub(super) fn would_take(&self, now: i64) -> Result<(), i64> {
        self.free(now).map(drop)
    }

    /// A place that can be taken, where it is, and what it says.
    fn free(&self, now: i64) -> Result<(usize, &AtomicI64, i64), i64> {
        let begin = self.next.load(Ordering::Relaxed);
        let (before, from) = self
            .places
            .split_at_checked(begin)
            .unwrap_or((&[], &self.places));
        let begin = before.len();
        let places = (begin..).zip(from).chain((0..).zip(before));
        let mut wait = i64::MAX;
        for (nth, place) in places {
            let seen = place.load(Ordering::Relaxed);
            let left = self.left(seen, now);
            if left <= 0 {
                return Ok((nth, place, seen));
            }
            wait = wait.min(left);
        }
        Err(wait)
    }

    /// How long a request of that moment still counts.
    fn left(&self, at: i64, now: i64) -> i64 {
        at.saturating_add(self.per).saturating_sub(now)
    }

    /// A request of that moment never was. Which of several it is makes no difference.
    pub(super) fn give_back(&self, at: i64) {
        let mut places = self.places.iter();
        let found = places.any(|place| {
            let given = place.compare_exchange(at, NEVER, Ordering::Relaxed, Ordering::Relaxed);
            given.is_ok()
        });
        if !found {
            let mut beyond = self.beyond();
            if let Some(nth) = beyond.iter().position(|kept| *kept == at) {
                beyond.swap_remove(nth);
            }
        }
    }

    /// Requests of the window that ends now, and until the last of them counts no more.
    pub(super) fn held(&self, now: i64) -> (u64, i64) {
        let places = self.places.iter();
        let left = places.map(|place| self.left(place.load(Ordering::Relaxed), now));
        left.fold((0, 0), |(held, reset), left| {
            (held + u64::from(left > 0), reset.max(left))
        })
    }

    /// Adds requests of a moment: the latest have the places.
    pub(super) fn add(&self, requests: u64, at: i64) {
        let most = u64::try_from(self.places.len().max(BEYOND)).unwrap_or(u64::MAX);
        for _ in 0..requests.min(most) {
            let earliest = || {
                self.places
                    .iter()
                    .min_by_key(|it| it.load(Ordering::Relaxed))
            };
            while let Some(place) = earliest() {
                let seen = place.load(Ordering::Relaxed);
                if seen >= at {
                    self.keep_beyond(at);
                    break;
                }
                let put = place.compare_exchange(seen, at, Ordering::Relaxed, Ordering::Relaxed);
                if put.is_ok() {
                    self.keep_beyond(seen);
                    break;
                }
            }
        }
    }

    pub(super) fn taken(&self) -> Vec<(Mono, u64)> {
        let times = self
            .places
            .iter()
            .map(|place| place.load(Ordering::Relaxed));
        let beyond = self.beyond();
        let taken = times
            .filter(|at| *at != NEVER)
            .chain(beyond.iter().copied());
        taken.map(|at| (Mono(at), 1)).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.places) + size_of_val(self.beyond().as_slice())
    }
}
