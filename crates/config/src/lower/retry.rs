//! `retries` of a route, `ejection` and `pool` of a backend.
//!
//! Not here: what follows from them while calls come (`policy::attempt`, `proxy`).

use std::collections::HashMap;

use policy::id::BackendId;
use policy::retry::{Ejection, Retries, Statuses};
use policy::snapshot::{Origin, PoolBounds, Snapshot};

use super::backend::number;
use super::{set, size};
use crate::decode::{At, Field, MapOf};
use crate::scalar::{Brief, Name};
use crate::schema::{self, Backend, Route};

impl super::Lowering<'_> {
    pub(super) fn retries(&mut self, route: &Route) -> Retries {
        let mut retries = Retries::default();
        let Some(written) = route.retries.get() else {
            return retries;
        };
        set(&written.attempts, &mut retries.attempts, |n| size(n.0));
        if let Some(list) = written.statuses.get() {
            (retries.statuses, retries.after_unserved) = (Statuses::NONE, false);
            for at in &list.0 {
                if retries.statuses.contains(at.value.0) {
                    self.twice(at);
                }
                retries.statuses = retries.statuses.with(at.value.0);
            }
        }
        set(&written.share, &mut retries.share_millionths, |n| n.0);
        set(&written.burst, &mut retries.burst, |n| n.0);
        self.never_again(written);
        retries
    }

    /// What says how to try again, where nothing is.
    fn never_again(&mut self, written: &schema::Retries) {
        let Some(at) = written.attempts.get().filter(|at| at.value.0 == 1) else {
            return;
        };
        let idle = [
            ("statuses", written.statuses.get().is_some()),
            ("share", written.share.get().is_some()),
            ("burst", written.burst.get().is_some()),
        ];
        let idle: Vec<&str> = idle.iter().filter(|(_, is)| *is).map(|of| of.0).collect();
        if !idle.is_empty() {
            let says = format!("with one try nothing follows from {}", idle.join(", "));
            let hint = "leave that out, or write 2 attempts or more";
            self.warn(&at.place, says, hint);
        }
    }

    pub(super) fn ejection(&mut self, backend: &Backend) -> Ejection {
        let mut ejection = Ejection::default();
        let Some(written) = backend.ejection.get() else {
            return ejection;
        };
        set(&written.failures, &mut ejection.failures, |n| n.0);
        set(&written.time, &mut ejection.time, |time| time.0);
        set(&written.max_time, &mut ejection.max_time, |time| time.0);
        if ejection.max_time < ejection.time {
            self.longer_than_its_bound(&written.time, &written.max_time);
        }
        ejection
    }

    /// A first ejection that is longer than the longest, told where one of the two is written.
    fn longer_than_its_bound(&mut self, time: &Field<At<Brief>>, most: &Field<At<Brief>>) {
        match (time, most) {
            (Field::Is(time), Field::Is(most)) => {
                let says = format!("{} is shorter than `time`, {}", most.shown, time.shown);
                let hint = "write a longer `max_time`, or a shorter `time`";
                self.fault(&most.place, says, hint);
            }
            (Field::Is(time), Field::Absent) => {
                let hint = "write `max_time`, too, or a shorter `time`";
                self.refuse(
                    time,
                    "is longer than `max_time`, which is 5m unless said",
                    hint,
                );
            }
            (Field::Absent, Field::Is(most)) => {
                let hint = "write `time`, too, or a longer `max_time`";
                self.refuse(
                    most,
                    "is shorter than `time`, which is 5s unless said",
                    hint,
                );
            }
            // One that cannot be read is a fault already.
            (Field::Bad, _) | (_, Field::Bad) | (Field::Absent, Field::Absent) => {}
        }
    }

    pub(super) fn pool(&mut self, backend: &Backend) -> PoolBounds {
        let mut pool = PoolBounds::default();
        let Some(written) = backend.pool.get() else {
            return pool;
        };
        set(&written.connections, &mut pool.connections, |n| size(n.0));
        set(&written.idle, &mut pool.idle, |n| size(n.0));
        set(&written.streams, &mut pool.streams, |n| size(n.0));
        set(&written.idle_time, &mut pool.idle_time, |time| time.0);
        let are_known = !written.connections.is_bad();
        if let Some(at) = written
            .idle
            .get()
            .filter(|_| are_known && pool.idle > pool.connections)
        {
            let unless = if written.connections.is_absent() {
                " unless said"
            } else {
                ""
            };
            let says = format!(
                "{} is more than `connections`, of which there are {}{unless}",
                at.shown, pool.connections
            );
            let hint = "write a smaller `idle`, or more `connections`";
            self.warn(&at.place, says, hint);
        }
        pool
    }

    /// Backends with one address share its connections, and so must say the same of them.
    pub(super) fn shared_pools(&mut self, written: &MapOf<Name, Backend>, snapshot: &Snapshot) {
        let mut users: HashMap<&Origin, BackendId> = HashMap::new();
        // What is faulty says nothing that could be compared.
        let is_faulty = |name: &str| {
            let mut of = written.0.iter().filter(|(of, _)| of.value.0 == name);
            of.any(|(_, backend)| backend.as_ref().is_some_and(|b| faulty(&b.pool)))
        };
        for (index, backend) in snapshot.backends.iter().enumerate() {
            if is_faulty(&backend.name) {
                continue;
            }
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
            self.fault(&place, says, "write the same `pool` for both");
        }
    }
}

fn faulty(pool: &Field<schema::Pool>) -> bool {
    match pool {
        Field::Absent => false,
        Field::Bad => true,
        Field::Is(pool) => {
            pool.connections.is_bad()
                || pool.idle.is_bad()
                || pool.idle_time.is_bad()
                || pool.streams.is_bad()
        }
    }
}
