//! `limits`: the rates of routes, a limit for each workload.
//!
//! Invariant: a limit has the same key in every document that has it, and no other limit over its window has that: it
//! follows from its workload, its route's name (or, where it has none, the models it matches, which tell a workload's
//! routes apart), what it counts, and for whom. So routes may be added, removed and reordered.
//! Not here: what a limit with this key keeps at a reload (`policy::levels`), how a bucket works (`policy::limit`).

use std::collections::HashSet;
use std::time::Duration;

use policy::exchange::MAX_GRANT_LIMITS;
use policy::id::{LimitId, RouteId, WorkloadId};
use policy::limit::{Kind, Rate, Window};
use policy::snapshot::{self, Snapshot};
use policy::subject::Whose;

use super::backend::number;
use super::route::written_as;
use crate::decode::{Field, ListOf, Place};
use crate::scalar::Pattern;
use crate::schema::{Limit, Route};

const REFILL_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// What a limit counts, how fast, in which way, and for whom.
pub(super) struct WrittenRate {
    kind: Kind,
    rate: Rate,
    window: Window,
    whose: Whose,
}

impl super::Lowering<'_> {
    /// The rates of a route, as far as they are sound.
    pub(super) fn rates(&mut self, written: &Field<ListOf<Limit>>) -> Vec<WrittenRate> {
        let Some(list) = written.get() else {
            return Vec::new();
        };
        if let Some((place, _)) = list.0.get(MAX_GRANT_LIMITS) {
            self.fault(
                place,
                format!("a route has at most {MAX_GRANT_LIMITS} limits"),
                "",
            );
        }
        let mut seen = HashSet::new();
        let mut rates = Vec::new();
        for (place, limit) in list.0.iter().take(MAX_GRANT_LIMITS) {
            let Some((kind, rate)) = limit.as_ref().and_then(|l| self.rate(l, place)) else {
                continue;
            };
            let whose = limit.as_ref().and_then(|limit| limit.r#for.get());
            let whose = whose.map_or(Whose::Workload, |at| at.value.0);
            if !seen.insert((kind, rate.per, whose)) {
                let of = match whose {
                    Whose::Workload => "",
                    Whose::Key => " of each key",
                    Whose::User => " of each user",
                };
                let says = format!(
                    "an earlier limit counts {}{of} over the same window",
                    kind.as_str()
                );
                self.fault(place, says, "keep one of them");
                continue;
            }
            let window = limit.as_ref().and_then(|limit| limit.window.get());
            rates.push(WrittenRate {
                kind,
                rate,
                window: window.map_or(Window::Bucket, |at| at.value.0),
                whose,
            });
        }
        rates
    }

    fn rate(&mut self, limit: &Limit, place: &Place) -> Option<(Kind, Rate)> {
        match (limit.requests.is_absent(), limit.tokens.is_absent()) {
            (true, true) => self.fault(place, "counts nothing", "write requests: N or tokens: N"),
            (false, false) => {
                let hint = "write two limits, one for each";
                self.fault(place, "counts requests and tokens at once", hint);
            }
            _ => {}
        }
        let (kind, amount) = match (limit.requests.get(), limit.tokens.get()) {
            (Some(at), None) => (Kind::Requests, at.value.0),
            (None, Some(at)) => (Kind::Tokens, at.value.0),
            _ => return None,
        };
        let per = limit.per.get()?.value.0;
        let burst = limit.burst.get().map_or(amount, |at| at.value.0);
        let window = limit.window.get().map(|at| at.value.0);
        if let (Some(at), Some(Window::Rolling)) = (limit.burst.get(), window) {
            let says = "a rolling window has no burst: it admits its amount, at once or not";
            self.fault(&at.place, says, "leave it out");
            return None;
        }
        let refill = u128::from(burst) * per.as_nanos() / u128::from(amount.max(1));
        if let Some(at) = limit.burst.get().filter(|_| refill > REFILL_MAX.as_nanos()) {
            let says = format!(
                "at this rate a burst of {} takes more than ten years to refill",
                at.shown
            );
            self.fault(&at.place, says, "write a smaller burst");
            return None;
        }
        Some((kind, Rate { amount, per, burst }))
    }
}

/// What tells the limits of a workload on a route from all others, whatever the order of routes.
pub(super) fn key(workload: &str, route: &Route, patterns: &[Pattern]) -> String {
    if let Some(at) = route.name.get() {
        return format!("{workload}/{}", at.value.0);
    }
    let mut models: Vec<String> = patterns.iter().map(written_as).collect();
    models.sort();
    if models.is_empty() {
        models.push("*".into());
    }
    format!("{workload}/[{}]", models.join(","))
}

/// Adds the limits of a workload on a route.
pub(super) fn register(
    rates: &[WrittenRate],
    workload: WorkloadId,
    route: RouteId,
    key: &str,
    snapshot: &mut Snapshot,
) -> Vec<LimitId> {
    let mut ids = Vec::with_capacity(rates.len());
    for written in rates {
        let WrittenRate {
            kind,
            rate,
            window,
            whose,
        } = written;
        ids.push(LimitId(number(snapshot.limits.len())));
        snapshot.limits.push(snapshot::Limit {
            workload,
            route,
            kind: *kind,
            rate: *rate,
            window: *window,
            whose: *whose,
            key: match whose {
                Whose::Workload => format!("{key}/{}", kind.as_str()),
                Whose::Key | Whose::User => {
                    format!("{key}/{}/{}", kind.as_str(), whose.as_str())
                }
            },
        });
    }
    ids
}
