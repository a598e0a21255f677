//! Paths at which one namespace has servers of tools and another plain HTTP, in a cluster: the newer `MCPRoute` does not go there.
//!
//! Servers of tools are found at their path whoever calls and whatever host he names.
//! Invariant: an `MCPRoute` takes no calls that an older `HTTPRoute` of another namespace names the path of; one that takes all paths names none.
//! Not here: newer routes of plain HTTP, whose calls to that path are those of tools.

use crate::findings::{Broken, Findings};
use crate::plain::PlainRoute;
use crate::tools::ToolRoute;

/// Refuses what would take an older route's path.
pub(super) fn check(
    tools: &[ToolRoute<'_, '_>],
    plain: &[PlainRoute<'_, '_>],
    findings: &mut Findings,
) {
    for route in tools.iter().filter(|route| !route.is_closed) {
        let (object, path) = (route.object, route.path.value.as_str());
        let mut older = plain
            .iter()
            .filter(|of| of.object.namespace != object.namespace && of.object.age() < object.age());
        let takes = |of: &&PlainRoute<'_, '_>| {
            let rules = of.rules.iter().filter(|rule| !rule.is_closed);
            let mut matches = rules.flat_map(|rule| &rule.matches);
            matches.any(|of| of.names(path))
        };
        let Some(first) = older.find(takes) else {
            continue;
        };
        let says = format!(
            "has a path that {}, which is older and of another namespace, takes calls of",
            first.object.spot.object
        );
        let hint = "give it a path of its own";
        findings.break_off(Broken::Conflict, &object.spot, says, hint);
    }
}
