//! Whom to scrape, and whether they say what will be asked of them.
//!
//! Invariant: every fault is found at once. What may well appear with the first request (anything that counts) is a
//! warning, unless a name that is there differs by a letter or two.
//! Not here: scraping again and again (`scraper`).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use experiment::telemetry::{Query, QueryError, Selector, Value};
use load::client;
use load::client::{Request, fetch};
use load::source::Head;
use tokio::task::JoinSet;

use super::exposition::Kind;
use super::names::{Names, current};
use super::page::Pages;

/// Targets at most.
pub(crate) const MOST_TARGETS: usize = 64;
/// Names that are told where one is not there.
const TOLD_NAMES: usize = 3;
/// A name that differs by no more is meant, not another.
const SLIP: usize = 2;

/// Who is scraped.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// As queries call it, such as `engine`.
    pub(crate) name: String,
    /// As it was written.
    pub(crate) url: String,
    pub(super) base: client::Target,
    pub(super) head: Head,
    /// Others whose pages are of the same target: their series stand beside its own.
    pub(super) others: Vec<Target>,
}

/// What does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Which target.
    pub(crate) target: String,
    /// The query that it is about, where it is about one.
    pub(crate) query: Option<String>,
    pub(crate) says: String,
}

/// What a first look found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checked {
    /// With these nothing can begin.
    pub(crate) faults: Vec<Finding>,
    /// What may come with traffic.
    pub(crate) warnings: Vec<Finding>,
    /// Lines and series of each target that was read, for a person.
    pub(crate) pages: Vec<String>,
}

impl Target {
    /// Reads `http(s)://HOST[:PORT]/PATH[?QUERY]` and resolves its name. Without a path it is `/metrics`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn parse(name: &str, url: &str) -> Result<Self, String> {
        let fault = |says: &dyn fmt::Display| format!("target {name}: {says}");
        let after_scheme = url.find("://").map_or(0, |at| at + 3);
        let end = url
            .get(after_scheme..)
            .and_then(|rest| rest.find(['/', '?']))
            .map_or(url.len(), |at| after_scheme + at);
        let (base, path) = url.split_at_checked(end).unwrap_or((url, ""));
        let path = match path {
            "" | "/" => "/metrics".to_owned(),
            query if query.starts_with('?') => format!("/metrics{query}"),
            path => path.to_owned(),
        };
        let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4";
        let head = Head::get(&path)
            .and_then(|head| head.with("accept", accept))
            .map_err(|error| fault(&error))?;
        Ok(Self {
            name: name.to_owned(),
            url: url.to_owned(),
            base: client::Target::parse(base).map_err(|error| fault(&error))?,
            head,
            others: Vec::new(),
        })
    }

    /// One whose page is of this target too, as that of another replica is.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.others.push(other);
        self
    }

    /// Whether its server tells that it is a simulated engine, as ours does beside its metrics. Blocks, for `patience` at
    /// most; of what cannot be asked that nothing is known.
    pub(crate) fn is_simulated(&self, patience: Duration) -> bool {
        let Ok(request) = Request::get("/server_info") else {
            return false;
        };
        let told = self
            .base
            .addresses()
            .first()
            .map(|&address| fetch(address, &request, patience));
        let told = told.and_then(Result::ok).filter(|told| told.status == 200);
        let told =
            told.and_then(|told| serde_json::from_slice::<serde_json::Value>(&told.body).ok());
        told.is_some_and(|told| told["system_env"]["simulated"] == true)
    }
}

/// Asks every target once, within `patience`, for what `queries` need of it. Blocks; targets are asked at the same time.
pub(crate) fn check(targets: &[Target], queries: &[Query], patience: Duration) -> Checked {
    let mut checked = Checked::default();
    let pages = match ask(targets, patience) {
        Ok(pages) => pages,
        Err(says) => {
            checked.faults.push(Finding {
                target: "all".into(),
                query: None,
                says,
            });
            return checked;
        }
    };
    for (target, page) in targets.iter().zip(&pages) {
        match page {
            Ok(known) => checked.pages.push(format!(
                "{}: {} series at {}{}",
                target.name,
                known.values.len(),
                target.url,
                known.says
            )),
            Err(says) => checked.faults.push(Finding {
                target: target.name.clone(),
                query: None,
                says: format!("{}: {says}", target.url),
            }),
        }
    }
    let known: BTreeMap<&str, &Known> = targets
        .iter()
        .zip(&pages)
        .filter_map(|(target, page)| Some((target.name.as_str(), page.as_ref().ok()?)))
        .collect();
    let named: BTreeSet<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    for query in queries {
        for selector in query.selectors() {
            let name = selector.target.as_str();
            if let Some(known) = known.get(name) {
                checked.missing(query, &selector, known);
            } else if !named.contains(name) && !OWN_TARGETS.contains(&name) {
                let all: Vec<&str> = named.iter().copied().chain(OWN_TARGETS).collect();
                let says = format!("there is no such target; there are {}", all.join(", "));
                checked.faults.push(finding(query, &selector, says));
            }
        }
    }
    checked
}

/// Targets that nobody names: read from the machine (`cfs`).
const OWN_TARGETS: [&str; 1] = [super::cfs::TARGET];

/// What one page has.
struct Known {
    values: Vec<Value>,
    kinds: BTreeMap<String, Kind>,
    /// What else is to be said of it.
    says: String,
}

impl Checked {
    /// Looks for what one part of a query needs, and says what it lacks.
    fn missing(&mut self, query: &Query, selector: &Selector, known: &Known) {
        let metric = selector.metric.as_str();
        let mut same = known
            .values
            .iter()
            .filter(|value| value.metric == metric)
            .peekable();
        let counts = !matches!(query, Query::Average(_) | Query::Sum(_) | Query::Max(_));
        if same.peek().is_some() {
            let labels: BTreeSet<String> =
                same.clone().map(|value| labels_of(&value.labels)).collect();
            if same.any(|value| selector.takes(metric, &value.labels)) {
                return;
            }
            let first: Vec<&str> = labels.iter().take(TOLD_NAMES).map(String::as_str).collect();
            let says = format!(
                "{metric} is there, but not with these labels; it has {}",
                first.join(" and ")
            );
            let list = if counts {
                &mut self.warnings
            } else {
                &mut self.faults
            };
            return list.push(finding(query, selector, says));
        }
        if let Some(today) = current(metric) {
            let says = format!("{metric} is read under its present name: ask for {today}");
            return self.faults.push(finding(query, selector, says));
        }
        let names: BTreeSet<&str> = known
            .values
            .iter()
            .map(|value| value.metric.as_str())
            .collect();
        let near = nearest(metric, &names);
        let is_slip = near.first().is_some_and(|(distance, _)| *distance <= SLIP);
        let family = ["_sum", "_count", "_total"]
            .into_iter()
            .find_map(|suffix| metric.strip_suffix(suffix));
        let is_announced = known.kinds.contains_key(metric)
            || family.is_some_and(|family| known.kinds.contains_key(family));
        let near: Vec<&str> = near
            .iter()
            .take(TOLD_NAMES)
            .map(|(_, name)| *name)
            .collect();
        let nearest = match near.as_slice() {
            [] => "the page has no metric at all".into(),
            near => format!("nearest are {}", near.join(", ")),
        };
        if is_announced || (counts && !is_slip) {
            let says =
                format!("there is no {metric} yet; it may come with the first request ({nearest})");
            self.warnings.push(finding(query, selector, says));
        } else {
            let says = format!("there is no {metric}; {nearest}");
            self.faults.push(finding(query, selector, says));
        }
    }
}

fn finding(query: &Query, selector: &Selector, says: String) -> Finding {
    Finding {
        target: selector.target.clone(),
        query: Some(query.to_string()),
        says,
    }
}

/// `metric{label="value"}` as a selector of any target.
pub(crate) fn selector(text: &str) -> Result<Selector, String> {
    let query = format!("increase(gateway:{})", text.trim()).parse();
    let query: Query = query.map_err(|error: QueryError| error.says)?;
    let mut selectors = query.selectors();
    selectors.pop().ok_or_else(|| "no metric".to_owned())
}

/// `METRIC{LABEL="VALUE"}` as people write it.
pub(crate) fn shown(selector: &Selector) -> String {
    let text = selector.to_string();
    let bare = text.strip_prefix("gateway:").unwrap_or(&text);
    bare.to_owned()
}

/// `{a="b"}`, as pages write them, but for escapes.
pub(crate) fn labels_of(labels: &[(String, String)]) -> String {
    let parts: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    format!("{{{}}}", parts.join(","))
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.query {
            Some(query) => write!(f, "{query}: {}", self.says),
            None => write!(f, "{}: {}", self.target, self.says),
        }
    }
}

fn ask(targets: &[Target], patience: Duration) -> Result<Vec<Result<Known, String>>, String> {
    let start = |error: std::io::Error| format!("the scraper could not start: {error}");
    let runtime = crate::runtime::make_local().map_err(start)?;
    runtime.block_on(async {
        let mut asked = JoinSet::new();
        for (at, target) in targets.iter().cloned().enumerate() {
            asked.spawn_local(async move { (at, look(target, patience).await) });
        }
        let mut pages: Vec<_> = targets
            .iter()
            .map(|_| Err("bug: nobody asked".to_owned()))
            .collect();
        while let Some(done) = asked.join_next().await {
            let (at, page) = done.map_err(|error| format!("bug: {error}"))?;
            if let Some(place) = pages.get_mut(at) {
                *place = page;
            }
        }
        Ok(pages)
    })
}

/// What one target says now, under today's names. Blocks, for `patience` at most.
///
/// # Errors
/// There is no page, in words.
pub(crate) fn values(target: &Target, patience: Duration) -> Result<Vec<Value>, String> {
    let pages = ask(std::slice::from_ref(target), patience)?;
    let page = pages.into_iter().next();
    let page = page.unwrap_or_else(|| Err("bug: nobody asked".into()));
    page.map(|known| known.values)
        .map_err(|says| format!("{}: {says}", target.url))
}

async fn look(target: Target, patience: Duration) -> Result<Known, String> {
    let mut pages = Pages::new(target, patience)?;
    let page = pages.get().await.map_err(|fault| fault.to_string())?;
    let says = match &page.first_unread {
        Some((at, line)) => format!(
            "; {} lines cannot be read, the first is line {at}: {line:?}",
            page.unread
        ),
        None => String::new(),
    };
    let kinds = page.kinds.clone();
    // Growth needs a second page: what follows from it is taken for there.
    let mut names = Names::default();
    names.apply(page.clone(), Duration::ZERO);
    Ok(Known {
        values: names.apply(page, Duration::from_secs(1)),
        kinds,
        says,
    })
}

/// Names with their distance, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, names: &BTreeSet<&'a str>) -> Vec<(usize, &'a str)> {
    let mut all: Vec<(usize, &str)> = names
        .iter()
        .map(|name| (distance(wanted, name), *name))
        .collect();
    all.sort_unstable();
    all.truncate(TOLD_NAMES);
    all
}

/// Letters to be put in, taken out or changed (Levenshtein, 1965).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, c) in one.chars().enumerate() {
        let mut corner = at;
        let mut left = at + 1;
        for (place, d) in row.iter_mut().skip(1).zip(&other) {
            let above = *place;
            *place = (corner + usize::from(c != *d)).min(above + 1).min(left + 1);
            (corner, left) = (above, *place);
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
