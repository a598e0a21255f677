//! `routes`: workloads registered, backends resolved, routes that nothing can reach refused.
//!
//! Not here: choosing a route for a call (`policy::route`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use policy::billing::{BilledBy, Billing};
use policy::id::{BackendId, RouteId, WorkloadId};
use policy::model::ModelPattern;
use policy::plain::{Rule, Table};
use policy::snapshot::{self, Grant, Snapshot, Tokenizer};

use super::backend::number;
use crate::decode::{At, Field, ListOf, MapOf, OneOrMany, Place, nearest};
use crate::fault::Fault;
use crate::scalar::{Name, PassedHeader, Pattern};
use crate::schema::abandon::Abandon;
use crate::schema::{Backend, Route};

/// The models that a workload's earlier routes take, and what they match of plain HTTP.
#[derive(Default)]
struct Taken {
    exact: HashSet<String>,
    prefixes: HashSet<String>,
    plain: HashSet<String>,
}

/// Backends of a route that has weights, at most.
const BACKENDS_SPLIT_MAX: usize = 64;

/// What a route takes.
struct Takes<'r> {
    /// Models; `None` where that is not known for faults.
    patterns: Option<&'r [Pattern]>,
    /// Calls of plain HTTP, where it takes those.
    rules: Option<&'r [Rule]>,
}

impl super::Lowering<'_> {
    pub(super) fn routes(
        &mut self,
        written: &ListOf<Route>,
        backends: Option<&MapOf<Name, Backend>>,
        has_ledger: bool,
        snapshot: &mut Snapshot,
    ) {
        let known: HashMap<String, BackendId> = snapshot
            .backends
            .iter()
            .enumerate()
            .map(|(index, backend)| (backend.name.to_string(), BackendId(number(index))))
            .collect();
        let declared: Option<Vec<&str>> =
            backends.map(|b| b.0.iter().map(|(name, _)| name.value.0.as_str()).collect());
        let mut used: HashSet<&str> = HashSet::new();
        let names = self.route_names(written);
        let mut taken: HashMap<&str, Taken> = HashMap::new();
        let mut plain = Vec::new();
        for ((place, route), name) in written.0.iter().zip(names) {
            let Some(route) = route else { continue };
            let targets = self.route_backends(route, declared.as_deref(), &known, &mut used);
            for (_, mirror) in route.mirrors.items() {
                let at = mirror.as_ref().and_then(|of| of.backend.get());
                used.extend(at.map(|at| at.value.0.as_str()));
            }
            let id = RouteId(number(snapshot.routes.len()));
            let is_plain = self.is_plain(route, &targets, snapshot);
            let patterns = match is_plain {
                Some(false) => {
                    self.check_match(route, place);
                    self.patterns(route)
                }
                Some(true) => {
                    self.check_plain(route, place);
                    Some(Vec::new())
                }
                None => {
                    self.check_model(route, place);
                    self.patterns(route)
                }
            };
            let is_plain = is_plain == Some(true);
            let mut rules = Vec::new();
            if is_plain {
                rules = self.plain_rules(route, id, place, snapshot);
            }
            self.grants(
                id,
                &name,
                route,
                place,
                &Takes {
                    patterns: patterns.as_deref(),
                    rules: is_plain.then_some(&rules),
                },
                &mut taken,
                snapshot,
            );
            let actions = match is_plain {
                true => self.actions(route, place, &rules, snapshot),
                false => None,
            };
            if is_plain {
                let edit = actions.as_ref().and_then(|actions| actions.path.as_ref());
                self.plain_addresses(route, &rules, edit, snapshot);
            }
            plain.append(&mut rules);
            let models = patterns.unwrap_or_default();
            let billed_by = match is_plain {
                true => BilledBy::Reported,
                false => self.billed_by(route, &models, &snapshot.tokenizers),
            };
            snapshot.routes.push(snapshot::Route {
                name,
                is_plain,
                models: models.iter().map(lowered).collect(),
                unlisted: self.left_out_of_lists(route),
                weights: self.weights(route, place, targets.len()),
                backends: targets,
                model: route.model.get().map(|at| Arc::from(at.value.0.as_str())),
                output_max: route.output_max.get().map(|at| at.value.0),
                billing: self.billing(route, has_ledger),
                billed_by,
                retries: self.retries(route),
                abandon: route
                    .abandon
                    .get()
                    .map_or_else(Default::default, Abandon::lowered),
                // Once accounts, limits and budgets are known: `unread`.
                is_exclusive: false,
                unread: Vec::new(),
                batches: None,
                forward_headers: passed(&route.forward_headers),
                return_headers: passed(&route.return_headers),
                filters: Vec::new(),
                hold_back_bytes: 0,
                actions,
            });
        }
        snapshot.is_balanced |= snapshot
            .routes
            .iter()
            .any(|route| !route.weights.is_empty());
        snapshot.plain = Table::new(plain);
        // A backend that a faulty route means would be said to be unused.
        let is_sound = |route: &Option<Route>| {
            let to = route.as_ref().and_then(|route| route.backend.get());
            to.is_some_and(|to| to.0.iter().all(|at| known.contains_key(&at.value.0)))
        };
        let are_sound = written.0.iter().all(|(_, route)| is_sound(route));
        for (name, _) in backends.map_or(&[][..], |b| &b.0) {
            if are_sound && !used.contains(name.value.0.as_str()) {
                self.warn(&name.place, "no route goes to this backend", "");
            }
        }
    }

    /// How a route is billed; strictly only where there is a ledger to be strict about.
    fn billing(&mut self, route: &Route, has_ledger: bool) -> Billing {
        let Some(at) = route.billing.get() else {
            return Billing::Grouped;
        };
        if at.value.0 == Billing::Strict && !has_ledger {
            let says = "a strict route needs a ledger, and there is none";
            let hint = "say where it is, such as ledger: { path: usage.db }";
            self.fault(&at.place, says, hint);
        }
        at.value.0
    }

    /// Whose count is billed; the gate's own only where a tokenizer is at hand for every model that the
    /// route may send.
    fn billed_by(
        &mut self,
        route: &Route,
        models: &[Pattern],
        tokenizers: &[Tokenizer],
    ) -> BilledBy {
        let Some(at) = route.billed_by.get() else {
            return BilledBy::Reported;
        };
        if at.value.0 == BilledBy::Reported {
            return BilledBy::Reported;
        }
        let everything = [Pattern::Prefix(String::new())];
        let sent = route.model.get();
        let sent = sent.map(|model| [Pattern::Exact(model.value.0.clone())]);
        let sent: &[Pattern] = match &sent {
            Some(model) => model,
            None if models.is_empty() => &everything,
            None => models,
        };
        let uncounted = |pattern: &&Pattern| !tokenizers.iter().any(|t| counts(t, pattern));
        let uncounted: Vec<String> = sent.iter().filter(uncounted).map(written_as).collect();
        // What is missing here may be what is wrong there.
        let in_tokenizers = |fault: &Fault| fault.path.starts_with("tokenizers");
        let are_sound = !self.findings.faults.iter().any(in_tokenizers);
        if !uncounted.is_empty() && are_sound {
            let says = format!(
                "the gate cannot bill by its own count: no tokenizer is for {}",
                uncounted.join(", ")
            );
            let hint = "name one in `tokenizers`, give the route a `match` of models that have one, or leave billed_by out";
            self.fault(&at.place, says, hint);
        }
        BilledBy::Counted
    }

    /// Names as written; for the others the backends joined by `+`, numbered where that repeats.
    fn route_names(&mut self, written: &ListOf<Route>) -> Vec<Arc<str>> {
        let mut seen: HashSet<String> = HashSet::new();
        for (_, route) in &written.0 {
            let Some(at) = route.as_ref().and_then(|r| r.name.get()) else {
                continue;
            };
            if !seen.insert(at.value.0.clone()) {
                let says = format!("the name {} is taken by an earlier route", at.shown);
                self.fault(&at.place, says, "give it another, or none");
            }
        }
        let mut repeats: HashMap<String, usize> = HashMap::new();
        let mut name_of = |(_, route): &(Place, Option<Route>)| -> Arc<str> {
            if let Some(at) = route.as_ref().and_then(|r| r.name.get()) {
                return Arc::from(at.value.0.as_str());
            }
            let backends = route.as_ref().and_then(|r| r.backend.get());
            let backends: Vec<&str> = backends
                .map_or(&[][..], |b| &b.0)
                .iter()
                .map(|at| at.value.0.as_str())
                .collect();
            let base = backends.join("+");
            let mut name = base.clone();
            while !seen.insert(name.clone()) {
                let count = repeats.entry(base.clone()).or_insert(1);
                *count += 1;
                name = format!("{base}#{count}");
            }
            Arc::from(name)
        };
        written.0.iter().map(&mut name_of).collect()
    }

    fn route_backends<'w>(
        &mut self,
        route: &'w Route,
        declared: Option<&[&str]>,
        known: &HashMap<String, BackendId>,
        used: &mut HashSet<&'w str>,
    ) -> Vec<BackendId> {
        let mut targets = Vec::new();
        let mut seen = HashSet::new();
        for at in route.backend.items() {
            let name = at.value.0.as_str();
            used.insert(name);
            if !seen.insert(name) {
                self.twice(at);
            }
            if let Some(declared) = declared.filter(|d| !d.contains(&name)) {
                let hint = match nearest(name, declared) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("the backends are {}", some_of(declared)),
                };
                let says = format!("there is no backend {}", at.shown);
                self.fault(&at.place, says, hint);
            }
            targets.extend(known.get(name));
        }
        targets
    }

    /// By which weights a route's backends are drawn; none where they are in order.
    fn weights(&mut self, route: &Route, place: &Place, backends: usize) -> Vec<u32> {
        let place = place.below("weights");
        let all: Vec<u32> = route.weights.items().iter().map(|at| at.value.0).collect();
        if all.is_empty() || backends == 0 {
            return Vec::new();
        }
        if all.len() != backends || backends > BACKENDS_SPLIT_MAX {
            let says = format!("are {}, and the route has {backends} backends", all.len());
            let hint = "write one for each backend, 64 at most, in the same order";
            self.fault(&place, says, hint);
        }
        all
    }

    /// What a route matches; empty for everything, `None` where that is not known for faults.
    fn patterns(&mut self, route: &Route) -> Option<Vec<Pattern>> {
        if route.r#match.is_absent() {
            return Some(Vec::new());
        }
        let written = route.r#match.get()?.model.get()?;
        if written.0.is_empty() {
            return None;
        }
        let mut seen: HashSet<&Pattern> = HashSet::new();
        for at in &written.0 {
            if !seen.insert(&at.value) {
                self.twice(at);
            }
        }
        let any = seen.contains(&Pattern::Prefix(String::new()));
        Some(if any {
            Vec::new()
        } else {
            written.0.iter().map(|at| at.value.clone()).collect()
        })
    }

    /// The models that its lists leave out.
    fn left_out_of_lists(&mut self, route: &Route) -> Vec<ModelPattern> {
        let mut seen = HashSet::new();
        for at in route.unlisted.items() {
            if !seen.insert(&at.value) {
                self.twice(at);
            }
        }
        let written = route.unlisted.items().iter();
        written.map(|at| lowered(&at.value)).collect()
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one step of `routes`, with its whole state"
    )]
    fn grants<'w>(
        &mut self,
        id: RouteId,
        route_name: &str,
        route: &'w Route,
        place: &Place,
        takes: &Takes<'_>,
        taken: &mut HashMap<&'w str, Taken>,
        snapshot: &mut Snapshot,
    ) {
        let rates = self.rates(&route.limits);
        // One that is not said where to send, and has no name: it has its fault, and no other that could not name it.
        let is_known = route.name.get().is_some() || route.backend.get().is_some();
        let mut seen = HashSet::new();
        for at in route.workload.items() {
            let name = at.value.0.as_str();
            if !seen.insert(name) {
                self.twice(at);
                continue;
            }
            let taken = taken.entry(name).or_default();
            match (takes.patterns, takes.rules) {
                _ if !is_known => {}
                (_, Some(rules)) => {
                    if super::plain::is_sound(&route.r#match) {
                        self.plainly_reachable(at, route_name, place, rules, &mut taken.plain);
                    }
                }
                (Some(patterns), None) => self.reachable(at, route_name, place, patterns, taken),
                (None, None) => {}
            }
            let workload = registered(name, snapshot);
            let key = match takes.rules {
                Some(rules) if route.name.is_absent() => super::plain::key(name, rules),
                _ => super::limit::key(name, route, takes.patterns.unwrap_or_default()),
            };
            let limits = super::limit::register(&rates, workload, id, &key, snapshot);
            if let Some(workload) = snapshot.workloads.get_mut(workload.index()) {
                let grant = Grant { route: id, limits };
                match takes.rules {
                    Some(_) => workload.plain.push(grant),
                    None => workload.grants.push(grant),
                }
            }
        }
    }

    /// A route none of whose models can arrive is a fault; one that lost some is a warning.
    fn reachable(
        &mut self,
        workload: &At<Name>,
        route_name: &str,
        place: &Place,
        patterns: &[Pattern],
        taken: &mut Taken,
    ) {
        let everything = [Pattern::Prefix(String::new())];
        let patterns = if patterns.is_empty() {
            &everything[..]
        } else {
            patterns
        };
        let lost: Vec<String> = patterns
            .iter()
            .filter(|p| taken.covers(p))
            .map(written_as)
            .collect();
        if lost.len() == patterns.len() {
            let says = format!(
                "the route {route_name} is never reached by the workload {}: earlier routes take all its models",
                workload.shown
            );
            self.fault(place, says, "move it up, or give the earlier one a `match`");
        } else if !lost.is_empty() {
            let says = format!(
                "earlier routes of the workload {} already take {}",
                workload.shown,
                lost.join(", ")
            );
            self.warn(place, says, "");
        }
        for pattern in patterns {
            match pattern {
                Pattern::Exact(name) => taken.exact.insert(name.clone()),
                Pattern::Prefix(start) => taken.prefixes.insert(start.clone()),
            };
        }
    }
}

impl Taken {
    fn covers(&self, pattern: &Pattern) -> bool {
        let (Pattern::Exact(text) | Pattern::Prefix(text)) = pattern;
        let exactly = matches!(pattern, Pattern::Exact(name) if self.exact.contains(name));
        exactly
            || (0..=text.len())
                .any(|end| text.get(..end).is_some_and(|s| self.prefixes.contains(s)))
    }
}

/// Whether a tokenizer is for every model that the pattern takes.
fn counts(tokenizer: &Tokenizer, pattern: &Pattern) -> bool {
    match (&tokenizer.models, pattern) {
        (models, Pattern::Exact(name)) => models.takes(name),
        (ModelPattern::Prefix(start), Pattern::Prefix(of)) => of.starts_with(start.as_str()),
        (ModelPattern::Exact(_), Pattern::Prefix(_)) => false,
    }
}

pub(super) fn registered(name: &str, snapshot: &mut Snapshot) -> WorkloadId {
    if let Some(id) = snapshot.workload_named(name.as_bytes()) {
        return id;
    }
    let id = WorkloadId(number(snapshot.workloads.len()));
    snapshot.by_name.insert(name.as_bytes().into(), id);
    snapshot.workloads.push(snapshot::Workload {
        name: Arc::from(name),
        authorizer: None,
        call_authorizer: None,
        grants: Vec::new(),
        plain: Vec::new(),
        shares_account: false,
    });
    id
}

fn passed(written: &Field<OneOrMany<PassedHeader>>) -> Vec<Box<[u8]>> {
    let names = written.items();
    let name = |at: &At<PassedHeader>| at.value.0.as_bytes().into();
    names.iter().map(name).collect()
}

/// A pattern the way policy reads it.
pub(super) fn lowered(pattern: &Pattern) -> ModelPattern {
    match pattern {
        Pattern::Exact(name) => ModelPattern::Exact(Arc::from(name.as_str())),
        Pattern::Prefix(start) => ModelPattern::Prefix(start.clone()),
    }
}

/// A pattern the way a person writes it.
pub(super) fn written_as(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Exact(name) => name.clone(),
        Pattern::Prefix(start) => format!("{start}*"),
    }
}

/// A list short enough for a line.
pub(super) fn some_of(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let shown: Vec<&str> = names.iter().take(SHOWN).copied().collect();
    format!("{}{more}", shown.join(", "))
}
