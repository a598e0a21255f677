//! The tries of one exchange: which endpoints were tried, which are left out.
//!
//! Not here: which one is next (`choose`), what is remembered from one exchange to the next ([`super::Upstreams`]).

use crate::balancing::Choice;
use crate::id::{BackendId, EndpointId, RouteId};
use crate::refusal::Refusal;
use crate::retry::MAX_ATTEMPTS;
use crate::snapshot::Snapshot;

/// The tries of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Attempts {
    pub(super) route: RouteId,
    /// The first [`Self::made`] are those that were tried.
    pub(super) tried: [EndpointId; MAX_ATTEMPTS],
    pub(super) made: usize,
    /// How many there may be.
    pub(super) most: usize,
    /// To be tried once more, on a new connection.
    pub(super) again: Option<EndpointId>,
    /// A bit for each of the route's backends, by place, that cannot be told the call. One beyond the 64th has none.
    pub(super) passed_over: u64,
    /// Why the last endpoint was chosen, where its backend is balanced.
    pub(super) choice: Option<Choice>,
    /// What was picked of one backend's endpoints.
    pub(super) picked: Option<PickedEndpoints>,
}

/// The endpoints that a picker named of its backend, in its order: no other one of that backend is tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct PickedEndpoints {
    pub(super) backend: BackendId,
    /// As many as there may be tries; the first are those that were named.
    endpoints: [EndpointId; MAX_ATTEMPTS],
    many: usize,
}

impl PickedEndpoints {
    pub(super) fn all(&self) -> &[EndpointId] {
        self.endpoints.get(..self.many).unwrap_or_default()
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

    /// Whether nothing was tried, passed over or picked so far.
    #[inline]
    pub(super) const fn is_new(&self) -> bool {
        self.made == 0 && self.passed_over == 0 && self.picked.is_none()
    }

    /// Whether a picker leaves this endpoint out.
    pub(super) fn is_left_out(&self, backend: BackendId, endpoint: EndpointId) -> bool {
        let picked = self.picked.as_ref();
        picked.is_some_and(|of| of.backend == backend && !of.all().contains(&endpoint))
    }

    /// Why the last endpoint was chosen, where its backend is balanced; told once.
    pub(crate) fn take_choice(&mut self) -> Option<Choice> {
        self.choice.take()
    }

    pub(super) fn is_passed_over(&self, place: usize) -> bool {
        place < 64 && self.passed_over >> place & 1 == 1
    }

    pub(super) fn tried(&self) -> &[EndpointId] {
        self.tried.get(..self.made).unwrap_or_default()
    }

    /// Why there is nowhere to go, where no backend of the route has an address, or the one that was drawn has none.
    #[cold]
    pub(crate) fn closed(&self, s: &Snapshot) -> Option<Refusal> {
        let route = s.route(self.route);
        let is_split = route.is_some_and(|route| !route.weights.is_empty());
        let backends = route.into_iter().flat_map(|route| &route.backends);
        let backends = backends.enumerate();
        let backends = backends
            .filter(|(place, _)| !(is_split && self.is_passed_over(*place)))
            .filter_map(|(_, b)| s.backend(*b));
        let (mut are_any, mut is_unready) = (false, false);
        for backend in backends {
            if !backend.endpoints.is_empty() {
                return None;
            }
            are_any = true;
            is_unready |= backend.is_unready;
        }
        match (are_any, is_unready) {
            (true, true) => Some(Refusal::NoneReady),
            (true, false) => Some(Refusal::RouteClosed),
            (false, _) => None,
        }
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

/// Endpoints of the route that were not tried.
pub(super) fn candidates<'a>(
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
