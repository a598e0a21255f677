//! What an exchange holds of limits and budgets, from its admission to its end.
//!
//! Invariant: a reservation has a share of every limit of its grant, or there is none; what each limit
//! gave follows from the grant and the call's estimate, so that no list is kept of it.
//! Not here: which grant it is and what the call may cost (`exchange`), the buckets
//! ([`crate::limit`]), what is held of budgets ([`crate::budget_reservation`]).

use super::cost::Cost;
use crate::budget_reservation::BudgetReservation;
use crate::clock::Mono;
use crate::id::{LimitId, WorkloadId};
use crate::levels::Levels;
use crate::limit::{Bucket, Denied, Kind};
use crate::price::Charge;
use crate::refusal::Refusal;
use crate::revision::Revision;
use crate::snapshot::{Grant, Snapshot};
use crate::tokens::Tokens;

/// A reservation: what was taken from which buckets and budgets.
#[derive(Debug)]
#[must_use = "settle it"]
pub(super) struct Reservation {
    taken: Taken,
    pub(super) for_budgets: BudgetReservation,
}

/// What was taken from the buckets of a grant.
#[derive(Debug, Clone, Copy)]
struct Taken {
    workload: WorkloadId,
    /// Which of the workload's grants.
    grant: usize,
    /// From how many of its limits, the first on.
    limits: usize,
    tokens: Cost,
}

/// Takes a call's share from every limit of a grant, or from none.
pub(super) fn reserve(
    workload: WorkloadId,
    grant: &Grant,
    tokens: Cost,
    now: Mono,
    s: &Snapshot,
    levels: &Levels,
) -> Result<Reservation, Refusal> {
    let mut grants = s.grants(workload).iter();
    let Some(at) = grants.position(|g| std::ptr::eq(g, grant)) else {
        return Err(Refusal::Bug("a grant without workload"));
    };
    let reservation = |limits| Reservation {
        taken: Taken {
            workload,
            grant: at,
            limits,
            tokens,
        },
        for_budgets: BudgetReservation::default(),
    };
    for (nth, id) in grant.limits.iter().enumerate() {
        let (Some(limit), Some(bucket)) = (s.limit(*id), levels.bucket(*id)) else {
            continue;
        };
        let units = tokens.units_of(limit);
        if units == 0 {
            // What costs nothing does not wait for what others owe.
            continue;
        }
        if let Err(short) = bucket.take(units, now) {
            reservation(nth).release(now, s, levels);
            return Err(match short {
                Denied::Wait(wait) => Refusal::over(limit.kind, limit.rate, wait),
                Denied::Never => Refusal::LargerThanLimit {
                    asked: units,
                    burst: limit.rate.burst,
                },
            });
        }
    }
    Ok(reservation(grant.limits.len()))
}

impl Reservation {
    /// Corrects every token bucket to what was really used, and every budget to that or to what it
    /// cost. Requests stay counted. What that came to may be corrected once.
    pub(super) fn settle(
        self,
        tokens: &Tokens,
        charge: Option<Charge>,
        now: Mono,
        s: &Snapshot,
        levels: &Levels,
    ) -> Settled {
        let for_budgets = self.for_budgets.settle(tokens, charge, s, levels);
        self.taken.settle(tokens.sum(), now, s, levels);
        Settled {
            taken: self.taken,
            tokens: tokens.sum(),
            for_budgets,
            at: now,
        }
    }

    /// Gives everything back: the call never was.
    pub(super) fn release(self, now: Mono, s: &Snapshot, levels: &Levels) {
        self.for_budgets.release(levels);
        for (id, _, reserved) in self.taken.each(s) {
            if let Some(bucket) = levels.bucket(id) {
                bucket.settle(reserved, 0, now);
            }
        }
    }
}

/// What limits and budgets were charged for a call, which may still be counted.
#[derive(Debug)]
pub struct Settled {
    taken: Taken,
    tokens: u64,
    for_budgets: BudgetReservation,
    at: Mono,
}

impl Settled {
    /// Corrects every token bucket and budget to what the count says, as if they had been settled so
    /// at the exchange's end. From any thread.
    pub fn correct(self, tokens: &Tokens, charge: Option<Charge>, of: &Revision) {
        let Revision { snapshot, levels } = of;
        let _corrected = self.for_budgets.settle(tokens, charge, snapshot, levels);
        for (bucket, _) in self.taken.of_tokens(snapshot, levels) {
            bucket.settle(self.tokens, tokens.sum(), self.at);
        }
    }
}

impl Taken {
    /// Corrects every token bucket to what was really used.
    fn settle(self, actual: u64, now: Mono, s: &Snapshot, levels: &Levels) {
        for (bucket, reserved) in self.of_tokens(s, levels) {
            bucket.settle(reserved, actual, now);
        }
    }

    /// The buckets of the token limits that gave, and how much each did.
    fn of_tokens<'a>(
        self,
        s: &'a Snapshot,
        levels: &'a Levels,
    ) -> impl Iterator<Item = (&'a Bucket, u64)> {
        let of_tokens = self.each(s).filter(|(_, kind, _)| kind.is_settled());
        of_tokens.filter_map(|(id, _, reserved)| Some((levels.bucket(id)?, reserved)))
    }

    /// The limits that gave, what each counts, and how much it gave.
    fn each(self, s: &Snapshot) -> impl Iterator<Item = (LimitId, Kind, u64)> {
        let grant = s.grants(self.workload).get(self.grant);
        let limits = grant.map_or(&[][..], |grant| grant.limits.as_slice());
        let tokens = self.tokens;
        let taken = limits.iter().take(self.limits);
        taken.filter_map(move |id| {
            let limit = s.limit(*id)?;
            Some((*id, limit.kind, tokens.units_of(limit)))
        })
    }
}
