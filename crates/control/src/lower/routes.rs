//! `routes` of our document: rules in their order, each for its callers and models, with its limits and backends.
//!
//! Invariant: no route is made that earlier ones leave nothing.
//! Not here: single rules (`model_rules`, `plain_rules`), where limits count (`limits`), who callers are (`callers`), how a route is written (`written`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::callers::Callers;
use super::written::Written;
use crate::backends::Backends;
use crate::findings::{Findings, Spot};
use crate::gateway::Door;
use crate::matching::{HeaderMatch, How, MODEL, Wanted};
use crate::object::Object;
use crate::quota::Quota;
use crate::route::{ModelMatch, ModelRoute, Rule};
use crate::traffic::Traffic;
use crate::tree::Tree;

/// What routes come to, as it is made.
pub(super) struct Made<'m> {
    pub(super) is_live: bool,
    /// What rules send is as it is said: in files with other faults quotas of it have none that follow from those.
    pub(super) is_sound: bool,
    /// What routes of plain HTTP take already in a cluster: all but the host, and the host.
    pub(super) plainly: BTreeSet<(String, String)>,
    pub(super) callers: &'m Callers,
    pub(super) traffic: &'m [Traffic],
    /// With how many rules each holds for.
    pub(super) quotas: Vec<(Quota, u32)>,
    /// On the way to models.
    pub(super) proxy: Option<Tree>,
    pub(super) backends: Backends,
    pub(super) routes: Vec<Tree>,
    pub(super) names: Vec<String>,
    /// Which limits are part of which routes, by policy, rule and caller.
    pub(super) shared: BTreeMap<(Rc<str>, usize, String), Counted>,
    /// The models that earlier routes take of each caller's calls.
    taken: BTreeMap<String, Vec<Wanted>>,
}

/// How often, and the namespace and place of the first.
pub(super) type Counted = (u32, String, Spot);

/// Callers and models of a rule, before its limits.
pub(super) struct Draft<'d> {
    pub(super) workloads: Vec<String>,
    /// All where there is none.
    pub(super) models: Option<Vec<Wanted>>,
    pub(super) spot: &'d Spot,
}

impl<'m> Made<'m> {
    pub(super) fn new(
        callers: &'m Callers,
        traffic: &'m [Traffic],
        quotas: Vec<Quota>,
        proxy: Option<Tree>,
        is_live: bool,
    ) -> Self {
        Self {
            is_live,
            is_sound: true,
            plainly: BTreeSet::new(),
            callers,
            traffic,
            quotas: quotas.into_iter().map(|quota| (quota, 0)).collect(),
            proxy,
            backends: Backends::default(),
            routes: Vec::new(),
            names: Vec::new(),
            shared: BTreeMap::new(),
            taken: BTreeMap::new(),
        }
    }

    /// Takes calls of nobody: a document has a route, and to this Gateway none is attached.
    pub(super) fn nothing(&mut self, door: &Door<'_, '_>) {
        let spot = &door.gateway.spot;
        let backends = [self.backends.closed(false, spot)];
        let nothing = vec![Wanted::Exact("no-route-is-attached".to_owned())];
        let everybody = [self.callers.default_name()];
        let matched = matched(Some(nothing));
        self.push(&Written {
            matched,
            ..Written::of("none", &everybody, &backends, spot)
        });
    }

    /// Notes limits that became part of no route.
    pub(super) fn unused(&self, findings: &mut Findings) {
        for (quota, _) in self.quotas.iter().filter(|(_, places)| *places == 0) {
            let says = "is never in force: no rule sends its model to its backend";
            findings.warn(&quota.spot, says, "");
        }
        for policy in self.traffic {
            for (index, rule) in policy.limits.iter().enumerate() {
                let is_it = |(at, i, _): &(Rc<str>, usize, String)| {
                    *at == policy.spot.object && *i == index
                };
                if !self.shared.keys().any(is_it) {
                    let says =
                        "is never in force: no route that it is for has such callers and models";
                    findings.warn(&rule.spot, says, "");
                }
            }
        }
    }

    /// All rules in the Gateway API's order: those that say most headers first, then by the name of their routes.
    pub(super) fn sorted(&mut self, routes: &[ModelRoute<'_, '_>], findings: &mut Findings) {
        let is_of_quotas = |fault: &config::Fault| fault.path.starts_with("QuotaPolicy ");
        self.is_sound = self.is_live || findings.faults.iter().all(is_of_quotas);
        let rules = routes.iter().flat_map(|route| &route.rules);
        let mut counts: Vec<usize> = rules
            .flat_map(|rule| rule.matches.iter().map(|(_, headers)| headers.len()))
            .collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.dedup();
        for count in counts {
            for route in routes {
                for (index, rule) in route.rules.iter().enumerate() {
                    let name =
                        name_of(route.object, rule.name.as_deref(), index, route.rules.len());
                    for draft in self.drafts(rule, count, findings) {
                        self.route_to_models(route, rule, draft, &name, findings);
                    }
                }
            }
        }
    }

    /// A rule's callers and models, by its matches of so many headers, as far as earlier rules leave them.
    fn drafts<'r>(
        &mut self,
        rule: &'r Rule<ModelMatch>,
        count: usize,
        findings: &mut Findings,
    ) -> Vec<Draft<'r>> {
        let mut drafts: Vec<Draft<'_>> = Vec::new();
        for (spot, headers) in rule
            .matches
            .iter()
            .filter(|(_, headers)| headers.len() == count)
        {
            if let Some(workloads) = self.callers.taken_by(headers, findings) {
                add(&mut drafts, workloads, models_of(headers), spot);
            }
        }
        let mut left = Vec::new();
        for draft in drafts {
            let callers = draft.workloads.join(", ");
            match self.reachable(draft) {
                Some(draft) => left.push(draft),
                None => {
                    let says =
                        format!("is never reached by {callers}: earlier rules take all its models");
                    findings.warn(&rule.spot, says, "");
                }
            }
        }
        left
    }

    /// What earlier routes leave of a draft.
    fn reachable<'d>(&mut self, mut draft: Draft<'d>) -> Option<Draft<'d>> {
        let everything = [Wanted::Prefix(String::new())];
        let wanted = draft.models.clone().unwrap_or_else(|| everything.to_vec());
        let taken = &self.taken;
        draft.workloads.retain(|workload| {
            let taken = taken.get(workload).map_or(&[][..], Vec::as_slice);
            !wanted
                .iter()
                .all(|one| taken.iter().any(|other| other.covers(one)))
        });
        for workload in &draft.workloads {
            self.taken
                .entry(workload.clone())
                .or_default()
                .extend(wanted.iter().cloned());
        }
        (!draft.workloads.is_empty()).then_some(draft)
    }

    /// What is said of a route's traffic: by a policy for it, or else for all.
    pub(super) fn traffic_of(&self, route: &Object<'_>) -> Option<&'m Traffic> {
        let own = self.traffic.iter().find(|traffic| traffic.is_for(route));
        own.or_else(|| self.traffic.iter().find(|traffic| traffic.is_for_all()))
    }
}

/// Which models a route takes, as our document writes it.
pub(super) fn matched(models: Option<Vec<Wanted>>) -> Option<Tree> {
    let patterns: Vec<String> = models?.iter().map(Wanted::pattern).collect();
    Some(Tree::map([("model", Some(Tree::texts(&patterns)))]))
}

/// What a rule's route is called.
pub(super) fn name_of(
    route: &Object<'_>,
    rule: Option<&str>,
    index: usize,
    rules: usize,
) -> String {
    match rule {
        Some(rule) => format!("{}.{rule}", route.name),
        None if rules == 1 => route.name.clone(),
        None => format!("{}.{index}", route.name),
    }
}

/// The models that a match wants; all where it says none.
fn models_of(headers: &[HeaderMatch]) -> Option<Vec<Wanted>> {
    let header = headers.iter().find(|header| header.name == MODEL)?;
    match &header.how {
        How::Is(wanted) if !wanted.contains(&Wanted::Prefix(String::new())) => Some(wanted.clone()),
        How::Is(_) | How::Distinct => None,
    }
}

/// Adds a match to those of its rule: models of the same callers, and callers of the same models, stand together.
fn add<'d>(
    drafts: &mut Vec<Draft<'d>>,
    workloads: Vec<String>,
    models: Option<Vec<Wanted>>,
    spot: &'d Spot,
) {
    if let Some(same) = drafts.iter_mut().find(|draft| draft.workloads == workloads) {
        same.models = match (same.models.take(), models) {
            (Some(mut all), Some(more)) => {
                all.extend(more);
                Some(all)
            }
            _ => None,
        };
    } else if let Some(same) = drafts.iter_mut().find(|draft| draft.models == models) {
        let new: Vec<String> = workloads
            .into_iter()
            .filter(|w| !same.workloads.contains(w))
            .collect();
        same.workloads.extend(new);
    } else {
        drafts.push(Draft {
            workloads,
            models,
            spot,
        });
    }
}
