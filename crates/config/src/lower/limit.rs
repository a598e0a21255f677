//! `limits`: rates to buckets, and buckets from one snapshot to the next.
//!
//! A limit is recognised across reloads by its workload, by its route's name (or, where it has
//! none, by the models it matches, which tell a workload's routes apart), and by what it counts
//! over which window. So routes may be added, removed and reordered without emptying a bucket.
//! Invariant: a reload neither forgives what a limit that stays is owed, nor invents any.
//! Not here: how a bucket works (`policy::limit`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use policy::clock::Mono;
use policy::exchange::MAX_LIMITS;
use policy::id::{LimitId, RouteId, WorkloadId};
use policy::limit::{Bucket, Kind, Rate};
use policy::snapshot::{self, Snapshot};

use super::backend::number;
use super::route::written_as;
use crate::decode::Place;
use crate::scalar::Pattern;
use crate::schema::{Limit, Route};

const REFILL_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

impl super::Lowering<'_> {
    /// The rates of a route, as far as they are sound.
    pub(super) fn rates(&mut self, route: &Route) -> Vec<(Kind, Rate)> {
        let Some(list) = route.limits.get() else {
            return Vec::new();
        };
        if let Some((place, _)) = list.0.get(MAX_LIMITS) {
            self.findings.fault(
                place,
                format!("a route has at most {MAX_LIMITS} limits"),
                "",
            );
        }
        let mut seen = HashSet::new();
        let mut rates = Vec::new();
        for (place, limit) in list.0.iter().take(MAX_LIMITS) {
            let Some((kind, rate)) = limit.as_ref().and_then(|l| self.rate(l, place)) else {
                continue;
            };
            if !seen.insert((kind, rate.per)) {
                let says = format!(
                    "an earlier limit counts {} over the same window",
                    kind.as_str()
                );
                self.findings.fault(place, says, "keep one of them");
                continue;
            }
            rates.push((kind, rate));
        }
        rates
    }

    fn rate(&mut self, limit: &Limit, place: &Place) -> Option<(Kind, Rate)> {
        match (limit.requests.is_absent(), limit.tokens.is_absent()) {
            (true, true) => {
                self.findings
                    .fault(place, "counts nothing", "write requests: N or tokens: N")
            }
            (false, false) => {
                let hint = "write two limits, one for each";
                self.findings
                    .fault(place, "counts requests and tokens at once", hint);
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
        let refill = u128::from(burst) * per.as_nanos() / u128::from(amount.max(1));
        if let Some(at) = limit.burst.get().filter(|_| refill > REFILL_MAX.as_nanos()) {
            let says = format!(
                "at this rate a burst of {} takes more than ten years to refill",
                at.shown
            );
            self.findings
                .fault(&at.place, says, "write a smaller burst");
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

/// Adds full buckets for a workload on a route.
pub(super) fn register(
    rates: &[(Kind, Rate)],
    workload: WorkloadId,
    route: RouteId,
    key: &str,
    snapshot: &mut Snapshot,
) -> Vec<LimitId> {
    let mut ids = Vec::with_capacity(rates.len());
    for (kind, rate) in rates {
        ids.push(LimitId(number(snapshot.limits.len())));
        snapshot.limits.push(snapshot::Limit {
            workload,
            route,
            kind: *kind,
            key: format!("{key}/{}/{}", kind.as_str(), window(rate.per)),
            bucket: Arc::new(Bucket::new(*rate)),
        });
    }
    ids
}

/// Hands the buckets of the snapshot in use to the limits that are still the same, and what they
/// owe to those whose rate or window changed.
pub(super) fn carry(next: &mut Snapshot, old: Option<&Snapshot>, now: Mono) {
    let Some(old) = old else { return };
    let mut left: HashMap<&str, &snapshot::Limit> = old
        .limits
        .iter()
        .map(|limit| (limit.key.as_str(), limit))
        .collect();
    let mut unmatched = Vec::new();
    for limit in &mut next.limits {
        match left.remove(limit.key.as_str()) {
            Some(before) => limit.bucket = handed(limit, before, now),
            None => unmatched.push(limit),
        }
    }
    // The window is the last part of a key; what is left without it is the same limit, rewritten.
    let mut rewritten: HashMap<&str, Vec<&snapshot::Limit>> = HashMap::new();
    for limit in old
        .limits
        .iter()
        .rev()
        .filter(|limit| left.contains_key(limit.key.as_str()))
    {
        rewritten
            .entry(without_window(&limit.key))
            .or_default()
            .push(limit);
    }
    for limit in unmatched {
        let before = rewritten
            .get_mut(without_window(&limit.key))
            .and_then(Vec::pop);
        if let Some(before) = before {
            limit.bucket = handed(limit, before, now);
        }
    }
}

fn handed(limit: &snapshot::Limit, before: &snapshot::Limit, now: Mono) -> Arc<Bucket> {
    let rate = limit.bucket.rate();
    if before.bucket.rate() == rate {
        return Arc::clone(&before.bucket);
    }
    Arc::new(Bucket::carried(rate, &before.bucket, now))
}

fn without_window(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(rest, _)| rest)
}

/// A duration the way a person writes it.
pub(crate) fn window(span: Duration) -> String {
    let ms = span.as_millis();
    for (unit_ms, unit) in [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1000, "s"),
    ] {
        if ms > 0 && ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", ms / unit_ms);
        }
    }
    format!("{ms}ms")
}
