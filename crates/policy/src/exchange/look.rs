//! A look at a caller's limits and budgets before its body has come.
//!
//! Invariant: nothing is taken, and nobody is refused whom the body could still bring in: a call is refused here
//! when every grant that may take it would refuse the smallest body.
//! Not here: what a call really takes ([`crate::front`], [`crate::budget_reservation`]).

use std::sync::Arc;

use super::admission::Opened;
use crate::budget_reservation;
use crate::caller::Caller;
use crate::clock::Mono;
use crate::front::{Demand, limits_of, tightest};
use crate::id::{RouteId, WorkloadId};
use crate::levels::Levels;
use crate::refusal::Refusal;
use crate::snapshot::{Grant, Snapshot};
use crate::subject::{Subjects, Who};

/// Why a call will be refused whatever its body says, and on which route.
#[must_use]
pub(super) fn look(
    opened: Opened,
    caller: Option<&Arc<Caller>>,
    now: Mono,
    unix_ms: u64,
    s: &Snapshot,
    levels: &Levels,
) -> Option<(RouteId, Refusal)> {
    if opened.operation.lists_models() || opened.operation.is_answered_here() {
        return None;
    }
    // The model may choose any grant; a listed call goes where it is listed.
    let may_take = |grant: &&Grant| match opened.listed {
        Some(place) => place.route == grant.route,
        None => s.route(grant.route).is_some_and(|route| !route.is_plain),
    };
    let workload = s.workload(opened.workload)?;
    let grants = workload.grants.iter().chain(&workload.plain);
    let mut grants = grants.filter(may_take).peekable();
    let first = grants.peek()?.route;
    let charged = opened.listed.and_then(|place| {
        let rule = s.route(place.route)?;
        rule.unread.get(usize::from(place.nth))
    });
    // What the smallest body comes to.
    let (least, costs) = match charged {
        Some(charged) => (charged.tokens, !charged.is_free(&s.prices)),
        None => {
            let costs = opened.operation.is_metered();
            (Some(u64::from(costs)), costs)
        }
    };
    let least = Demand::charged(least);
    let who = s.who(opened.workload, caller);
    let mut refused = None;
    let all_refuse = grants.all(|grant| match short_of(grant, who, least, now, s, levels) {
        Some(refusal) => {
            refused.get_or_insert((grant.route, refusal));
            true
        }
        None => false,
    });
    if all_refuse {
        return refused;
    }
    let workload = opened.workload;
    let exhausted = costs.then(|| budget_reservation::exhausted(workload, who, unix_ms, s, levels));
    Some((first, exhausted.flatten()?))
}

/// Why no call of somebody's is let in on this grant now: it has nothing left.
#[must_use]
pub(super) fn nothing_left(
    grant: &Grant,
    (workload, caller): (WorkloadId, Option<&Arc<Caller>>),
    now: Mono,
    unix_ms: u64,
    s: &Snapshot,
    levels: &Levels,
) -> Option<Refusal> {
    let who = s.who(workload, caller);
    let least = Demand::charged(Some(1));
    let short = short_of(grant, who, least, now, s, levels);
    short.or_else(|| budget_reservation::exhausted(workload, who, unix_ms, s, levels))
}

/// Why a grant takes no call of so many tokens now.
fn short_of(
    grant: &Grant,
    who: Who<'_>,
    tokens: Demand,
    now: Mono,
    s: &Snapshot,
    levels: &Levels,
) -> Option<Refusal> {
    let known = Subjects::default();
    let limits = limits_of(grant, who, &known, s, levels);
    let refusal = tightest(limits, tokens, &who, now);
    refusal.filter(|refusal| matches!(refusal, Refusal::Limited { .. }))
}
