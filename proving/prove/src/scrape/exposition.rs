//! A page of metrics read: Prometheus' text format 0.0.4 and OpenMetrics' text.
//!
//! Lines that cannot be read are counted, and the first is told; the rest of the page counts. A series whose value cannot be
//! read is there, and has no number. Buckets of histograms are
//! dropped as they are read: no question needs them, and they are most of a page. Own code, as what there is either
//! compiles a grammar or keeps every bucket.
//! Invariant: any bytes give a page; at most [`MOST_SERIES`] series are kept, and no line is copied but for what is kept.
//! Not here: fetching (`scraper`), what a metric is called by others (`names`).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use experiment::telemetry::Value;

/// Bytes of a page at most.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// Series of a page at most, without buckets.
pub(crate) const MOST_SERIES: usize = 500_000;
/// Labels of a series at most; a line with more is not read.
const MOST_LABELS: usize = 128;
/// Characters of a line that is told.
const TOLD_CHARS: usize = 160;

/// What a family is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
    /// Anything else, or nothing.
    Other,
}

/// What a page says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    /// Every series but buckets, in the page's order.
    pub(crate) values: Vec<Value>,
    /// By family, as far as the page says it.
    pub(crate) kinds: BTreeMap<String, Kind>,
    /// Buckets that were dropped.
    pub(crate) buckets: u64,
    /// Lines that could not be read.
    pub(crate) unread: u64,
    /// The first of them: its number from 1, and its beginning.
    pub(crate) first_unread: Option<(usize, String)>,
    /// Series beyond what is kept.
    pub(crate) too_many: u64,
}

impl Page {
    /// Reads `bytes`, of which no more than [`MOST_BYTES`] count.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let bytes = bytes.get(..MOST_BYTES).unwrap_or(bytes);
        let mut page = Self::default();
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = std::str::from_utf8(line).map(str::trim);
            let is_read = text.is_ok_and(|text| page.line(text));
            if !is_read {
                page.unread += 1;
                if page.first_unread.is_none() {
                    let told = String::from_utf8_lossy(line);
                    page.first_unread = Some((at + 1, told.chars().take(TOLD_CHARS).collect()));
                }
            }
        }
        page
    }

    /// Whether there is anything in it that metrics have.
    pub(crate) fn is_metrics(&self) -> bool {
        let nothing_else = self.unread == 0 && !self.kinds.is_empty();
        !self.values.is_empty() || self.buckets > 0 || nothing_else
    }

    /// Gives each series one more label.
    pub(crate) fn label(&mut self, name: &str, value: &str) {
        for series in &mut self.values {
            series.labels.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Takes the series of another page beside its own.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.values.extend(other.values);
        self.kinds.extend(other.kinds);
        self.buckets += other.buckets;
        self.unread += other.unread;
        self.too_many += other.too_many;
        self.first_unread = self.first_unread.take().or(other.first_unread);
    }

    /// One line; whether it could be read.
    fn line(&mut self, line: &str) -> bool {
        if line.is_empty() {
            return true;
        }
        if let Some(comment) = line.strip_prefix('#') {
            self.comment(comment);
            return true;
        }
        let Some((metric, labels, value)) = series(line) else {
            return false;
        };
        let is_read = value.is_some();
        // Without labels and without a type a line of two words may be anything.
        if !is_read && labels.is_empty() && !self.is_announced(metric) {
            return false;
        }
        // A gauge may be called so too; a bucket has its edge.
        if metric.ends_with("_bucket") && labels.iter().any(|(name, _)| name == "le") {
            self.buckets += 1;
        } else if self.values.len() >= MOST_SERIES {
            self.too_many += 1;
        } else {
            self.values.push(Value {
                metric: metric.to_owned(),
                labels,
                value: value.unwrap_or(f64::NAN),
            });
        }
        is_read
    }

    /// Whether the page has said what a metric or its family is.
    fn is_announced(&self, metric: &str) -> bool {
        let family = ["_sum", "_count", "_total"]
            .into_iter()
            .find_map(|suffix| metric.strip_suffix(suffix));
        [Some(metric), family]
            .into_iter()
            .flatten()
            .any(|name| self.kinds.contains_key(name))
    }

    /// Only the types of families are kept of comments.
    fn comment(&mut self, comment: &str) {
        let mut words = comment.split_ascii_whitespace();
        if let (Some("TYPE"), Some(family), Some(kind)) = (words.next(), words.next(), words.next())
            && self.kinds.len() < MOST_SERIES
        {
            let kind = match kind {
                "counter" => Kind::Counter,
                "gauge" => Kind::Gauge,
                "histogram" | "gaugehistogram" => Kind::Histogram,
                "summary" => Kind::Summary,
                _ => Kind::Other,
            };
            self.kinds.insert(family.to_owned(), kind);
        }
    }
}

type Labels = Vec<(String, String)>;

/// `name{labels} value`, with a timestamp or an exemplar behind it, which are nobody's concern here; no value where it is no
/// number.
fn series(line: &str) -> Option<(&str, Labels, Option<f64>)> {
    let end = line
        .find(|c: char| c == '{' || c.is_ascii_whitespace())
        .unwrap_or(line.len());
    let (metric, rest) = line.split_at_checked(end)?;
    if !is_metric(metric) {
        return None;
    }
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    // An exemplar begins with a mark of its own and is not looked into.
    let before = rest
        .split_once(" #")
        .map_or(rest, |(before, _exemplar)| before);
    let mut words = before.split_ascii_whitespace();
    let value = number(words.next()?);
    let is_in_order = match (words.next(), words.next()) {
        (None, _) => true,
        (Some(timestamp), None) => number(timestamp).is_some(),
        (Some(_), Some(_)) => false,
    };
    is_in_order.then_some((metric, labels, value))
}

/// `a="b",c="d"}` and what follows it; values have `\\`, `\"` and `\n`.
fn labels(mut text: &str) -> Option<(Labels, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches([',', ' ', '\t']);
        if let Some(rest) = text.strip_prefix('}') {
            labels.sort_unstable();
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once('=')?;
        let name = name.trim();
        let rest = rest.trim_start().strip_prefix('"')?;
        let (value, rest) = quoted(rest)?;
        if !is_metric(name) || labels.len() >= MOST_LABELS {
            return None;
        }
        labels.push((name.to_owned(), value));
        text = rest;
    }
}

/// A value up to its closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                // A backslash before anything else stands for itself.
                other @ ('\\' | '"') => value.push(other),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    None
}

fn is_metric(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-');
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(fits)
}

/// As Go writes numbers: `+Inf`, `-Inf` and `NaN` too.
fn number(word: &str) -> Option<f64> {
    match word {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        // What else the standard library takes for a number, such as `infinity`, no page has.
        _ if word.contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')) => None,
        _ => word.parse().ok(),
    }
}
