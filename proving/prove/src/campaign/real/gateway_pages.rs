//! What the gateway's own pages say of tokens and money, by workload and model.
//!
//! Invariant: only what was counted since the first page is told, and all of it: counters of a gateway that started again
//! begin at 0, and what was counted before stays. All figures are of the same page: one on which a counter has no number is
//! passed over whole.
//! Not here: gates and figures that queries answer (`experiment::telemetry`).

use std::collections::BTreeMap;
use std::time::Duration;

use experiment::telemetry::{Sample, Value, growth};

use crate::report::document::Tokens;

/// The target that is the gateway.
pub(super) const TARGET: &str = "gateway";

/// Tokens of exchanges that both witnesses counted.
const DRIFT: &str = "tollgate_token_drift_tokens_total";
/// Those exchanges, once for each direction.
const DRIFT_EXCHANGES: &str = "tollgate_token_drift_exchanges_total";
/// Stands for all workloads, in the row of what was counted twice.
const ALL: &str = Tokens::COUNTED_TWICE;

/// By workload, and by no model.
const EXCHANGES: &str = "tollgate_exchanges_total";
const COST: &str = "tollgate_cost_total";

/// What is looked at on a page.
const METRICS: [&str; 5] = [
    DRIFT,
    DRIFT_EXCHANGES,
    "tollgate_tokens_total",
    COST,
    EXCHANGES,
];

/// Series that are added up at most: more come from a label that is another on each page. Tollgate folds its own long
/// before.
const MOST_SERIES: usize = 100_000;

/// Series of those, by name and labels.
type Counters = BTreeMap<(String, Vec<(String, String)>), f64>;

/// What was counted from the first page to the last.
#[derive(Debug, Default)]
pub(super) struct GatewayPages {
    /// The page before, once there was one.
    last: Option<Counters>,
    /// What each series grew by since the first page.
    grown: Counters,
    /// When there was one last, whatever was on it.
    heard: Option<Duration>,
}

impl GatewayPages {
    /// Takes a page, if it is the gateway's.
    pub(super) fn hear(&mut self, sample: &Sample) {
        if sample.target != TARGET {
            return;
        }
        self.heard = Some(sample.at);
        let values = sample.values.iter();
        let counters = values.filter(|value| METRICS.contains(&&*value.metric));
        if counters.clone().any(|value| !value.value.is_finite()) {
            return;
        }
        let key = |value: &Value| (value.metric.clone(), value.labels.clone());
        let page: Counters = counters.map(|value| (key(value), value.value)).collect();
        let is_first = self.last.is_none();
        // A gateway keeps its series while it runs: one that is gone and comes back is another process's.
        let before = self.last.take().unwrap_or_default();
        for (series, value) in &page {
            let grown = growth(before.get(series).copied(), *value, is_first);
            if let Some(sum) = self.grown.get_mut(series) {
                *sum += grown;
            } else if grown > 0.0 && self.grown.len() < MOST_SERIES {
                self.grown.insert(series.clone(), grown);
            }
        }
        self.last = Some(page);
    }

    /// When a page came last.
    pub(super) fn last_heard(&self) -> Option<Duration> {
        self.heard
    }

    /// What was counted, by workload and model; nothing of a gateway that does not count by workload.
    pub(super) fn tokens(&self) -> Vec<Tokens> {
        let mut rows: BTreeMap<(String, String), Tokens> = BTreeMap::new();
        for ((metric, labels), grown) in &self.grown {
            if metric == EXCHANGES || metric == DRIFT_EXCHANGES {
                continue;
            }
            let label = |name: &str| label(labels, name);
            let is_drift = metric == DRIFT;
            let workload = if is_drift { ALL } else { label("workload") };
            let key = (workload.to_owned(), label("model").to_owned());
            let row = rows.entry(key.clone()).or_insert_with(|| Tokens {
                requests: if is_drift {
                    self.compared(label("model"))
                } else {
                    self.exchanges(label("workload"))
                },
                workload: key.0,
                model: key.1,
                input_tokens: 0,
                output_tokens: 0,
                input_counted: None,
                output_counted: None,
                drift: None,
                cost: None,
                currency: None,
            });
            let tokens = grown.round() as u64;
            // The drift metric names the kind of token `direction`, the others `type`.
            let kind = if is_drift {
                label("direction")
            } else {
                label("type")
            };
            match (metric.as_str(), kind, label("source")) {
                (COST, ..) => {
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

    /// Of a workload: the gateway counts none by model.
    fn exchanges(&self, workload: &str) -> u64 {
        self.sum(EXCHANGES, |labels| {
            // What was refused asked for no tokens.
            label(labels, "workload") == workload && label(labels, "outcome") != "refused"
        })
    }

    /// Those to a model whose tokens both witnesses have.
    fn compared(&self, model: &str) -> u64 {
        let of = |direction: &str| {
            self.sum(DRIFT_EXCHANGES, |labels| {
                label(labels, "model") == model && label(labels, "direction") == direction
            })
        };
        of("input").max(of("output"))
    }

    /// What the series of a metric grew by whose labels fit.
    fn sum(&self, of: &str, fits: impl Fn(&[(String, String)]) -> bool) -> u64 {
        let series = self.grown.iter();
        let series = series.filter(|((metric, labels), _)| metric == of && fits(labels));
        series.map(|(_, grown)| grown).sum::<f64>().round() as u64
    }
}

/// The value of a label; empty where there is none.
fn label<'a>(labels: &'a [(String, String)], name: &str) -> &'a str {
    let found = labels.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_default()
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

    /// Tokens that the engine reported of a workload's calls to a model.
    fn tokens((workload, model): (&str, &str), kind: &str, tokens: f64) -> Value {
        let labels = [
            ("workload", workload),
            ("model", model),
            ("type", kind),
            ("source", "reported"),
        ];
        value("tollgate_tokens_total", &labels, tokens)
    }

    fn exchanges(workload: &str, outcome: &str, exchanges: f64) -> Value {
        let labels = [("workload", workload), ("outcome", outcome)];
        value(EXCHANGES, &labels, exchanges)
    }

    fn page(values: Vec<Value>) -> Sample {
        Sample {
            at: Duration::ZERO,
            target: TARGET.into(),
            values,
        }
    }

    fn told(pages: impl IntoIterator<Item = Vec<Value>>) -> Vec<Tokens> {
        let mut heard = GatewayPages::default();
        for values in pages {
            heard.hear(&page(values));
        }
        heard.tokens()
    }

    #[test]
    fn a_row_has_what_its_workload_asked_for_since_the_first_page_and_no_refusal() {
        let page = |completed, refused, input| {
            vec![
                exchanges("a", "completed", completed),
                exchanges("a", "refused", refused),
                tokens(("a", "m"), "input", input),
            ]
        };
        let rows = told([page(10.0, 5.0, 100.0), page(14.0, 8.0, 160.0)]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].requests, rows[0].input_tokens), (4, 60));
    }

    #[test]
    fn a_gateway_that_starts_again_loses_nothing_of_what_it_had_counted() {
        let cost = |cost| {
            let labels = [("workload", "a"), ("model", "m"), ("currency", "USD")];
            value(COST, &labels, cost)
        };
        let page = |completed, input, costs| {
            vec![
                exchanges("a", "completed", completed),
                tokens(("a", "m"), "input", input),
                cost(costs),
            ]
        };
        let rows = told([
            page(10.0, 100.0, 1.0),
            page(14.0, 160.0, 1.5),
            // Another process: its counters stand lower, and grow.
            page(1.0, 20.0, 0.25),
            page(3.0, 50.0, 0.75),
        ]);
        assert_eq!((rows[0].requests, rows[0].input_tokens), (7, 110));
        assert_eq!(rows[0].cost, Some(1.25));
    }

    #[test]
    fn a_row_of_what_both_counted_has_the_exchanges_that_both_counted() {
        let drift = |direction, source, tokens| {
            let labels = [("model", "m"), ("direction", direction), ("source", source)];
            value(DRIFT, &labels, tokens)
        };
        let compared = |direction, within, exchanges| {
            let labels = [("model", "m"), ("direction", direction), ("within", within)];
            value(DRIFT_EXCHANGES, &labels, exchanges)
        };
        let page = |n: f64| {
            vec![
                exchanges("a", "completed", 10.0 * n),
                exchanges("b", "completed", 20.0 * n),
                drift("input", "reported", 100.0 * n),
                drift("input", "counted", 90.0 * n),
                compared("input", "yes", 2.0 * n),
                compared("input", "no", n),
                compared("output", "yes", 2.0 * n),
            ]
        };
        let rows = told([page(1.0), page(2.0)]);
        assert_eq!(rows.len(), 1);
        assert!(rows[0].is_in_others());
        assert_eq!((rows[0].requests, rows[0].input_tokens), (3, 100));
    }

    #[test]
    fn a_series_that_is_not_on_the_first_pages_of_a_new_process_counts_from_0() {
        let input = |input| vec![tokens(("a", "m"), "input", input)];
        let rows = told([input(100.0), input(160.0), Vec::new(), input(200.0)]);
        assert_eq!(rows[0].input_tokens, 260);
        let late = told([Vec::new(), input(7.0), Vec::new()]);
        assert_eq!(late[0].input_tokens, 7, "and what is gone was counted");
    }

    #[test]
    fn a_label_that_never_stands_still_takes_no_memory_without_end() {
        let mut heard = GatewayPages::default();
        for at in 0..=120 {
            let values = (0..1000).map(|i| tokens((&format!("{at}-{i}"), "m"), "input", 1.0));
            heard.hear(&page(values.collect()));
        }
        assert_eq!(heard.grown.len(), MOST_SERIES);
    }

    #[test]
    fn a_page_on_which_one_witness_has_no_number_leaves_both_as_they_stood() {
        let drift = |source, tokens| {
            let labels = [("model", "m"), ("direction", "input"), ("source", source)];
            value(DRIFT, &labels, tokens)
        };
        let page = |reported, counted| vec![drift("reported", reported), drift("counted", counted)];
        let two = [page(100.0, 90.0), page(200.0, 190.0)];
        let rows = told(two.clone().into_iter().chain([page(f64::NAN, 900.0)]));
        assert_eq!(
            (rows[0].input_tokens, rows[0].input_counted),
            (100, Some(100))
        );
        // What came meanwhile is told with the next page, and once.
        let all = two
            .into_iter()
            .chain([page(f64::NAN, 900.0), page(1_000.0, 990.0)]);
        let rows = told(all);
        assert_eq!(
            (rows[0].input_tokens, rows[0].input_counted),
            (900, Some(900))
        );
    }

    #[test]
    fn figures_that_are_no_numbers_and_pages_of_others_are_passed_over() {
        let input = |input| vec![tokens(("a", "m"), "input", input)];
        let rows = told([input(1.0), input(3.0), input(f64::INFINITY)]);
        assert_eq!(rows[0].input_tokens, 2);
        let mut heard = GatewayPages::default();
        for at in [1.0, 2.0] {
            let mut page = page(input(at));
            page.target = "engine".into();
            heard.hear(&page);
        }
        assert!(heard.tokens().is_empty());
    }
}
