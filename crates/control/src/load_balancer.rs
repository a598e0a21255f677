//! `loadBalancer` of a BackendTrafficPolicy: how several addresses share calls.
//!
//! Not here: what a policy does (`policy::balancing`).

use config::quoted;

use crate::fields::Item;
use crate::findings::Findings;
use crate::tree::Tree;

/// What it is as `balancing` of our document; nothing where addresses are drawn by their weights.
pub(crate) fn of(item: &Item<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut of = item.fields(findings);
    let kind = of.needed_text("type", findings);
    of.pass_over(
        &[
            (
                "slowStart",
                "what an address has to do is looked at instead",
            ),
            (
                "zoneAware",
                "a Service's hints of zones are followed with --zone",
            ),
        ],
        findings,
    );
    of.refuse(
        &[(
            "endpointOverride",
            "no client names the address that its call goes to",
        )],
        findings,
    );
    let kind = kind?;
    let left = "is left out: calls go to addresses as their weights say";
    let found = match kind.value.as_str() {
        "Random" => None,
        "RoundRobin" => Some("round_robin"),
        "LeastRequest" => Some("least_request"),
        "ConsistentHash" | "BackendUtilization" => {
            of.skip(&["consistentHash", "backendUtilization"]);
            let hint = "for engines, write balancing: prefix_cache of a backend in a file of ours";
            findings.warn(&kind.spot, left, hint);
            None
        }
        other => {
            of.skip(&["dynamicModule"]);
            let says = format!("the type {} is not known", quoted(other));
            findings.fault(&kind.spot, says, "write RoundRobin, LeastRequest or Random");
            None
        }
    };
    of.end(findings);
    found.map(|policy| Tree::text(policy).of(&item.spot))
}
