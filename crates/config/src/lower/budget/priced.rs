//! Budgets that count money need prices.
//!
//! Invariant: a model that is known to be counted and has no price is a fault, and so is a budget that would refuse every
//! call. Where models are not known there is a warning: a call without a price is refused when it comes.
//! Not here: what is refused then (`policy::budget`).

use policy::budget::{Budget, Unit};
use policy::model::ModelPattern;
use policy::priced;
use policy::snapshot::{Route, Snapshot};

use super::who;
use crate::decode::Place;
use crate::fault::Fault;
use crate::lower::Lowering;
use crate::schema::Document;

/// A route that takes models of which some have no price, said once for all budgets that count it.
struct Open<'d> {
    /// Of the first of them.
    place: &'d Place,
    route: &'d str,
    currency: &'d str,
    further: Vec<&'d str>,
}

impl Lowering<'_> {
    /// Looks at the budgets of a snapshot that has everything else.
    pub(in crate::lower) fn are_priced(&mut self, document: &Document, s: &Snapshot) {
        let Some(written) = document.budgets.get() else {
            return;
        };
        let mut open = Vec::new();
        for (name, _) in &written.0 {
            let mut all = s.budgets.list.iter();
            if let Some(budget) = all.find(|budget| *budget.name == *name.value.0) {
                self.is_priced(&name.place, budget, s, &mut open);
            }
        }
        for Open {
            place,
            route,
            currency,
            further,
        } in open
        {
            let mut says = format!(
                "calls on the route {route} to models without a price in {currency} will be refused"
            );
            if !further.is_empty() {
                says.push_str(&format!(", and so by {}", further.join(", ")));
            }
            let hint = "price what it takes, or list its models under `match`";
            self.warn(place, says, hint);
        }
    }

    fn is_priced<'d>(
        &mut self,
        place: &'d Place,
        budget: &'d Budget,
        s: &'d Snapshot,
        open: &mut Vec<Open<'d>>,
    ) {
        let Unit::Money(currency) = &budget.unit else {
            return;
        };
        let in_prices = |fault: &Fault| fault.path.starts_with("prices");
        if self.findings.faults.iter().any(in_prices) {
            // What is missing here may be what is wrong there.
            return;
        }
        let in_routes = |fault: &Fault| fault.path.starts_with("routes");
        let are_known = !self.findings.faults.iter().any(in_routes);
        let routes = s.routes.iter().enumerate();
        let counted: Vec<_> = routes
            .filter(|(id, _)| is_counted(budget, *id, s))
            .collect();
        let takes = |sent: Option<&str>| sent.is_none_or(|model| budget.counts_model(model));
        let is_any_priced = counted.iter().any(|(_, route)| {
            let mut priced = priced::of(route, None, s);
            priced.any(|call| call.currency == &**currency && takes(call.sent))
        });
        for (_, route) in counted {
            let (models, others) = sent(route, budget);
            for model in models {
                let unpriced = route.backends.iter().find(|backend| {
                    let mut prices = s.prices.of_any(model, **backend);
                    !prices.any(|price| price.currency == *currency)
                });
                if let Some(backend) = unpriced.and_then(|id| s.backend(*id)) {
                    let says = format!(
                        "counts money, and the model {model} has no price in {currency} at the backend {}",
                        backend.name
                    );
                    let hint = "add it under `prices`, or count tokens";
                    self.fault(place, says, hint);
                }
            }
            if others && are_known && !is_any_priced {
                let says = format!(
                    "counts money in {currency}, and no call that it counts has a price in {currency}: each would be refused; {}",
                    priced::currencies(s)
                );
                let hint =
                    "write the currency of the prices, add prices in this one, or count tokens";
                self.fault(place, says, hint);
                return;
            }
            if others && are_known {
                let of = (&*route.name, &**currency);
                match open
                    .iter_mut()
                    .find(|open| (open.route, open.currency) == of)
                {
                    Some(open) => open.further.push(&budget.name),
                    None => open.push(Open {
                        place,
                        route: of.0,
                        currency: of.1,
                        further: Vec::new(),
                    }),
                }
            }
        }
    }
}

/// Whether the budget counts calls of the route, whatever their model.
pub(in crate::lower) fn is_counted(budget: &Budget, route: usize, s: &Snapshot) -> bool {
    let mut counted = s.workloads.iter().filter(|w| who(&budget.scope, &w.name));
    counted.any(|w| w.grants.iter().any(|grant| grant.route.index() == route))
}

/// The models that a route may send upstream and the budget counts, as far as they are known, and
/// whether there may be others.
fn sent<'s>(route: &'s Route, budget: &'s Budget) -> (Vec<&'s str>, bool) {
    if let Some(model) = route.model.as_deref() {
        let counted = budget.counts_model(model);
        return (if counted { vec![model] } else { Vec::new() }, false);
    }
    let listed = route.models.iter().filter_map(exact);
    let listed: Vec<&str> = listed.filter(|name| budget.counts_model(name)).collect();
    if !route.models.is_empty() && route.models.iter().all(|p| exact(p).is_some()) {
        return (listed, false);
    }
    // Any model may come; the budget may still know which of them it counts.
    let named: Vec<&str> = budget.models.iter().filter_map(exact).collect();
    if named.is_empty() || named.len() < budget.models.len() {
        let may_meet = |of_route: &ModelPattern| budget.models.iter().any(|of| of.meets(of_route));
        let others = route.models.is_empty()
            || budget.models.is_empty()
            || route.models.iter().any(may_meet);
        return (listed, others);
    }
    let takes = |name: &&str| route.models.is_empty() || route.models.iter().any(|p| p.takes(name));
    (named.into_iter().filter(takes).collect(), false)
}

fn exact(pattern: &ModelPattern) -> Option<&str> {
    match pattern {
        ModelPattern::Exact(name) => Some(name),
        ModelPattern::Prefix(_) => None,
    }
}
