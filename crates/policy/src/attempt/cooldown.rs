//! Endpoints that asked to be left alone for a time.
//!
//! A 429 speaks of the quota that its call used: only calls of that quota stay away. Any other status speaks
//! of the endpoint.
//! Invariant: at most [`HOLDS`] are kept; one more takes the place of the one that ends first.
//! Not here: how long is asked for (`wait`), sick endpoints (`attempt`).

use std::time::Duration;

use crate::clock::Mono;
use crate::id::EndpointId;

/// Most that a worker keeps.
const HOLDS: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cooldown {
    endpoint: EndpointId,
    scope: Scope,
    status: u16,
    until: Mono,
}

/// Which calls stay away.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Endpoint,
    /// Those to one model.
    Model(Box<str>),
    /// Those that use no model's quota.
    NoModel,
}

impl Scope {
    fn holds(&self, model: Option<&str>) -> bool {
        match self {
            Self::Endpoint => true,
            Self::Model(name) => model == Some(name),
            Self::NoModel => model.is_none(),
        }
    }
}

/// Who asked, and until when.
#[derive(Debug, Clone, Default)]
pub(super) struct Cooldowns(Vec<Cooldown>);

impl Cooldowns {
    #[cold]
    pub(super) fn add(
        &mut self,
        endpoint: EndpointId,
        model: Option<&str>,
        status: u16,
        wait: Duration,
        now: Mono,
    ) {
        self.0.retain(|cooldown| cooldown.until > now);
        let scope = match model {
            _ if status != 429 => Scope::Endpoint,
            Some(model) => Scope::Model(model.into()),
            None => Scope::NoModel,
        };
        let until = now.after(wait);
        let same =
            |cooldown: &&mut Cooldown| cooldown.endpoint == endpoint && cooldown.scope == scope;
        if let Some(cooldown) = self.0.iter_mut().find(same) {
            cooldown.until = cooldown.until.max(until);
            cooldown.status = status;
            return;
        }
        let soonest = self.0.iter().enumerate().min_by_key(|(_, h)| h.until);
        if self.0.len() >= HOLDS
            && let Some((at, _)) = soonest
        {
            self.0.swap_remove(at);
        }
        self.0.push(Cooldown {
            endpoint,
            scope,
            status,
            until,
        });
    }

    /// With which status the endpoint asked, and how much longer it is to be left alone.
    #[inline]
    pub(super) fn of(
        &self,
        endpoint: EndpointId,
        model: Option<&str>,
        now: Mono,
    ) -> Option<(u16, Duration)> {
        if self.0.is_empty() {
            return None;
        }
        self.longest(endpoint, model, now)
    }

    #[cold]
    fn longest(
        &self,
        endpoint: EndpointId,
        model: Option<&str>,
        now: Mono,
    ) -> Option<(u16, Duration)> {
        let is_its = |cooldown: &&Cooldown| {
            cooldown.endpoint == endpoint && cooldown.until > now && cooldown.scope.holds(model)
        };
        let longest = self
            .0
            .iter()
            .filter(is_its)
            .max_by_key(|cooldown| cooldown.until)?;
        Some((longest.status, longest.until.since(now)))
    }

    /// Those of endpoints that go by other numbers now, or are gone.
    pub(super) fn renumbered(&self, new: impl Fn(EndpointId) -> Option<EndpointId>) -> Self {
        let kept = self.0.iter().filter_map(|cooldown| {
            Some(Cooldown {
                endpoint: new(cooldown.endpoint)?,
                ..cooldown.clone()
            })
        });
        Self(kept.collect())
    }
}
