//! Which limits of a policy hold for which callers and models of a rule.
//!
//! Our limits are of a route and a caller. So a rule is cut into parts that have the same limits, and a limit that would have to be
//! counted over several parts, or over several callers together, is a fault.

use std::collections::BTreeMap;

use super::callers::Callers;
use crate::findings::{Findings, Spot};
use crate::matching::{How, MODEL, Wanted};
use crate::object::Object;
use crate::route::Counted;
use crate::traffic::{LimitRule, Traffic};
use crate::tree::Tree;

/// Callers and models of a rule that have the same limits.
pub(crate) struct Part {
    pub(crate) workloads: Vec<String>,
    pub(crate) models: Option<Vec<Wanted>>,
    pub(crate) limits: Vec<Tree>,
    /// Which rules of the policy these are.
    pub(crate) counted: Vec<usize>,
}

/// A rule of a route, to which a policy's limits come.
#[derive(Clone, Copy)]
pub(super) struct Held<'h> {
    pub(super) route: &'h Object<'h>,
    pub(super) spot: &'h Spot,
    pub(super) traffic: Option<&'h Traffic>,
    pub(super) is_live: bool,
}

/// What is wrong with a limit of the Gateway's, as it is told of a route.
pub(super) fn of_gateway(policy: &Traffic, says: &str) -> String {
    format!("is held to a limit of {}, which {says}", policy.spot.object)
}

impl Held<'_> {
    /// Whether the policy is for the Gateway of a cluster, and the route is in its namespace.
    pub(super) fn is_of_owner(self, policy: &Traffic) -> bool {
        self.is_live && policy.is_for_all() && self.route.namespace == policy.namespace
    }

    /// Makes something of limits. In a cluster, what is wrong with one of the Gateway's on a route of another namespace is that
    /// route's fault: without it the limit is sound.
    pub(super) fn told<T>(
        self,
        findings: &mut Findings,
        make: impl FnOnce(&mut Findings) -> T,
    ) -> T {
        let for_all = self.traffic.filter(|policy| policy.is_for_all());
        let of_other = for_all.filter(|policy| policy.namespace != self.route.namespace);
        let Some(policy) = of_other.filter(|_| self.is_live) else {
            return make(findings);
        };
        let mut own = Findings::default();
        let made = make(&mut own);
        findings.warnings.extend(own.warnings);
        for fault in own.faults {
            findings.fault(self.spot, of_gateway(policy, &fault.says), fault.hint);
        }
        made
    }
}

/// Cuts a rule's callers and models.
pub(super) fn parts(
    workloads: &[String],
    models: Option<&[Wanted]>,
    traffic: Option<&Traffic>,
    callers: &Callers,
    costs: &[(String, Counted)],
    findings: &mut Findings,
) -> Vec<Part> {
    let rules = traffic.map_or(&[][..], |traffic| &traffic.limits);
    let by_models = cut(models, rules, findings);
    let is_cut = by_models.len() > 1;
    let mut found = Vec::new();
    let mut places: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    for models in by_models {
        let mut by_limits: Vec<(Vec<usize>, Vec<String>)> = Vec::new();
        for workload in workloads {
            let holds = |(index, rule): (usize, &LimitRule)| {
                (takes_models(rule, models.as_deref()) && counts(rule, workload, callers))
                    .then_some(index)
            };
            let indices: Vec<usize> = rules.iter().enumerate().filter_map(holds).collect();
            for index in &indices {
                *places.entry((*index, workload)).or_default() += 1;
            }
            match by_limits.iter_mut().find(|(same, _)| *same == indices) {
                Some((_, all)) => all.push(workload.clone()),
                None => by_limits.push((indices, vec![workload.clone()])),
            }
        }
        for (indices, workloads) in by_limits {
            let of_it = rules
                .iter()
                .enumerate()
                .filter(|(index, _)| indices.contains(index));
            let limits = of_it
                .filter_map(|(_, rule)| limit(rule, callers, costs, findings))
                .collect();
            found.push(Part {
                workloads,
                models: models.clone(),
                limits,
                counted: indices,
            });
        }
    }
    for (index, rule) in rules.iter().enumerate() {
        let counted: Vec<&str> = places
            .keys()
            .filter(|(i, _)| *i == index)
            .map(|(_, w)| *w)
            .collect();
        if counted.len() > 1 && !is_each_apart(rule, callers) {
            let says = format!(
                "counts its callers together, and here {} would have as much each",
                counted.join(", ")
            );
            let hint = "select them by a header of type: Distinct, or one by its value; one amount for all is a budget of a file of ours";
            findings.fault(&rule.spot, says, hint);
        }
        let is_spread = places
            .iter()
            .any(|((i, _), count)| *i == index && *count > 1);
        if is_cut && is_spread && !is_by_model(rule) {
            let says =
                "counts calls of several models together, of which another limit counts one apart";
            findings.fault(
                &rule.spot,
                says,
                "write a rule of the route for each model, or leave the other limit out",
            );
        }
    }
    found
}

/// The models of a rule, cut where limits count one apart.
fn cut(
    models: Option<&[Wanted]>,
    rules: &[LimitRule],
    findings: &mut Findings,
) -> Vec<Option<Vec<Wanted>>> {
    let mut apart: Vec<Wanted> = Vec::new();
    for header in rules
        .iter()
        .flat_map(|rule| &rule.headers)
        .filter(|header| header.name == MODEL)
    {
        let wanted = match (&header.how, models) {
            (How::Is(wanted), _) => wanted.clone(),
            (How::Distinct, Some(models)) => models.to_vec(),
            (How::Distinct, None) => Vec::new(),
        };
        let is_whole = wanted.iter().all(|one| matches!(one, Wanted::Exact(_)));
        if !is_whole || wanted.is_empty() {
            let says = "counts each model apart, and which those are is not known";
            findings.fault(&header.spot, says, "match models exactly in the route");
        }
        if let (How::Is(wanted), true) = (&header.how, wanted.len() > 1) {
            let says = format!(
                "counts {} models together, and each would have as much",
                wanted.len()
            );
            findings.fault(&header.spot, says, "write a limit for each");
        }
        let is_here =
            |one: &Wanted| models.is_none_or(|models| models.iter().any(|of| of.covers(one)));
        for one in wanted.into_iter().filter(|one| is_here(one)) {
            if !apart.contains(&one) {
                apart.push(one);
            }
        }
    }
    let rest: Option<Vec<Wanted>> = models.map(|models| {
        models
            .iter()
            .filter(|one| !apart.contains(one))
            .cloned()
            .collect()
    });
    let mut parts: Vec<Option<Vec<Wanted>>> =
        apart.into_iter().map(|one| Some(vec![one])).collect();
    if rest.as_ref().is_none_or(|rest| !rest.is_empty()) {
        parts.push(rest);
    }
    parts
}

fn takes_models(rule: &LimitRule, models: Option<&[Wanted]>) -> bool {
    let mut of_models = rule.headers.iter().filter(|header| header.name == MODEL);
    of_models.all(|header| match (&header.how, models) {
        (How::Is(wanted), Some(models)) => models.iter().all(|one| wanted.contains(one)),
        (How::Is(_), None) => false,
        (How::Distinct, models) => models.is_some(),
    })
}

pub(super) fn counts(rule: &LimitRule, workload: &str, callers: &Callers) -> bool {
    let mut of_callers = rule
        .headers
        .iter()
        .filter(|header| Some(header.name.as_str()) == callers.header());
    of_callers.all(|header| match &header.how {
        How::Is(wanted) => wanted.contains(&Wanted::Exact(workload.to_owned())),
        How::Distinct => callers.is_named(workload),
    })
}

pub(super) fn is_each_apart(rule: &LimitRule, callers: &Callers) -> bool {
    let mut of_callers = rule
        .headers
        .iter()
        .filter(|header| Some(header.name.as_str()) == callers.header());
    of_callers.any(|header| matches!(header.how, How::Distinct))
}

/// Whether each user has it alone.
fn is_for_users(rule: &LimitRule, callers: &Callers) -> bool {
    rule.headers
        .iter()
        .any(|header| Some(header.name.as_str()) == callers.user_header())
}

pub(super) fn is_by_model(rule: &LimitRule) -> bool {
    rule.headers.iter().any(|header| header.name == MODEL)
}

pub(super) fn limit(
    rule: &LimitRule,
    callers: &Callers,
    costs: &[(String, Counted)],
    findings: &mut Findings,
) -> Option<Tree> {
    let counts = match &rule.key {
        None => "requests",
        Some((key, spot)) => match costs.iter().find(|(known, _)| known == key) {
            Some((_, Counted::AllTokens)) => "tokens",
            Some((_, Counted::Other)) => {
                let says = format!(
                    "counts what {key} is, and limits count tokens of prompt and completion together"
                );
                findings.fault(spot, says, "write type: TotalToken in llmRequestCosts");
                return None;
            }
            None => {
                findings.fault(
                    spot,
                    format!("counts {key}, which no llmRequestCosts of the route sets"),
                    "add it there, with type: TotalToken",
                );
                return None;
            }
        },
    };
    let members = [
        (counts, Some(Tree::number(rule.amount))),
        ("per", Some(Tree::Plain(rule.per.to_owned()))),
        ("window", Some(Tree::text("rolling"))),
        (
            "for",
            is_for_users(rule, callers).then(|| Tree::text("user")),
        ),
    ];
    Some(Tree::map(members).of(&rule.spot))
}
