//! Routes whose calls are split: each goes to one backend alone, drawn by weight.
//!
//! Not here: which calls are drawn for, and when (`exchange::placing`).

use super::choose::draw;
use super::{Attempts, Upstreams};
use crate::snapshot::Snapshot;

impl Upstreams {
    /// Draws the backend of a call where its route says weights, and leaves all others out.
    #[cold]
    pub(crate) fn split(&mut self, attempts: &mut Attempts, s: &Snapshot) {
        let Some(route) = s.route(attempts.route) else {
            return;
        };
        let total: u64 = route.weights.iter().copied().map(u64::from).sum();
        if total == 0 {
            return;
        }
        let mut left = draw(&mut self.rng) % total;
        let mut is_drawn = false;
        for (place, weight) in route.weights.iter().copied().map(u64::from).enumerate() {
            if !is_drawn && left < weight {
                is_drawn = true;
                continue;
            }
            left = left.saturating_sub(weight);
            if place < 64 {
                attempts.passed_over |= 1 << place;
            }
        }
    }
}
