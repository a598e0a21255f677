//! `routes` of our document: rules in their order, each for its callers and models, with its limits and backends.
//!
//! Invariant: no route is made that earlier ones leave nothing, and what a limit shares is shared.
//! Not here: where limits count (`limits`), who callers are (`callers`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::callers::Callers;
use super::limits::{self, Part};
use crate::backends::{Backends, Manner, free};
use crate::findings::{Findings, Spot};
use crate::gateway::Door;
use crate::matching::{HeaderMatch, How, MODEL, Wanted};
use crate::object::Object;
use crate::plain::{PlainMatch, PlainRoute};
use crate::quantity::span;
use crate::quota::{Quota, Sent};
use crate::route::{ModelMatch, ModelRoute, Rule, Times};
use crate::service::Ref;
use crate::traffic::Traffic;
use crate::tree::Tree;

/// What routes come to, as it is made.
pub(super) struct Made<'m> {
    is_live: bool,
    /// What routes of plain HTTP take already in a cluster: all but the host, and the host.
    plainly: BTreeSet<(String, String)>,
    callers: &'m Callers,
    traffic: &'m [Traffic],
    /// With how many rules each holds for.
    quotas: Vec<(Quota, u32)>,
    /// On the way to models.
    proxy: Option<Tree>,
    pub(super) backends: Backends,
    pub(super) routes: Vec<Tree>,
    names: Vec<String>,
    /// Which limits are part of which routes, by policy, rule and caller.
    shared: BTreeMap<(Rc<str>, usize, String), u32>,
    /// The models that earlier routes take of each caller's calls.
    taken: BTreeMap<String, Vec<Wanted>>,
}

/// Callers and models of a rule, before its limits.
struct Draft<'d> {
    workloads: Vec<String>,
    /// All where there is none.
    models: Option<Vec<Wanted>>,
    spot: &'d Spot,
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
        self.push(
            "none",
            &everybody,
            matched,
            &backends,
            None,
            &[],
            None,
            &[],
            spot,
        );
    }

    /// Notes limits that became part of no route.
    pub(super) fn unused(&self, findings: &mut Findings) {
        if self.routes.is_empty() {
            return;
        }
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

    fn traffic_of(&self, route: &Object<'_>) -> Option<&'m Traffic> {
        let own = self.traffic.iter().find(|traffic| traffic.is_for(route));
        own.or_else(|| self.traffic.iter().find(|traffic| traffic.is_for_all()))
    }

    fn route_to_models(
        &mut self,
        route: &ModelRoute<'_, '_>,
        rule: &Rule<ModelMatch>,
        draft: Draft<'_>,
        name: &str,
        findings: &mut Findings,
    ) {
        if rule.is_closed {
            let backends = [self.backends.closed(false, draft.spot)];
            let matched = matched(draft.models);
            self.push(
                name,
                &draft.workloads,
                matched,
                &backends,
                None,
                &[],
                None,
                &[],
                draft.spot,
            );
            return;
        }
        let refs = &rule.refs;
        let first = refs.first().and_then(|of| of.model.clone());
        let is_one_model = refs.iter().all(|of| of.model == first);
        let traffic = self.traffic_of(route.object);
        let parts = limits::parts(
            &draft.workloads,
            draft.models.as_deref(),
            traffic,
            self.callers,
            &route.costs,
            findings,
        );
        for Part {
            workloads,
            models,
            limits,
            counted,
        } in parts
        {
            let mut manner = manner(traffic, &rule.times);
            let exact = |one: &Wanted| match one {
                Wanted::Exact(name) => Some(name.clone()),
                Wanted::Prefix(_) => None,
            };
            let named: Option<Vec<String>> = models
                .as_ref()
                .and_then(|models| models.iter().map(exact).collect());
            manner.models = named.unwrap_or_default();
            manner.is_model_said = is_one_model;
            manner.proxy = self.proxy.clone();
            let sent = Sent {
                refs,
                models: &manner.models,
                workloads: &workloads,
            };
            let quotas = self.quotas.iter_mut();
            let quotas = quotas.filter_map(|(quota, places)| quota.of(&sent, places, findings));
            let limits: Vec<Tree> = limits.into_iter().chain(quotas).collect();
            // An address with a deployment in it is of one model.
            let is_apart = manner.models.len() > 1
                && refs
                    .iter()
                    .any(|of| of.target.needs_deployment() && of.model.is_none());
            let each: Vec<(Option<Vec<Wanted>>, Vec<String>)> = match is_apart {
                true if limits.is_empty() => manner
                    .models
                    .iter()
                    .map(|m| (Some(vec![Wanted::Exact(m.clone())]), vec![m.clone()]))
                    .collect(),
                _ => vec![(models, manner.models.clone())],
            };
            for (models, exact) in each {
                let manner = Manner {
                    models: exact,
                    ..manner.clone()
                };
                let Some(backends) = self.tiers(refs, &manner, findings) else {
                    continue;
                };
                let matched = matched(models);
                let model = first.as_ref().filter(|_| is_one_model).map(Tree::text);
                self.push(
                    name,
                    &workloads,
                    matched,
                    &backends,
                    model,
                    &limits,
                    traffic,
                    &[],
                    draft.spot,
                );
            }
            self.count(traffic, &counted, &workloads, findings);
        }
    }

    pub(super) fn plain(&mut self, route: &PlainRoute<'_, '_>, findings: &mut Findings) {
        for (index, rule) in route.rules.iter().enumerate() {
            let name = name_of(route.object, rule.name.as_deref(), index, route.rules.len());
            for one in &rule.matches {
                self.plain_match(&name, route, rule, one, findings);
            }
            let goes_nowhere = rule.refs.is_empty() && !rule.is_closed && !rule.filters.is_redirect;
            if goes_nowhere && !self.is_live && findings.faults.is_empty() {
                findings.fault(&rule.spot, "goes nowhere", "");
            }
        }
    }

    fn plain_match(
        &mut self,
        name: &str,
        route: &PlainRoute<'_, '_>,
        rule: &Rule<PlainMatch>,
        one: &PlainMatch,
        findings: &mut Findings,
    ) {
        if let Some(header) = one.headers.iter().find(|header| header.name == MODEL) {
            findings.fault(
                &header.spot,
                "is the model of a call, and calls of plain HTTP have none",
                "write an AIGatewayRoute",
            );
        }
        let Some(workloads) = self.callers.taken_by(&one.headers, findings) else {
            return;
        };
        if rule.is_closed || rule.filters.is_redirect || rule.refs.is_empty() && self.is_live {
            let filters = match rule.is_closed {
                true => Vec::new(),
                false => self.filters(rule, &Manner::default(), findings),
            };
            let Some(matched) = self.left(route, one, &workloads, findings) else {
                return;
            };
            let backends = [self.backends.closed(true, &one.spot)];
            self.push(
                name,
                &workloads,
                Some(matched),
                &backends,
                None,
                &[],
                None,
                &filters,
                &one.spot,
            );
            return;
        }
        let traffic = self.traffic_of(route.object);
        let parts = limits::parts(&workloads, None, traffic, self.callers, &[], findings);
        for Part {
            workloads,
            models,
            limits,
            counted,
        } in parts
        {
            if models.is_some() {
                // Its selector names a model, which these calls do not have.
                continue;
            }
            let Some(matched) = self.left(route, one, &workloads, findings) else {
                continue;
            };
            let mut manner = manner(traffic, &rule.times);
            if self.is_live && manner.ejection.is_none() {
                // Which pods are well, their slices say; weights hold whatever one of them answered.
                manner.ejection = Some(Tree::map([("failures", Some(Tree::number(1000)))]));
            }
            let Some(backends) = self.tiers(&rule.refs, &manner, findings) else {
                continue;
            };
            let filters = self.filters(rule, &manner, findings);
            self.push(
                name,
                &workloads,
                Some(matched),
                &backends,
                None,
                &limits,
                traffic,
                &filters,
                &one.spot,
            );
            self.count(traffic, &counted, &workloads, findings);
        }
    }

    /// What a rule's filters come to; those who see copies become backends.
    fn filters(
        &mut self,
        rule: &Rule<PlainMatch>,
        manner: &Manner,
        findings: &mut Findings,
    ) -> Vec<(String, Tree)> {
        let mut members = rule.filters.members.clone();
        let mut mirrors = Vec::new();
        for (of, millionths) in &rule.filters.mirrors {
            let is_reached = !of.target.upstream.endpoints.is_empty() && *millionths > 0;
            let name = match is_reached {
                true => self.backends.add(&[of], manner, findings),
                false => None,
            };
            let Some(name) = name else { continue };
            let share = match millionths {
                1_000_000 => None,
                some => {
                    let share = format!("0.{some:06}");
                    Some(Tree::Plain(share.trim_end_matches('0').to_owned()))
                }
            };
            let members = [("backend", Some(Tree::text(name))), ("share", share)];
            mirrors.push(Tree::map(members).of(&of.spot));
        }
        if !mirrors.is_empty() {
            members.push(("mirrors".to_owned(), Tree::List(mirrors)));
        }
        members
    }

    /// What a match takes, as our document writes it, without what an older route takes in a cluster; nothing where that is all.
    fn left(
        &mut self,
        route: &PlainRoute<'_, '_>,
        one: &PlainMatch,
        workloads: &[String],
        findings: &mut Findings,
    ) -> Option<Tree> {
        let callers = self.callers.header();
        if !self.is_live {
            return Some(one.tree(callers, &route.hosts, &route.listeners, findings));
        }
        let bare = one.tree(callers, &[], &route.listeners, &mut Findings::default());
        let text = format!("{} {}", workloads.join(" "), bare.flow());
        let mut is_new = |host: &str| self.plainly.insert((text.clone(), host.to_owned()));
        let hosts: Vec<String> = match route.hosts.as_slice() {
            [] => is_new("").then(Vec::new)?,
            hosts => hosts.iter().filter(|host| is_new(host)).cloned().collect(),
        };
        if hosts.is_empty() && !route.hosts.is_empty() {
            return None;
        }
        Some(one.tree(callers, &hosts, &route.listeners, findings))
    }

    /// A backend for each priority.
    fn tiers(
        &mut self,
        refs: &[Ref],
        manner: &Manner,
        findings: &mut Findings,
    ) -> Option<Vec<String>> {
        let has_address = |of: &&Ref| of.weight > 0 && !of.target.upstream.endpoints.is_empty();
        if let Some(of) = refs.iter().find(|of| of.weight > 0)
            && !refs.iter().any(|of| has_address(&of))
        {
            // No endpoint of any of them is ready.
            return Some(vec![
                self.backends.closed(of.target.dialect.is_none(), &of.spot),
            ]);
        }
        let mut priorities: Vec<u64> = refs
            .iter()
            .filter(has_address)
            .map(|of| of.priority)
            .collect();
        priorities.sort_unstable();
        priorities.dedup();
        let mut names = Vec::new();
        for priority in priorities {
            let of_it: Vec<&Ref> = refs
                .iter()
                .filter(|of| has_address(of) && of.priority == priority)
                .collect();
            let name = self.backends.add(&of_it, manner, findings)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty()
            && let Some(of) = refs.first()
        {
            findings.fault(
                &of.spot,
                "gets no calls: every target has the weight 0",
                "give one another weight",
            );
        }
        (!names.is_empty()).then_some(names)
    }

    #[expect(clippy::too_many_arguments, reason = "the members of one route")]
    fn push(
        &mut self,
        name: &str,
        workloads: &[String],
        matched: Option<Tree>,
        backends: &[String],
        model: Option<Tree>,
        limits: &[Tree],
        traffic: Option<&Traffic>,
        filters: &[(String, Tree)],
        spot: &Spot,
    ) {
        let name = free(name, |name| self.names.iter().any(|taken| taken == name));
        let tree = Tree::map([
            ("name", Some(Tree::text(&name))),
            ("workload", Some(Tree::texts(workloads))),
            ("match", matched),
            ("backend", Some(Tree::texts(backends))),
            ("model", model),
            (
                "limits",
                (!limits.is_empty()).then(|| Tree::List(limits.to_vec())),
            ),
            (
                "retries",
                traffic.and_then(|traffic| traffic.retries.clone()),
            ),
        ]);
        let tree = match tree {
            Tree::Map(mut members) => {
                members.extend(filters.iter().cloned());
                Tree::Map(members)
            }
            other => other,
        };
        self.names.push(name);
        self.routes.push(tree.of(spot));
    }

    /// Notes which limits came to be part of a route; one that is for all routes together can be part of one.
    fn count(
        &mut self,
        traffic: Option<&Traffic>,
        counted: &[usize],
        workloads: &[String],
        findings: &mut Findings,
    ) {
        let Some(traffic) = traffic else { return };
        for (index, rule) in traffic
            .limits
            .iter()
            .enumerate()
            .filter(|(index, _)| counted.contains(index))
        {
            for workload in workloads {
                let key = (Rc::clone(&traffic.spot.object), index, workload.clone());
                let count = self.shared.entry(key).or_default();
                *count += 1;
                if rule.is_shared && *count == 2 {
                    let says = format!(
                        "is shared by routes, and {workload} would have as much on each of them"
                    );
                    findings.fault(
                        &rule.spot,
                        says,
                        "leave shared out, or send these calls by one rule",
                    );
                }
            }
        }
    }
}

/// Which models a route takes, as our document writes it.
fn matched(models: Option<Vec<Wanted>>) -> Option<Tree> {
    let patterns: Vec<String> = models?.iter().map(Wanted::pattern).collect();
    Some(Tree::map([("model", Some(Tree::texts(&patterns)))]))
}

fn manner(traffic: Option<&Traffic>, times: &Times) -> Manner {
    let of_policy = traffic.and_then(|traffic| traffic.first_byte.clone());
    let both = [times.first_byte.clone(), of_policy];
    let first_byte = both.into_iter().flatten().min_by_key(|(ms, _)| *ms);
    let said = |time: &Option<(u64, Spot)>| time.as_ref().map(|(ms, spot)| span(*ms).of(spot));
    let members = [
        (
            "connect",
            traffic.and_then(|traffic| traffic.connect.clone()),
        ),
        ("first_byte", said(&first_byte)),
        ("idle", said(&times.idle)),
    ];
    let is_said = members.iter().any(|(_, tree)| tree.is_some());
    Manner {
        timeouts: is_said.then(|| Tree::map(members)),
        ejection: traffic.and_then(|traffic| traffic.ejection.clone()),
        ..Manner::default()
    }
}

/// What a rule's route is called.
fn name_of(route: &Object<'_>, rule: Option<&str>, index: usize, rules: usize) -> String {
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
