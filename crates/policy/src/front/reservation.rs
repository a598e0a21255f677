//! What a call holds of limits and budgets, from its admission to its end.
//!
//! Invariant: a reservation has a share of every limit of its grant and of its caller, or there is none; what each limit
//! gave follows from those and the call's estimate, so that no list is kept of it.
//! Not here: which grant it is and what the call may cost (its protocol), the buckets
//! ([`crate::limit`]), whose they are ([`crate::subject`]), what is held of budgets ([`crate::budget_reservation`]).

use std::sync::Arc;
use std::time::Duration;

use super::demand::Demand;
use crate::budget_reservation::{self, BudgetReservation};
use crate::caller::Caller;
use crate::clock::Mono;
use crate::id::{LimitId, WorkloadId};
use crate::levels::Levels;
use crate::levels::subjects::Hold;
use crate::limit::rolling::Share;
use crate::limit::{Denied, Kind, Rate};
use crate::price::Charge;
use crate::refusal::Refusal;
use crate::revision::Revision;
use crate::snapshot::{Grant, Snapshot};
use crate::subject::{Subjects, Who, Whose};
use crate::tokens::Tokens;

/// A reservation: what was taken from which buckets and budgets.
#[derive(Debug)]
#[must_use = "settle it"]
pub(crate) struct Reservation {
    taken: Taken,
    pub(crate) for_budgets: BudgetReservation,
}

/// What was taken from the buckets of a grant and of a caller.
#[derive(Debug)]
struct Taken {
    workload: WorkloadId,
    /// Which of the workload's grants.
    grant: usize,
    /// From how many of its limits, the first on, and then of the caller's own.
    limits: usize,
    tokens: Demand,
    at: Mono,
    /// Whose buckets, where any is not the workload's.
    caller: Option<Arc<Caller>>,
    subjects: Subjects,
}

/// A limit that holds for a call, and the bucket that the call takes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held<'a> {
    pub(crate) kind: Kind,
    pub(crate) rate: Rate,
    pub(crate) whose: Whose,
    /// Which it is, where it is not the caller's own.
    pub(crate) id: Option<LimitId>,
    pub(crate) bucket: Hold<'a>,
}

/// The limits that hold for the calls of somebody on a route: the grant's, then the caller's own.
pub(crate) fn limits_of<'a>(
    grant: &'a Grant,
    who: Who<'a>,
    known: &'a Subjects,
    s: &'a Snapshot,
    levels: &'a Levels,
) -> impl Iterator<Item = Held<'a>> {
    let configured = grant.limits.iter().filter_map(move |id| {
        let limit = s.limit(*id)?;
        Some(Held {
            kind: limit.kind,
            rate: limit.rate,
            whose: limit.whose,
            id: Some(*id),
            bucket: levels.hold(*id, &who, known)?,
        })
    });
    let own = who.caller.map_or(&[][..], |caller| &caller.limits);
    configured.chain(own.iter().map(move |limit| Held {
        kind: limit.kind,
        rate: limit.rate,
        whose: who.own(),
        id: None,
        bucket: levels.own(limit, &who, known),
    }))
}

/// Why a call that takes so much is refused now: by the limit that keeps it waiting the longest.
#[cold]
pub(crate) fn tightest<'a>(
    limits: impl Iterator<Item = Held<'a>>,
    tokens: Demand,
    who: &Who<'_>,
    now: Mono,
) -> Option<Refusal> {
    let denied = limits.filter_map(|limit| {
        let units = tokens.units_of(limit.kind, limit.rate);
        let denied = limit.bucket.would_take(units, now).err()?;
        (units > 0).then_some((denied, units, limit))
    });
    let rank = |denied: &Denied| match denied {
        Denied::Wait(wait) => (0, *wait),
        Denied::NoPlace => (1, Duration::ZERO),
        Denied::Never => (2, Duration::ZERO),
    };
    let worse = denied.reduce(|worst, next| {
        if rank(&next.0) > rank(&worst.0) {
            next
        } else {
            worst
        }
    });
    let (denied, units, limit) = worse?;
    Some(limit.refusal(denied, units, who))
}

impl Held<'_> {
    /// The refusal of a call that it denied.
    #[cold]
    fn refusal(&self, denied: Denied, asked: u64, who: &Who<'_>) -> Refusal {
        let holder = who.holder(self.whose);
        match denied {
            Denied::Wait(wait) => Refusal::over(self.kind, self.rate, holder, wait),
            Denied::Never => Refusal::LargerThanLimit {
                asked,
                burst: self.rate.burst,
                holder,
            },
            Denied::NoPlace => Refusal::SubjectsExhausted,
        }
    }
}

/// Takes a call's share from every limit of a grant, the so manieth of its workload, and of its caller, or from none.
pub(crate) fn reserve(
    workload: WorkloadId,
    caller: Option<&Arc<Caller>>,
    (at, grant): (usize, &Grant),
    tokens: Demand,
    now: Mono,
    s: &Snapshot,
    levels: &Levels,
) -> Result<Reservation, Refusal> {
    let who = s.who(workload, caller);
    let subjects = Subjects::default();
    let mut given = 0;
    // From within: a step of a chain of two costs more than what a bucket does.
    let short = limits_of(grant, who, &subjects, s, levels).try_for_each(|limit| {
        let units = tokens.units_of(limit.kind, limit.rate);
        // What costs nothing does not wait for what others owe.
        if units > 0
            && let Err(denied) = limit.bucket.take(units, now)
        {
            return Err(limit.refusal(denied, units, &who));
        }
        given += 1;
        Ok(())
    });
    let caller = caller.filter(|_| !subjects.are_unknown());
    let reservation = Reservation {
        taken: Taken {
            workload,
            grant: at,
            limits: given,
            tokens,
            at: now,
            caller: caller.cloned(),
            subjects,
        },
        for_budgets: BudgetReservation::default(),
    };
    if let Err(short) = short {
        reservation.release(now, s, levels);
        let known = Subjects::default();
        let limits = limits_of(grant, who, &known, s, levels);
        return Err(tightest(limits, tokens, &who, now).unwrap_or(short));
    }
    Ok(reservation)
}

/// The reservation of a call that ran already: every limit of its grant and of its caller is charged what it comes to, also one that has
/// nothing left.
#[cold]
pub(crate) fn owed(
    workload: WorkloadId,
    caller: Option<&Arc<Caller>>,
    (at, grant): (usize, &Grant),
    now: Mono,
    s: &Snapshot,
    levels: &Levels,
) -> Reservation {
    let who = s.who(workload, caller);
    let (subjects, tokens) = (Subjects::default(), Demand::charged(None));
    let mut limits = 0;
    for limit in limits_of(grant, who, &subjects, s, levels) {
        // Also nothing of a limit of tokens: that gives a subject its place, without which nothing could be charged.
        let _denied = limit
            .bucket
            .take(tokens.units_of(limit.kind, limit.rate), now);
        limits += 1;
    }
    let caller = caller.filter(|_| !subjects.are_unknown()).cloned();
    Reservation {
        taken: Taken {
            workload,
            grant: at,
            limits,
            tokens,
            at: now,
            caller,
            subjects,
        },
        for_budgets: BudgetReservation::default(),
    }
}

impl Reservation {
    /// One of a call that no limit and no budget counts.
    pub(crate) fn of_nothing(workload: WorkloadId, at: Mono) -> Self {
        Self {
            taken: Taken {
                workload,
                grant: 0,
                limits: 0,
                tokens: Demand::charged(None),
                at,
                caller: None,
                subjects: Subjects::default(),
            },
            for_budgets: BudgetReservation::default(),
        }
    }

    /// One of what ran long ago, which takes nothing: what it settles at is owed, whatever limits and budgets hold.
    #[cold]
    pub(crate) fn late(
        (workload, caller): (WorkloadId, Option<&Arc<Caller>>),
        (at, grant): (usize, &Grant),
        model: &str,
        (now, unix_ms): (Mono, u64),
        s: &Snapshot,
        levels: &Levels,
    ) -> Self {
        let who = s.who(workload, caller);
        let subjects = Subjects::default();
        let mut limits = 0;
        for limit in limits_of(grant, who, &subjects, s, levels) {
            // Nothing: that gives a subject its place.
            let _denied = limit.bucket.take(0, now);
            limits += 1;
        }
        Self {
            taken: Taken {
                workload,
                grant: at,
                limits,
                tokens: Demand::charged(None),
                at: now,
                caller: caller.filter(|_| !subjects.are_unknown()).cloned(),
                subjects,
            },
            for_budgets: budget_reservation::owed(
                (workload, caller),
                Some(model),
                unix_ms,
                s,
                levels,
            ),
        }
    }

    /// Whether no limit holds for the call.
    #[inline]
    pub(crate) const fn is_of_no_limit(&self) -> bool {
        self.taken.limits == 0
    }

    /// The hashes of its caller, as far as a limit asked for them.
    pub(crate) fn subjects(&self) -> &Subjects {
        &self.taken.subjects
    }

    /// Corrects every token bucket to what was really used, and every budget to that or to what it
    /// cost. Requests stay counted. It is done once, in place because a reservation is large.
    #[inline]
    pub(crate) fn settle(
        &mut self,
        tokens: &Tokens,
        charge: Option<Charge>,
        now: Mono,
        s: &Snapshot,
        levels: &Levels,
    ) {
        if !self.for_budgets.is_empty() {
            let for_budgets = std::mem::take(&mut self.for_budgets);
            self.for_budgets = for_budgets.settle(tokens, charge, s, levels);
        }
        self.taken.settle(tokens.sum(), now, s, levels);
    }

    /// What it was settled at, at this moment, which may be corrected once.
    #[cold]
    pub(crate) fn settled(self, tokens: &Tokens, now: Mono) -> Settled {
        Settled {
            taken: self.taken,
            tokens: tokens.sum(),
            for_budgets: self.for_budgets,
            at: now,
        }
    }

    /// Gives everything back: the call never was.
    pub(crate) fn release(self, now: Mono, s: &Snapshot, levels: &Levels) {
        self.for_budgets.release(levels);
        self.taken.each(s, levels, |_, bucket, share| {
            bucket.settle(share, share.reserved, 0, now);
        });
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
        self.taken.each(snapshot, levels, |kind, bucket, share| {
            if kind.is_settled() {
                bucket.settle(share, self.tokens, tokens.sum(), self.at);
            }
        });
    }
}

impl Taken {
    /// Corrects every token bucket to what was really used.
    fn settle(&self, actual: u64, now: Mono, s: &Snapshot, levels: &Levels) {
        self.each(s, levels, |kind, bucket, share| {
            if kind.is_settled() {
                bucket.settle(share, share.reserved, actual, now);
            }
        });
    }

    /// What each limit counts that gave, its bucket, and how much it gave.
    #[inline]
    fn each(&self, s: &Snapshot, levels: &Levels, mut f: impl FnMut(Kind, &Hold<'_>, Share)) {
        if self.limits == 0 {
            return;
        }
        let who = s.who(self.workload, self.caller.as_ref());
        let workload = s.workload(self.workload);
        let Some(grant) = workload.and_then(|workload| workload.grant(self.grant)) else {
            return;
        };
        let limits = limits_of(grant, who, &self.subjects, s, levels);
        limits.take(self.limits).for_each(|limit| {
            let share = Share {
                reserved: self.tokens.units_of(limit.kind, limit.rate),
                at: self.at,
            };
            f(limit.kind, &limit.bucket, share);
        });
    }
}
