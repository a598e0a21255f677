//! Routes of names with a `*`.
//!
//! Not here: what such a name becomes (`wildcard`).

use super::{Backend, Making, Pool, Route, Target};
use crate::import::credential::free;
use crate::import::deployment::Deployment;
use crate::import::wildcard::{self, Passed};
use crate::mask::quoted;

impl Making<'_> {
    /// The route of a name with a `*`.
    pub(super) fn wildcard(&mut self, pattern: &str) {
        let is_of = |(_, it): &(usize, &Deployment)| it.group == pattern;
        let members: Vec<usize> = self
            .list
            .iter()
            .enumerate()
            .filter(is_of)
            .map(|(index, _)| index)
            .collect();
        let Some(first) = members.first().and_then(|first| self.list.get(*first)) else {
            return;
        };
        let passed = wildcard::passed(first);
        let mut targets: Vec<Target> = Vec::new();
        for index in members {
            let Some(it) = self.list.get(index) else {
                continue;
            };
            if wildcard::passed(it) == passed
                && (passed != Passed::One || it.upstream == first.upstream)
            {
                targets.push((index, it.upstream.clone()));
            } else {
                self.leave(
                    it,
                    "its models have other names than those of the first: left out.",
                );
            }
        }
        let pools = self.pools(&targets);
        let (models, model) = match &passed {
            Passed::AsWritten(models) => (models.clone(), None),
            Passed::WithoutPrefix(models) => (models.clone(), None),
            Passed::One => (pattern_of(pattern), Some(first.upstream.clone())),
            Passed::ToBeListed => return self.wait(pattern, first, &pools),
        };
        let all = models.is_empty();
        let is_new = |model: &String| !wildcard::is_taken(model, &self.taken);
        let models: Vec<String> = models.into_iter().filter(is_new).collect();
        if (models.is_empty() && !all) || self.taken.iter().any(|it| it == "*") {
            return self.leave(first, "earlier routes take all of its models: left out.");
        }
        let mut notes = Vec::new();
        if let Passed::WithoutPrefix(_) = passed {
            let start = pattern.trim_end_matches('*');
            let says = format!(
                "Clients ask for NAME, where they asked for {start}NAME: no prefix is taken off."
            );
            self.findings
                .warn(&first.place, says.trim_end_matches('.'), "");
            notes.push(says);
        }
        self.taken.extend(models.iter().cloned());
        if all {
            self.taken.push("*".to_owned());
        }
        let mut backends = Vec::new();
        let mut addresses = 0;
        for pool in &pools {
            let name = model.clone().unwrap_or_else(|| pattern.to_owned());
            let at = self.backend(&name, pool);
            if let Some(backend) = self.plan.backends.get_mut(at) {
                if model.is_none() {
                    backend.names.retain(|(known, _)| *known != name);
                }
                backend.is_open = true;
                stay_callable(backend, &models);
                addresses += backend.addresses;
                backends.push(backend.name.clone());
            }
        }
        if let Some(price) = first.price.as_ref() {
            match &model {
                Some(model) => self.price(model, &[(String::new(), Some(price.clone()))]),
                None => {
                    notes.push("A price is one model's: write its models under `prices`.".into())
                }
            }
        }
        if !self.fallbacks_of(pattern).is_empty() {
            let says =
                "Fallbacks send another model: list the models that have one, each with a route.";
            notes.push(says.into());
        }
        let limits = self.limits(&targets, &mut notes);
        let name = self.route_name(pattern);
        let attempts = self.attempts(addresses);
        self.plan.routes.push(Route {
            name,
            models,
            model,
            backends,
            limits,
            attempts,
            notes,
        });
    }

    /// A backend of which somebody has to list the models: it is written as a comment.
    fn wait(&mut self, pattern: &str, first: &Deployment, pools: &[Pool]) {
        let says = format!(
            "the models of {} have to be listed: no prefix is taken off a name",
            quoted(pattern)
        );
        self.findings
            .warn(&first.place, says, "the file has lines to take up");
        for pool in pools {
            let mut made = self.made(pool);
            let is_taken = |name: &str| self.plan.backends.iter().any(|it| it.name == name);
            made.name = free(&made.name, "-", is_taken);
            made.notes = self.notes_of(pool);
            let names = |text: &str| text.replace('*', "NAME");
            made.names = vec![(names(pattern), names(&pool.upstream))];
            self.plan.waiting.push((made, names(pattern)));
        }
    }
}

/// Keeps names callable that the route takes and that the backend has under another name, too: a backend's own name for a model is none
/// that clients may use, unless it is one of the gate's.
fn stay_callable(backend: &mut Backend, models: &[String]) {
    let is_taken = |name: &str| models.is_empty() || wildcard::is_taken(name, models);
    let own = backend.names.iter().filter(|(gate, own)| gate != own);
    let own: Vec<String> = own
        .map(|(_, own)| own.clone())
        .filter(|own| is_taken(own))
        .collect();
    for name in own {
        if !backend.names.iter().any(|(gate, _)| *gate == name) {
            backend.names.push((name.clone(), name));
        }
    }
}

/// What a route matches for a pattern: nothing where it takes all.
fn pattern_of(pattern: &str) -> Vec<String> {
    match pattern {
        "*" => Vec::new(),
        pattern => vec![pattern.to_owned()],
    }
}
