//! What became of a subject's own counts of tokens, from its page of metrics.
//!
//! Two pages, at the beginning and at the end of the measured interval, say how many calls ended in it and what became of
//! their counts; what was neither counted nor given up by then waits, and a subject that keeps up leaves no more waiting
//! than it found. Two more, before the first call and when nothing waits any more, say what share of a whole run was counted.
//! Invariant: shares are of the calls that ended, by the subject's own page: the two are read at one moment.
//! Not here: which series those are (`subject.toml`), CPU (`cell`).

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use experiment::telemetry::{Selector, Value};

use crate::scrape::targets::{self, Target, selector, values};
use crate::subject::{Counting, Places};

#[cfg(test)]
mod tests;

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what waits from a measurement before may take to be counted.
const SETTLES: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Calls whose count was neither made nor given up.
const WAITING: &str = "waiting";
/// Calls without a row, whatever became of their count.
pub(crate) const UNWRITTEN: &str = "unwritten";

/// Names in the result file.
const COUNTED: &str = "counted_percent";
const IN_THE_END: &str = "counted_in_the_end_percent";

/// Where a subject says it.
#[derive(Debug)]
pub(crate) struct Meter {
    target: Target,
    calls: Selector,
    results: Selector,
    label: String,
    counted: Vec<String>,
    waiting: Option<Selector>,
    seconds: Option<Selector>,
    hits: Option<Selector>,
    misses: Option<Selector>,
    unwritten: Option<Selector>,
}

/// What it said at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Shown {
    calls: f64,
    /// By result, and whether that is a count.
    results: BTreeMap<String, (f64, bool)>,
    seconds: Option<f64>,
    hits: Option<f64>,
    misses: Option<f64>,
    unwritten: Option<f64>,
}

/// What became of the counts of an interval.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// Calls by what became of their count, without what never happened.
    pub(crate) calls: BTreeMap<String, u64>,
    /// By their names in the result file.
    pub(crate) figures: Vec<(&'static str, f64)>,
}

impl Meter {
    /// As a manifest says it.
    pub(crate) fn of(counting: &Counting, places: &Places) -> Result<Self, String> {
        let series = |field: &str, text: &String| {
            selector(text).map_err(|says| format!("counting.{field}: {says}"))
        };
        let maybe = |field: &str, text: &Option<String>| {
            text.as_ref().map(|text| series(field, text)).transpose()
        };
        Ok(Self {
            target: Target::parse("counting", &places.fill(&counting.url))?,
            calls: series("calls", &counting.calls)?,
            results: series("results", &counting.results)?,
            label: counting.label.clone(),
            counted: counting.counted.clone(),
            waiting: maybe("waiting", &counting.waiting)?,
            seconds: maybe("seconds", &counting.seconds)?,
            hits: maybe("hits", &counting.hits)?,
            misses: maybe("misses", &counting.misses)?,
            unwritten: maybe("unwritten", &counting.unwritten)?,
        })
    }

    /// Asks for the page.
    pub(crate) fn read(&self) -> Result<Shown, String> {
        self.shown(&values(&self.target, PATIENCE)?)
    }

    /// The page once nothing of a measurement before waits to be counted.
    pub(crate) fn quiet(&self) -> Result<Shown, String> {
        match self.await_counts()? {
            0.0 => self.read(),
            left => Err(format!(
                "what was called before is not counted after {SETTLES:?}: {} is {left}",
                self.waiting
                    .as_ref()
                    .map_or_else(String::new, targets::shown)
            )),
        }
    }

    /// The page once nothing waits to be counted, or the time for that is over.
    pub(crate) fn settled(&self) -> Result<Shown, String> {
        self.await_counts()?;
        self.read()
    }

    /// Waits until nothing waits to be counted; gives what waits still.
    fn await_counts(&self) -> Result<f64, String> {
        let Some(waiting) = &self.waiting else {
            return Ok(0.0);
        };
        let began = Instant::now();
        loop {
            let left = sum(&values(&self.target, PATIENCE)?, waiting).unwrap_or(0.0);
            if left <= 0.0 || began.elapsed() > SETTLES {
                return Ok(left.max(0.0));
            }
            thread::sleep(POLL);
        }
    }

    fn shown(&self, page: &[Value]) -> Result<Shown, String> {
        let mut results = BTreeMap::new();
        let taken = |value: &&Value| self.results.takes(&value.metric, &value.labels);
        for value in page.iter().filter(taken) {
            let mut labels = value.labels.iter();
            if let Some((_, result)) = labels.find(|(name, _)| *name == self.label) {
                let is_count = self.counted.contains(result);
                let sum = results.entry(result.clone()).or_insert((0.0, is_count));
                sum.0 += value.value;
            }
        }
        if results.is_empty() {
            let (url, series) = (&self.target.url, targets::shown(&self.results));
            let label = &self.label;
            return Err(format!("{url} has no {series} with the label {label}"));
        }
        let maybe = |selector: &Option<Selector>| {
            let selector = selector.as_ref()?;
            Some(sum(page, selector).unwrap_or(0.0))
        };
        Ok(Shown {
            // Its series may come with the first call.
            calls: sum(page, &self.calls).unwrap_or(0.0),
            results,
            seconds: maybe(&self.seconds),
            hits: maybe(&self.hits),
            misses: maybe(&self.misses),
            unwritten: maybe(&self.unwritten),
        })
    }
}

/// The moments at which a subject is asked, in order.
#[derive(Debug)]
pub(crate) struct Moments {
    /// Nothing was called yet, and nothing waits.
    pub(crate) quiet: Shown,
    /// The measured interval begins.
    pub(crate) begin: Shown,
    /// It ends.
    pub(crate) end: Shown,
    /// Nothing waits any more, or its time is over.
    pub(crate) settled: Shown,
}

impl Counts {
    /// What happened in the measured interval, and what came of the whole run in the end.
    pub(crate) fn of(moments: &Moments) -> Self {
        let mut counts = Self::between(&moments.begin, &moments.end);
        let run = Self::between(&moments.quiet, &moments.settled);
        let share = |(name, value)| (name == COUNTED).then_some((IN_THE_END, value));
        counts
            .figures
            .extend(run.figures.into_iter().find_map(share));
        counts
    }

    /// What happened between two pages.
    fn between(before: &Shown, after: &Shown) -> Self {
        let (mut counted, mut decided) = (0.0, 0.0);
        let mut calls = BTreeMap::new();
        for (result, &(value, is_count)) in &after.results {
            let earlier = before.results.get(result).map_or(0.0, |earlier| earlier.0);
            let grown = (value - earlier).max(0.0);
            decided += grown;
            counted += if is_count { grown } else { 0.0 };
            calls.insert(result.clone(), grown as u64);
        }
        let grown = |of: fn(&Shown) -> Option<f64>| Some((of(after)? - of(before)?).max(0.0));
        let all = (after.calls - before.calls).max(decided);
        calls.insert(WAITING.to_owned(), (all - decided) as u64);
        if let Some(unwritten) = grown(|shown| shown.unwritten) {
            calls.insert(UNWRITTEN.to_owned(), unwritten as u64);
        }
        calls.retain(|_, count| *count > 0);
        let mut figures = Vec::new();
        if all > 0.0 {
            figures.push((COUNTED, counted / all * 100.0));
            if let Some(seconds) = grown(|shown| shown.seconds) {
                figures.push(("counting.us_per_request", seconds * 1e6 / all));
            }
        }
        let looked_up = grown(|shown| shown.hits).zip(grown(|shown| shown.misses));
        if let Some((hits, misses)) = looked_up.filter(|(hits, misses)| hits + misses > 0.0) {
            figures.push(("counting.hit_percent", hits / (hits + misses) * 100.0));
        }
        Self { calls, figures }
    }
}

/// The sum over the series of a page; `None` where there is none.
fn sum(page: &[Value], selector: &Selector) -> Option<f64> {
    let of = page
        .iter()
        .filter(|value| selector.takes(&value.metric, &value.labels));
    of.map(|value| value.value).reduce(|sum, value| sum + value)
}
