//! Which target of a config of Portkey's has a call, as routes of the gate's: by order, by shares, or by the model that is asked for.
//!
//! Invariant: a condition that routes do not have is said with its line, and leads nowhere by itself.
//! Not here: targets (`portkey`).

use std::fmt::Write as _;
use std::ops::Range;

use super::{Plan, word};
use crate::decode::{Findings, Written as _, child};
use crate::import::read::{Section, given, scalar};
use crate::mask::quoted;
use crate::node::{Node, Value};
use crate::scalar::Pattern;

/// Statuses after which a call can go on.
const STATUSES: std::ops::RangeInclusive<u16> = 400..=599;
/// Tries of one call that a route has unless it says more, and the most that it can say.
const TRIES: usize = 4;
const TRIES_MAX: usize = 8;
/// Shares are written in so many parts of one.
const PARTS: f64 = 1000.0;
const SHARE_MAX: f64 = 1_000_000.0;

/// The strategy of the whole config.
#[derive(Default)]
pub(super) enum Strategy {
    /// Targets in their order, and after which statuses the next is asked, where that is said.
    #[default]
    InOrder,
    Fallback(Vec<u16>),
    Shares,
    /// Models with the targets that they lead to, in their order; the last one may take all models.
    Models(Vec<(Vec<String>, Range<usize>)>),
}

impl Strategy {
    /// The target that stands first where this one is asked.
    pub(super) fn first_of(&self, index: usize) -> usize {
        let Self::Models(routes) = self else {
            return 0;
        };
        let mut lists = routes.iter().map(|(_, targets)| targets);
        let list = lists.find(|targets| targets.contains(&index));
        list.map_or(index, |targets| targets.start)
    }
}

/// Targets by the names that conditions have for them.
type Named = (Option<String>, Range<usize>);

impl Plan {
    /// Takes over the strategy of the config, whose targets are known by now.
    pub(super) fn strategy(
        &mut self,
        section: &Section<'_>,
        targets: &[Named],
        is_flat: bool,
        findings: &mut Findings,
    ) {
        let place = section.place_of("mode");
        let mode = word(section, "mode", findings);
        self.others(
            section,
            &["mode", "on_status_codes", "conditions", "default"],
        );
        match mode.as_deref() {
            None | Some("single") => {}
            Some("fallback") => {
                let statuses = self.statuses(section);
                if statuses.is_empty() {
                    let says = "every answer without success leads to the next target there; here those of `retries.statuses` of the route do";
                    self.comment(&place, says);
                }
                self.strategy = Strategy::Fallback(statuses);
            }
            Some("loadbalance") if is_flat => self.strategy = Strategy::Shares,
            Some("loadbalance") => self.comment(
                &place,
                "a route has shares for backends and not for lists of them: all targets stand in one route, in their order",
            ),
            Some("conditional") => {
                let models = self.conditions(section, targets, findings);
                match models.is_empty() {
                    true => self.comment(&place, "all targets stand in one route, in their order"),
                    false => self.strategy = Strategy::Models(models),
                }
            }
            Some(_) => self.comment(&place, "has no counterpart"),
        }
    }

    /// Says of a strategy within another one what becomes of it.
    pub(super) fn nested(&mut self, section: &Section<'_>, findings: &mut Findings) {
        let mode = word(section, "mode", findings);
        if matches!(mode.as_deref(), Some("loadbalance" | "conditional")) {
            let says = "holds within another strategy, and a route has one: these targets are asked in their order";
            self.comment(&section.place_of("mode"), says);
        }
        if section.get("on_status_codes").is_some() {
            let says = "is `retries.statuses` of the route here, one list for all its backends";
            self.comment(&section.place_of("on_status_codes"), says);
        }
    }

    /// The statuses after which the next target is asked.
    fn statuses(&mut self, section: &Section<'_>) -> Vec<u16> {
        let mut statuses = Vec::new();
        for node in section.list("on_status_codes") {
            let status = text(node).and_then(|text| text.parse().ok());
            match status.filter(|status| STATUSES.contains(status)) {
                Some(status) if !statuses.contains(&status) => statuses.push(status),
                Some(_) => {}
                None => {
                    let says = "names what is no status of an error, which is left out";
                    self.comment(&section.place_of("on_status_codes"), says);
                }
            }
        }
        statuses
    }

    /// The share of a target.
    pub(super) fn weight(&mut self, section: &Section<'_>, findings: &mut Findings) -> f64 {
        let Some(written) = word(section, "weight", findings) else {
            return 1.0;
        };
        match written.parse::<f64>() {
            Ok(weight) if weight.is_finite() => weight,
            _ => {
                self.comment(
                    &section.place_of("weight"),
                    "is no number, and is taken for 1",
                );
                1.0
            }
        }
    }

    /// The conditions that are of models, with where they lead, and the default.
    fn conditions(
        &mut self,
        section: &Section<'_>,
        targets: &[Named],
        findings: &mut Findings,
    ) -> Vec<(Vec<String>, Range<usize>)> {
        let mut routes = Vec::new();
        let led = |name: Option<&str>| {
            let mut targets = targets.iter().filter(|(_, of)| !of.is_empty());
            let found = targets.find(|(own, _)| name.is_some() && own.as_deref() == name);
            found.map(|(_, of)| of.clone())
        };
        for (nth, node) in section.list("conditions").iter().enumerate() {
            let path = format!("{}[{nth}]", child(&section.place.path, "conditions"));
            let Some(condition) = Section::open(node, &path, findings) else {
                continue;
            };
            let then = word(&condition, "then", findings);
            let query = condition.section("query", findings);
            match (models(&query), led(then.as_deref())) {
                (Ok(models), Some(targets)) => routes.push((models, targets)),
                (Ok(_), None) => {
                    let says = "leads to no target that is taken over, and is left out";
                    self.comment(&condition.place_of("then"), says);
                }
                (Err(asks), _) => {
                    let says = format!(
                        "asks for {}, and is left out: routes go by the model (`match.model`) and by whose workload it is, which `identity` finds",
                        quoted(&asks)
                    );
                    self.comment(&condition.place_of("query"), &says);
                }
            }
        }
        let default = word(section, "default", findings);
        match led(default.as_deref()) {
            Some(targets) => routes.push((Vec::new(), targets)),
            None if default.is_some() => {
                let says = "leads to no target that is taken over, and is left out";
                self.comment(&section.place_of("default"), says);
            }
            None => {}
        }
        routes
    }

    /// The routes of the document.
    pub(super) fn routes(&self, text: &mut String) {
        let all = 0..self.targets.len();
        let (says, more) = match &self.strategy {
            Strategy::Models(routes) => {
                text.push_str(
                    "\n# By the model that is asked for: the first that fits.\nroutes:\n",
                );
                for (models, targets) in routes {
                    let models: Vec<String> = models.iter().map(|name| scalar(name)).collect();
                    let matched = match models.is_empty() {
                        true => String::new(),
                        false => format!(", match: {{ model: [{}] }}", models.join(", ")),
                    };
                    self.route(text, &matched, targets, "");
                }
                return;
            }
            Strategy::Shares if self.targets.len() > 1 => (
                "One of them for each call, drawn by these shares.",
                format!(", weights: [{}]", self.shares().join(", ")),
            ),
            Strategy::Shares | Strategy::InOrder => (
                "Asked in their order: the next where one fails.",
                String::new(),
            ),
            Strategy::Fallback(statuses) => {
                let tries = self.targets.len().min(TRIES_MAX);
                let tries = (tries > TRIES).then(|| format!("attempts: {tries}"));
                let listed: Vec<String> = statuses.iter().map(u16::to_string).collect();
                let listed =
                    (!listed.is_empty()).then(|| format!("statuses: [{}]", listed.join(", ")));
                let retries: Vec<String> = tries.into_iter().chain(listed).collect();
                (
                    "Asked in their order: the next where one fails.",
                    match retries.is_empty() {
                        true => String::new(),
                        false => format!(", retries: {{ {} }}", retries.join(", ")),
                    },
                )
            }
        };
        let _ = writeln!(text, "\n# {says}\nroutes:");
        self.route(text, "", &all, &more);
    }

    fn route(&self, text: &mut String, matched: &str, targets: &Range<usize>, more: &str) {
        let targets = self.targets.get(targets.clone()).unwrap_or_default();
        let names: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
        let model = targets.first().and_then(|first| first.model.as_deref());
        let model = model.map_or_else(String::new, |model| format!(", model: {}", scalar(model)));
        let _ = writeln!(
            text,
            "  - {{ workload: default{matched}, backend: [{}]{model}{more} }}",
            names.join(", ")
        );
    }

    /// The shares of the targets in whole numbers.
    fn shares(&self) -> Vec<String> {
        let parts = |weight: f64| (weight * PARTS).round().clamp(1.0, SHARE_MAX);
        let parts: Vec<u64> = self
            .targets
            .iter()
            .map(|target| format!("{:.0}", parts(target.weight)).parse().unwrap_or(1))
            .collect();
        let whole = parts.iter().copied().fold(0, divisor).max(1);
        parts
            .iter()
            .map(|part| (part / whole).to_string())
            .collect()
    }
}

/// The greatest that divides both.
fn divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => divisor(b, a % b),
    }
}

/// The models that a condition asks for, where that is all that it asks.
///
/// # Errors
/// What it asks for besides.
fn models(query: &Section<'_>) -> Result<Vec<String>, String> {
    let mut entries = query.entries();
    let (Some(entry), None) = (entries.next(), entries.next()) else {
        return Err("several things at once, or nothing".to_owned());
    };
    if entry.key != "params.model" {
        return Err(entry.key.clone());
    }
    let of = match &entry.node.value {
        Value::Map(asked) => match asked.as_slice() {
            [only] if matches!(&*only.key, "$eq" | "$in") => &only.node,
            [only] => return Err(format!("{} {}", entry.key, only.key)),
            _ => return Err(entry.key.clone()),
        },
        Value::Scalar(_) | Value::List(_) => &entry.node,
    };
    let names = match &of.value {
        Value::List(items) => items.iter().map(text).collect(),
        Value::Scalar(_) | Value::Map(_) => text(of).map(|one| vec![one]),
    };
    let is_exact = |name: &String| matches!(Pattern::read(name), Ok(Pattern::Exact(_)));
    let names = names.filter(|names| !names.is_empty() && names.iter().all(is_exact));
    names.ok_or_else(|| entry.key.clone())
}

fn text(node: &Node) -> Option<String> {
    given(node).map(|given| given.composed())
}
