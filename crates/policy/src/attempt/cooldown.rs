//! Endpoints that asked to be left alone for a time.
//!
//! Each holds for its caller, but for a 429 that says that the quota is used up (`reach`). What another one gets, with no good answer to others
//! between, holds for all, for as long as that answer asked for: what the first was asked for stays its own.
//! A 429 speaks of the quota that its call used: only calls of that quota stay away. A 503 or 529 speaks of the model that was asked for,
//! where one was: a router before engines has others. Any other status speaks of the endpoint. One that asks for more than [`PATIENCE`] is
//! tried all the same where there is no other,
//! by one call each [`TRIAL_EVERY`]: an answer without an error ends its time.
//! Invariant: at most [`HOLDS`] are kept; one more takes the place of the one that ends first.
//! Not here: how long is asked for (`wait`), sick endpoints (`attempt`).

use std::time::Duration;

use super::Wanted;
use super::reach::Reach;
use crate::clock::Mono;
use crate::id::EndpointId;
use crate::snapshot::Snapshot;

/// Most that a worker keeps.
const HOLDS: usize = 256;

/// As long as quotas of a minute ask for: nobody is tried sooner.
const PATIENCE: Duration = Duration::from_secs(60);

/// From one trial to the next, and to the first.
const TRIAL_EVERY: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cooldown {
    endpoint: EndpointId,
    scope: Scope,
    reach: Reach,
    /// Another caller got a good answer since: what this one got was its own.
    is_its_own: bool,
    status: u16,
    until: Mono,
    trial: Trial,
}

/// Calls that are let through before the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// None: it is over soon.
    Never,
    Due(Mono),
    /// One is under way; the next may go then.
    Out(Mono),
}

impl Trial {
    fn next(self) -> Option<Mono> {
        match self {
            Self::Never => None,
            Self::Due(at) | Self::Out(at) => Some(at),
        }
    }
}

impl Cooldown {
    fn is_of(&self, endpoint: EndpointId, wanted: Wanted<'_>, s: &Snapshot, now: Mono) -> bool {
        self.endpoint == endpoint
            && self.until > now
            && self.scope.holds(wanted.model)
            && self.reach.holds(wanted.asker, s)
    }

    /// How much longer it takes until a call may go.
    fn wait(&self, now: Mono) -> Duration {
        let ends = self
            .trial
            .next()
            .map_or(self.until, |at| at.min(self.until));
        ends.since(now)
    }
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

/// What an answer asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) status: u16,
    pub(super) wait: Duration,
    pub(super) reach: Reach,
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
        Asked {
            status,
            wait,
            reach,
        }: Asked,
        now: Mono,
    ) {
        self.0.retain(|cooldown| cooldown.until > now);
        let scope = match model {
            Some(model) if matches!(status, 429 | 503 | 529) => Scope::Model(model.into()),
            None if status == 429 => Scope::NoModel,
            _ => Scope::Endpoint,
        };
        let until = now.after(wait);
        let trial = if wait > PATIENCE {
            Trial::Due(now.after(TRIAL_EVERY))
        } else {
            Trial::Never
        };
        let mut reach = reach;
        for held in &mut self.0 {
            if held.endpoint != endpoint || held.scope != scope {
                continue;
            }
            let both = held.reach.with(reach);
            if both == held.reach
                && let Trial::Out(at) = held.trial
            {
                held.trial = Trial::Due(at);
            }
            if !held.is_its_own {
                reach = both;
            }
        }
        let same = |held: &&mut Cooldown| {
            held.endpoint == endpoint && held.scope == scope && held.reach == reach
        };
        if let Some(held) = self.0.iter_mut().find(same) {
            if until > held.until {
                (held.until, held.trial) = (until, trial);
            }
            held.status = status;
            held.is_its_own = false;
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
            reach,
            is_its_own: false,
            status,
            until,
            trial,
        });
    }

    /// Lets a call through where that is due for all that hold it.
    #[cold]
    pub(super) fn is_trial_due(
        &self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> bool {
        let mut its = self
            .0
            .iter()
            .filter(|held| held.is_of(endpoint, wanted, s, now));
        its.all(|held| held.trial.next().is_some_and(|at| at <= now))
    }

    /// A trial goes to the endpoint.
    #[cold]
    pub(super) fn begin_trial(
        &mut self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) {
        let its = self.0.iter_mut();
        for held in its.filter(|held| held.is_of(endpoint, wanted, s, now)) {
            held.trial = Trial::Out(now.after(TRIAL_EVERY));
        }
    }

    /// The endpoint answered such a call without an error: what a trial was for is over, and what others are kept away for is their own.
    #[inline]
    pub(super) fn succeeded(&mut self, endpoint: EndpointId, wanted: Wanted<'_>, s: &Snapshot) {
        if !self.0.is_empty() {
            self.end_trials(endpoint, wanted, s);
        }
    }

    #[cold]
    fn end_trials(&mut self, endpoint: EndpointId, wanted: Wanted<'_>, s: &Snapshot) {
        let is_out = |held: &Cooldown| matches!(held.trial, Trial::Out(_));
        self.0
            .retain(|held| held.endpoint != endpoint || !is_out(held));
        for held in &mut self.0 {
            held.is_its_own |= held.endpoint == endpoint
                && held.scope.holds(wanted.model)
                && !held.reach.holds(wanted.asker, s);
        }
    }

    /// With which status the endpoint asked, and after which time a call may go to it.
    #[inline]
    pub(super) fn of(
        &self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<(u16, Duration)> {
        if self.0.is_empty() {
            return None;
        }
        self.longest(endpoint, wanted, s, now)
    }

    #[cold]
    fn longest(
        &self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<(u16, Duration)> {
        let its = self.0.iter();
        let longest = its
            .filter(|held| held.is_of(endpoint, wanted, s, now))
            .max_by_key(|held| held.wait(now))?;
        Some((longest.status, longest.wait(now)))
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
