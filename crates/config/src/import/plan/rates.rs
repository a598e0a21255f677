//! Limits and prices of a route's models.

use super::{Making, ModelPrice, Pool, Target};
use crate::import::deployment::Deployment;
use crate::import::price::Price;

impl Making<'_> {
    /// Rates of all deployments together.
    pub(super) fn limits(&self, targets: &[Target], notes: &mut Vec<String>) -> Vec<String> {
        let members = targets
            .iter()
            .filter_map(|(index, _)| self.list.get(*index));
        let members: Vec<&Deployment> = members.collect();
        let mut limits = Vec::new();
        type Rate = fn(&Deployment) -> Option<u64>;
        let rates: [(&str, &str, Rate); 2] = [
            ("requests", "rpm", |it| it.rpm),
            ("tokens", "tpm", |it| it.tpm),
        ];
        for (unit, written, rate) in rates {
            let rates: Vec<u64> = members.iter().filter_map(|it| rate(it)).collect();
            let sum = rates
                .iter()
                .fold(0_u64, |sum, rate| sum.saturating_add(*rate));
            if rates.is_empty() || sum == 0 {
                continue;
            }
            if rates.len() < members.len() {
                notes.push(format!(
                    "Only some of its deployments say {written} ({sum} in all): no limit of {unit} is made of that."
                ));
            } else {
                const MOST: u64 = 1_000_000_000_000;
                limits.push(format!("{{ {unit}: {}, per: 1m }}", sum.min(MOST)));
            }
        }
        if !limits.is_empty() {
            let says = "LiteLLM chooses deployments by these; here a call above them is refused with 429, each workload's for itself.";
            notes.push(says.to_owned());
        }
        limits
    }

    /// The price of a pool: of its first deployment that says one.
    pub(super) fn price_of(&self, pool: &Pool) -> Option<Price> {
        let members = pool
            .members
            .iter()
            .filter_map(|index| self.list.get(*index));
        members.filter_map(|it| it.price.clone()).next()
    }

    /// What a model costs: at the first of its backends, and at others.
    pub(super) fn price(&mut self, model: &str, prices: &[(String, Option<Price>)]) {
        let Some((_, Some(price))) = prices.first() else {
            return;
        };
        let mut made = ModelPrice {
            model: model.to_owned(),
            price: price.clone(),
            at: Vec::new(),
            notes: Vec::new(),
        };
        for (backend, other) in prices.iter().skip(1) {
            match other {
                Some(other) if other != price => made.at.push((backend.clone(), other.clone())),
                Some(_) => {}
                None => made.notes.push(format!(
                    "What {backend} answers costs the same, unless `at: {{ {backend}: … }}` says another price."
                )),
            }
        }
        if self.plan.prices.iter().all(|known| known.model != model) {
            self.plan.prices.push(made);
        }
    }
}
