//! Families of money.
//!
//! Not here: what anything costs (`policy::price`).

use std::collections::BTreeMap;

use super::page::Page;
use crate::merge::Merged;
use crate::series::{Cost, cost_parts};

impl Merged {
    pub(super) fn costs(&self, page: &mut Page) {
        let mut by: BTreeMap<[&str; 3], Cost> = BTreeMap::new();
        let mut unpriced: BTreeMap<[&str; 2], u64> = BTreeMap::new();
        for (key, cost) in self.series.costs.rows() {
            let [workload, model, currency] = cost_parts(key).map(|name| self.text(name));
            *unpriced.entry([workload, model]).or_default() += cost.unpriced;
            if !currency.is_empty() {
                by.entry([workload, model, currency])
                    .or_default()
                    .absorb(*cost);
            }
        }
        let name = "tollgate_cost_total";
        page.family(
            name,
            "counter",
            "What exchanges came to, in the currency's unit.",
        );
        for ([workload, model, currency], cost) in by {
            let labels = [
                ("workload", workload),
                ("model", model),
                ("currency", currency),
            ];
            page.sample(name, &labels, units(cost.pico));
        }
        let name = "tollgate_unpriced_total";
        let help = "Exchanges with tokens and no known cost, where there are prices at all.";
        page.family(name, "counter", help);
        for ([workload, model], n) in unpriced {
            page.sample(name, &[("workload", workload), ("model", model)], n);
        }
    }
}

/// Exact sums become floats only here.
#[expect(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
fn units(pico: i128) -> f64 {
    pico as f64 / 1e12
}
