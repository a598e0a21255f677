//! What one call holds of the budgets that count it.
//!
//! Invariant: a reservation has a share of every budget that counts its call, or there is none; it is
//! settled or released exactly once, in the periods it was taken from.
//! Not here: the counters and who is counted by what ([`crate::budget`]).

use std::sync::Arc;

use crate::budget::period::timestamp;
use crate::budget::{Budget, Budgets, Period, Spent, Unit, nano_units};
use crate::id::{BackendId, BudgetId, WorkloadId};
use crate::levels::Levels;
use crate::price::{Charge, Pico, Price, Prices};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::tokens::Tokens;

/// What a call may come to, and where it may go.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Who asks.
    pub workload: WorkloadId,
    /// The model that goes upstream, where it is known.
    pub model: Option<&'a str>,
    /// Where it may be answered.
    pub backends: &'a [BackendId],
    /// Prompt tokens, estimated.
    pub prompt: u64,
    /// Completion tokens, by the call's cap or estimated.
    pub completion: u64,
    /// What the call is charged whatever its model, where its route says so.
    pub fixed: Option<&'a Price>,
}

/// A reservation: what was taken from which budgets.
#[derive(Debug, Default)]
#[must_use = "settle it"]
pub struct BudgetReservation {
    shares: Vec<Share>,
}

#[derive(Debug, Clone, Copy)]
struct Share {
    budget: BudgetId,
    period: Period,
    units: u64,
}

/// Takes a call's share from every budget that counts it, or from none.
///
/// # Errors
/// [`Refusal::BudgetExhausted`] when one does not hold it, [`Refusal::Unpriced`] when one counts
/// money and a backend that may answer has no price for the model. Nothing is held then.
pub fn reserve(
    asked: &Asked<'_>,
    unix_ms: u64,
    budgets: &Budgets,
    prices: &Prices,
    levels: &Levels,
) -> Result<BudgetReservation, Refusal> {
    let ids = budgets.of.get(asked.workload.index());
    let ids = ids.map_or(&[][..], Vec::as_slice);
    if ids.is_empty() {
        return Ok(BudgetReservation::default());
    }
    let mut shares = Vec::with_capacity(ids.len());
    let counting = ids.iter().filter_map(|id| Some((*id, budgets.get(*id)?)));
    for (id, budget) in counting.filter(|(_, budget)| budget.takes(asked.model)) {
        let units = match &budget.unit {
            Unit::Tokens => asked.prompt.saturating_add(asked.completion),
            Unit::Money(currency) => {
                let most = asked.at_most(currency, prices);
                nano_units(most.ok_or_else(|| asked.unpriced(budget))?)
            }
        };
        shares.push(Share {
            budget: id,
            period: budget.calendar.of(unix_ms),
            // What costs nothing by its estimate still needs a budget that is not used up.
            units: units.max(1),
        });
    }
    // Looked at before anything is taken, so that a call that does not fit in the last of them
    // seldom stands, for a moment, in the way of one that fits in the first.
    for share in &shares {
        if let Some((budget, spent)) = share.of(budgets, levels)
            && !spent.fits(share.period, share.units, budget.amount)
        {
            return Err(refused(budget, share.period, spent));
        }
    }
    let mut reservation = BudgetReservation {
        shares: Vec::with_capacity(shares.len()),
    };
    for share in shares {
        let Some((budget, spent)) = share.of(budgets, levels) else {
            continue;
        };
        if !spent.take(share.period, share.units, budget.amount) {
            reservation.release(levels);
            return Err(refused(budget, share.period, spent));
        }
        reservation.shares.push(share);
    }
    Ok(reservation)
}

/// Why a workload's calls are refused now whatever they ask for: a budget that counts them all holds
/// nothing more.
#[must_use]
pub fn exhausted(
    workload: WorkloadId,
    unix_ms: u64,
    budgets: &Budgets,
    levels: &Levels,
) -> Option<Refusal> {
    let ids = budgets.of.get(workload.index())?;
    let mut refusals = ids.iter().filter_map(|id| {
        let (budget, spent) = (budgets.get(*id)?, levels.spent(*id)?);
        let period = budget.calendar.of(unix_ms);
        let is_exhausted = budget.models.is_empty() && !spent.fits(period, 1, budget.amount);
        is_exhausted.then(|| refused(budget, period, spent))
    });
    refusals.next()
}

/// The refusal of a budget that has not enough left, which it counts.
fn refused(budget: &Budget, period: Period, spent: &Spent) -> Refusal {
    spent.refused(period);
    let (_, ends) = budget.calendar.span(period);
    Refusal::BudgetExhausted {
        budget: Arc::clone(&budget.name),
        every: budget.calendar.every,
        renewed: timestamp(ends),
    }
}

impl Asked<'_> {
    /// The dearest that any backend may make it; `None` where one has no price in this currency.
    fn at_most(&self, currency: &str, prices: &Prices) -> Option<Pico> {
        if let Some(price) = self.fixed {
            return (*price.currency == *currency).then_some(price.request);
        }
        let model = self.model?;
        let mut dearest = Pico(0);
        for backend in self.backends {
            let price = prices.of(model, Some(*backend))?;
            if *price.currency != *currency {
                return None;
            }
            dearest = dearest.max(price.at_most(self.prompt, self.completion)?);
        }
        Some(dearest)
    }

    fn unpriced(&self, budget: &Budget) -> Refusal {
        Refusal::Unpriced {
            model: self.model.unwrap_or_default().to_owned(),
            budget: Arc::clone(&budget.name),
        }
    }
}

impl BudgetReservation {
    /// Whether any budget gave a share.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// Corrects every share to what the call really came to. Where its tokens are known and their
    /// cost is not, the reservation stands; a call of which no token is known came to nothing. Gives what that
    /// came to, to be corrected once.
    pub fn settle(
        mut self,
        tokens: &Tokens,
        charge: Option<Charge>,
        s: &Snapshot,
        levels: &Levels,
    ) -> Self {
        for share in &mut self.shares {
            let Some((budget, spent)) = share.of(&s.budgets, levels) else {
                continue;
            };
            let actual = share.actual(budget, tokens, charge, s);
            spent.settle(share.period, share.units, actual);
            share.units = actual;
        }
        self
    }

    /// Gives everything back: the call never was.
    pub fn release(self, levels: &Levels) {
        for share in self.shares {
            if let Some(spent) = levels.spent(share.budget) {
                spent.settle(share.period, share.units, 0);
            }
        }
    }
}

impl Share {
    /// The budget that gave it, and its counters.
    fn of<'a>(&self, budgets: &'a Budgets, levels: &'a Levels) -> Option<(&'a Budget, &'a Spent)> {
        Some((budgets.get(self.budget)?, levels.spent(self.budget)?))
    }

    /// What the call came to in the budget's unit.
    fn actual(
        &self,
        budget: &Budget,
        tokens: &Tokens,
        charge: Option<Charge>,
        s: &Snapshot,
    ) -> u64 {
        let is_nothing = tokens.prompt.tokens().is_none() && tokens.completion.tokens().is_none();
        match &budget.unit {
            Unit::Tokens => tokens.sum(),
            Unit::Money(_) if is_nothing => 0,
            Unit::Money(currency) => charge
                .filter(|charge| {
                    let price = s.prices.get(charge.price);
                    price.is_some_and(|price| price.currency == *currency)
                })
                .and_then(|charge| charge.cost)
                .map_or(self.units, nano_units),
        }
    }
}

#[cfg(test)]
mod tests;
