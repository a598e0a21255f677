//! The figures of a report, computed again from the files beside it by code that shares nothing with the report's.
//!
//! Invariant: each number of a document is either held against one of ours or is named, by where it stands, as one that no
//! file has: a figure that is added to a report and to neither is told.
//! Not here: whether a run went well.

pub(crate) mod campaign;
pub(crate) mod load;
mod query;
mod rows;
mod samples;

use std::collections::BTreeSet;

use serde_json::Value;

/// Quantiles, by the names that they have.
const SHARES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
    ("max", 1.0),
];
/// Histograms have three digits.
const OF_HISTOGRAM: f64 = 1e-3;
/// Documents have twelve digits.
const EXACT: f64 = 1e-9;

/// A document, what was looked at in it, and what differs.
struct Figures<'a> {
    report: &'a Value,
    seen: BTreeSet<String>,
    differences: Vec<String>,
}

impl<'a> Figures<'a> {
    fn of(report: &'a Value) -> Self {
        Self {
            report,
            seen: BTreeSet::new(),
            differences: Vec::new(),
        }
    }

    /// The number at a place; none where there is nothing or `null`.
    fn get(&mut self, place: &str) -> Option<f64> {
        self.seen.insert(place.to_owned());
        self.report.pointer(place)?.as_f64()
    }

    /// The figure at a place is ours, but for so much of it.
    fn is(&mut self, place: &str, own: Option<f64>, within: f64) {
        self.is_one_of(place, &[own], within);
    }

    /// It is exactly ours, but for the digits that are written.
    fn equals(&mut self, place: &str, own: impl Into<Option<f64>>) {
        self.is(place, own.into(), EXACT);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn counts(&mut self, place: &str, own: usize) {
        self.equals(place, own as f64);
    }

    /// It is one of these.
    fn is_one_of(&mut self, place: &str, own: &[Option<f64>], within: f64) {
        let told = self.get(place);
        let is_same = |own: &Option<f64>| match (told, own) {
            (Some(told), Some(own)) => {
                let allowed = within * own.abs().max(told.abs());
                (told - own).abs() <= allowed.max(1e-12)
            }
            (None, None) => true,
            _ => false,
        };
        if !own.iter().any(is_same) {
            self.differences
                .push(format!("{place} is {told:?}; by the files {own:?}"));
        }
    }

    /// It lies between these.
    fn lies_between(&mut self, place: &str, least: f64, most: f64) {
        let told = self.get(place);
        if !told.is_some_and(|told| (least..=most).contains(&told)) {
            self.differences.push(format!(
                "{place} is {told:?}; by the files from {least} to {most}"
            ));
        }
    }

    /// Quantiles of times in seconds, at a place that has them in this unit.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn quantiles(&mut self, place: &str, times_s: &[f64], unit: f64) {
        if times_s.is_empty() {
            self.equals(place, None);
            return;
        }
        let mean = times_s.iter().sum::<f64>() / times_s.len() as f64;
        self.near(&format!("{place}/mean"), mean, unit);
        let mut sorted = times_s.to_vec();
        sorted.sort_by(f64::total_cmp);
        for (name, share) in SHARES {
            self.near(
                &format!("{place}/{name}"),
                nearest_rank(&sorted, share),
                unit,
            );
        }
    }

    /// It is this time in seconds, as a histogram has it: whole microseconds, one at least, and three digits of them.
    fn near(&mut self, place: &str, own: f64, unit: f64) {
        let slack = own * OF_HISTOGRAM + 1e-6;
        self.lies_between(place, (own - slack) / unit, (own + slack) / unit);
    }

    /// Takes what stands at places that begin so for seen.
    fn except(&mut self, prefixes: &[&str]) {
        let mut leaves = Vec::new();
        numbers(self.report, "", &mut leaves);
        let is_excepted = |place: &String| prefixes.iter().any(|prefix| fits(place, prefix));
        self.seen.extend(leaves.into_iter().filter(is_excepted));
    }

    /// All that differs, and every number that nobody looked at.
    fn finish(mut self) -> Vec<String> {
        let mut leaves = Vec::new();
        numbers(self.report, "", &mut leaves);
        let forgotten = leaves
            .into_iter()
            .filter(|place| !self.seen.contains(place));
        let forgotten = forgotten.map(|place| format!("{place} is not computed again"));
        self.differences.extend(forgotten);
        self.differences
    }
}

/// Whether a place begins so; `*` is one step of whatever name.
fn fits(place: &str, prefix: &str) -> bool {
    let mut steps = place.split('/');
    prefix.split('/').all(|wanted| {
        steps
            .next()
            .is_some_and(|step| wanted == "*" || wanted == step)
    })
}

/// The places of all numbers.
fn numbers(value: &Value, place: &str, into: &mut Vec<String>) {
    match value {
        Value::Number(_) => into.push(place.to_owned()),
        Value::Array(all) => {
            for (at, value) in all.iter().enumerate() {
                numbers(value, &format!("{place}/{at}"), into);
            }
        }
        Value::Object(all) => {
            for (name, value) in all {
                let name = name.replace('~', "~0").replace('/', "~1");
                numbers(value, &format!("{place}/{name}"), into);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The least of sorted times that so much of all is at or below.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions in a list"
)]
fn nearest_rank(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}
