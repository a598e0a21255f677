//! Which session comes next to whom.
//!
//! Invariant: place `k` of the sequence is thing `k` modulo their number of one permutation, so that a thing comes
//! again only after all others have. User `u` of `n` takes the places `u`, `u + n`, `u + 2 n`, …
//! Not here: when (`arrivals`).

use super::Permutation;
use crate::random::Rng;

/// Names of the streams of deals, apart from those of actors and chains.
const STREAM: u64 = 3;

/// One user's places in the sequence of a profile's sessions.
#[derive(Debug, Clone)]
pub struct Deal {
    order: Option<Permutation>,
    seed: u64,
    profile: u64,
    place: u64,
    step: u64,
    /// Things come as they are numbered.
    in_order: bool,
}

impl Deal {
    /// The deal to `user` of `users`.
    #[must_use]
    pub const fn new(seed: u64, profile: usize, user: u64, users: u64) -> Self {
        Self {
            order: None,
            seed,
            profile: profile as u64,
            place: user,
            step: users,
            in_order: false,
        }
    }

    /// Of things that stand in the order in which they have to come, as those of a trace do.
    #[must_use]
    pub const fn in_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }

    /// The next session of `count`, and how often it had come before in the profile; `None` where there are none.
    pub fn next(&mut self, count: u64) -> Option<(u64, u64)> {
        let place = self.place;
        self.place = place.saturating_add(self.step);
        self.at(place, count)
    }

    /// What stands at a place of the profile's sequence.
    pub(super) fn at(&mut self, place: u64, count: u64) -> Option<(u64, u64)> {
        if count == 0 {
            return None;
        }
        if self.in_order {
            return Some((place % count, place / count));
        }
        if self.order.as_ref().is_none_or(|order| order.n() != count) {
            let mut rng = Rng::stream(self.seed, &[STREAM, self.profile]);
            self.order = Some(Permutation::new(&mut rng, count));
        }
        let order = self.order.as_ref()?;
        Some((order.at(place % count), place / count))
    }
}
