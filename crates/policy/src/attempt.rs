//! Which endpoint to try, whether to try again, and which endpoints to leave alone.
//!
//! Invariant: nothing is tried again after the first response byte went downstream, nor a call that
//! may not be made twice once any of it was sent; tries beyond the first are at most the share of first
//! tries that the route allows, plus what was saved up; an endpoint is tried at most once in an exchange,
//! and once more where a kept-alive connection broke. An endpoint that asked for time is left alone for it.
//! Not here: connections and timeouts (`proxy`).

mod choose;
mod cooldown;
mod health;
mod reach;
mod rests;
mod split;
mod tries;
mod wait;

use std::collections::HashMap;
use std::time::Duration;

use wire::head::Method;

use self::choose::Rule;
use self::cooldown::{Asked, Cooldowns};
pub use self::health::{Health, RetryBudget};
pub use self::reach::Asker;
use self::reach::Reach;
use self::rests::Rests;
pub use self::tries::Attempts;
use self::tries::candidates;
pub(crate) use self::wait::{Quota, may_ask_for_time, quota};
pub use self::wait::{WAIT_MAX, asked};
use crate::balancing::Prompt;
use crate::clock::Mono;
pub use crate::failure::{Failure, Sent};
use crate::id::{BackendId, EndpointId, RouteId};
use crate::operation::Operation;
use crate::retry::{Ejection, Retry};
use crate::snapshot::{AskUsage, Endpoint, Snapshot};

/// Whether a call may be sent again although an upstream may have begun to run it: those that only
/// read, and those to models, whose second run is charged as a second run. Of any other nobody knows
/// what it does.
#[must_use]
pub fn may_repeat(operation: Operation, method: Method) -> bool {
    operation.reads_body() || matches!(method, Method::Get | Method::Head)
}

/// What the next endpoint is chosen for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The model whose quota the call uses.
    pub model: Option<&'a str>,
    /// As what it goes; what is not served as one may be as another.
    pub operation: Option<Operation>,
    /// Who makes it.
    pub asker: Asker<'a>,
    /// Its prompt, where an endpoint may be chosen by that.
    pub prompt: Option<&'a Prompt>,
}

/// A worker's memory of endpoints and retries.
#[derive(Debug)]
pub struct Upstreams {
    health: Vec<Health>,
    retries: Vec<RetryBudget>,
    cooldowns: Cooldowns,
    rests: Rests,
    /// By backend and model: whose streams are not asked for their usage, as calls that ask are refused.
    unasked: HashMap<(BackendId, Option<Box<str>>), Unasked>,
    rng: u64,
}

/// Refusals to be asked.
#[derive(Debug, Clone, Copy)]
struct Unasked {
    /// One after the other, with no stream between that was asked and answered.
    refusals: u32,
    until: Mono,
}

/// So many calls in a row were refused for that before the next ones are not asked: one that is refused for what it is itself says nothing
/// of the others.
const REFUSALS_TO_LEARN: u32 = 3;
/// Of so many backends and models it is kept; of more nobody learns it.
const UNASKED_MAX: usize = 1024;

/// For so long a backend is not asked again what it has refused to be asked.
const UNASKED_FOR: Duration = Duration::from_secs(3600);

impl Upstreams {
    /// Nothing known yet; `seed` decides weighted choices.
    #[must_use]
    pub fn new(snapshot: &Snapshot, seed: u64) -> Self {
        Self {
            health: vec![Health::default(); snapshot.endpoints.len()],
            retries: snapshot
                .routes
                .iter()
                .map(|route| RetryBudget::full(&route.retries))
                .collect(),
            cooldowns: Cooldowns::default(),
            rests: Rests::default(),
            unasked: HashMap::new(),
            rng: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        }
    }

    /// What `old` knew, for the endpoints and routes that `new` still has.
    #[must_use]
    pub fn carried(new: &Snapshot, old: &Snapshot, memory: &Self) -> Self {
        let mut next = Self::new(new, 0);
        next.rng = memory.rng;
        let is_same = |one: &Endpoint, other: &Endpoint| {
            one.origin == other.origin && one.base_path == other.base_path
        };
        next.cooldowns = memory.cooldowns.renumbered(|id| {
            let held = old.endpoint(id)?;
            let at = new.endpoints.iter().position(|e| is_same(e, held))?;
            u32::try_from(at).ok().map(EndpointId)
        });
        for (endpoint, health) in new.endpoints.iter().zip(&mut next.health) {
            let known = old.endpoints.iter().position(|e| is_same(e, endpoint));
            if let Some(known) = known.and_then(|i| memory.health.get(i)) {
                *health = *known;
            }
        }
        for ((id, model), unasked) in &memory.unasked {
            let known = old.backend(*id);
            let same = known.and_then(|of| new.backends.iter().position(|b| b.name == of.name));
            if let Some(same) = same.and_then(|at| u32::try_from(at).ok()) {
                let key = (BackendId(same), model.clone());
                next.unasked.insert(key, *unasked);
            }
        }
        for (route, budget) in new.routes.iter().zip(&mut next.retries) {
            let known = old.routes.iter().position(|r| r.name == route.name);
            if let Some(known) = known.and_then(|i| memory.retries.get(i)) {
                budget.0 = budget.0.min(known.0);
            }
        }
        next
    }

    /// Whether streams of a backend are asked for their usage where their clients do not ask.
    #[inline]
    #[must_use]
    pub fn asks_usage(
        &self,
        (backend, model): (BackendId, Option<&str>),
        s: &Snapshot,
        now: Mono,
    ) -> bool {
        match s
            .backend(backend)
            .map_or(AskUsage::Auto, |backend| backend.ask_usage)
        {
            AskUsage::Always => true,
            AskUsage::Never => false,
            AskUsage::Auto => self.unasked.is_empty() || self.is_asked(backend, model, now),
        }
    }

    #[cold]
    fn is_asked(&self, backend: BackendId, model: Option<&str>, now: Mono) -> bool {
        let unasked = self.unasked.get(&(backend, model.map(Box::from)));
        unasked.is_none_or(|of| of.refusals < REFUSALS_TO_LEARN || now >= of.until)
    }

    /// A stream that asks for its usage was answered: whoever was refused before was so for something of its own.
    #[inline]
    pub fn took_to_be_asked(&mut self, backend: BackendId, model: Option<&str>) {
        if !self.unasked.is_empty() {
            self.unasked.remove(&(backend, model.map(Box::from)));
        }
    }

    /// A backend took a stream that does not ask for its usage, and had refused it as it asked.
    #[cold]
    pub fn refuses_to_be_asked(&mut self, backend: BackendId, model: Option<&str>, now: Mono) {
        if self.unasked.len() >= UNASKED_MAX {
            self.unasked.retain(|_, of| now < of.until);
        }
        if self.unasked.len() >= UNASKED_MAX {
            return;
        }
        let until = now.after(UNASKED_FOR);
        let key = (backend, model.map(Box::from));
        let of = self
            .unasked
            .entry(key)
            .or_insert(Unasked { refusals: 0, until });
        of.refusals = of.refusals.saturating_add(1);
        of.until = until;
    }

    /// An endpoint does not serve such a call now, and did not say for how long: for a moment others come first for its operation (where
    /// that is said), model and caller.
    #[cold]
    pub fn rest(&mut self, endpoint: EndpointId, wanted: Wanted<'_>, s: &Snapshot, now: Mono) {
        self.rests.add(endpoint, wanted, s, now);
    }

    /// Counts an exchange whose tries begin.
    pub fn begun(&mut self, attempts: &Attempts, s: &Snapshot) {
        let retries = s.route(attempts.route).map(|route| &route.retries);
        let budget = self.retries.get_mut(attempts.route.index());
        if let (Some(budget), Some(retries)) = (budget, retries) {
            budget.earn(retries);
        }
    }

    /// The next endpoint to try for a call: the first backend in order that has an endpoint
    /// not tried, not ejected and not asking for time, chosen by weight or as its [`Balancer`] says; when all others are ejected,
    /// one of those rather than none. One that asked for time is left alone, be it the only one, but for a
    /// trial now and then of one that asked for long.
    pub fn next(
        &mut self,
        attempts: &mut Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<EndpointId> {
        if attempts.made >= attempts.most {
            return None;
        }
        let (chosen, choice) = match attempts.again.take() {
            Some(again) => (again, None),
            None => match self.only(attempts, wanted, s, now) {
                Some(only) => (only, None),
                None => self.choose(attempts, wanted, s, now)?,
            },
        };
        attempts.choice = choice;
        *attempts.tried.get_mut(attempts.made)? = chosen;
        attempts.made += 1;
        if let Some(health) = self.health.get_mut(chosen.index())
            && health.until.is_some()
        {
            health.chosen(ejection(s, chosen), wanted.asker, s, now);
        }
        Some(chosen)
    }

    /// The backend of the next try: the first in order that has an endpoint which [`next`](Self::next) may choose, by the same rules.
    /// None where the next try is one more at the same endpoint.
    #[cold]
    pub(crate) fn next_backend(
        &self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<BackendId> {
        if attempts.again.is_some() || attempts.made >= attempts.most {
            return None;
        }
        let known = self.known(s);
        let next = Rule::IN_ORDER.into_iter().find_map(|rule| {
            candidates(attempts, s).find(|e| known.may_try(rule, *e, wanted, now))
        })?;
        s.endpoint(next).map(|endpoint| endpoint.backend)
    }

    /// Leaves out all endpoints of a backend of which nobody picks one. Gives whether another backend is left.
    #[cold]
    pub(crate) fn leave_out(
        &self,
        attempts: &mut Attempts,
        backend: BackendId,
        s: &Snapshot,
    ) -> bool {
        let route = s.route(attempts.route);
        let place = route.and_then(|of| of.backends.iter().position(|id| *id == backend));
        if let Some(place @ ..64) = place {
            attempts.passed_over |= 1 << place;
        } else {
            attempts.take_picked(backend, std::iter::empty());
        }
        candidates(attempts, s).next().is_some()
    }

    /// Whether a failed try may be followed by another one: there is an endpoint left and the
    /// route's retry budget allows it. Spends from the budget when it grants one.
    pub fn may_retry(
        &mut self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Retry {
        match self.may_go_on(attempts, wanted, s, now) {
            Retry::Granted => self.spend(attempts.route),
            refused => refused,
        }
    }

    /// Whether a try that was not served there may be followed by another one. It spends nothing: it is no sign of load, and what any caller
    /// can have with a made-up name takes no failover from others.
    pub fn may_go_on(
        &self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Retry {
        if attempts.made < attempts.most && self.peek(attempts, wanted, s, now) {
            Retry::Granted
        } else {
            Retry::No
        }
    }

    /// The last try was none: its backend cannot be told the call, and was sent nothing. Neither it nor another endpoint of that backend is
    /// tried, and what follows is no retry. Gives whether another backend is left.
    #[cold]
    pub fn pass_over(&mut self, attempts: &mut Attempts, s: &Snapshot) -> bool {
        let backend = attempts.tried().last().and_then(|last| s.endpoint(*last));
        let place = backend.and_then(|of| {
            let route = s.route(attempts.route)?;
            route.backends.iter().position(|id| *id == of.backend)
        });
        if let Some(place @ ..64) = place {
            attempts.made = attempts.made.saturating_sub(1);
            attempts.passed_over |= 1 << place;
        }
        attempts.made < attempts.most && candidates(attempts, s).next().is_some()
    }

    /// Whether the try that failed because its kept-alive connection broke may be followed by one at
    /// the same endpoint, on a new connection. Spends from the budget when it grants one.
    pub fn may_retry_there(
        &mut self,
        attempts: &mut Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Retry {
        let last = attempts.tried().last().copied();
        let Some(last) = last.filter(|_| attempts.made < attempts.most) else {
            return Retry::No;
        };
        let is_open = self
            .health
            .get(last.index())
            .is_some_and(|h| h.is_open(wanted.asker, s, now));
        let retry = if is_open {
            self.spend(attempts.route)
        } else {
            Retry::No
        };
        attempts.again = (retry == Retry::Granted).then_some(last);
        retry
    }

    /// Leaves an endpoint alone for as long as its answer asked for; where `is_alone` that speaks of its caller until another one gets the
    /// same.
    pub fn cooldown(
        &mut self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        (status, wait, is_alone): (u16, Duration, bool),
        s: &Snapshot,
        now: Mono,
    ) {
        let reach = if is_alone {
            wanted.asker.alone(s)
        } else {
            Reach::All
        };
        let wait = wait.min(WAIT_MAX);
        let asked = Asked {
            status,
            wait,
            reach,
        };
        self.cooldowns.add(endpoint, wanted.model, asked, now);
    }

    /// When there is no endpoint to try because each asked for time: with which status the one that
    /// is free first did, and how long that is from now.
    #[must_use]
    pub fn waits(
        &self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<(u16, Duration)> {
        let held = candidates(attempts, s)
            .filter_map(|endpoint| self.cooldowns.of(endpoint, wanted, s, now));
        held.min_by_key(|(_, wait)| *wait)
    }

    fn spend(&mut self, route: RouteId) -> Retry {
        let budget = self.retries.get_mut(route.index());
        match budget.map(RetryBudget::spend) {
            Some(true) => Retry::Granted,
            Some(false) => Retry::Refused,
            None => Retry::No,
        }
    }

    /// Records how a try went. One of which nothing was asked of the endpoint says nothing of it, neither good
    /// nor bad.
    pub fn observe(
        &mut self,
        endpoint: EndpointId,
        result: Result<u16, Failure>,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) {
        let Some(health) = self.health.get_mut(endpoint.index()) else {
            return;
        };
        match result {
            Ok(status) if !Failure::Status(status).is_sick() => {
                health.succeeded();
                if status < 400 {
                    self.cooldowns.succeeded(endpoint, wanted, s);
                    self.rests.succeeded(endpoint, wanted, s, now);
                }
            }
            Err(failure) if !failure.is_sick() => {}
            // The page of one path, or a redirect from it, is no word about inference.
            Err(Failure::BadResponse) if !wanted.operation.is_some_and(Operation::reads_body) => {}
            // What was answered may be about the call.
            Ok(_) | Err(Failure::BadResponse) => {
                health.failed(ejection(s, endpoint), wanted.asker.alone(s), now);
            }
            Err(_) => health.failed(ejection(s, endpoint), Reach::All, now),
        }
    }

    /// Endpoints that this worker leaves alone now, if only for one caller.
    #[must_use]
    pub fn ejected(&self, now: Mono) -> Vec<EndpointId> {
        let shut = |(i, h): (usize, &Health)| {
            (!h.is_open_to_all(now))
                .then(|| u32::try_from(i).ok().map(EndpointId))
                .flatten()
        };
        self.health.iter().enumerate().filter_map(shut).collect()
    }
}

fn ejection(s: &Snapshot, endpoint: EndpointId) -> Option<&Ejection> {
    s.backend_of(endpoint).map(|backend| &backend.ejection)
}

#[cfg(test)]
mod tests;
