//! What one call holds of the budgets that count it.
//!
//! Invariant: a reservation has a share of every budget that counts its call, those that its caller brings among them, or
//! there is none; it is settled or released exactly once, in the periods it was taken from.
//! Not here: the counters and who is counted by what ([`crate::budget`]), whose they are ([`crate::subject`]).

use std::sync::Arc;

use crate::budget::period::timestamp;
use crate::budget::{Budget, Calendar, Period, Spent, Unit, nano_units};
use crate::caller::{Caller, OwnBudget};
use crate::id::{BackendId, BudgetId, WorkloadId};
use crate::levels::subjects::Account;
use crate::levels::used::Used;
use crate::levels::{Levels, Short};
use crate::price::{Charge, Payer, Pico, Price};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::subject::{Subjects, Who};
use crate::tokens::Tokens;

/// What a call may come to, and where it may go.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Who asks.
    pub workload: WorkloadId,
    /// Who is proven to be behind it, where somebody is.
    pub caller: Option<&'a Arc<Caller>>,
    /// The model that goes upstream, where it is known.
    pub model: Option<&'a str>,
    /// Where it may be answered.
    pub backends: &'a [BackendId],
    /// Prompt tokens, estimated.
    pub prompt: u64,
    /// Completion tokens, by the call's cap or estimated.
    pub completion: u64,
    /// Units that it is billed by beside tokens, where it has any.
    pub pieces: u32,
    /// What the call is charged whatever its model, where its route says so.
    pub fixed: Option<&'a Price>,
}

/// A reservation: what was taken from which budgets.
#[derive(Debug, Default)]
#[must_use = "settle it"]
pub struct BudgetReservation {
    shares: Vec<Share>,
    /// Who brought those that the configuration does not have.
    caller: Option<Arc<Caller>>,
}

#[derive(Debug, Clone, Copy)]
struct Share {
    budget: Which,
    period: Period,
    /// The place of its subject, where it counts subjects apart.
    account: Option<Account>,
    units: u64,
}

/// Which budget gave.
#[derive(Debug, Clone, Copy)]
enum Which {
    /// One of the configuration.
    Configured(BudgetId),
    /// So manieth of the caller's own.
    Own(usize),
}

/// A budget that counts a call, whoever has it.
#[derive(Clone, Copy)]
struct Counting<'a> {
    which: Which,
    unit: &'a Unit,
    amount: u64,
    calendar: Calendar,
    configured: Option<&'a Budget>,
}

impl<'a> Counting<'a> {
    fn configured(id: BudgetId, budget: &'a Budget) -> Self {
        Self {
            which: Which::Configured(id),
            unit: &budget.unit,
            amount: budget.amount,
            calendar: budget.calendar,
            configured: Some(budget),
        }
    }

    fn own(nth: usize, budget: &'a OwnBudget) -> Self {
        Self {
            which: Which::Own(nth),
            unit: &budget.unit,
            amount: budget.amount,
            calendar: budget.calendar,
            configured: None,
        }
    }

    /// The share of a call, which is not taken yet.
    fn share(
        &self,
        unix_ms: u64,
        units: u64,
        who: &Who<'_>,
        known: &Subjects,
        levels: &Levels,
    ) -> Share {
        let period = self.calendar.of(unix_ms);
        let account = match (self.which, self.configured) {
            (Which::Configured(id), Some(budget)) => levels.account(id, budget, period, who, known),
            _ => self.own_account(period, who, known, levels),
        };
        Share {
            budget: self.which,
            period,
            account,
            units,
        }
    }

    fn own_account(
        &self,
        period: Period,
        who: &Who<'_>,
        known: &Subjects,
        levels: &Levels,
    ) -> Option<Account> {
        let Which::Own(nth) = self.which else {
            return None;
        };
        let budget = who.caller?.budgets.get(nth)?;
        Some(levels.own_account(budget, period, who, known))
    }

    /// Whether so much fits now.
    fn fits(&self, share: &Share, levels: &Levels) -> Result<(), Short> {
        match share.account {
            Some(account) => levels.account_fits(account, share.units, self.amount),
            None => self.shared(share, levels, |spent| {
                spent.fits(share.period, share.units, self.amount)
            }),
        }
    }

    fn take(&self, share: &Share, levels: &Levels) -> Result<(), Short> {
        match share.account {
            Some(account) => levels.account_take(account, share.units, self.amount),
            None => self.shared(share, levels, |spent| {
                spent.take(share.period, share.units, self.amount)
            }),
        }
    }

    fn shared(
        &self,
        share: &Share,
        levels: &Levels,
        is_good: impl Fn(&Spent) -> bool,
    ) -> Result<(), Short> {
        let spent = share.spent(levels);
        if spent.is_none_or(is_good) {
            return Ok(());
        }
        Err(Short::Exhausted)
    }

    /// The refusal of a budget that has not enough left, or no place for a subject, which it counts.
    #[cold]
    fn refused(
        &self,
        short: Short,
        share: &Share,
        is_fixed: bool,
        who: &Who<'_>,
        levels: &Levels,
    ) -> Refusal {
        if let Some(spent) = share.spent(levels) {
            spent.refused(share.period);
        }
        if short == Short::NoPlace {
            return Refusal::SubjectsExhausted;
        }
        let whose = self.configured.map_or(who.own(), |budget| budget.whose);
        let (budget, holder) = (self.name(), share.account.map(|_| who.holder(whose)));
        let every = self.calendar.every;
        if self.never_fits(share) {
            return Refusal::LargerThanBudget {
                budget,
                holder,
                asked: self.unit.shown(share.units),
                amount: self.unit.shown(self.amount),
                every,
                is_fixed,
            };
        }
        let (_, ends) = self.calendar.span(share.period);
        Refusal::BudgetExhausted {
            budget,
            holder,
            every,
            renewed: timestamp(ends),
        }
    }

    fn name(&self) -> Option<Arc<str>> {
        self.configured.map(|budget| Arc::clone(&budget.name))
    }

    /// Whether no period has so much.
    fn never_fits(&self, share: &Share) -> bool {
        share.units > self.amount
    }

    /// Of several that are short, the one that is so the longest is told: for good, or until its next period begins.
    fn rank(&self, share: &Share) -> (bool, u64) {
        (self.never_fits(share), self.calendar.span(share.period).1)
    }
}

/// The budgets that may count the calls of somebody: those of the configuration, then the caller's own.
fn counting<'a>(
    who: Who<'a>,
    ids: &'a [BudgetId],
    s: &'a Snapshot,
) -> impl Iterator<Item = Counting<'a>> {
    let configured = ids
        .iter()
        .filter_map(|id| Some(Counting::configured(*id, s.budgets.get(*id)?)));
    let own = who.caller.map_or(&[][..], |caller| &caller.budgets);
    let own = own.iter().enumerate();
    configured.chain(own.map(|(nth, budget)| Counting::own(nth, budget)))
}

/// Takes a call's share from every budget that counts it, or from none. A caller without any pays one look.
///
/// # Errors
/// [`Refusal::BudgetExhausted`] when one does not hold it now, [`Refusal::LargerThanBudget`] when it never will, [`Refusal::Unpriced`] when one counts
/// money and a backend that may answer has no price for the model, [`Refusal::SubjectsExhausted`] when one that counts
/// subjects apart has no place for this one. Nothing is held then.
pub fn reserve(
    asked: &Asked<'_>,
    unix_ms: u64,
    s: &Snapshot,
    levels: &Levels,
) -> Result<BudgetReservation, Refusal> {
    let ids = s.budgets.of.get(asked.workload.index());
    let ids = ids.map_or(&[][..], Vec::as_slice);
    let own = asked.caller.map_or(0, |caller| caller.budgets.len());
    if ids.is_empty() && own == 0 {
        return Ok(BudgetReservation::default());
    }
    let who = s.who(asked.workload, asked.caller);
    let known = Subjects::default();
    let is_fixed = asked.fixed.is_some();
    let mut shares = Vec::with_capacity(ids.len() + own);
    let counting = counting(who, ids, s);
    let takes = |of: &Counting<'_>| of.configured.is_none_or(|b| b.takes(asked.model));
    let used = Used { s, levels, unix_ms };
    for budget in counting.filter(takes) {
        let units = asked.units(&budget, &used)?;
        shares.push((budget, budget.share(unix_ms, units, &who, &known, levels)));
    }
    // Looked at before anything is taken, so that a call that does not fit in the last of them
    // seldom stands, for a moment, in the way of one that fits in the first.
    let short = shares.iter().filter_map(|(budget, share)| {
        let short = budget.fits(share, levels).err()?;
        Some((budget, share, short))
    });
    let tightest = short.reduce(|tightest, next| {
        if next.0.rank(next.1) > tightest.0.rank(tightest.1) {
            next
        } else {
            tightest
        }
    });
    if let Some((budget, share, short)) = tightest {
        return Err(budget.refused(short, share, is_fixed, &who, levels));
    }
    let mut reservation = BudgetReservation {
        shares: Vec::with_capacity(shares.len()),
        caller: asked.caller.filter(|_| own > 0).cloned(),
    };
    for (budget, share) in shares {
        if let Err(short) = budget.take(&share, levels) {
            reservation.release(levels);
            return Err(budget.refused(short, &share, is_fixed, &who, levels));
        }
        reservation.shares.push(share);
    }
    Ok(reservation)
}

/// Takes a call of a tool from every budget of calls that counts it, or from none.
///
/// # Errors
/// As of [`reserve`], where one has no call left.
pub fn reserve_call(
    (workload, caller): (WorkloadId, Option<&Arc<Caller>>),
    tool: &str,
    unix_ms: u64,
    s: &Snapshot,
    levels: &Levels,
) -> Result<BudgetReservation, Refusal> {
    let ids = s.budgets.of_tools.get(workload.index());
    let ids = ids.map_or(&[][..], Vec::as_slice);
    let mut reservation = BudgetReservation::default();
    if ids.is_empty() {
        return Ok(reservation);
    }
    let (who, known) = (s.who(workload, caller), Subjects::default());
    let counting = ids.iter().filter_map(|id| {
        let budget = s
            .budgets
            .get(*id)
            .filter(|budget| budget.takes_tool(tool))?;
        Some(Counting::configured(*id, budget))
    });
    for budget in counting {
        let share = budget.share(unix_ms, 1, &who, &known, levels);
        if let Err(short) = budget.take(&share, levels) {
            reservation.release(levels);
            return Err(budget.refused(short, &share, false, &who, levels));
        }
        reservation.shares.push(share);
    }
    Ok(reservation)
}

/// The shares of a call to this model that ran already: every budget that counts it is charged what it comes to, also one that is used up.
#[cold]
pub fn owed(
    (workload, caller): (WorkloadId, Option<&Arc<Caller>>),
    model: Option<&str>,
    unix_ms: u64,
    s: &Snapshot,
    levels: &Levels,
) -> BudgetReservation {
    let ids = s.budgets.of.get(workload.index());
    let ids = ids.map_or(&[][..], Vec::as_slice);
    let (who, known) = (s.who(workload, caller), Subjects::default());
    let takes = |of: &Counting<'_>| of.configured.is_none_or(|b| b.takes(model));
    let shares = counting(who, ids, s).filter(takes).map(|budget| {
        let share = budget.share(unix_ms, 0, &who, &known, levels);
        // Nothing: that gives a subject its place.
        let _short = budget.take(&share, levels);
        share
    });
    let own = caller.filter(|caller| !caller.budgets.is_empty());
    BudgetReservation {
        shares: shares.collect(),
        caller: own.cloned(),
    }
}

/// Why a workload's calls are refused now whatever they ask for: a budget that counts them all holds
/// nothing more.
#[must_use]
pub fn exhausted(
    workload: WorkloadId,
    who: Who<'_>,
    unix_ms: u64,
    s: &Snapshot,
    levels: &Levels,
) -> Option<Refusal> {
    let ids = s.budgets.of.get(workload.index());
    let ids = ids.map_or(&[][..], Vec::as_slice);
    let known = Subjects::default();
    let counts_all = |of: &Counting<'_>| of.configured.is_none_or(|b| b.models.is_empty());
    let mut refusals = counting(who, ids, s)
        .filter(counts_all)
        .filter_map(|budget| {
            let share = budget.share(unix_ms, 1, &who, &known, levels);
            let short = budget.fits(&share, levels).err()?;
            Some(budget.refused(short, &share, false, &who, levels))
        });
    refusals.next()
}

impl Asked<'_> {
    /// The dearest that any backend may make it; `None` where one has no price in this currency.
    fn at_most(&self, currency: &str, used: &Used<'_>) -> Option<Pico> {
        if let Some(price) = self.fixed {
            return (*price.currency == *currency).then_some(price.request);
        }
        let model = self.model?;
        let payer = Caller::payer(self.caller.map(AsRef::as_ref), Some(self.workload));
        let payer = Payer {
            volume: Some(used),
            ..payer
        };
        let prices = &used.s.prices;
        let mut dearest = Pico(0);
        for backend in self.backends {
            let price = prices.of(model, Some(*backend), payer)?;
            if *price.currency != *currency {
                return None;
            }
            let more = self.pieces.saturating_sub(1);
            let pieces = price.request.0.checked_mul(more.into())?;
            let Pico(one) = price.at_most(self.prompt, self.completion)?;
            dearest = dearest.max(Pico(one.checked_add(pieces)?));
        }
        Some(dearest)
    }

    /// What it takes of a budget.
    fn units(&self, budget: &Counting<'_>, used: &Used<'_>) -> Result<u64, Refusal> {
        let units = match budget.unit {
            Unit::Calls => 1,
            Unit::Tokens => self.prompt.saturating_add(self.completion),
            Unit::Money(currency) => {
                let most = self.at_most(currency, used);
                nano_units(most.ok_or_else(|| self.unpriced(budget))?)
            }
        };
        // What costs nothing by its estimate still needs a budget that is not used up.
        Ok(units.max(1))
    }

    fn unpriced(&self, budget: &Counting<'_>) -> Refusal {
        Refusal::Unpriced {
            model: self.model.unwrap_or_default().to_owned(),
            budget: budget.name(),
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
            let unit = match share.budget {
                Which::Configured(id) => s.budgets.get(id).map(|budget| &budget.unit),
                Which::Own(nth) => {
                    let own = self.caller.as_ref().and_then(|c| c.budgets.get(nth));
                    own.map(|budget| &budget.unit)
                }
            };
            let Some(unit) = unit else { continue };
            let actual = share.actual(unit, tokens, charge, s);
            share.settle(actual, levels);
            share.units = actual;
        }
        self
    }

    /// Gives everything back: the call never was.
    pub fn release(self, levels: &Levels) {
        for share in self.shares {
            share.settle(0, levels);
        }
    }
}

impl Share {
    /// The counters of its budget, where it is one of the configuration.
    fn spent<'a>(&self, levels: &'a Levels) -> Option<&'a Spent> {
        match self.budget {
            Which::Configured(id) => levels.spent(id),
            Which::Own(_) => None,
        }
    }

    fn settle(&self, actual: u64, levels: &Levels) {
        match self.account {
            Some(account) => levels.account_settle(account, self.units, actual),
            None => {
                if let Some(spent) = self.spent(levels) {
                    spent.settle(self.period, self.units, actual);
                }
            }
        }
    }

    /// What the call came to in the budget's unit.
    fn actual(&self, unit: &Unit, tokens: &Tokens, charge: Option<Charge>, s: &Snapshot) -> u64 {
        let is_nothing = tokens.prompt.tokens().is_none() && tokens.completion.tokens().is_none();
        match unit {
            Unit::Tokens => tokens.sum(),
            // It ran, whatever became of it.
            Unit::Calls => self.units,
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
