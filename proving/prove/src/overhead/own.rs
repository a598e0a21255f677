//! What our gate says of its own time: its histogram, and its record of each exchange.
//!
//! Both are of the same time: the request complete to its being sent upstream, and the answer's head arrived to its being
//! sent downstream (`tollgate_overhead_seconds`, and `own_us` of the access log).
//! Invariant: a line that is no JSON is passed over and counted; no line is longer than [`LINE_BYTES`].
//! Not here: what pairs of stamps say (`overhead`).

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, Read};

use experiment::telemetry::Value;
use load::source::RequestId;
use serde::Deserialize;

/// The histogram of our gate.
pub(crate) const HISTOGRAM: &str = "tollgate_overhead_seconds";
/// Bytes of a line of an access log that are read.
const LINE_BYTES: u64 = 1 << 20;

/// Of an access log, those exchanges that the client had.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Recorded {
    /// Microseconds, in the log's order.
    pub(crate) own_us: Vec<u64>,
    /// Lines that cannot be read.
    pub(crate) unread: u64,
}

#[derive(Deserialize)]
struct Line {
    request_id: Option<String>,
    own_us: Option<u64>,
}

impl Recorded {
    /// Reads a log to its end, and takes the lines of these requests.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(mut log: impl BufRead, of: &HashSet<RequestId>) -> io::Result<Self> {
        let (mut recorded, mut line) = (Self::default(), Vec::new());
        loop {
            line.clear();
            let count = (&mut log).take(LINE_BYTES).read_until(b'\n', &mut line)?;
            if count == 0 {
                return Ok(recorded);
            }
            let Ok(read) = serde_json::from_slice::<Line>(&line) else {
                recorded.unread += 1;
                continue;
            };
            let id = read.request_id.and_then(|id| id.parse().ok());
            if id.is_some_and(|id| of.contains(&id)) {
                recorded.own_us.extend(read.own_us);
            }
        }
    }

    /// The one in the middle.
    pub(crate) fn median_us(&self) -> Option<u64> {
        let mut all = self.own_us.clone();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// Seconds; half a microsecond is added, as the log's are whole ones, rounded down.
    pub(crate) fn mean_s(&self) -> Option<f64> {
        let sum: u64 = self.own_us.iter().sum();
        let count = self.own_us.len() as f64;
        (count > 0.0).then(|| (sum as f64 / count + 0.5) / 1e6)
    }
}

/// The mean between two pages, seconds, and of how many; `None` where nothing was added.
pub(crate) fn histogram(before: &[Value], after: &[Value], metric: &str) -> Option<(f64, f64)> {
    let sum = |values: &[Value], suffix: &str| -> f64 {
        let name = format!("{metric}{suffix}");
        let all = values.iter().filter(|value| value.metric == name);
        all.map(|value| value.value).sum()
    };
    let grown = |suffix| sum(after, suffix) - sum(before, suffix);
    let count = grown("_count");
    (count > 0.0).then(|| (grown("_sum") / count, count))
}

/// The median between two pages, seconds, as Prometheus interpolates it: within its bucket all values are as far apart.
pub(crate) fn histogram_median(before: &[Value], after: &[Value], metric: &str) -> Option<f64> {
    let name = format!("{metric}_bucket");
    // By the bound's nanoseconds; what is above all bounds has none.
    let counts = |values: &[Value]| {
        let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
        for value in values.iter().filter(|value| value.metric == name) {
            let le = value.labels.iter().find(|(label, _)| label == "le");
            let bound = le.and_then(|(_, bound)| bound.parse::<f64>().ok());
            if let Some(bound) = bound.filter(|bound| bound.is_finite()) {
                *counts.entry((bound * 1e9).round() as u64).or_default() += value.value;
            }
        }
        counts
    };
    let (before, after) = (counts(before), counts(after));
    let grown = |bound: &u64| after.get(bound).unwrap_or(&0.0) - before.get(bound).unwrap_or(&0.0);
    let half = grown(after.keys().next_back()?) / 2.0;
    let (mut from, mut below) = (0, 0.0);
    for bound in after.keys() {
        let up_to = grown(bound);
        if up_to >= half && up_to > below {
            let share = (half - below) / (up_to - below);
            return Some((from as f64 + share * (bound - from) as f64) / 1e9);
        }
        (from, below) = (*bound, up_to);
    }
    None
}

#[cfg(test)]
mod tests {
    //! A log with lines of others, and two pages.

    use std::collections::HashSet;

    use experiment::telemetry::Value;

    use super::{Recorded, histogram, histogram_median};

    #[test]
    fn lines_of_these_requests_count_and_no_others() {
        let log = "{\"request_id\":\"prove-0-1-2-3-4\",\"own_us\":40,\"status\":200}\nnonsense\n\
                   {\"request_id\":\"prove-0-1-2-3-5\",\"own_us\":9000}\n{\"request_id\":\"7f\",\"own_us\":1}\n\
                   {\"request_id\":\"prove-0-1-2-3-6\",\"own_us\":60}\n{\"own_us\":5}\n{\"request_id\":\"prove-0-1-2-3-7\"}\n";
        let ids = [4, 6, 7].map(|ns| format!("prove-0-1-2-3-{ns}").parse().expect("an id"));
        let recorded = Recorded::read(log.as_bytes(), &HashSet::from(ids)).expect("a log");
        assert_eq!((&recorded.own_us[..], recorded.unread), (&[40, 60][..], 1));
        let mean = recorded.mean_s().expect("two");
        assert!((mean - 50.5e-6).abs() < 1e-12, "{mean}");
        assert_eq!(Recorded::default().mean_s(), None);
    }

    #[test]
    fn a_histograms_median_lies_within_its_bucket() {
        let page = |counts: [f64; 4]| -> Vec<Value> {
            let each = ["0.00002", "0.00004", "0.0001", "+Inf"]
                .into_iter()
                .zip(counts);
            each.map(|(le, value)| Value {
                metric: "own_bucket".into(),
                labels: vec![("le".into(), le.into())],
                value,
            })
            .collect()
        };
        let before = page([5.0, 5.0, 5.0, 5.0]);
        let median = histogram_median(&before, &page([5.0, 45.0, 85.0, 85.0]), "own");
        assert!((median.expect("some") - 40e-6).abs() < 1e-12, "{median:?}");
        let median = histogram_median(&before, &page([15.0, 55.0, 65.0, 65.0]), "own");
        assert!((median.expect("some") - 30e-6).abs() < 1e-12, "{median:?}");
        assert_eq!(histogram_median(&before, &before, "own"), None);
        assert_eq!(histogram_median(&[], &[], "own"), None);
    }

    #[test]
    fn a_histogram_is_what_it_grew_by_over_all_its_series() {
        let page = |sum: f64, count: f64| -> Vec<Value> {
            let value = |metric: &str, value| Value {
                metric: metric.into(),
                labels: Vec::new(),
                value,
            };
            vec![
                value("own_sum", sum),
                value("own_sum", sum),
                value("own_count", count),
                value("own_count", count),
                value("other_count", 7.0),
            ]
        };
        let (before, after) = (page(1.0, 10.0), page(4.0, 40.0));
        assert_eq!(histogram(&before, &after, "own"), Some((0.1, 60.0)));
        assert_eq!(histogram(&after, &after, "own"), None);
    }
}
