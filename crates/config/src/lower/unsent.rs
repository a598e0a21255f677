//! Names of models that no call can bring, under `prices`, `tokenizers`, `budgets` and a backend's `models` and
//! `model_names`: warnings, for they are slips most often.
//!
//! Invariant: what a route may send is said only where every route and every backend is sound.
//! Not here: which route a call takes (`policy::route`).

use std::collections::{BTreeSet, HashSet};

use policy::id::BackendId;
use policy::model::ModelPattern;
use policy::snapshot::{Route, Snapshot};

use super::budget::is_counted;
use super::price::own_names::renamed;
use super::route::{lowered, some_of};
use crate::decode::{At, MapOf, nearest};
use crate::fault::Fault;
use crate::scalar::{Model, Name, Pattern};
use crate::schema::{Backend, Budget, Document};

impl super::Lowering<'_> {
    pub(super) fn unsent(&mut self, document: &Document, s: &Snapshot) {
        let decides = |fault: &Fault| {
            let path = fault.path.as_str();
            path.is_empty() || path.starts_with("routes") || path.starts_with("backends")
        };
        if self.findings.faults.iter().any(decides) {
            return;
        }
        let all: Vec<&Route> = s.routes.iter().filter(|route| !route.is_plain).collect();
        let prices = document.prices.items();
        let priced: HashSet<&str> = prices.iter().map(|(of, _)| of.value.0.as_str()).collect();
        for (model, _) in prices {
            // It may be what a backend calls a model that has no price by the gate's name.
            if renamed(&model.value.0, &priced, s).is_empty() {
                self.is_sent(model, exactly, "no route sends", &all, s);
            }
        }
        for (model, _) in document.tokenizers.items() {
            self.is_sent(model, lowered, "no route sends", &all, s);
        }
        if let Some(budgets) = document.budgets.get() {
            self.counted(budgets, s);
        }
        for (name, backend) in document.backends.items() {
            if let Some(backend) = backend {
                self.served(name, backend, s);
            }
        }
    }

    /// The models that budgets count.
    fn counted(&mut self, written: &MapOf<Name, Budget>, s: &Snapshot) {
        for (name, budget) in &written.0 {
            let models = budget.as_ref().and_then(|budget| budget.model.get());
            let lowered_one = s.budgets.list.iter().find(|of| *of.name == *name.value.0);
            let (Some(models), Some(budget)) = (models, lowered_one) else {
                continue;
            };
            let counts = |index: &usize| is_counted(budget, *index, s);
            let indices = (0..s.routes.len()).filter(counts);
            let routes: Vec<&Route> = indices.filter_map(|index| s.routes.get(index)).collect();
            for model in &models.0 {
                self.is_sent(model, lowered, "no route that it counts sends", &routes, s);
            }
        }
    }

    /// The models of a backend to which some route goes.
    fn served(&mut self, name: &At<Name>, backend: &Backend, s: &Snapshot) {
        let goes_here = |id: &BackendId| s.backend(*id).is_some_and(|b| *b.name == *name.value.0);
        let routes = s.routes.iter();
        let routes: Vec<&Route> = routes
            .filter(|r| r.backends.iter().any(goes_here))
            .collect();
        if routes.is_empty() {
            return;
        }
        for (model, _) in backend.model_names.items() {
            self.is_sent(model, exactly, "no route to this backend sends", &routes, s);
        }
        for model in backend.models.items() {
            // Clients are told of it by the name that they ask for.
            let asked = &model.value.0;
            let takes = |r: &&Route| r.models.iter().any(|pattern| pattern.takes(asked));
            if !routes.iter().any(takes) {
                self.is_sent(model, exactly, "no route to this backend takes", &routes, s);
            }
        }
    }

    fn is_sent<T>(
        &mut self,
        name: &At<T>,
        pattern: impl Fn(&T) -> ModelPattern,
        says: &str,
        routes: &[&Route],
        s: &Snapshot,
    ) {
        let pattern = pattern(&name.value);
        if !routes.iter().any(|route| sends(route, &pattern)) {
            let says = format!("{says} {}", name.shown);
            self.warn(&name.place, says, meant(&pattern, routes, s));
        }
    }
}

fn exactly(model: &Model) -> ModelPattern {
    lowered(&Pattern::Exact(model.0.clone()))
}

/// Whether a route may send some model of the pattern, by the gate's name for it.
fn sends(route: &Route, pattern: &ModelPattern) -> bool {
    match &route.model {
        Some(model) => pattern.takes(model),
        None => route.models.is_empty() || route.models.iter().any(|of| of.meets(pattern)),
    }
}

/// What was meant most likely: the gate's name in place of a backend's own, what a route sends in place of the
/// name, a name that is near, or one of those that there are.
fn meant(pattern: &ModelPattern, routes: &[&Route], s: &Snapshot) -> String {
    if let ModelPattern::Exact(name) = pattern {
        let mut own = s.backends.iter().flat_map(|backend| {
            let names = backend.model_names.iter();
            names.map(move |(model, own)| (&backend.name, model, own))
        });
        if let Some((backend, model, _)) = own.find(|(_, _, own)| ***own == **name) {
            return format!(
                "that is what the backend {backend} calls {model}: write {model}; what it costs there alone stands under prices.{model}.at.{backend}"
            );
        }
        let replaces = |r: &&&Route| r.models.iter().any(|of| of.takes(name));
        let replaced = routes.iter().find(|r| r.model.is_some() && replaces(r));
        if let Some((route, model)) = replaced.and_then(|r| Some((r, r.model.as_deref()?))) {
            return format!("the route {} sends {model} in its place", route.name);
        }
    }
    let sent: BTreeSet<String> = routes.iter().flat_map(|route| named(route)).collect();
    let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
    let exact: Vec<&str> = sent
        .iter()
        .copied()
        .filter(|of| !of.ends_with('*'))
        .collect();
    let near = match pattern {
        ModelPattern::Exact(name) => nearest(name, &exact),
        ModelPattern::Prefix(_) => None,
    };
    match near {
        Some(near) => format!("did you mean {near}?"),
        None if sent.is_empty() => String::new(),
        None => format!("what can be sent there is {}", some_of(&sent)),
    }
}

/// What a route sends, as far as the document names it.
fn named(route: &Route) -> Vec<String> {
    match &route.model {
        Some(model) => vec![model.to_string()],
        None => route.models.iter().map(shown).collect(),
    }
}

fn shown(pattern: &ModelPattern) -> String {
    match pattern {
        ModelPattern::Exact(name) => name.to_string(),
        ModelPattern::Prefix(start) => format!("{start}*"),
    }
}
