//! A question to what was scraped, as text.
//!
//! Invariant: a text that is read gives itself back.
//! Not here: answering (`record`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Series of one metric of one target: all whose labels have these values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Such as `engine`.
    pub target: String,
    /// Such as `vllm:num_preemptions_total`.
    pub metric: String,
    /// Labels that a series has to have.
    pub labels: Vec<(String, String)>,
}

/// A question about a span of time. Series that a selector takes together are summed unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Query {
    /// Of a histogram or summary: what its `_sum` grew by over what its `_count` grew by.
    Mean(Selector),
    /// What a counter grew by over what another grew by, which is taken for 1 where it is less.
    Ratio(Selector, Selector),
    /// What a counter grew by.
    Increase(Selector),
    /// The same for each second.
    Rate(Selector),
    /// Of a gauge: the mean over series and samples.
    Average(Selector),
    /// Of a gauge: the mean over samples of the sum over series.
    Sum(Selector),
    /// Of a gauge: the greatest of any series and sample.
    Max(Selector),
}

/// A question that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("query {text:?}: {says}")]
pub struct QueryError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub says: String,
}

impl Query {
    /// The words of functions.
    const FUNCTIONS: [&'static str; 7] = ["mean", "ratio", "increase", "rate", "avg", "sum", "max"];

    /// The metrics that have to be scraped for an answer.
    #[must_use]
    pub fn selectors(&self) -> Vec<Selector> {
        match self {
            Self::Mean(of) => vec![of.with_suffix("_sum"), of.with_suffix("_count")],
            Self::Ratio(of, over) => vec![of.clone(), over.clone()],
            Self::Increase(of)
            | Self::Rate(of)
            | Self::Average(of)
            | Self::Sum(of)
            | Self::Max(of) => vec![of.clone()],
        }
    }

    /// Whether an answer rests on a count of events, as [`Telemetry::support`](super::Telemetry::support) gives it.
    #[must_use]
    pub const fn rests_on_a_count(&self) -> bool {
        matches!(self, Self::Mean(_) | Self::Ratio(..))
    }

    /// The targets that have to be heard for an answer.
    pub fn targets(&self) -> impl Iterator<Item = String> {
        self.selectors().into_iter().map(|of| of.target)
    }

    fn parts(&self) -> (&'static str, Vec<&Selector>) {
        match self {
            Self::Mean(of) => ("mean", vec![of]),
            Self::Ratio(of, over) => ("ratio", vec![of, over]),
            Self::Increase(of) => ("increase", vec![of]),
            Self::Rate(of) => ("rate", vec![of]),
            Self::Average(of) => ("avg", vec![of]),
            Self::Sum(of) => ("sum", vec![of]),
            Self::Max(of) => ("max", vec![of]),
        }
    }
}

impl Selector {
    /// Whether a series is one of those.
    #[must_use]
    pub fn takes(&self, metric: &str, labels: &[(String, String)]) -> bool {
        self.metric == metric && self.labels.iter().all(|wanted| labels.contains(wanted))
    }

    pub(super) fn with_suffix(&self, suffix: &str) -> Self {
        Self {
            metric: format!("{}{suffix}", self.metric),
            ..self.clone()
        }
    }
}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        read(text).map_err(|says| QueryError {
            text: text.to_owned(),
            says,
        })
    }
}

fn read(text: &str) -> Result<Query, String> {
    let shape =
        "write FUNCTION(TARGET:METRIC), such as mean(engine:vllm:time_to_first_token_seconds)";
    let (function, rest) = text.trim().split_once('(').ok_or(shape)?;
    let inside = rest.strip_suffix(')').ok_or(shape)?;
    let function = function.trim();
    if !Query::FUNCTIONS.contains(&function) {
        let known = Query::FUNCTIONS.join(", ");
        return Err(format!("{function:?} is none of {known}"));
    }
    let mut selectors = split(inside).into_iter().map(selector);
    let first = selectors.next().ok_or(shape)??;
    let second = selectors.next().transpose()?;
    if selectors.next().is_some() || second.is_some() != (function == "ratio") {
        return Err("ratio has two metrics, every other function one".into());
    }
    Ok(match (function, second) {
        ("mean", _) => Query::Mean(first),
        (_, Some(over)) => Query::Ratio(first, over),
        ("increase", _) => Query::Increase(first),
        ("rate", _) => Query::Rate(first),
        ("avg", _) => Query::Average(first),
        ("sum", _) => Query::Sum(first),
        _ => Query::Max(first),
    })
}

/// At the commas that are neither between braces nor between quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_inside, mut is_quoted) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '{' if !is_quoted => is_inside = true,
            '}' if !is_quoted => is_inside = false,
            ',' if !is_inside && !is_quoted => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

fn selector(text: &str) -> Result<Selector, String> {
    let text = text.trim();
    let (name, labels) = match text.split_once('{') {
        Some((name, rest)) => {
            let inside = rest
                .strip_suffix('}')
                .ok_or_else(|| format!("{text:?} has a {{ without its }}"))?;
            (name, labels_of(inside)?)
        }
        None => (text, Vec::new()),
    };
    let (target, metric) = name
        .split_once(':')
        .filter(|(target, metric)| is_name(target) && is_name(metric))
        .ok_or_else(|| format!("{name:?} is no TARGET:METRIC"))?;
    Ok(Selector {
        target: target.to_owned(),
        metric: metric.to_owned(),
        labels,
    })
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
    !text.is_empty() && text.chars().all(fits)
}

fn labels_of(text: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = split(text).into_iter().map(str::trim);
    pairs.filter(|pair| !pair.is_empty()).map(label).collect()
}

fn label(pair: &str) -> Result<(String, String), String> {
    let says = || format!("{pair:?} is no LABEL=\"VALUE\"");
    let (name, value) = pair.split_once('=').ok_or_else(says)?;
    let value = value.trim().strip_prefix('"');
    let value = value.and_then(|value| value.strip_suffix('"'));
    let is_plain = |value: &&str| !value.contains(['"', '\\', '\n']);
    let name = name.trim();
    let value = value.filter(is_plain).filter(|_| is_name(name));
    Ok((name.to_owned(), value.ok_or_else(says)?.to_owned()))
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (function, selectors) = self.parts();
        let inside: Vec<String> = selectors.into_iter().map(ToString::to_string).collect();
        write!(f, "{function}({})", inside.join(", "))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.target, self.metric)?;
        let labels = self.labels.iter();
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        if labels.is_empty() {
            return Ok(());
        }
        write!(f, "{{{}}}", labels.join(", "))
    }
}

impl TryFrom<String> for Query {
    type Error = QueryError;

    fn try_from(text: String) -> Result<Self, QueryError> {
        text.parse()
    }
}

impl From<Query> for String {
    fn from(query: Query) -> Self {
        query.to_string()
    }
}
