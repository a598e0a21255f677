//! HTTPRoutes to pools: the calls to models among those that a rule takes, which are told apart by model and caller, and by no path.
//!
//! Not here: all other calls of these routes (`plain`).

use crate::filters::Filters;
use crate::findings::Findings;
use crate::plain::{OfModels, PlainMatch, PlainRoute};
use crate::refs::Ref;
use crate::route::{ModelMatch, ModelRoute, Rule};

/// What a route is to calls to models; nothing where it takes none.
pub(crate) fn for_models<'c, 'n>(
    route: &PlainRoute<'c, 'n>,
    findings: &mut Findings,
) -> Option<ModelRoute<'c, 'n>> {
    let rules: Vec<Rule<ModelMatch>> = route
        .rules
        .iter()
        .filter_map(|rule| of_rule(rule, findings))
        .collect();
    (!rules.is_empty()).then(|| ModelRoute {
        object: route.object,
        rules,
        costs: Vec::new(),
        hostnames: route.hostnames.clone(),
        listeners: route.held.clone(),
    })
}

fn of_rule(rule: &Rule<PlainMatch>, findings: &mut Findings) -> Option<Rule<ModelMatch>> {
    let takes = rule.matches.iter().filter(|of| of.models != OfModels::No);
    let matches: Vec<ModelMatch> = takes
        .map(|of| (of.spot.clone(), of.headers.clone()))
        .collect();
    let called = rule.refs.iter().filter(|of| of.weight > 0);
    let refs: Vec<Ref> = called
        .map(|of| {
            let target = of.for_models.as_deref().cloned()?;
            Some(Ref {
                target,
                for_models: None,
                ..of.clone()
            })
        })
        .collect::<Option<_>>()?;
    if refs.is_empty() || matches.is_empty() {
        return None;
    }
    if !rule.is_closed && !rule.filters.changes_nothing() {
        findings.fault(
            &rule.spot,
            "has filters, and takes calls to models, which pass as they are",
            "leave the filters out, or match another path than / and /v1",
        );
    }
    Some(Rule {
        spot: rule.spot.clone(),
        name: rule.name.clone(),
        refs,
        matches,
        times: rule.times.clone(),
        filters: Filters::default(),
        is_closed: rule.is_closed,
    })
}
