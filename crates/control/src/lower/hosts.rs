//! Hosts that the gate answers for, and the listeners at which models and tools are served.
//!
//! Calls to models are told apart by neither, so that all routes to them say the same.
//! Not here: which listeners a route is attached to (`gateway`).

use crate::fields::Said;
use crate::findings::Findings;
use crate::gateway::Door;
use crate::object::Object;
use crate::plain::PlainRoute;
use crate::tree::Tree;

/// A route to models or to tools, its hosts, and the listeners that it is attached to.
pub(super) type Served<'m> = (&'m Object<'m>, &'m [Said<String>], &'m [String]);

/// The listeners at which calls to models and to tools are served, by name: all where no route says.
pub(super) fn serving<'m>(
    served: &[Served<'m>],
    door: &Door<'_, '_>,
    findings: &mut Findings,
) -> Option<&'m [String]> {
    let first = served.first().filter(|_| door.is_told_apart)?;
    let names = |(_, _, listeners): &Served<'_>| {
        let mut names = listeners.to_vec();
        names.sort_unstable();
        names
    };
    if let Some((other, ..)) = served.iter().find(|route| names(route) != names(first)) {
        let says = format!(
            "is attached to other listeners than {}, and calls to models are not told apart by theirs",
            first.0.id()
        );
        findings.fault(
            &other.spot,
            says,
            "attach all to the same, or run a gate for each",
        );
    }
    Some(first.2)
}

/// The hosts that the gate answers for. Those of routes to models are one list for all of them, as they are told apart by nothing
/// else.
pub(super) fn hosts(
    served: &[Served<'_>],
    plain: &[PlainRoute<'_, '_>],
    door: &Door<'_, '_>,
    is_live: bool,
    findings: &mut Findings,
) -> Option<Tree> {
    let is_open = || served.iter().all(|(_, hostnames, _)| hostnames.is_empty());
    if door.is_told_apart && is_live && is_open() {
        // Its listeners say which hosts, and a loopback address of a cluster's is no developer's.
        return Some(Tree::text("*"));
    }
    let of_models = served.iter().map(|(_, hostnames, _)| *hostnames);
    let of_plain = plain.iter().map(|route| route.hostnames.as_slice());
    let first = served
        .first()
        .map(|(_, hostnames, _)| door.hosts_of(hostnames));
    let has_one_host = door
        .hostname()
        .is_some_and(|(own, _)| !own.starts_with('*'));
    for (route, hostnames, _) in served {
        let Some(said) = hostnames.first() else {
            continue;
        };
        // Of a route to models with hosts and one of plain HTTP the newer one does not go with what is there.
        let beside = plain.iter().filter(|_| !has_one_host);
        let beside = beside.filter(|plain| plain.is_open());
        let (before, behind): (Vec<&PlainRoute<'_, '_>>, Vec<&PlainRoute<'_, '_>>) =
            beside.partition(|plain| !is_live || plain.object.age() < route.age());
        let hint = "write the same hostnames in all routes, or run a gate for each";
        if Some(door.hosts_of(hostnames)) != first || !before.is_empty() {
            let says =
                "is not what all routes say, and calls to models are not told apart by their host";
            findings.fault(&said.spot, says, hint);
            continue;
        }
        for plain in behind {
            let says = format!(
                "is beside {}, which says hostnames, and calls to models are not told apart by their host",
                route.spot.object
            );
            findings.fault(&plain.object.spot, says, hint);
        }
    }
    let Some((own, spot)) = door.hostname() else {
        let of_plain = of_plain.flat_map(|hostnames| door.hosts_of(hostnames));
        let all: Vec<String> = first
            .unwrap_or_default()
            .into_iter()
            .chain(of_plain.filter(|_| door.is_loopback))
            .collect();
        return (!all.is_empty()).then(|| Tree::texts(&all));
    };
    let mut all = Vec::new();
    for hostnames in of_models.chain(of_plain) {
        let common = door.hosts_of(hostnames);
        match hostnames.first() {
            None => all.push(own.clone()),
            Some(first) if common.is_empty() => {
                let says = format!("is none of the listener's hosts, which are {own}");
                findings.fault(&first.spot, says, "write one of those");
            }
            Some(_) => all.extend(common),
        }
    }
    all.sort_unstable();
    all.dedup();
    (!all.is_empty()).then(|| Tree::texts(&all).of(spot))
}
