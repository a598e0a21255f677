//! Rules of plain HTTP: what each takes that older ones leave, with its filters and backends.
//!
//! Not here: which of several rules wins (`policy::plain`), rules for models (`model_rules`).

use super::limits::{self, Held, Part};
use super::routes::{Made, name_of};
use super::written::{Written, manner};
use crate::backends::Manner;
use crate::findings::Findings;
use crate::matching::MODEL;
use crate::plain::{OfModels, PlainMatch, PlainRoute};
use crate::route::Rule;
use crate::tree::Tree;

impl Made<'_> {
    pub(super) fn plain(&mut self, route: &PlainRoute<'_, '_>, findings: &mut Findings) {
        for (index, rule) in route.rules.iter().enumerate() {
            let name = name_of(route.object, rule.name.as_deref(), index, route.rules.len());
            let serves_models = rule.refs.iter().any(|of| of.for_models.is_some());
            // Those of calls to models are another route's, and by all paths a call to one could pass uncounted.
            let matches = rule.matches.iter();
            for one in matches.filter(|of| !(serves_models && of.models != OfModels::No)) {
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
            self.push(&Written {
                matched: Some(matched),
                filters: &filters,
                ..Written::of(name, &workloads, &backends, &one.spot)
            });
            return;
        }
        let traffic = self.traffic_of(route.object);
        let held = Held {
            route: route.object,
            spot: &one.spot,
            traffic,
            is_live: self.is_live,
        };
        let parts = held.told(findings, |findings| {
            limits::parts(&workloads, None, traffic, self.callers, &[], findings)
        });
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
            let Some(spread) = self.spread(&rule.refs, &manner, findings) else {
                continue;
            };
            let filters = self.filters(rule, &manner, findings);
            self.push(&Written {
                matched: Some(matched),
                limits: &limits,
                traffic,
                filters: &filters,
                weights: &spread.weights,
                ..Written::of(name, &workloads, &spread.backends, &one.spot)
            });
            held.told(findings, |findings| {
                self.count(held, &counted, &workloads, findings);
            });
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
}
