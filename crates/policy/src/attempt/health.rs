//! What a worker remembers of one endpoint and of one route: failures in a row, and retries in hand.
//!
//! Invariant: failures that were all answered to one caller eject the endpoint for that caller alone.
//! Not here: endpoints that asked for time (`cooldown`), which endpoint is tried (`choose`).

use super::reach::{Asker, Reach};
use crate::clock::Mono;
use crate::retry::{Ejection, Retries};
use crate::snapshot::Snapshot;

/// One retry, as retries in hand are counted.
const RETRY: u32 = 1_000_000;

/// Health of one endpoint as one worker sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Health {
    in_a_row: u32,
    ejections: u32,
    pub(super) until: Option<Mono>,
    on_trial: bool,
    /// Who had the failures in a row, and whom they keep away.
    reach: Reach,
}

impl Health {
    /// Whether it may be tried. After its time an ejected endpoint is tried by one exchange at a
    /// time: success restores it, failure ejects it for longer, and a trial of which nothing is
    /// heard gives way to another one after the time of a first ejection.
    #[inline]
    pub(super) fn is_open(&self, asker: Asker<'_>, s: &Snapshot, now: Mono) -> bool {
        self.until
            .is_none_or(|until| now >= until || !self.reach.holds(asker, s))
    }

    /// Whether nobody is kept away.
    pub(super) fn is_open_to_all(&self, now: Mono) -> bool {
        self.until.is_none_or(|until| now >= until)
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    #[cold]
    pub(super) fn chosen(
        &mut self,
        ejection: Option<&Ejection>,
        asker: Asker<'_>,
        s: &Snapshot,
        now: Mono,
    ) {
        if self.until.is_some_and(|until| now >= until) && self.reach.holds(asker, s) {
            let ejection = ejection.copied().unwrap_or_default();
            self.on_trial = true;
            self.until = Some(now.after(ejection.time));
        }
    }

    /// A try failed, which says something of the endpoint to so many.
    #[cold]
    pub(super) fn failed(&mut self, ejection: Option<&Ejection>, reach: Reach, now: Mono) {
        let ejection = ejection.copied().unwrap_or_default();
        let is_first = self.in_a_row == 0 && self.until.is_none();
        let before = self.reach;
        self.reach = if is_first { reach } else { before.with(reach) };
        if self.until.is_some() && self.reach != before {
            // It was not that one caller's alone: all leave it alone, as for a first time.
            self.until = Some(now.after(ejection.time));
            (self.ejections, self.on_trial) = (1, false);
            return;
        }
        if self.until.is_some() && !self.on_trial {
            // A try from before the ejection, or one for want of anything better: known already.
            return;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if self.in_a_row >= ejection.failures || self.on_trial {
            let doubled = ejection.time.saturating_mul(1 << self.ejections.min(20));
            self.until = Some(now.after(doubled.min(ejection.max_time)));
            self.ejections = self.ejections.saturating_add(1);
            self.in_a_row = 0;
            self.on_trial = false;
        }
    }
}

/// Retries in hand on one route, in millionths.
#[derive(Debug, Clone, Copy)]
pub struct RetryBudget(pub(super) u32);

impl RetryBudget {
    pub(super) fn full(retries: &Retries) -> Self {
        Self(retries.burst.saturating_mul(RETRY))
    }

    pub(super) fn earn(&mut self, retries: &Retries) {
        let earned = self.0.saturating_add(retries.share_millionths);
        self.0 = earned.min(Self::full(retries).0);
    }

    pub(super) fn spend(&mut self) -> bool {
        let left = self.0.checked_sub(RETRY);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}
