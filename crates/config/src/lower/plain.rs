//! Routes of plain HTTP: those to backends that say `serves: http`, and which calls they take.
//!
//! Invariant: a route's backends all serve plain HTTP or all serve models; an address that serves models to some backend is
//! reached by plain HTTP through exact paths alone, and by none of a call that the gate reads (`uncounted`).
//! Not here: which call a rule takes, and which rule wins (`policy::plain`).

use std::collections::HashSet;

use policy::id::{BackendId, RouteId};
use policy::plain::{HostPattern, MAX_RULES, PathPattern, Rule};
use policy::price::Prices;
use policy::snapshot::Snapshot;
use policy::unread::Listed;

use super::route::some_of;
use super::unread::{Counted, of_a_call};
use crate::decode::{At, Field, Place};
use crate::scalar::Name;
use crate::schema::{Backend, Route, route::Match};

impl super::Lowering<'_> {
    /// Whether a route is of plain HTTP: its backends are. `None` where they cannot be told.
    pub(super) fn is_plain(
        &mut self,
        route: &Route,
        targets: &[BackendId],
        s: &Snapshot,
    ) -> Option<bool> {
        let mut backends = targets.iter().filter_map(|id| s.backend(*id));
        let first = backends.next()?;
        let other = backends.find(|backend| backend.is_plain != first.is_plain);
        if let (Some(other), Some(at)) = (other, route.backend.items().first()) {
            let (plain, models) = if first.is_plain {
                (first, other)
            } else {
                (other, first)
            };
            let says = format!(
                "goes to {}, which serves plain HTTP, and to {}, which serves models",
                plain.name, models.name
            );
            self.fault(&at.place, says, "write a route for each");
            return None;
        }
        Some(first.is_plain)
    }

    /// What a route to models says that only one of plain HTTP can.
    pub(super) fn check_match(&mut self, route: &Route, place: &Place) {
        if !route.charge.is_absent() {
            let says = "says charge, and calls to models cost by `prices`, others by `unread`";
            self.fault(
                place,
                says,
                "leave it out: it is of routes to backends that say serves: http",
            );
        }
        let of_calls = [
            ("request_headers", !route.request_headers.is_absent()),
            ("response_headers", !route.response_headers.is_absent()),
            ("upstream_host", !route.upstream_host.is_absent()),
            ("rewrite", !route.rewrite.is_absent()),
            ("redirect", !route.redirect.is_absent()),
            ("mirrors", !route.mirrors.is_absent()),
            ("cors", !route.cors.is_absent()),
        ];
        if let Some(said) = said_of(&of_calls) {
            let says = format!("says {said}, and the route's backends serve models");
            let hint = "leave that out: it is of routes to backends that say serves: http";
            self.fault(place, says, hint);
        }
        let Some(written) = route.r#match.get() else {
            return;
        };
        let of_plain = [
            ("path", !written.path.is_absent()),
            ("method", !written.method.is_absent()),
            ("host", !written.host.is_absent()),
            ("headers", !written.headers.is_absent()),
            ("query", !written.query.is_absent()),
            ("listener", !written.listener.is_absent()),
        ];
        if let Some(said) = said_of(&of_plain) {
            let says = format!("says {said}, and the route's backends serve models");
            let hint = "calls to models go by `model`; a backend of other calls says serves: http";
            self.fault(&place.below("match"), says, hint);
        }
        self.check_model(route, place);
    }

    /// A match that says nothing at all.
    pub(super) fn check_model(&mut self, route: &Route, place: &Place) {
        let says_nothing = |of: &Match| {
            let rest = of.path.is_absent() && of.method.is_absent() && of.host.is_absent();
            let rest = rest && of.query.is_absent() && of.listener.is_absent();
            of.model.is_absent() && rest && of.headers.is_absent()
        };
        if route.r#match.get().is_some_and(says_nothing) {
            let hint = "write model: NAME, or leave `match` out for all calls";
            self.fault(&place.below("match"), "says nothing", hint);
        }
    }

    /// What a route of plain HTTP says that only one to models can.
    pub(super) fn check_plain(&mut self, route: &Route, place: &Place) {
        let model = route.r#match.get().is_some_and(|of| !of.model.is_absent());
        let of_models = [
            ("match.model", model),
            ("model", !route.model.is_absent()),
            ("unlisted", !route.unlisted.is_absent()),
            ("output_max", !route.output_max.is_absent()),
            ("billed_by", !route.billed_by.is_absent()),
            ("abandon", !route.abandon.is_absent()),
            ("unread", !route.unread.is_absent()),
            ("batches", !route.batches.is_absent()),
            ("forward_headers", !route.forward_headers.is_absent()),
            ("return_headers", !route.return_headers.is_absent()),
        ];
        if let Some(said) = said_of(&of_models) {
            let says = format!(
                "says {said}, and its backends serve plain HTTP, which has no models, no tokens and no lists of headers"
            );
            self.fault(place, says, "leave that out");
        }
        for (place, limit) in route.limits.items() {
            if limit
                .as_ref()
                .is_some_and(|limit| !limit.tokens.is_absent())
            {
                let says = "counts tokens, and calls of plain HTTP have none";
                self.fault(place, says, "write requests: N");
            }
        }
    }

    /// The rules of a route of plain HTTP: one for each of its paths and hosts.
    pub(super) fn plain_rules(
        &mut self,
        route: &Route,
        id: RouteId,
        place: &Place,
        s: &Snapshot,
    ) -> Vec<Rule> {
        let written = route.r#match.get();
        let paths = match written.map(|of| &of.path) {
            Some(Field::Is(paths)) => paths.0.iter().map(|at| at.value.0.clone()).collect(),
            Some(Field::Bad) => Vec::new(),
            None if route.r#match.is_bad() => Vec::new(),
            Some(Field::Absent) | None => vec![PathPattern::Below("".into())],
        };
        let hosts: Vec<Option<HostPattern>> = match written.map(|of| &of.host) {
            Some(Field::Is(hosts)) => hosts.0.iter().map(|at| Some(at.value.0.clone())).collect(),
            Some(Field::Bad | Field::Absent) | None => vec![None],
        };
        let mut methods: Vec<Box<str>> = Vec::new();
        for at in written.map_or(&[][..], |of| of.method.items()) {
            methods.push(at.value.0.as_str().into());
        }
        methods.sort();
        let mut headers: Vec<(Box<str>, Box<str>)> = Vec::new();
        for (name, value) in written.map_or(&[][..], |of| of.headers.items()) {
            if headers.iter().any(|(other, _)| **other == *name.value.0) {
                self.twice(name);
            }
            let Some(value) = value else { continue };
            headers.push((name.value.0.as_str().into(), value.value.0.as_str().into()));
        }
        headers.sort();
        let mut query: Vec<(Box<str>, Box<str>)> = Vec::new();
        for (name, value) in written.map_or(&[][..], |of| of.query.items()) {
            if query.iter().any(|(other, _)| **other == *name.value.0) {
                self.twice(name);
            }
            let Some(value) = value else { continue };
            query.push((name.value.0.as_str().into(), value.value.0.as_str().into()));
        }
        query.sort();
        let mut listeners = Vec::new();
        for at in written.map_or(&[][..], |of| of.listener.items()) {
            match s.listeners.named(&at.value.0) {
                Some(id) if !listeners.contains(&id) => listeners.push(id),
                Some(_) => self.twice(at),
                None => self.refuse(at, "is no listener", "name one of `listen.listeners`"),
            }
        }
        listeners.sort();
        let mut rules: Vec<Rule> = Vec::new();
        for (path, host) in paths.iter().flat_map(|p| hosts.iter().map(move |h| (p, h))) {
            let rule = Rule {
                route: id,
                host: host.clone(),
                path: path.clone(),
                methods: methods.clone(),
                headers: headers.clone(),
                query: query.clone(),
                listeners: listeners.clone(),
            };
            if rules.contains(&rule) {
                let says = format!("`match` says {rule} twice");
                self.fault(place, says, "keep one of them");
            }
            rules.push(rule);
        }
        if rules.len() > MAX_RULES {
            let says = format!("matches more than {MAX_RULES} pairs of a path and a host");
            self.fault(place, says, "write several routes");
            rules.truncate(MAX_RULES);
        }
        rules
    }

    /// A route whose rules are all of earlier routes is never reached; one of which some are is a warning.
    pub(super) fn plainly_reachable(
        &mut self,
        workload: &At<Name>,
        route_name: &str,
        place: &Place,
        rules: &[Rule],
        taken: &mut HashSet<String>,
    ) {
        let shown: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let lost: Vec<&str> = shown
            .iter()
            .map(String::as_str)
            .filter(|of| taken.contains(*of))
            .collect();
        if !lost.is_empty() && lost.len() == rules.len() {
            let says = format!(
                "the route {route_name} is never reached by the workload {}: earlier routes match the same calls",
                workload.shown
            );
            self.fault(place, says, "keep one of them, or match by more");
        } else if !lost.is_empty() {
            let says = format!(
                "earlier routes of the workload {} already match {}",
                workload.shown,
                some_of(&lost)
            );
            self.warn(place, says, "");
        }
        taken.extend(shown);
    }

    /// What each call of a route of plain HTTP is charged, as its one listed call.
    pub(super) fn plain_charge(
        &mut self,
        route: &Route,
        counted: &Counted,
        prices: &mut Prices,
    ) -> Vec<Listed> {
        let Some(charge) = route.charge.get() else {
            return Vec::new();
        };
        let Some(money) = charge.money.get() else {
            return Vec::new();
        };
        let currency = charge.currency.get().map_or("USD", |at| &at.value.0);
        for budgets in counted.money.iter().filter(|of| ***of != *currency) {
            let says = format!(
                "{} is charged in {currency}, and a budget counts {budgets}",
                money.shown
            );
            self.fault(&money.place, says, format!("write currency: {budgets}"));
        }
        let Some(request) = self.pico(money, 0) else {
            return Vec::new();
        };
        let price = prices.add(of_a_call(request, currency, "a call of plain HTTP"));
        vec![Listed::each(price)]
    }

    /// What a backend of plain HTTP says that only one of models can.
    pub(super) fn check_plain_backend(&mut self, place: &Place, written: &Backend) {
        let of_models = [
            ("dialect", !written.dialect.is_absent()),
            ("anthropic_betas", !written.anthropic_betas.is_absent()),
            ("models", !written.models.is_absent()),
            ("model_names", !written.model_names.is_absent()),
            ("tokens", !written.tokens.is_absent()),
            ("at_root", !written.at_root.is_absent()),
        ];
        if let Some(said) = said_of(&of_models) {
            let says = format!("serves plain HTTP, and says {said}");
            self.fault(
                place,
                says,
                "leave that out: it is of backends that serve models",
            );
        }
    }
}

/// Those of these members that are said, listed; `None` where none is.
fn said_of(members: &[(&str, bool)]) -> Option<String> {
    let said = members.iter().filter(|(_, is_said)| *is_said);
    let said: Vec<&str> = said.map(|(member, _)| *member).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// What tells the limits of a workload on a route without a name from all others: no model begins so.
pub(super) fn key(workload: &str, rules: &[Rule]) -> String {
    let mut rules: Vec<String> = rules.iter().map(|rule| format!("http {rule}")).collect();
    rules.sort();
    format!("{workload}/[{}]", rules.join(","))
}

/// Whether a match has something wrong in it that its rules would follow from.
pub(super) fn is_sound(written: &Field<Match>) -> bool {
    let of = |of: &Match| {
        let bad = [of.path.is_bad(), of.method.is_bad(), of.host.is_bad()];
        let more = [of.headers.is_bad(), of.query.is_bad(), of.listener.is_bad()];
        !bad.iter().chain(&more).any(|is_bad| *is_bad)
    };
    !written.is_bad() && written.get().is_none_or(of)
}
