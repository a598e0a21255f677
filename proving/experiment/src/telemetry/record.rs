//! The samples of a campaign, as far as its queries need them, and the answers.
//!
//! Invariant: memory grows by a few numbers for each selector and sample, whatever a page holds. Of a selector's series
//! the first [`MOST_SERIES`] count.
//! Not here: how a question is written (`query`).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::{Query, Sample, Selector, Span};

/// Series of one selector at most: more come from a label that is another with each sample.
const MOST_SERIES: usize = 10_000;

/// What was heard so far.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    kept: HashMap<Selector, Kept>,
    /// When each target was heard, moment after moment.
    heard: BTreeMap<String, Vec<Duration>>,
}

/// What is kept of one selector.
#[derive(Debug, Clone, Default)]
struct Kept {
    /// Where each series stood, by its labels.
    last: HashMap<Vec<(String, String)>, f64>,
    /// What all series together grew by since the first sample.
    grown: f64,
    points: Vec<Point>,
}

/// A selector at one moment.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: Duration,
    grown: f64,
    sum: f64,
    most: f64,
    series: usize,
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
        let grown = |of: &Selector| self.kept.get(of)?.grown(span);
        match query {
            Query::Mean(of) => {
                let count = grown(&of.with_suffix("_count"))?;
                (count > 0.0).then_some(grown(&of.with_suffix("_sum"))? / count)
            }
            // A counter without a series yet has counted nothing; the target has to have been heard.
            Query::Ratio(of, over) => {
                let part = self.counted(of, span)?;
                Some(part / self.counted(over, span)?.max(1.0))
            }
            Query::Increase(of) => grown(of),
            Query::Rate(of) => {
                let seconds = span.to.saturating_sub(span.from).as_secs_f64();
                (seconds > 0.0).then_some(grown(of)? / seconds)
            }
            Query::Average(of) => self.over(of, span, |point| point.sum / point.series as f64),
            Query::Sum(of) => self.over(of, span, |point| point.sum),
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
            Query::Mean(of) => self.kept.get(&of.with_suffix("_count"))?.grown(span),
            Query::Ratio(_, over) => self.counted(over, span),
            _ => None,
        }
    }

    fn counted(&self, of: &Selector, span: Span) -> Option<f64> {
        let moments = self.heard.get(&of.target)?;
        let next = moments.get(moments.partition_point(|&at| at <= span.from))?;
        if *next > span.to {
            return None;
        }
        let kept = self.kept.get(of)?;
        // One that was there and is gone is unknown: it is not known to stand still.
        let is_yet_to_come = kept.points.is_empty();
        kept.grown(span).or(is_yet_to_come.then_some(0.0))
    }

    fn over(&self, of: &Selector, span: Span, value: impl Fn(&Point) -> f64) -> Option<f64> {
        let points = self.kept.get(of)?.within(span);
        let count = points.len();
        (count > 0).then(|| points.iter().map(value).sum::<f64>() / count as f64)
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

impl Kept {
    fn hear(&mut self, selector: &Selector, sample: &Sample, is_first: bool) {
        let (mut sum, mut most, mut series) = (0.0, f64::NEG_INFINITY, 0);
        let values = sample.values.iter();
        for value in values.filter(|value| selector.takes(&value.metric, &value.labels)) {
            let is_new = self.last.len() >= MOST_SERIES && !self.last.contains_key(&value.labels);
            if !value.value.is_finite() || is_new {
                continue;
            }
            let before = self.last.insert(value.labels.clone(), value.value);
            self.grown += growth(before, value.value, is_first);
            sum += value.value;
            most = most.max(value.value);
            series += 1;
        }
        if series > 0 {
            self.points.push(Point {
                at: sample.at,
                grown: self.grown,
                sum,
                most,
                series,
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

    fn within(&self, span: Span) -> &[Point] {
        let begins = self.points.partition_point(|point| point.at <= span.from);
        let ends = self.points.partition_point(|point| point.at <= span.to);
        self.points.get(begins..ends).unwrap_or_default()
    }
}
