//! Budgets: an amount of tokens or money over a calendar period.
//!
//! Budgets nest by whom they are for: a call must fit in every one that counts it (its own, its
//! group's, the company's), and is reserved in all of them or in none. For each period there is
//! one atomic that every core shares, holding what was spent and what is reserved together
//! (`spent`). A call belongs to the period in which it began, also when it ends in the next.
//! Invariant: nothing is admitted that would bring spent + reserved above the amount. So what the
//! calls of a period come to is at most the amount, and what single calls came to beyond their
//! reservation. A reservation is settled or released exactly once.
//! Not here: rates over a window ([`crate::limit`]), what tokens cost ([`crate::price`]), reading
//! sums back after a restart (the host does).

pub mod period;
mod spent;

use std::sync::Arc;

pub use self::period::{Calendar, Every, Period};
pub use self::spent::{Level, Spent};
use crate::id::{BackendId, BudgetId, WorkloadId};
use crate::price::{Charge, Pico};
use crate::record::Tokens;
use crate::refusal::Refusal;
use crate::route::ModelPattern;
use crate::snapshot::Snapshot;

/// Most budgets that may count one workload; more is refused by `config`.
pub const MAX_BUDGETS: usize = 16;

/// What a budget counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// LLM tokens, prompt and completion together.
    Tokens,
    /// Money of this currency (ISO 4217), in 1e-9 of its unit; each call is rounded up.
    Money(Arc<str>),
}

impl Unit {
    /// The word in labels and messages.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tokens => "tokens",
            Self::Money(currency) => currency,
        }
    }
}

/// Whose calls a budget counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's.
    Everyone,
    /// These workloads' together.
    Workloads(Vec<Arc<str>>),
}

/// One budget.
#[derive(Debug)]
pub struct Budget {
    /// As written; its identity across reloads and restarts.
    pub name: Arc<str>,
    /// What it counts.
    pub unit: Unit,
    /// How much of that a period has; at least 1.
    pub amount: u64,
    /// Whose calls.
    pub scope: Scope,
    /// Of which models; empty for all.
    pub models: Vec<ModelPattern>,
    /// What is spent and reserved, shared by all cores and carried across reloads.
    pub spent: Arc<Spent>,
}

/// All budgets, and who is counted by which.
#[derive(Debug, Default)]
pub struct Budgets {
    /// In the order of their names.
    pub list: Vec<Budget>,
    /// By workload: the budgets that may count its calls.
    pub of: Vec<Vec<BudgetId>>,
    /// By workload: the group that it belongs to.
    pub groups: Vec<Option<Arc<str>>>,
}

impl Budgets {
    /// The group of a workload.
    #[must_use]
    pub fn group(&self, workload: WorkloadId) -> Option<&Arc<str>> {
        self.groups.get(workload.index())?.as_ref()
    }

    fn get(&self, id: BudgetId) -> Option<&Budget> {
        self.list.get(id.index())
    }
}

impl Budget {
    /// Whether it counts the calls of `workload` to `model`. A call whose model nobody knows counts
    /// wherever it might.
    #[must_use]
    pub fn counts(&self, workload: Option<&str>, model: Option<&str>) -> bool {
        let who = match &self.scope {
            Scope::Everyone => true,
            Scope::Workloads(names) => names.iter().any(|name| Some(&**name) == workload),
        };
        who && self.takes(model)
    }

    /// Whether it counts calls to `model`, of those whose calls it counts.
    #[must_use]
    pub fn counts_model(&self, model: &str) -> bool {
        self.takes(Some(model))
    }

    fn takes(&self, model: Option<&str>) -> bool {
        self.models.is_empty()
            || model.is_none_or(|model| self.models.iter().any(|pattern| pattern.takes(model)))
    }

    fn refusal(&self, period: Period) -> Refusal {
        self.spent.refused(period);
        let (_, ends) = self.spent.calendar().span(period);
        Refusal::BudgetExhausted {
            budget: Arc::clone(&self.name),
            every: self.spent.calendar().every,
            renewed: period::stamp(ends),
        }
    }
}

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
}

/// A reservation: what was taken from which budgets.
#[derive(Debug, Default)]
#[must_use = "settle it"]
pub struct Pledge {
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
pub fn reserve(asked: &Asked<'_>, unix_ms: u64, s: &Snapshot) -> Result<Pledge, Refusal> {
    let ids = s.budgets.of.get(asked.workload.index());
    let ids = ids.map_or(&[][..], Vec::as_slice);
    if ids.is_empty() {
        return Ok(Pledge::default());
    }
    let mut shares = Vec::with_capacity(ids.len());
    let counting = ids.iter().filter_map(|id| Some((*id, s.budgets.get(*id)?)));
    for (id, budget) in counting.filter(|(_, budget)| budget.takes(asked.model)) {
        let units = match &budget.unit {
            Unit::Tokens => asked.prompt.saturating_add(asked.completion),
            Unit::Money(currency) => {
                let most = asked.at_most(currency, s);
                nanos(most.ok_or_else(|| asked.unpriced(budget))?)
            }
        };
        shares.push(Share {
            budget: id,
            period: budget.spent.calendar().of(unix_ms),
            // What costs nothing by its estimate still needs a budget that is not used up.
            units: units.max(1),
        });
    }
    // Looked at before anything is taken, so that a call that does not fit in the last of them
    // seldom stands, for a moment, in the way of one that fits in the first.
    for share in &shares {
        if let Some(budget) = s.budgets.get(share.budget)
            && !budget.spent.fits(share.period, share.units, budget.amount)
        {
            return Err(budget.refusal(share.period));
        }
    }
    let mut pledge = Pledge {
        shares: Vec::with_capacity(shares.len()),
    };
    for share in shares {
        let Some(budget) = s.budgets.get(share.budget) else {
            continue;
        };
        if !budget.spent.take(share.period, share.units, budget.amount) {
            pledge.release(s);
            return Err(budget.refusal(share.period));
        }
        pledge.shares.push(share);
    }
    Ok(pledge)
}

impl Asked<'_> {
    /// The dearest that any backend may make it; `None` where one has no price in this currency.
    fn at_most(&self, currency: &str, s: &Snapshot) -> Option<Pico> {
        let model = self.model?;
        let mut dearest = Pico(0);
        for backend in self.backends {
            let price = s.prices.of(model, Some(*backend))?;
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

impl Pledge {
    /// Corrects every share to what the call really came to. Where its tokens are known and their
    /// cost is not, the reservation stands; a call of which no token is known came to nothing.
    pub fn settle(self, tokens: &Tokens, charge: Option<Charge<'_>>, s: &Snapshot) {
        let counts = [tokens.prompt.tokens(), tokens.completion.tokens()];
        let used = counts
            .iter()
            .flatten()
            .fold(0_u64, |n, m| n.saturating_add(*m));
        let is_nothing = counts.iter().all(Option::is_none);
        for share in self.shares {
            let Some(budget) = s.budgets.get(share.budget) else {
                continue;
            };
            let actual = match &budget.unit {
                Unit::Tokens => used,
                Unit::Money(_) if is_nothing => 0,
                Unit::Money(currency) => charge
                    .filter(|charge| charge.price.currency == *currency)
                    .and_then(|charge| charge.cost)
                    .map_or(share.units, nanos),
            };
            budget.spent.settle(share.period, share.units, actual);
        }
    }

    /// Gives everything back: the call never was.
    pub fn release(self, s: &Snapshot) {
        for share in self.shares {
            if let Some(budget) = s.budgets.get(share.budget) {
                budget.spent.settle(share.period, share.units, 0);
            }
        }
    }
}

/// Money as a budget counts it, rounded up.
#[must_use]
pub fn nanos(cost: Pico) -> u64 {
    const PICOS: u128 = 1000;
    u64::try_from(u128::try_from(cost.0).unwrap_or(0).div_ceil(PICOS)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
