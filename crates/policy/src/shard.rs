//! What one worker remembers beside a snapshot: the health of endpoints, retries in hand, what calls came to,
//! which credentials were proven, and the state of its random numbers.
//!
//! Invariant: nothing of it is shared, so that nothing of it is locked; ids of it are used only with the snapshot
//! that it was made for.
//! Not here: levels that all workers share ([`crate::levels`]).

use std::sync::Arc;

use crate::attempt::Upstreams;
use crate::estimate::Estimator;
use crate::fast_hash::finalize;
use crate::id::RouteId;
use crate::identity::{FailureBounds, Failures, Proofs};
use crate::snapshot::Snapshot;
use crate::trace::Sampling;

/// A worker's memory.
#[derive(Debug)]
pub struct Shard {
    /// Endpoints and retries.
    pub upstreams: Upstreams,
    /// By route: what its calls came to.
    estimators: Vec<Estimator>,
    /// The model that the latest call named which no configuration knows: the next one names it again, as a rule.
    unlisted: Option<Arc<str>>,
    /// Which traces are kept, where any are.
    pub sampling: Option<Sampling>,
    /// Credentials that were proven.
    pub(crate) proofs: Proofs,
    /// Bad credentials by address.
    pub(crate) failures: Failures,
    random: u64,
}

impl Shard {
    /// Nothing known yet; all that is left to chance follows from `seed`.
    #[must_use]
    pub fn new(snapshot: &Snapshot, sampling: Option<Sampling>, seed: u64) -> Self {
        Self {
            upstreams: Upstreams::new(snapshot, seed),
            estimators: vec![Estimator::default(); snapshot.routes.len()],
            unlisted: None,
            sampling,
            proofs: Proofs::default(),
            failures: Failures::new(finalize(seed), FailureBounds::CREDENTIALS),
            random: seed,
        }
    }

    /// What `old` knew, for the endpoints and routes that `new` still has. The two draw different numbers.
    #[must_use]
    pub fn carried(new: &Snapshot, old: &Snapshot, memory: &mut Self) -> Self {
        let estimator = |route: &crate::snapshot::Route| {
            let same = old.routes.iter().position(|r| r.name == route.name);
            let known = same.and_then(|at| memory.estimators.get(at).copied());
            known.unwrap_or_default()
        };
        Self {
            upstreams: Upstreams::carried(new, old, &memory.upstreams),
            estimators: new.routes.iter().map(estimator).collect(),
            unlisted: None,
            sampling: memory.sampling,
            // Who a credential belongs to may have changed.
            proofs: std::mem::take(&mut memory.proofs).outdated(),
            failures: std::mem::take(&mut memory.failures),
            random: memory.fresh(),
        }
    }

    /// What this worker has learnt of a route's sizes.
    #[must_use]
    pub fn estimator(&self, route: RouteId) -> Estimator {
        let known = self.estimators.get(route.index()).copied();
        known.unwrap_or_default()
    }

    /// The shared name of a model that no configuration knows.
    pub(crate) fn unlisted(&mut self, name: &str) -> Arc<str> {
        match &self.unlisted {
            Some(latest) if **latest == *name => Arc::clone(latest),
            _ => Arc::clone(self.unlisted.insert(name.into())),
        }
    }

    /// Learns from a finished call of `bytes`.
    pub(crate) fn learn(&mut self, route: RouteId, bytes: u64, prompt: u64, output: Option<u64>) {
        if let Some(estimator) = self.estimators.get_mut(route.index()) {
            estimator.learn(bytes, Some(prompt), output);
        }
    }

    /// Bits for the id of a trace or a span.
    pub fn fresh(&mut self) -> u64 {
        finalize(self.step())
    }

    /// A step of `SplitMix64`, before its finaliser.
    pub(crate) fn step(&mut self) -> u64 {
        let state = self.random;
        self.random = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        state
    }
}
