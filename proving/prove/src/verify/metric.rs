//! A metric of a gateway: read from its page before and after a case.
//!
//! Invariant: a series that is not there has no value; what is not on a page at all is told with the names nearest to it.
//! Not here: what it has to grow by (`check`).

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use experiment::telemetry::{Selector, Value};
use http::{HeaderMap, Method};

use super::client::{Asked, Target, Unanswered, ask};
use crate::scrape::exposition::Page;
use crate::scrape::targets::{labels_of, nearest};

/// Names that are told in place of one that is not there.
const NEAREST: usize = 3;

/// Where a metric is.
#[derive(Debug, Clone)]
pub(crate) struct Scrape {
    pub(crate) page: Target,
    pub(crate) selector: Selector,
}

/// What a page says of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The sum over its series; `None` where there is none.
    pub(super) value: Option<f64>,
    /// Names on the page that are most like it, where there is none.
    pub(super) nearest: Vec<String>,
}

impl Scrape {
    /// Asks for the page.
    pub(super) async fn read(&self, patience: Duration) -> Result<Reading, Unanswered> {
        let asked = Asked {
            spelled: &BTreeMap::new(),
            method: &Method::GET,
            path: "",
            headers: &HeaderMap::new(),
            body: b"",
        };
        let answer = ask(&self.page, asked, patience).await?;
        let not_a_page = |says: String| Unanswered::NotHttp {
            target: self.page.to_string(),
            says,
        };
        if answer.status != 200 {
            return Err(not_a_page(format!(
                "status {} in place of its metrics",
                answer.status
            )));
        }
        match answer.broken {
            Some(says) => Err(not_a_page(says)),
            None => Ok(reading(
                &String::from_utf8_lossy(&answer.body),
                &self.selector,
            )),
        }
    }
}

/// What a page in Prometheus's text format says.
pub(super) fn reading(page: &str, selector: &Selector) -> Reading {
    let page = Page::read(page.as_bytes());
    let fits = |value: &&Value| selector.takes(&value.metric, &value.labels);
    let values = page.values.iter().filter(fits);
    let value = values
        .map(|value| value.value)
        .reduce(|sum, value| sum + value);
    let nearest = match value {
        Some(_) => Vec::new(),
        None => nearest_on(&page, &selector.metric),
    };
    Reading { value, nearest }
}

/// The names of a page that are most like this one; where the metric itself is there, with labels that do not fit.
fn nearest_on(page: &Page, metric: &str) -> Vec<String> {
    let own = page
        .values
        .iter()
        .filter(|value| value.metric.starts_with(metric));
    let own: Vec<String> = own
        .map(|value| format!("{}{}", value.metric, labels_of(&value.labels)))
        .take(NEAREST)
        .collect();
    if !own.is_empty() {
        return own;
    }
    let names: BTreeSet<&str> = page.values.iter().map(|value| &*value.metric).collect();
    let near = nearest(metric, &names).into_iter();
    near.take(NEAREST)
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests;
