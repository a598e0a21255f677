//! QuotaPolicy: how many tokens of a model a backend gives, to all callers together.
//!
//! Our limits are of a route and a caller. So a quota holds where one rule for one caller is all that reaches its model at its backend,
//! and is a fault elsewhere: several of them would have as much each.
//! Not here: limits of callers (`traffic`).

use std::rc::Rc;

use crate::cluster::Cluster;
use crate::fields::Item;
use crate::findings::{Findings, Spot};
use crate::gateway::targets;
use crate::object::AI;
use crate::refs::Ref;
use crate::route::is_all_tokens;
use crate::tree::Tree;

/// A quota of one model at one backend.
pub(crate) struct Quota {
    pub(crate) spot: Spot,
    /// The AIServiceBackend, as it is told.
    service: Rc<str>,
    model: String,
    amount: u64,
    per: &'static str,
}

/// What a rule sends to one of its targets.
pub(crate) struct Sent<'r> {
    pub(crate) refs: &'r [Ref],
    /// The models that arrive, where they are known by name.
    pub(crate) models: &'r [String],
    pub(crate) workloads: &'r [String],
}

pub(crate) fn policies(cluster: &Cluster<'_>, findings: &mut Findings) -> Vec<Quota> {
    let mut found = Vec::new();
    for policy in cluster.of_kind("QuotaPolicy") {
        let mut spec = policy.spec(findings);
        let mut services = Vec::new();
        for target in targets(&mut spec, policy, |_| true, findings) {
            if target.is_one_of(&[(AI, "AIServiceBackend")], findings) {
                let service = cluster.resolve(policy, &target, findings);
                services.extend(service.map(|service| Rc::clone(&service.spot.object)));
            }
        }
        spec.refuse(
            &[(
                "serviceQuota",
                "write perModelQuotas: a limit is of a model's calls",
            )],
            findings,
        );
        for item in spec.list("perModelQuotas", findings) {
            let Some((model, amount, per)) = of_model(&item, findings) else {
                continue;
            };
            found.extend(services.iter().map(|service| Quota {
                spot: item.spot.clone(),
                service: Rc::clone(service),
                model: model.clone(),
                amount,
                per,
            }));
        }
        spec.end(findings);
    }
    found
}

fn of_model(item: &Item<'_>, findings: &mut Findings) -> Option<(String, u64, &'static str)> {
    let mut of = item.fields(findings);
    let model = of.needed_text("modelName", findings);
    let quota = of.need("quota", findings);
    of.end(findings);
    let mut of = quota?.fields(findings);
    if let Some(mode) = of
        .text("mode", findings)
        .filter(|mode| mode.value != "Shared")
    {
        findings.fault(&mode.spot, "is no way to share a quota", "write Shared");
    }
    if let Some(cost) = of
        .text("costExpression", findings)
        .filter(|cost| !is_all_tokens(&cost.value))
    {
        let says = "is more than the sum of tokens, and that is what limits count";
        findings.fault(&cost.spot, says, "write total_tokens");
    }
    let own = "limits of callers are those of a BackendTrafficPolicy";
    let rules = of.list("bucketRules", findings);
    if let Some(rule) = rules.first() {
        findings.fault(&rule.spot, "is not honoured here", own);
    }
    let bucket = of.need("defaultBucket", findings);
    of.end(findings);
    let mut of = bucket?.fields(findings);
    let limit = of
        .need("limit", findings)
        .and_then(|item| item.number(findings));
    let duration = of.needed_text("duration", findings);
    of.end(findings);
    let duration = duration?;
    let known = ["1s", "1m", "1h", "1d"]
        .into_iter()
        .find(|per| *per == duration.value);
    if known.is_none() {
        findings.fault(
            &duration.spot,
            "is no window of a quota",
            "write 1s, 1m, 1h or 1d",
        );
    }
    Some((model?.value, limit?.value, known?))
}

impl Quota {
    /// The limit that it is for what a rule sends; nothing where it is for something else, or has its fault. `places`: how many rules it
    /// holds for already.
    pub(crate) fn of(
        &self,
        sent: &Sent<'_>,
        places: &mut u32,
        findings: &mut Findings,
    ) -> Option<Tree> {
        let is_ours = |of: &&Ref| of.target.spot.object == self.service;
        let ours = sent.refs.iter().find(is_ours)?;
        let models: Vec<&str> = match &ours.model {
            Some(model) => vec![model],
            None => sent.models.iter().map(String::as_str).collect(),
        };
        if !models.is_empty() && !models.contains(&self.model.as_str()) {
            return None;
        }
        let other = sent.refs.iter().find(|of| of.weight > 0 && !is_ours(of));
        *places += 1;
        let (says, hint) = if models.len() != 1 {
            (
                format!(
                    "is of the model {} alone, and this rule sends others to its backend, too",
                    self.model
                ),
                "match that model exactly in a rule of its own",
            )
        } else if let Some(other) = other {
            (
                format!(
                    "is of one backend, and this rule sends calls to {}, too",
                    other.target.name
                ),
                "give the backend a rule of its own",
            )
        } else if sent.workloads.len() > 1 {
            (
                format!(
                    "counts all callers together, and here {} would have as much each",
                    sent.workloads.join(", ")
                ),
                "one amount for all is a budget of a file of ours",
            )
        } else if *places > 1 {
            (
                "counts all calls of its model together, and a second rule would have as much"
                    .to_owned(),
                "send these calls by one rule",
            )
        } else {
            let tokens = Tree::number(self.amount);
            let limit = Tree::map([
                ("tokens", Some(tokens)),
                ("per", Some(Tree::Plain(self.per.to_owned()))),
                ("window", Some(Tree::text("rolling"))),
            ]);
            return Some(limit.of(&self.spot));
        };
        findings.fault(&self.spot, says, hint);
        None
    }
}
