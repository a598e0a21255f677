//! The pages of `samples.parquet`, and what counters and gauges on them came to in a span of time.
//!
//! Invariant: a moment in the file is the whole millisecond before it, so that a page in the millisecond of a span's edge may be
//! on either side: whoever asks says on which.
//! Not here: queries as text (`query`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor as _;

/// What one target said at one moment: metric, labels, value.
type Page = Vec<(String, String, f64)>;

/// All pages, by target and millisecond.
pub(super) struct Samples(BTreeMap<String, BTreeMap<i64, Page>>);

/// From after a moment to another.
#[derive(Clone, Copy)]
pub(super) struct Span {
    from_ms: i64,
    to_ms: i64,
    /// Whether a page in the millisecond of the edge is inside.
    has_from: bool,
    has_to: bool,
}

impl Span {
    /// The spans that these seconds may be.
    pub(super) fn all(from: f64, to: f64) -> [Self; 4] {
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds below 2^53")]
        let ms = |seconds: f64| (seconds * 1e3).floor() as i64;
        [(false, true), (true, true), (false, false), (true, false)].map(|(has_from, has_to)| {
            Self {
                from_ms: ms(from),
                to_ms: ms(to),
                has_from,
                has_to,
            }
        })
    }

    fn is_before(self, ms: i64) -> bool {
        ms < self.from_ms || ms == self.from_ms && !self.has_from
    }

    fn is_after(self, ms: i64) -> bool {
        ms > self.to_ms || ms == self.to_ms && !self.has_to
    }
}

/// Series of a metric: those whose labels have this text among them.
pub(super) struct Series<'a> {
    pub(super) target: &'a str,
    pub(super) metric: &'a str,
    pub(super) labels: Vec<String>,
}

impl Series<'_> {
    fn takes(&self, metric: &str, labels: &str) -> bool {
        metric == self.metric && self.labels.iter().all(|label| labels.contains(&**label))
    }
}

impl Samples {
    pub(super) fn read(path: &Path) -> Self {
        let file = File::open(path).expect("a file of samples");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let mut all: BTreeMap<String, BTreeMap<i64, Page>> = BTreeMap::new();
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let text = |at| row.get_string(at).expect("text").clone();
            let pages = all.entry(text(1)).or_default();
            let page = pages.entry(row.get_long(0).expect("a moment")).or_default();
            page.push((text(2), text(3), row.get_double(4).expect("a value")));
        }
        Self(all)
    }

    pub(super) fn has(&self, target: &str) -> bool {
        self.0.contains_key(target)
    }

    /// The pages of a target by their moments.
    fn pages(&self, target: &str) -> impl DoubleEndedIterator<Item = (i64, &Page)> {
        let pages = self.0.get(target).into_iter().flatten();
        pages.map(|(ms, page)| (*ms, page))
    }

    /// The sum of the gauges of each page of a span, how many they are and the greatest, where there are any.
    pub(super) fn gauges(&self, of: &Series<'_>, span: Span) -> Vec<(f64, usize, f64)> {
        let pages = self.pages(of.target);
        let inside = pages.filter(|(ms, _)| !span.is_before(*ms) && !span.is_after(*ms));
        let values = inside.map(|(_, page)| {
            let fitting = page
                .iter()
                .filter(|(metric, labels, _)| of.takes(metric, labels));
            fitting.map(|(_, _, value)| *value).collect::<Vec<f64>>()
        });
        let some = values.filter(|values| !values.is_empty());
        some.map(|values| {
            let most = values.iter().copied().fold(f64::MIN, f64::max);
            (values.iter().sum(), values.len(), most)
        })
        .collect()
    }

    /// The seconds that lie between the pages at the ends of a span, and what counters grew by between them.
    pub(super) fn grown(&self, of: &Series<'_>, span: Span) -> Option<(f64, f64)> {
        let moments = || self.pages(of.target).map(|(ms, _)| ms);
        let begins = moments().rfind(|ms| span.is_before(*ms));
        let begins = begins.or_else(|| moments().next())?;
        let ends = moments().rfind(|ms| !span.is_after(*ms))?;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds below 2^53")]
        let seconds = (ends - begins) as f64 / 1e3;
        (ends > begins).then(|| (seconds, self.total(of, ends) - self.total(of, begins)))
    }

    /// What counters grew by from the first page of their target to the one at a moment: one that falls began again at 0, and
    /// so did one that was not there before.
    fn total(&self, of: &Series<'_>, until: i64) -> f64 {
        let mut before: Option<BTreeMap<&str, f64>> = None;
        let mut total = 0.0;
        for (_, page) in self.pages(of.target).take_while(|(ms, _)| *ms <= until) {
            let mut now = before.clone().unwrap_or_default();
            let fitting = page
                .iter()
                .filter(|(metric, labels, _)| of.takes(metric, labels));
            for (_, labels, value) in fitting {
                let stood = now.insert(labels, *value).unwrap_or(0.0);
                if before.is_some() {
                    total += if *value < stood {
                        *value
                    } else {
                        value - stood
                    };
                }
            }
            before = Some(now);
        }
        total
    }

    /// What a counter of a target grew by over all of its pages.
    pub(super) fn all_of(&self, of: &Series<'_>) -> f64 {
        self.total(of, i64::MAX)
    }

    /// The labels that a metric of a target ever had.
    pub(super) fn labels(&self, target: &str, metric: &str) -> BTreeSet<&str> {
        let pages = self.0.get(target).into_iter().flat_map(BTreeMap::values);
        let values = pages.flatten().filter(|(name, ..)| name == metric);
        values.map(|(_, labels, _)| labels.as_str()).collect()
    }
}
