//! Which endpoint is next: by order of backends, by weight, or as a balancer or a picker says.
//!
//! Not here: whether there is another try at all ([`super::Upstreams::may_retry`]), balancers themselves ([`crate::balancing`]).

use super::cooldown::Cooldowns;
use super::health::Health;
use super::rests::Rests;
use super::tries::{Attempts, candidates};
use super::{Upstreams, Wanted};
use crate::balancing::{Balancer, Candidate, Choice, Prompt, Why};
use crate::clock::Mono;
use crate::id::EndpointId;
use crate::snapshot::{Backend, Snapshot};

/// What is known of endpoints, while one is chosen.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) health: &'a [Health],
    pub(super) cooldowns: &'a Cooldowns,
    pub(super) rests: &'a Rests,
    pub(super) s: &'a Snapshot,
}

/// Which endpoints may be tried. A call falls back from each rule to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Those that are neither ejected nor asking for time, nor rest.
    Open,
    /// Those that are not asking for time.
    Free,
    /// Those that asked for long, and of which a trial is due.
    TrialDue,
}

impl Rule {
    pub(super) const IN_ORDER: [Self; 3] = [Self::Open, Self::Free, Self::TrialDue];
}

impl Known<'_> {
    #[inline]
    pub(super) fn may_try(
        self,
        rule: Rule,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        now: Mono,
    ) -> bool {
        match rule {
            Rule::Open => {
                self.is_open(endpoint, wanted, now)
                    && self.is_free(endpoint, wanted, now)
                    && !self.rests.has(endpoint, wanted, self.s, now)
            }
            Rule::Free => self.is_free(endpoint, wanted, now),
            Rule::TrialDue => self.cooldowns.is_trial_due(endpoint, wanted, self.s, now),
        }
    }

    #[inline]
    pub(super) fn is_open(self, endpoint: EndpointId, wanted: Wanted<'_>, now: Mono) -> bool {
        let health = self.health.get(endpoint.index());
        health.is_some_and(|health| health.is_open(wanted.asker, self.s, now))
    }

    #[inline]
    pub(super) fn is_free(self, endpoint: EndpointId, wanted: Wanted<'_>, now: Mono) -> bool {
        self.cooldowns.of(endpoint, wanted, self.s, now).is_none()
    }
}

impl Upstreams {
    /// The one endpoint of a route that has no other, for the first try of a call.
    #[inline]
    pub(super) fn only(
        &self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<EndpointId> {
        if !attempts.is_new() {
            return None;
        }
        let [backend] = s.route(attempts.route)?.backends.as_slice() else {
            return None;
        };
        let [only] = s.backend(*backend)?.endpoints.as_slice() else {
            return None;
        };
        let known = self.known(s);
        let may_try = known.may_try(Rule::Open, *only, wanted, now);
        may_try.then_some(*only)
    }

    /// Of all endpoints that a call may go to.
    #[inline(never)]
    pub(super) fn choose(
        &mut self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<(EndpointId, Option<Choice>)> {
        Rule::IN_ORDER.into_iter().find_map(|rule| {
            let chosen = self.pick(attempts, wanted, s, now, |of, e| {
                of.may_try(rule, e, wanted, now)
            })?;
            if rule == Rule::TrialDue {
                self.cooldowns.begin_trial(chosen.0, wanted, s, now);
            }
            Some(chosen)
        })
    }

    #[inline]
    pub(super) fn known<'a>(&'a self, s: &'a Snapshot) -> Known<'a> {
        Known {
            health: &self.health,
            cooldowns: &self.cooldowns,
            rests: &self.rests,
            s,
        }
    }

    pub(super) fn peek(
        &self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> bool {
        let known = self.known(s);
        candidates(attempts, s).any(|e| known.may_try(Rule::Open, e, wanted, now))
    }

    fn pick(
        &mut self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
        may_try: impl Fn(Known<'_>, EndpointId) -> bool,
    ) -> Option<(EndpointId, Option<Choice>)> {
        let Self {
            health,
            cooldowns,
            rests,
            rng,
            ..
        } = self;
        let known = Known {
            health,
            cooldowns,
            rests,
            s,
        };
        let usable = |e: &&EndpointId| !attempts.tried().contains(*e) && may_try(known, **e);
        let backends = s.route(attempts.route)?.backends.iter().enumerate();
        for (place, id, backend) in backends.filter_map(|(at, b)| Some((at, *b, s.backend(*b)?))) {
            if attempts.is_passed_over(place) {
                continue;
            }
            if let Some(picked) = attempts.picked.as_ref().filter(|of| of.backend == id) {
                match picked.all().iter().find(&usable) {
                    Some(first) => return Some((*first, by_picker(backend, *first))),
                    None => continue,
                }
            }
            let weight = |e: &EndpointId| s.endpoint(*e).map_or(0, |e| u64::from(e.weight));
            if let [only] = backend.endpoints.as_slice() {
                if usable(&only) {
                    return Some((*only, None));
                }
                continue;
            }
            if let Some(balancer) = &backend.balancer {
                let may = |e: EndpointId| usable(&&e);
                let chosen = balanced(balancer, backend, may, wanted.prompt, draw(rng), s, now);
                if chosen.is_some() {
                    return chosen;
                }
                continue;
            }
            let total: u64 = backend.endpoints.iter().filter(&usable).map(weight).sum();
            if total == 0 {
                continue;
            }
            let mut left = draw(rng) % total;
            for endpoint in backend.endpoints.iter().filter(&usable) {
                let share = weight(endpoint);
                if left < share {
                    return Some((*endpoint, None));
                }
                left -= share;
            }
        }
        None
    }
}

/// Why an endpoint is tried that a picker named.
#[cold]
fn by_picker(backend: &Backend, endpoint: EndpointId) -> Option<Choice> {
    let place = backend.endpoints.iter().position(|id| *id == endpoint)?;
    Some(Choice {
        place,
        why: Why::Picker,
        seen: 0,
        prompt: 0,
    })
}

/// The endpoint that a balanced backend has take a call.
#[cold]
fn balanced(
    balancer: &Balancer,
    backend: &Backend,
    may: impl Fn(EndpointId) -> bool,
    prompt: Option<&Prompt>,
    chance: u64,
    s: &Snapshot,
    now: Mono,
) -> Option<(EndpointId, Option<Choice>)> {
    let endpoints = backend.endpoints.iter().enumerate();
    let mut candidates = endpoints.filter(|(_, id)| may(**id)).map(|(place, id)| {
        let weight = s.endpoint(*id).map_or(1, |endpoint| endpoint.weight);
        Candidate { place, weight }
    });
    let choice = balancer.choose(&mut candidates, prompt, chance, now)?;
    let endpoint = backend.endpoints.get(choice.place)?;
    Some((*endpoint, Some(choice)))
}

/// xorshift64*: cheap, seeded, good enough to spread load.
pub(super) fn draw(state: &mut u64) -> u64 {
    let mut x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
}
