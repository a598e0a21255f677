//! `retries` of a route, `ejection` and `pool` of a backend.
//!
//! Not here: what follows from them while calls come (`policy::attempt`, `proxy`).

use std::collections::HashMap;
use std::time::Duration;

use policy::id::BackendId;
use policy::retry::{Ejection, Retries, Statuses};
use policy::snapshot::{Origin, PoolBounds, Snapshot};

use super::backend::number;
use super::{set, size};
use crate::decode::{At, MapOf};
use crate::scalar::{Name, Span};
use crate::schema::{Backend, Route};

/// Nothing here is meant to last for longer.
const LONGEST: Duration = Duration::from_secs(60 * 60);

impl super::Lowering<'_> {
    pub(super) fn retries(&mut self, route: &Route) -> Retries {
        let mut retries = Retries::default();
        let Some(written) = route.retries.get() else {
            return retries;
        };
        set(&written.attempts, &mut retries.attempts, |n| size(n.0));
        if let Some(list) = written.statuses.get() {
            retries.statuses = Statuses::NONE;
            for at in &list.0 {
                if retries.statuses.contains(at.value.0) {
                    let says = format!("{} is listed twice", at.shown);
                    self.findings.fault(&at.place, says, "keep one of them");
                }
                retries.statuses = retries.statuses.with(at.value.0);
            }
        }
        set(&written.share, &mut retries.share_millionths, |n| n.0);
        set(&written.burst, &mut retries.burst, |n| n.0);
        retries
    }

    pub(super) fn ejection(&mut self, backend: &Backend) -> Ejection {
        let mut ejection = Ejection::default();
        let Some(written) = backend.ejection.get() else {
            return ejection;
        };
        set(&written.failures, &mut ejection.failures, |n| n.0);
        for (field, time) in [
            (&written.time, &mut ejection.time),
            (&written.max_time, &mut ejection.max_time),
        ] {
            if let Some(at) = field.get() {
                *time = at.value.0;
                self.lasts(at);
            }
        }
        if ejection.max_time < ejection.time {
            let at = written.max_time.get().or(written.time.get());
            let place = at.map(|at| at.place.clone()).unwrap_or_default();
            let says = "an ejection begins with `time`, which is longer than `max_time`";
            let hint = "write a shorter `time`, or a longer `max_time`, which is 5m unless said";
            self.findings.fault(&place, says, hint);
        }
        ejection
    }

    pub(super) fn pool(&mut self, backend: &Backend) -> PoolBounds {
        let mut pool = PoolBounds::default();
        let Some(written) = backend.pool.get() else {
            return pool;
        };
        set(&written.connections, &mut pool.connections, |n| size(n.0));
        set(&written.idle, &mut pool.idle, |n| size(n.0));
        set(&written.streams, &mut pool.streams, |n| size(n.0));
        if let Some(at) = written.idle_time.get() {
            pool.idle_time = at.value.0;
            self.lasts(at);
        }
        pool
    }

    /// Backends with one address share its connections, and so must say the same of them.
    pub(super) fn shared_pools(&mut self, written: &MapOf<Name, Backend>, snapshot: &Snapshot) {
        let mut users: HashMap<&Origin, BackendId> = HashMap::new();
        for (index, backend) in snapshot.backends.iter().enumerate() {
            let endpoints = backend.endpoints.iter();
            let other = endpoints
                .filter_map(|id| snapshot.endpoint(*id))
                .find_map(|endpoint| {
                    let user = users.entry(&endpoint.origin);
                    let user = user.or_insert(BackendId(number(index)));
                    let other = snapshot.backend(*user)?;
                    (other.pool != backend.pool).then_some((other, endpoint))
                });
            let Some((other, endpoint)) = other else {
                continue;
            };
            let mut names = written.0.iter().map(|(name, _)| name);
            let name = names.find(|name| name.value.0 == *backend.name);
            let place = name.map(|name| name.place.clone()).unwrap_or_default();
            let says = format!(
                "shares its connections to {} with {}, and says something else of them",
                endpoint.authority, other.name
            );
            self.findings
                .fault(&place, says, "write the same `pool` for both");
        }
    }

    fn lasts(&mut self, at: &At<Span>) {
        if at.value.0 > LONGEST {
            let says = format!("{} is too long", at.shown);
            self.findings.fault(&at.place, says, "write 1h or less");
        }
    }
}
