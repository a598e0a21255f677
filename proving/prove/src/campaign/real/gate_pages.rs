//! What the gate's own pages say of tokens and money, by workload and model.
//!
//! Invariant: only what was counted since the first page is told.
//! Not here: gates and figures that queries answer (`experiment::telemetry`).

use std::collections::BTreeMap;

use experiment::telemetry::{Sample, Value};

use crate::report::document::Tokens;

/// The target that is the gateway.
pub(super) const TARGET: &str = "gateway";

/// Tokens of exchanges that both witnesses counted.
const DRIFT: &str = "tollgate_token_drift_tokens_total";
/// Stands for all workloads, in the row of what was counted twice.
const ALL: &str = Tokens::COUNTED_TWICE;

/// What is looked at on a page.
const METRICS: [&str; 4] = [
    DRIFT,
    "tollgate_tokens_total",
    "tollgate_cost_total",
    "tollgate_exchanges_total",
];

/// Series of those, by name and labels.
type Counters = BTreeMap<(String, Vec<(String, String)>), f64>;

/// The first page and the last.
#[derive(Debug, Default)]
pub(super) struct GatePages {
    first: Option<Counters>,
    last: Counters,
}

impl GatePages {
    /// Takes a page, if it is the gate's.
    pub(super) fn hear(&mut self, sample: &Sample) {
        if sample.target != TARGET {
            return;
        }
        let values = sample.values.iter();
        let counters = values.filter(|value| METRICS.contains(&&*value.metric));
        let key = |value: &Value| (value.metric.clone(), value.labels.clone());
        self.last = counters.map(|value| (key(value), value.value)).collect();
        if self.first.is_none() {
            self.first = Some(self.last.clone());
        }
    }

    /// What was counted, by workload and model; nothing of a gateway that does not count by workload.
    pub(super) fn tokens(&self) -> Vec<Tokens> {
        let mut rows: BTreeMap<(String, String), Tokens> = BTreeMap::new();
        let first = self.first.as_ref();
        for ((metric, labels), value) in &self.last {
            let before = first.and_then(|first| first.get(&(metric.clone(), labels.clone())));
            let grown = (value - before.copied().unwrap_or(0.0)).max(0.0);
            let label = |name: &str| {
                let found = labels.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.as_str()).unwrap_or_default()
            };
            let is_drift = metric == DRIFT;
            let workload = if is_drift { ALL } else { label("workload") };
            let key = (workload.to_owned(), label("model").to_owned());
            if grown <= 0.0 || metric == "tollgate_exchanges_total" {
                continue;
            }
            let row = rows.entry(key.clone()).or_insert_with(|| Tokens {
                workload: key.0,
                model: key.1,
                requests: self.exchanges((!is_drift).then(|| label("workload"))),
                input_tokens: 0,
                output_tokens: 0,
                input_counted: None,
                output_counted: None,
                drift: None,
                cost: None,
                currency: None,
            });
            let tokens = grown.round() as u64;
            // Counted by direction, and not by type.
            let kind = if is_drift {
                label("direction")
            } else {
                label("type")
            };
            match (metric.as_str(), kind, label("source")) {
                ("tollgate_cost_total", ..) => {
                    row.cost = Some(row.cost.unwrap_or(0.0) + grown);
                    row.currency = Some(label("currency").to_owned());
                }
                (_, "input", "reported") => row.input_tokens += tokens,
                (_, "output", "reported") => row.output_tokens += tokens,
                (_, "input", "counted") => *row.input_counted.get_or_insert(0) += tokens,
                (_, "output", "counted") => *row.output_counted.get_or_insert(0) += tokens,
                _ => {}
            }
        }
        let mut rows: Vec<Tokens> = rows.into_values().collect();
        rows.iter_mut().for_each(|row| row.drift = drift(row));
        rows
    }

    /// Of one workload, or of all.
    fn exchanges(&self, workload: Option<&str>) -> u64 {
        let first = self.first.as_ref();
        let counters = self.last.iter().filter(|((metric, labels), _)| {
            let is = |name: &str, wanted: &str| {
                let mut labels = labels.iter();
                labels.any(|(known, value)| known == name && value == wanted)
            };
            let is_of = workload.is_none_or(|wanted| is("workload", wanted));
            // What was refused asked for no tokens.
            metric == "tollgate_exchanges_total" && is_of && !is("outcome", "refused")
        });
        let grown = counters.map(|(key, value)| {
            let before = first.and_then(|first| first.get(key)).copied();
            (value - before.unwrap_or(0.0)).max(0.0)
        });
        grown.sum::<f64>().round() as u64
    }
}

/// Reported over counted, less one; of both kinds together.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn drift(row: &Tokens) -> Option<f64> {
    let counted = (row.input_counted? + row.output_counted?) as f64;
    let reported = (row.input_tokens + row.output_tokens) as f64;
    (counted > 0.0 && reported > 0.0).then(|| reported / counted - 1.0)
}

#[cfg(test)]
mod tests {
    //! Rows of two pages.

    use std::time::Duration;

    use super::*;

    fn value(metric: &str, labels: &[(&str, &str)], value: f64) -> Value {
        let labels = labels.iter();
        Value {
            metric: metric.into(),
            labels: labels
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            value,
        }
    }

    #[test]
    fn a_row_has_what_its_workload_asked_for_since_the_first_page_and_no_refusal() {
        let page = |exchanges: f64, refused: f64, tokens: f64| Sample {
            at: Duration::ZERO,
            target: TARGET.into(),
            values: vec![
                value(
                    "tollgate_exchanges_total",
                    &[("workload", "a"), ("outcome", "completed")],
                    exchanges,
                ),
                value(
                    "tollgate_exchanges_total",
                    &[("workload", "a"), ("outcome", "refused")],
                    refused,
                ),
                value(
                    "tollgate_tokens_total",
                    &[
                        ("workload", "a"),
                        ("model", "m"),
                        ("type", "input"),
                        ("source", "reported"),
                    ],
                    tokens,
                ),
            ],
        };
        let mut pages = GatePages::default();
        pages.hear(&page(10.0, 5.0, 100.0));
        pages.hear(&page(14.0, 8.0, 160.0));
        let rows = pages.tokens();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].requests, rows[0].input_tokens), (4, 60));
    }
}
