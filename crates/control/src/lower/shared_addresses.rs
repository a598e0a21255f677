//! Addresses that would serve models to one namespace and plain HTTP to another, in a cluster: the newer of two routes does not go there.
//!
//! By plain HTTP calls to models could pass uncounted, so that `config` refuses a route of plain HTTP to where models are served.
//! Invariant: a route to models closes no older route of another namespace.
//! Not here: routes of one namespace, and newer ones of plain HTTP, which are refused there (`config`'s `uncounted`).

use policy::operation::call_at_end;

use crate::backend::Address;
use crate::findings::Findings;
use crate::plain::{PlainMatch, PlainRoute};
use crate::refs::Ref;
use crate::route::{ModelRoute, Rule};

/// Refuses what goes where an older route of another namespace sends calls of plain HTTP.
pub(super) fn check(
    models: &[ModelRoute<'_, '_>],
    plain: &[PlainRoute<'_, '_>],
    findings: &mut Findings,
) {
    for route in models {
        let object = route.object;
        let older = |of: &&PlainRoute<'_, '_>| {
            of.object.namespace != object.namespace && of.object.age() < object.age()
        };
        let older: Vec<_> = plain.iter().filter(older).collect();
        let rules = route.rules.iter().filter(|rule| !rule.is_closed);
        for to in rules.flat_map(|rule| &rule.refs).filter(|to| !to.is_closed) {
            let addresses = &to.target.upstream.endpoints;
            let shares = |of: &&&PlainRoute<'_, '_>| {
                let mut rules = of.rules.iter().filter(|rule| is_loose(rule));
                rules.any(|rule| goes_to(rule, addresses))
            };
            let Some(first) = older.iter().find(shares) else {
                continue;
            };
            let says = format!(
                "has an address to which {}, which is older, sends calls of plain HTTP, and calls to models could pass uncounted there",
                first.object.spot.object
            );
            let hint = "name an address that serves models alone";
            findings.fault(&to.spot, says, hint);
        }
    }
}

/// Whether calls of a rule could be calls to models, as far as paths say.
fn is_loose(rule: &Rule<PlainMatch>) -> bool {
    let is_harmless = |path: Option<String>| path.is_some_and(|path| call_at_end(&path).is_none());
    let changes = !rule.filters.changes_nothing();
    !rule.is_closed && (changes || rule.matches.iter().any(|of| !is_harmless(of.exact())))
}

fn goes_to(rule: &Rule<PlainMatch>, addresses: &[Address]) -> bool {
    let mirrors = rule.filters.mirrors.iter().map(|(of, _)| of);
    let targets = rule.refs.iter().chain(mirrors);
    let is_there = |of: &Ref| {
        let own = of.target.upstream.endpoints.iter();
        let is_it =
            |a: &Address, b: &Address| a.port == b.port && a.host.eq_ignore_ascii_case(&b.host);
        own.into_iter()
            .any(|a| addresses.iter().any(|b| is_it(a, b)))
    };
    targets
        .filter(|of| !of.is_closed && of.for_models.is_none())
        .any(is_there)
}
