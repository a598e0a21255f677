//! What our gate says of its own time: its histogram, and its record of each exchange.
//!
//! Both are of the same time: the request complete to its being sent upstream, and the answer's head arrived to its being
//! sent downstream (`tollgate_overhead_seconds`, and `own_us` of the access log).
//! Invariant: a line that is no JSON is passed over and counted; no line is longer than [`LINE_BYTES`].
//! Not here: what pairs of stamps say (`overhead`).

use std::collections::HashSet;
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

#[cfg(test)]
mod tests {
    //! A log with lines of others, and two pages.

    use std::collections::HashSet;

    use experiment::telemetry::Value;

    use super::{Recorded, histogram};

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
