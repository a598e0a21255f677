//! A route of our document as it is written, and the limits that count on several.
//!
//! Invariant: what a limit shares is shared, or a fault.

use std::rc::Rc;

use super::limits::{Held, of_gateway};
use super::routes::Made;
use crate::backends::{Manner, free};
use crate::findings::{Findings, Spot};
use crate::quantity::span;
use crate::route::Times;
use crate::traffic::Traffic;
use crate::tree::Tree;

/// The members of one route.
pub(super) struct Written<'w> {
    pub(super) name: &'w str,
    pub(super) workloads: &'w [String],
    pub(super) matched: Option<Tree>,
    pub(super) backends: &'w [String],
    pub(super) weights: &'w [u64],
    pub(super) model: Option<Tree>,
    pub(super) limits: &'w [Tree],
    pub(super) traffic: Option<&'w Traffic>,
    pub(super) filters: &'w [(String, Tree)],
    pub(super) spot: &'w Spot,
}

impl<'w> Written<'w> {
    /// One that takes all of these callers' calls.
    pub(super) fn of(
        name: &'w str,
        workloads: &'w [String],
        backends: &'w [String],
        spot: &'w Spot,
    ) -> Self {
        Self {
            name,
            workloads,
            matched: None,
            backends,
            weights: &[],
            model: None,
            limits: &[],
            traffic: None,
            filters: &[],
            spot,
        }
    }
}

impl Made<'_> {
    pub(super) fn push(&mut self, of: &Written<'_>) {
        let name = free(of.name, |name| self.names.iter().any(|taken| taken == name));
        let list = |trees: Vec<Tree>| (!trees.is_empty()).then_some(Tree::List(trees));
        let weights = of.weights.iter().map(|weight| Tree::number(*weight));
        let tree = Tree::map([
            ("name", Some(Tree::text(&name))),
            ("workload", Some(Tree::texts(of.workloads))),
            ("match", of.matched.clone()),
            ("backend", Some(Tree::texts(of.backends))),
            ("weights", list(weights.collect())),
            ("model", of.model.clone()),
            ("limits", list(of.limits.to_vec())),
            (
                "retries",
                of.traffic.and_then(|traffic| traffic.retries.clone()),
            ),
        ]);
        let tree = match tree {
            Tree::Map(mut members) => {
                members.extend(of.filters.iter().cloned());
                Tree::Map(members)
            }
            other => other,
        };
        self.names.push(name);
        self.routes.push(tree.of(of.spot));
    }

    /// Notes which limits came to be part of a route; one that is for all routes together can be part of one.
    pub(super) fn count(
        &mut self,
        held: Held<'_>,
        counted: &[usize],
        workloads: &[String],
        findings: &mut Findings,
    ) {
        let Some(traffic) = held.traffic else { return };
        let home = &held.route.namespace;
        for (index, rule) in traffic
            .limits
            .iter()
            .enumerate()
            .filter(|(index, _)| counted.contains(index))
        {
            for workload in workloads {
                let key = (Rc::clone(&traffic.spot.object), index, workload.clone());
                let first = (0, home.clone(), held.spot.clone());
                let (count, namespace, spot) = self.shared.entry(key).or_insert(first);
                *count += 1;
                if !rule.is_shared || *count != 2 {
                    continue;
                }
                let says = format!(
                    "is shared by routes, and {workload} would have as much on each of them"
                );
                let hint = "leave shared out, or send these calls by one rule";
                // Of one in the Gateway's namespace and one in another it is the other's, whichever is asked first.
                match held.is_of_owner(traffic) && *namespace != traffic.namespace {
                    true => findings.fault(spot, of_gateway(traffic, &says), hint),
                    false => findings.fault(&rule.spot, says, hint),
                }
            }
        }
    }
}

/// What a policy and a rule say of the backends that calls go to.
pub(super) fn manner(traffic: Option<&Traffic>, times: &Times) -> Manner {
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
        balancing: traffic.and_then(|traffic| traffic.balancing.clone()),
        ..Manner::default()
    }
}
