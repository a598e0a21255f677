//! Rules for models: each for its callers and models, with its limits and backends.
//!
//! Not here: which of a rule's calls earlier ones leave (`routes`), rules of plain HTTP (`plain_rules`).

use super::limits::{self, Held, Part};
use super::routes::{Draft, Made, matched};
use super::written::{Written, manner};
use crate::backends::Manner;
use crate::findings::Findings;
use crate::matching::Wanted;
use crate::quota::Sent;
use crate::route::{ModelMatch, ModelRoute, Rule};
use crate::tree::Tree;

impl Made<'_> {
    /// The routes of a rule for its callers and models.
    pub(super) fn route_to_models(
        &mut self,
        route: &ModelRoute<'_, '_>,
        rule: &Rule<ModelMatch>,
        draft: Draft<'_>,
        name: &str,
        findings: &mut Findings,
    ) {
        if rule.is_closed {
            let backends = [self.backends.closed(false, draft.spot)];
            self.push(&Written {
                matched: matched(draft.models),
                ..Written::of(name, &draft.workloads, &backends, draft.spot)
            });
            return;
        }
        let refs = &rule.refs;
        let first = refs.first().and_then(|of| of.model.clone());
        let is_one_model = refs.iter().all(|of| of.model == first);
        let traffic = self.traffic_of(route.object);
        let held = Held {
            route: route.object,
            spot: draft.spot,
            traffic,
            is_live: self.is_live,
        };
        let parts = held.told(findings, |findings| {
            limits::parts(
                &draft.workloads,
                draft.models.as_deref(),
                traffic,
                self.callers,
                &route.costs,
                findings,
            )
        });
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
            let mut quiet = Findings::default();
            let told = if self.is_sound {
                &mut *findings
            } else {
                &mut quiet
            };
            let quotas = self.quotas.iter_mut();
            let quotas = quotas.filter_map(|(quota, places)| quota.of(&sent, places, told));
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
                let Some(spread) = self.spread(refs, &manner, findings) else {
                    continue;
                };
                self.push(&Written {
                    matched: matched(models),
                    model: first.as_ref().filter(|_| is_one_model).map(Tree::text),
                    limits: &limits,
                    traffic,
                    weights: &spread.weights,
                    ..Written::of(name, &workloads, &spread.backends, draft.spot)
                });
            }
            held.told(findings, |findings| {
                self.count(held, &counted, &workloads, findings);
            });
        }
    }
}
