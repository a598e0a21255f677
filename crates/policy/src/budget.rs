//! Budgets: an amount of tokens or money over a calendar period.
//!
//! Budgets nest by whom they are for: a call must fit in every one that counts it (its own, its
//! group's, the company's), and is reserved in all of them or in none. For each period there is
//! one atomic that every core shares, holding what was spent and what is reserved together
//! (`spent`). A call belongs to the period in which it began, also when it ends in the next.
//! Invariant: nothing is admitted that would bring spent + reserved above the amount. So what the
//! calls of a period come to is at most the amount, and what single calls came to beyond their
//! reservation. A reservation is settled or released exactly once.
//! Not here: what a call holds of them ([`crate::budget_reservation`]), rates over a window
//! ([`crate::limit`]), what tokens cost ([`crate::price`]), reading sums back after a restart (the
//! host does).

pub mod period;
mod spent;

use std::sync::Arc;

pub use self::period::{Calendar, Every, Period};
pub use self::spent::{Level, Spent};
use crate::id::{BudgetId, WorkloadId};
use crate::mcp::Glob;
use crate::model::ModelPattern;
use crate::price::Pico;
use crate::whose::Whose;

/// Most budgets that may count one workload; more is refused by `config`.
pub const MAX_BUDGETS: usize = 16;

/// What a budget counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// LLM tokens, prompt and completion together.
    Tokens,
    /// Calls of tools (of servers of tools), one each.
    Calls,
    /// Money of this currency (ISO 4217), in 1e-9 of its unit; each call is rounded up.
    Money(Arc<str>),
}

impl Unit {
    /// So much of it, as a person writes it: `1000 tokens`, `0.25 USD`.
    #[must_use]
    pub fn shown(&self, units: u64) -> String {
        const NANO: u64 = 1_000_000_000;
        match self {
            Self::Tokens if units == 1 => "1 token".to_owned(),
            Self::Tokens => format!("{units} tokens"),
            Self::Calls if units == 1 => "1 call".to_owned(),
            Self::Calls => format!("{units} calls"),
            Self::Money(currency) => {
                let part = format!("{:09}", units % NANO);
                let part = part.trim_end_matches('0');
                let point = if part.is_empty() { "" } else { "." };
                format!("{}{point}{part} {currency}", units / NANO)
            }
        }
    }

    /// The word in labels and messages.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tokens => "tokens",
            Self::Calls => "calls",
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
    /// Of which tools, where it counts calls: by whole names; empty for all.
    pub tools: Vec<Glob>,
    /// Its periods.
    pub calendar: Calendar,
    /// Whether those whom it counts share it, or each key or user of theirs has the amount to itself.
    pub whose: Whose,
}

/// All budgets, and who is counted by which.
#[derive(Debug, Default)]
pub struct Budgets {
    /// In the order of their names.
    pub list: Vec<Budget>,
    /// By workload: the budgets of tokens and money that may count its calls.
    pub of: Vec<Vec<BudgetId>>,
    /// By workload: the budgets of calls of tools that may count its own.
    pub of_tools: Vec<Vec<BudgetId>>,
    /// By workload: the group that it belongs to.
    pub groups: Vec<Option<Arc<str>>>,
}

impl Budgets {
    /// The group of a workload.
    #[must_use]
    pub fn group(&self, workload: WorkloadId) -> Option<&Arc<str>> {
        self.groups.get(workload.index())?.as_ref()
    }

    /// Whether any budget may count the calls of a workload.
    #[must_use]
    pub fn count(&self, workload: WorkloadId) -> bool {
        self.of
            .get(workload.index())
            .is_some_and(|of| !of.is_empty())
    }

    /// Whether any budget may count the calls of a workload by the names of its tools.
    #[must_use]
    pub fn name_tools(&self, workload: WorkloadId) -> bool {
        let of = self.of_tools.get(workload.index()).into_iter().flatten();
        of.filter_map(|id| self.get(*id))
            .any(|budget| !budget.tools.is_empty())
    }

    /// Each with its id.
    pub fn iter(&self) -> impl Iterator<Item = (BudgetId, &Budget)> {
        (0..).map(BudgetId).zip(&self.list)
    }

    /// The budget, if the id is of this snapshot.
    #[must_use]
    pub fn get(&self, id: BudgetId) -> Option<&Budget> {
        self.list.get(id.index())
    }
}

impl Budget {
    /// Whether it counts the calls of `workload` to `model`. A call whose model nobody knows counts
    /// wherever it might.
    #[must_use]
    pub fn counts(&self, workload: Option<&str>, model: Option<&str>) -> bool {
        self.unit != Unit::Calls && self.is_of(workload) && self.takes(model)
    }

    /// Whether it counts the calls of this tool by `workload`.
    #[must_use]
    pub fn counts_tool(&self, workload: Option<&str>, tool: &str) -> bool {
        self.unit == Unit::Calls && self.is_of(workload) && self.takes_tool(tool)
    }

    /// Whether it counts calls of this tool, of those whose calls it counts.
    pub(crate) fn takes_tool(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|glob| glob.takes(tool))
    }

    fn is_of(&self, workload: Option<&str>) -> bool {
        match &self.scope {
            Scope::Everyone => true,
            Scope::Workloads(names) => names.iter().any(|name| Some(&**name) == workload),
        }
    }

    /// Whether it counts calls to `model`, of those whose calls it counts.
    #[must_use]
    pub fn counts_model(&self, model: &str) -> bool {
        self.takes(Some(model))
    }

    /// Whether it counts the same units in the same periods for the same as another one: what was spent of one was of
    /// the other.
    #[must_use]
    pub fn is_counted_as(&self, other: &Self) -> bool {
        self.unit == other.unit && self.calendar == other.calendar && self.whose == other.whose
    }

    /// Whether it counts a call to `model`, of a workload that it counts.
    pub(crate) fn takes(&self, model: Option<&str>) -> bool {
        self.models.is_empty()
            || model.is_none_or(|model| self.models.iter().any(|pattern| pattern.takes(model)))
    }
}

/// Money as a budget counts it, rounded up.
#[must_use]
pub fn nano_units(cost: Pico) -> u64 {
    const PICOS: u128 = 1000;
    u64::try_from(u128::try_from(cost.0).unwrap_or(0).div_ceil(PICOS)).unwrap_or(u64::MAX)
}
