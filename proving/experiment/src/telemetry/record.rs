//! The samples of a campaign, as far as its queries need them, and the answers.
//!
//! Invariant: memory grows by a few numbers for each selector and sample, whatever a page holds. Of a selector's series
//! the first [`MOST_SERIES`] count. What is divided by one another comes from the same moments (`together`).
//! Not here: how a question is written (`query`).

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use super::together::Series;
use super::{Query, Sample, Selector, Span};

/// Series of one selector at most: more come from a label that is another with each sample.
const MOST_SERIES: usize = 10_000;

/// What was heard so far.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    pub(super) kept: HashMap<Selector, Kept>,
    /// When each target was heard, moment after moment.
    pub(super) heard: BTreeMap<String, Vec<Duration>>,
}

/// What is kept of one selector.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    /// Where each series stood, by its labels; no number where it never had one.
    last: HashMap<Vec<(String, String)>, f64>,
    /// What all series together grew by since the first sample.
    grown: f64,
    /// When a page first had any of its series, with a number or without.
    pub(super) first: Option<Duration>,
    pub(super) points: Vec<Point>,
}

/// A selector at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) at: Duration,
    pub(super) grown: f64,
    sum: f64,
    most: f64,
    series: usize,
    /// Of the labels of its series, in whatever order.
    pub(super) labels: u64,
    /// Whether each of its series had a number.
    pub(super) is_whole: bool,
}

impl Telemetry {
    /// Keeps what answers these.
    #[must_use]
    pub fn new<'a>(queries: impl IntoIterator<Item = &'a Query>) -> Self {
        let selectors = queries.into_iter().flat_map(Query::selectors);
        Self {
            kept: selectors.map(|of| (of, Kept::default())).collect(),
            heard: BTreeMap::new(),
        }
    }

    /// Hears a target. Samples of one target come in the order of their times; one that does not is passed over.
    pub fn hear(&mut self, sample: &Sample) {
        let moments = self.heard.entry(sample.target.clone()).or_default();
        let is_first = moments.is_empty();
        if moments.last().is_some_and(|&last| sample.at <= last) {
            return;
        }
        moments.push(sample.at);
        for (selector, kept) in &mut self.kept {
            if selector.target == sample.target {
                kept.hear(selector, sample, is_first);
            }
        }
    }

    /// When a target was heard last.
    #[must_use]
    pub fn last_heard(&self, target: &str) -> Option<Duration> {
        self.heard.get(target)?.last().copied()
    }

    /// The longest time in a span in which no page had any series of a selector, though its target may have been heard;
    /// the whole span of one that was never there.
    #[must_use]
    pub fn longest_absence(&self, of: &Selector, span: Span) -> Duration {
        let points = self.kept.get(of).map(|kept| kept.within(span));
        let inside = points.unwrap_or_default().iter().map(|point| point.at);
        longest_gap(inside, span)
    }

    /// The selectors of a query that no sample has had.
    #[must_use]
    pub fn missing(&self, query: &Query) -> Vec<Selector> {
        let selectors = query.selectors().into_iter();
        let is_missing =
            |of: &Selector| self.kept.get(of).is_none_or(|kept| kept.points.is_empty());
        selectors.filter(is_missing).collect()
    }

    /// The answer for a span; `None` where its series were not heard in it, or where nothing was counted.
    #[must_use]
    pub fn ask(&self, query: &Query, span: Span) -> Option<f64> {
        match query {
            Query::Mean(of) => {
                let (sum, count) = self.of_histogram(of, span)?;
                (count > 0.0).then_some(sum / count)
            }
            Query::Ratio(of, over) => {
                let (part, whole) = self.grown_together(of, over, Series::Any, span)?;
                Some(part / whole.max(1.0))
            }
            Query::Increase(of) => self.kept.get(of)?.grown(span),
            Query::Rate(of) => self.rate(of, span),
            Query::Average(of) => {
                self.over(of, span, |point| Some(point.sum / point.series as f64))
            }
            // Without one of its series it is the sum of the others.
            Query::Sum(of) => self.over(of, span, |point| point.is_whole.then_some(point.sum)),
            Query::Max(of) => {
                let points = self.kept.get(of)?.within(span);
                points.iter().map(|point| point.most).reduce(f64::max)
            }
        }
    }

    /// How much the answer of a [`Query::Mean`] or [`Query::Ratio`] rests on: what its lower counter grew by. `None` of
    /// other queries, or without one.
    #[must_use]
    pub fn support(&self, query: &Query, span: Span) -> Option<f64> {
        match query {
            Query::Mean(of) => Some(self.of_histogram(of, span)?.1),
            Query::Ratio(of, over) => Some(self.grown_together(of, over, Series::Any, span)?.1),
            _ => None,
        }
    }

    /// What the sum and the count of a histogram grew by.
    fn of_histogram(&self, of: &Selector, span: Span) -> Option<(f64, f64)> {
        let [sum, count] = ["_sum", "_count"].map(|suffix| of.with_suffix(suffix));
        self.grown_together(&sum, &count, Series::Alike, span)
    }

    fn over(
        &self,
        of: &Selector,
        span: Span,
        value: impl Fn(&Point) -> Option<f64>,
    ) -> Option<f64> {
        let points = self.kept.get(of)?.within(span).iter();
        let values: Vec<f64> = points.filter_map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// The longest time between moments of a span, its ends included.
fn longest_gap(moments: impl Iterator<Item = Duration>, span: Span) -> Duration {
    let (mut before, mut longest) = (span.from, Duration::ZERO);
    for at in moments.chain([span.to]) {
        longest = longest.max(at.saturating_sub(before));
        before = at;
    }
    longest
}

/// What a counter grew by: from where it stood before, or `None` where it was not there, to where it stands now. What
/// the first sample of its target has was counted before.
#[must_use]
pub fn growth(before: Option<f64>, now: f64, is_first: bool) -> f64 {
    match before {
        Some(before) if now >= before => now - before,
        None if is_first => 0.0,
        // A counter that fell, or was not there before, counts from 0.
        Some(_) | None => now,
    }
}

fn hash(labels: &[(String, String)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    labels.hash(&mut hasher);
    hasher.finish()
}

impl Kept {
    fn hear(&mut self, selector: &Selector, sample: &Sample, is_first: bool) {
        let (mut sum, mut most, mut series) = (0.0, f64::NEG_INFINITY, 0);
        let (mut labels, mut is_whole) = (0_u64, true);
        let values = sample.values.iter();
        for value in values.filter(|value| selector.takes(&value.metric, &value.labels)) {
            let is_new = self.last.len() >= MOST_SERIES && !self.last.contains_key(&value.labels);
            if is_new {
                continue;
            }
            self.first.get_or_insert(sample.at);
            if !value.value.is_finite() {
                // It is there: where it stood before it had a number is not known, and not 0.
                self.last.entry(value.labels.clone()).or_insert(f64::NAN);
                is_whole = false;
                continue;
            }
            let before = self.last.insert(value.labels.clone(), value.value);
            if before.is_none_or(|before| !before.is_nan()) {
                self.grown += growth(before, value.value, is_first);
            }
            sum += value.value;
            most = most.max(value.value);
            series += 1;
            labels = labels.wrapping_add(hash(&value.labels));
        }
        if series > 0 {
            self.points.push(Point {
                at: sample.at,
                grown: self.grown,
                sum,
                most,
                series,
                labels,
                is_whole,
            });
        }
    }

    /// What came after the last point before the span's beginning, to its end.
    fn grown(&self, span: Span) -> Option<f64> {
        let last = self.within(span).last()?;
        let begins = self.points.partition_point(|point| point.at <= span.from);
        let before = match begins.checked_sub(1) {
            Some(before) => self.points.get(before)?.grown,
            None => 0.0,
        };
        Some(last.grown - before)
    }

    pub(super) fn within(&self, span: Span) -> &[Point] {
        let begins = self.points.partition_point(|point| point.at <= span.from);
        let ends = self.points.partition_point(|point| point.at <= span.to);
        self.points.get(begins..ends).unwrap_or_default()
    }
}
