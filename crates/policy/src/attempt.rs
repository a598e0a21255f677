//! Which endpoint to try, whether to try again, and which endpoints to leave alone.
//!
//! Invariant: nothing is tried again after the first response byte went downstream, nor a call that
//! may not be made twice once any of it was sent; tries beyond the first are at most the share of first
//! tries that the route allows, plus what was saved up; an endpoint is tried at most once in an exchange,
//! and once more where a kept-alive connection broke. An endpoint that asked for time is left alone for it.
//! Not here: connections and timeouts (`proxy`).

mod cooldown;
mod split;
mod wait;

use std::time::Duration;

use wire::head::Method;

use self::cooldown::Cooldowns;
pub(crate) use self::wait::may_ask_for_time;
pub use self::wait::{WAIT_MAX, asked};
use crate::balancing::{Balancer, Candidate, Choice, Prompt, Why};
use crate::clock::Mono;
pub use crate::failure::{Failure, Sent};
use crate::id::{BackendId, EndpointId, RouteId};
use crate::operation::Operation;
use crate::retry::{Ejection, MAX_ATTEMPTS, Retries, Retry};
use crate::snapshot::{AskUsage, Backend, Endpoint, Snapshot};

/// One retry, as retries in hand are counted.
const RETRY: u32 = 1_000_000;

/// Whether a call may be sent again although an upstream may have begun to run it: those that only
/// read, and those to models, whose second run is charged as a second run. Of any other nobody knows
/// what it does.
#[must_use]
pub fn may_repeat(operation: Operation, method: Method) -> bool {
    operation.reads_body() || matches!(method, Method::Get | Method::Head)
}

/// Health of one endpoint as one worker sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Health {
    in_a_row: u32,
    ejections: u32,
    until: Option<Mono>,
    on_trial: bool,
}

impl Health {
    /// Whether it may be tried. After its time an ejected endpoint is tried by one exchange at a
    /// time: success restores it, failure ejects it for longer, and a trial of which nothing is
    /// heard gives way to another one after the time of a first ejection.
    #[must_use]
    pub fn is_open(&self, now: Mono) -> bool {
        self.until.is_none_or(|until| now >= until)
    }

    fn succeeded(&mut self) {
        *self = Self::default();
    }

    fn chosen(&mut self, ejection: Option<&Ejection>, now: Mono) {
        if self.until.is_some_and(|until| now >= until) {
            let ejection = ejection.copied().unwrap_or_default();
            self.on_trial = true;
            self.until = Some(now.after(ejection.time));
        }
    }

    #[cold]
    fn failed(&mut self, ejection: Option<&Ejection>, now: Mono) {
        if self.until.is_some() && !self.on_trial {
            // A try from before the ejection, or one for want of anything better: known already.
            return;
        }
        let ejection = ejection.copied().unwrap_or_default();
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
pub struct RetryBudget(u32);

impl RetryBudget {
    fn full(retries: &Retries) -> Self {
        Self(retries.burst.saturating_mul(RETRY))
    }

    fn earn(&mut self, retries: &Retries) {
        let earned = self.0.saturating_add(retries.share_millionths);
        self.0 = earned.min(Self::full(retries).0);
    }

    fn spend(&mut self) -> bool {
        let left = self.0.checked_sub(RETRY);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// The tries of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Attempts {
    route: RouteId,
    /// The first [`Self::made`] are those that were tried.
    tried: [EndpointId; MAX_ATTEMPTS],
    made: usize,
    /// How many there may be.
    most: usize,
    /// To be tried once more, on a new connection.
    again: Option<EndpointId>,
    /// A bit for each of the route's backends, by place, that cannot be told the call. One beyond the 64th has none.
    passed_over: u64,
    /// Why the last endpoint was chosen, where its backend is balanced.
    choice: Option<Choice>,
    /// What was picked of one backend's endpoints.
    picked: Option<PickedEndpoints>,
}

/// The endpoints that a picker named of its backend, in its order: no other one of that backend is tried.
#[derive(Debug, Clone, Copy)]
struct PickedEndpoints {
    backend: BackendId,
    /// As many as there may be tries; the first are those that were named.
    endpoints: [EndpointId; MAX_ATTEMPTS],
    many: usize,
}

impl PickedEndpoints {
    fn all(&self) -> &[EndpointId] {
        self.endpoints.get(..self.many).unwrap_or_default()
    }
}

/// What the next endpoint is chosen for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The model whose quota the call uses.
    pub model: Option<&'a str>,
    /// Its prompt, where an endpoint may be chosen by that.
    pub prompt: Option<&'a Prompt>,
}

/// A worker's memory of endpoints and retries.
#[derive(Debug)]
pub struct Upstreams {
    health: Vec<Health>,
    retries: Vec<RetryBudget>,
    cooldowns: Cooldowns,
    /// By backend: until when its streams are not asked for their usage, as it refuses calls that ask.
    unasked: Vec<Option<Mono>>,
    rng: u64,
}

/// For so long a backend is not asked again what it has refused to be asked.
const UNASKED_FOR: Duration = Duration::from_secs(3600);

/// What is known of endpoints, while one is chosen.
#[derive(Clone, Copy)]
struct Known<'a> {
    health: &'a [Health],
    cooldowns: &'a Cooldowns,
}

impl Known<'_> {
    fn is_open(self, endpoint: EndpointId, now: Mono) -> bool {
        let health = self.health.get(endpoint.index());
        health.is_some_and(|health| health.is_open(now))
    }

    fn is_free(self, endpoint: EndpointId, model: Option<&str>, now: Mono) -> bool {
        self.cooldowns.of(endpoint, model, now).is_none()
    }
}

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
            unasked: vec![None; snapshot.backends.len()],
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
        for (backend, unasked) in new.backends.iter().zip(&mut next.unasked) {
            let known = old.backends.iter().position(|b| b.name == backend.name);
            *unasked = known.and_then(|at| memory.unasked.get(at).copied().flatten());
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
    pub fn asks_usage(&self, backend: BackendId, s: &Snapshot, now: Mono) -> bool {
        match s
            .backend(backend)
            .map_or(AskUsage::Auto, |backend| backend.ask_usage)
        {
            AskUsage::Always => true,
            AskUsage::Never => false,
            AskUsage::Auto => {
                let until = self.unasked.get(backend.index()).copied().flatten();
                until.is_none_or(|until| now >= until)
            }
        }
    }

    /// A backend took a stream that does not ask for its usage, and had refused it as it asked.
    #[cold]
    pub fn refuses_to_be_asked(&mut self, backend: BackendId, now: Mono) {
        if let Some(until) = self.unasked.get_mut(backend.index()) {
            *until = Some(now.after(UNASKED_FOR));
        }
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
        let model = wanted.model;
        let (chosen, choice) = match attempts.again.take() {
            Some(again) => (again, None),
            None => self
                .pick(attempts, wanted, s, now, |of, e| {
                    of.is_open(e, now) && of.is_free(e, model, now)
                })
                .or_else(|| self.pick(attempts, wanted, s, now, |of, e| of.is_free(e, model, now)))
                .or_else(|| self.pick_trial(attempts, wanted, s, now))?,
        };
        attempts.choice = choice;
        *attempts.tried.get_mut(attempts.made)? = chosen;
        attempts.made += 1;
        if let Some(health) = self.health.get_mut(chosen.index())
            && health.until.is_some()
        {
            health.chosen(ejection(s, chosen), now);
        }
        Some(chosen)
    }

    /// The backend of the next try: the first in order that has an endpoint not tried, not ejected and not asking for time, or
    /// one not asking for time. None where the next try is one more at the same endpoint.
    #[cold]
    pub(crate) fn next_backend(
        &self,
        attempts: &Attempts,
        model: Option<&str>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<BackendId> {
        if attempts.again.is_some() || attempts.made >= attempts.most {
            return None;
        }
        let known = Known {
            health: &self.health,
            cooldowns: &self.cooldowns,
        };
        let free = |e: &EndpointId| known.is_free(*e, model, now);
        let open = |e: &EndpointId| free(e) && known.is_open(*e, now);
        let next = candidates(attempts, s).find(open);
        let next = next.or_else(|| candidates(attempts, s).find(free))?;
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
        model: Option<&str>,
        s: &Snapshot,
        now: Mono,
    ) -> Retry {
        if attempts.made < attempts.most && self.peek(attempts, model, s, now) {
            self.spend(attempts.route)
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
    pub fn may_retry_there(&mut self, attempts: &mut Attempts, now: Mono) -> Retry {
        let last = attempts.tried().last().copied();
        let Some(last) = last.filter(|_| attempts.made < attempts.most) else {
            return Retry::No;
        };
        let is_open = self
            .health
            .get(last.index())
            .is_some_and(|h| h.is_open(now));
        let retry = if is_open {
            self.spend(attempts.route)
        } else {
            Retry::No
        };
        attempts.again = (retry == Retry::Granted).then_some(last);
        retry
    }

    /// Leaves an endpoint alone for as long as its answer asked for.
    pub fn cooldown(
        &mut self,
        endpoint: EndpointId,
        model: Option<&str>,
        status: u16,
        wait: Duration,
        now: Mono,
    ) {
        self.cooldowns
            .add(endpoint, model, status, wait.min(WAIT_MAX), now);
    }

    /// When there is no endpoint to try because each asked for time: with which status the one that
    /// is free first did, and how long that is from now.
    #[must_use]
    pub fn waits(
        &self,
        attempts: &Attempts,
        model: Option<&str>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<(u16, Duration)> {
        let held =
            candidates(attempts, s).filter_map(|endpoint| self.cooldowns.of(endpoint, model, now));
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
                    self.cooldowns.succeeded(endpoint);
                }
            }
            Err(failure) if !failure.is_sick() => {}
            Ok(_) | Err(_) => health.failed(ejection(s, endpoint), now),
        }
    }

    /// Endpoints that this worker leaves alone now.
    #[must_use]
    pub fn ejected(&self, now: Mono) -> Vec<EndpointId> {
        let shut = |(i, h): (usize, &Health)| {
            (!h.is_open(now))
                .then(|| u32::try_from(i).ok().map(EndpointId))
                .flatten()
        };
        self.health.iter().enumerate().filter_map(shut).collect()
    }

    fn peek(&self, attempts: &Attempts, model: Option<&str>, s: &Snapshot, now: Mono) -> bool {
        let known = Known {
            health: &self.health,
            cooldowns: &self.cooldowns,
        };
        candidates(attempts, s).any(|e| known.is_open(e, now) && known.is_free(e, model, now))
    }

    /// One that asked for time, where it is to be tried all the same.
    #[cold]
    fn pick_trial(
        &mut self,
        attempts: &Attempts,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Option<(EndpointId, Option<Choice>)> {
        let model = wanted.model;
        let chosen = self.pick(attempts, wanted, s, now, |of, e| {
            of.cooldowns.is_trial_due(e, model, now)
        })?;
        self.cooldowns.begin_trial(chosen.0, model, now);
        Some(chosen)
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
            rng,
            ..
        } = self;
        let known = Known { health, cooldowns };
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

impl Attempts {
    /// Those of an exchange on `route`: none yet.
    #[must_use]
    pub fn on(route: RouteId, s: &Snapshot) -> Self {
        Self {
            route,
            tried: [EndpointId(0); MAX_ATTEMPTS],
            made: 0,
            most: s.route(route).map_or(1, |route| route.retries.attempts),
            again: None,
            passed_over: 0,
            choice: None,
            picked: None,
        }
    }

    /// Of this backend these endpoints are tried alone, in this order.
    pub(crate) fn take_picked(
        &mut self,
        backend: BackendId,
        endpoints: impl Iterator<Item = EndpointId>,
    ) {
        let mut picked = PickedEndpoints {
            backend,
            endpoints: [EndpointId(0); MAX_ATTEMPTS],
            many: 0,
        };
        for (place, endpoint) in picked.endpoints.iter_mut().zip(endpoints) {
            *place = endpoint;
            picked.many += 1;
        }
        self.picked = Some(picked);
    }

    /// Whether a picker leaves this endpoint out.
    fn is_left_out(&self, backend: BackendId, endpoint: EndpointId) -> bool {
        let picked = self.picked.as_ref();
        picked.is_some_and(|of| of.backend == backend && !of.all().contains(&endpoint))
    }

    /// Why the last endpoint was chosen, where its backend is balanced; told once.
    pub(crate) fn take_choice(&mut self) -> Option<Choice> {
        self.choice.take()
    }

    fn is_passed_over(&self, place: usize) -> bool {
        place < 64 && self.passed_over >> place & 1 == 1
    }

    fn tried(&self) -> &[EndpointId] {
        self.tried.get(..self.made).unwrap_or_default()
    }

    /// Whether there is nowhere to go: no backend of the route has an address, or the one that was drawn has none.
    #[cold]
    pub(crate) fn are_closed(&self, s: &Snapshot) -> bool {
        let route = s.route(self.route);
        let is_split = route.is_some_and(|route| !route.weights.is_empty());
        let backends = route.into_iter().flat_map(|route| &route.backends);
        let backends = backends.enumerate();
        let mut backends = backends
            .filter(|(place, _)| !(is_split && self.is_passed_over(*place)))
            .filter_map(|(_, b)| s.backend(*b))
            .peekable();
        backends.peek().is_some() && backends.all(|backend| backend.endpoints.is_empty())
    }

    /// Tries made so far.
    #[must_use]
    pub fn made(&self) -> u32 {
        u32::try_from(self.made).unwrap_or(u32::MAX)
    }

    /// Whether the next try is at the same endpoint once more: kept-alive connections are not for it.
    #[must_use]
    pub fn needs_new_connection(&self) -> bool {
        self.again.is_some()
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

fn ejection(s: &Snapshot, endpoint: EndpointId) -> Option<&Ejection> {
    s.backend_of(endpoint).map(|backend| &backend.ejection)
}

/// Endpoints of the route that were not tried.
fn candidates<'a>(
    attempts: &'a Attempts,
    s: &'a Snapshot,
) -> impl Iterator<Item = EndpointId> + 'a {
    let route = s.route(attempts.route);
    let backends = route.into_iter().flat_map(|route| &route.backends);
    let backends = backends.enumerate();
    let backends = backends.filter(|(place, _)| !attempts.is_passed_over(*place));
    backends
        .filter_map(|(_, b)| Some((*b, s.backend(*b)?)))
        .flat_map(|(id, backend)| backend.endpoints.iter().map(move |e| (id, *e)))
        .filter(|(id, e)| !attempts.tried().contains(e) && !attempts.is_left_out(*id, *e))
        .map(|(_, e)| e)
}

/// xorshift64*: cheap, seeded, good enough to spread load.
fn draw(state: &mut u64) -> u64 {
    let mut x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
}

#[cfg(test)]
mod tests;
