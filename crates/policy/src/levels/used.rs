//! What budgets have used, as prices ask that are for what is above a volume.
//!
//! Invariant: what running calls have reserved is none of it: how much that is they write themselves.
//! Not here: which prices ask ([`crate::price`]), what a call takes of a budget ([`crate::budget_reservation`]).

use crate::id::BudgetId;
use crate::levels::Levels;
use crate::price::Volume;
use crate::snapshot::Snapshot;

/// What is used of the budgets of a configuration in the period in which a call began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used<'a> {
    pub(crate) s: &'a Snapshot,
    pub(crate) levels: &'a Levels,
    /// When the call began.
    pub(crate) unix_ms: u64,
}

impl Volume for Used<'_> {
    fn used(&self, id: BudgetId) -> u64 {
        let (Some(budget), Some(spent)) = (self.s.budgets.get(id), self.levels.spent(id)) else {
            return 0;
        };
        spent.level(budget.calendar.of(self.unix_ms)).used
    }
}
