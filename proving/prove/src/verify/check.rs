//! Holds what came back, what arrived upstream and what metrics grew by against a case.
//!
//! Invariant: pure; every expectation of a case leaves either a fault or a line of evidence, and none is met by silence:
//! what speaks of answers that there are not is a fault.
//! Not here: making the calls (`run`).

mod answer;
mod disguise;
mod leak;
#[cfg(test)]
mod tests;

use super::client::Answer;
use super::metric::Reading;
use super::suite::{AtUpstream, By, Call, Case, Growth, Suite, To, in_short, shown};
use super::upstream::Seen;
use crate::text::is_secret;
use experiment::telemetry::Selector;

/// What was found in one case.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) faults: Vec<String>,
    pub(super) evidence: Vec<String>,
}

/// All that was seen of one case.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// By the number of the call, those of one call in their order.
    pub(super) exchanges: Vec<Vec<Exchange>>,
    /// All that arrived in the case through the gateway, by the number of the upstream.
    pub(super) arrived: Vec<Vec<Seen>>,
    /// Every byte that arrived in the case through the gateway, by the number of the upstream and by connection, whether or
    /// not it was a call.
    pub(super) wires: Vec<Vec<Vec<u8>>>,
    /// By the number of the growth.
    pub(super) metrics: Vec<Moved>,
}

/// One answer, and what had arrived upstream for it by its end.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) answer: Answer,
    pub(super) arrived: Vec<Seen>,
}

/// A metric before and after.
#[derive(Debug, Clone)]
pub(super) enum Moved {
    /// It is nowhere said where it is.
    Unknown,
    Read {
        selector: Selector,
        before: Reading,
        after: Reading,
    },
}

impl Found {
    fn fault(&mut self, says: impl Into<String>) {
        self.faults.push(says.into());
    }

    fn says(&mut self, says: impl Into<String>) {
        self.evidence.push(says.into());
    }
}

/// Whether a case holds.
pub(super) fn check(suite: &Suite, case: &Case, observed: &Observed) -> Found {
    let mut found = Found::default();
    for (call, exchanges) in case.calls.iter().zip(&observed.exchanges) {
        statuses(&mut found, suite, call, exchanges);
        answer::whole_ones(&mut found, &call.answers, exchanges);
        for asked in &call.answers {
            answer::check(&mut found, asked, exchanges);
        }
    }
    arrivals(&mut found, suite, case, observed);
    for (growth, moved) in case.metrics.iter().zip(&observed.metrics) {
        grown(&mut found, growth, moved, &observed.arrived);
    }
    leak::check(&mut found, suite, case, observed);
    for line in found.faults.iter_mut().chain(&mut found.evidence) {
        *line = leak::without_secrets(case, line);
    }
    found
}

/// A call in few words, as evidence begins. Headers that may carry credentials are not told.
fn named(suite: &Suite, call: &Call) -> String {
    let told = call
        .headers
        .iter()
        .filter(|(name, _)| !is_secret(name.as_str()));
    let told: Vec<String> = told
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    let mut text = format!("{} {}", call.method, call.path);
    if !told.is_empty() {
        text = format!("{text} ({})", told.join(", "));
    }
    let To::Upstream(at) = call.to else {
        return text;
    };
    let upstream = suite.upstreams.get(at);
    let name = upstream.map_or("?", |upstream| upstream.name.as_str());
    format!("{text}, straight to {name}")
}

fn statuses(found: &mut Found, suite: &Suite, call: &Call, exchanges: &[Exchange]) {
    let statuses: Vec<u16> = exchanges
        .iter()
        .map(|exchange| exchange.answer.status)
        .collect();
    let line = format!("{}: {}", named(suite, call), in_short(&statuses));
    if !call.statuses.are(&statuses) {
        found.fault(format!("{line}; expected {}", call.statuses));
    }
    found.says(line);
}

fn arrivals(found: &mut Found, suite: &Suite, case: &Case, observed: &Observed) {
    let asked = suite.upstreams.iter().zip(&case.upstreams);
    let mut counts = Vec::new();
    for ((upstream, asked), seen) in asked.zip(&observed.arrived) {
        counts.push(format!("{} {}", upstream.name, seen.len()));
        let had = seen.len() as u64;
        if let Some(wanted) = asked.calls.filter(|&wanted| wanted != had) {
            found.fault(format!(
                "{} had {had} calls; expected {wanted}",
                upstream.name
            ));
        }
        if let Some(too_long) = seen.iter().find(|seen| seen.is_cut) {
            let path = &too_long.path;
            found.fault(format!(
                "{}: a body for {path} was too long to be kept",
                upstream.name
            ));
        }
        let has_headers = !asked.headers.is_empty() || !asked.no_headers.is_empty();
        if has_headers && seen.is_empty() {
            found.fault(format!(
                "{} had no call whose headers could be looked at",
                upstream.name
            ));
        }
        if let Some(part) = seen.iter().find(|seen| !seen.is_whole && !seen.is_cut) {
            let path = &part.path;
            found.fault(format!(
                "{}: a call for {path} arrived without its whole body",
                upstream.name
            ));
        }
        for seen in seen {
            headers(found, &upstream.name, asked, seen);
        }
        bodies(found, &upstream.name, asked, (case, seen));
    }
    if !counts.is_empty() {
        found.says(format!("calls upstream: {}", counts.join(", ")));
    }
}

fn headers(found: &mut Found, name: &str, asked: &AtUpstream, seen: &Seen) {
    let values = |header: &str| -> Vec<&Vec<u8>> {
        let own = seen
            .headers
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(header));
        own.map(|(_, value)| value).collect()
    };
    for (header, wanted) in &asked.headers {
        // Values are not told: they may be credentials.
        match values(header)[..] {
            [one] if one == wanted.as_bytes() => {
                let line = format!("{name} saw its own {header}, and no other");
                if !found.evidence.contains(&line) {
                    found.says(line);
                }
            }
            [] => found.fault(format!("{name} saw no {header}")),
            [_] => found.fault(format!("{name} saw another {header} than expected")),
            ref several => {
                found.fault(format!("{name} saw {} headers {header}", several.len()));
            }
        }
    }
    for header in &asked.no_headers {
        if !values(header).is_empty() {
            found.fault(format!("{name} saw a header {header}"));
        }
    }
}

fn bodies(found: &mut Found, name: &str, asked: &AtUpstream, (case, seen): (&Case, &[Seen])) {
    if !asked.same_body {
        return;
    }
    let sent = |seen: &&Seen| case.calls.iter().any(|call| call.body == seen.body);
    let same = seen.iter().filter(sent).count();
    if same < seen.len() {
        let other = seen.len() - same;
        found.fault(format!("{name} had {other} bodies that were not sent so"));
    }
    if seen.is_empty() {
        found.fault(format!("{name} had no body to be compared"));
    }
    found.says(format!(
        "{name}: bodies that arrived as they were sent: {same}"
    ));
}

fn grown(found: &mut Found, growth: &Growth, moved: &Moved, arrived: &[Vec<Seen>]) {
    let name = &growth.metric;
    let (selector, before, after) = match moved {
        Moved::Unknown if growth.optional => {
            found.says(format!(
                "{name}: this gateway names no such metric; not asked"
            ));
            return;
        }
        Moved::Unknown => {
            found.fault(format!("{name}: neither suite nor gateway says where this metric is; for one that runs already: --metrics {name}=URL#SERIES"));
            return;
        }
        Moved::Read {
            selector,
            before,
            after,
        } => (shown(selector), before, after),
    };
    let wanted = wanted(growth.by, arrived);
    let Some(stands) = after.value else {
        let nearest = after.nearest.join(", ");
        found.fault(format!("{selector} is not there; nearest: {nearest}"));
        return;
    };
    // A counter that appears counts from 0.
    let began = before.value.unwrap_or(0.0);
    found.says(format!("{selector} {began} -> {stands}"));
    let by = stands - began;
    if !by.is_finite() {
        found.fault(format!(
            "{selector} went from {began} to {stands}, which is no number; expected {wanted} more"
        ));
    } else if (by - wanted).abs() > 0.5 {
        found.fault(format!("{selector} grew by {by}; expected {wanted}"));
    }
}

/// What a metric has to have grown by.
pub(super) fn wanted(by: By, arrived: &[Vec<Seen>]) -> f64 {
    match by {
        By::Count(count) => count as f64,
        By::TotalTokens => {
            let said = arrived.iter().flatten().filter_map(|seen| seen.usage);
            said.map(|usage| usage.prompt + usage.completion)
                .sum::<u64>() as f64
        }
    }
}
