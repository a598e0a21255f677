//! What exchanges cost, by workload, model and currency.
//!
//! Invariant: sums are whole numbers of 1e-12 until they are written; currencies are never added
//! together; an exchange with tokens and no known cost is counted, not taken for free.
//! Not here: what a call costs (`policy::price`).

use policy::record::{Outcome, Record};

use super::Series;
use crate::names::NameId;

/// What exchanges that share workload, model and currency came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// In 1e-12 of the currency's unit.
    pub(crate) pico: i128,
    /// With tokens, and without a known cost.
    pub(crate) unpriced: u64,
}

/// Key of a cost.
pub(crate) fn cost_key([workload, model, currency]: [NameId; 3]) -> u64 {
    workload.bits() << 30 | model.bits() << 15 | currency.bits()
}

/// Workload, model and currency of a key.
pub(crate) fn cost_parts(key: u64) -> [NameId; 3] {
    [30, 15, 0].map(|shift: u32| NameId::from_bits(key >> shift))
}

impl Series {
    /// Counts what an exchange cost. `currency` is none where no price is known.
    pub(crate) fn charged(&mut self, of: [NameId; 3], cost: Option<i128>, record: &Record) {
        let tokens = [record.tokens.prompt, record.tokens.completion];
        let used = tokens
            .iter()
            .any(|count| count.tokens().is_some_and(|n| n > 0));
        if record.outcome == Outcome::Refused || (cost.is_none() && !used) {
            return;
        }
        let key = cost_key(of);
        let at = match self.costs.find(key) {
            Some(at) => at,
            None if self.held < super::MAX_SERIES => {
                self.held += 1;
                self.costs.place(key)
            }
            None => {
                self.folded += 1;
                let [_, _, currency] = of;
                let other = [NameId::OTHER, NameId::OTHER, currency];
                self.costs.place(cost_key(other))
            }
        };
        self.costs.at(at).absorb(Cost {
            pico: cost.unwrap_or(0),
            unpriced: u64::from(cost.is_none()),
        });
    }
}

impl Cost {
    pub(crate) fn absorb(&mut self, other: Self) {
        self.pico = self.pico.saturating_add(other.pico);
        self.unpriced += other.unpriced;
    }
}
