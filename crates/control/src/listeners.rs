//! All listeners of a Gateway and of its ListenerSets, and those that cannot stand beside others on their port.
//!
//! Invariant: of two that different objects say the one whose object comes first stays as it is; of two that one object says neither does.
//! Not here: what is wrong with one alone (`listener`), which ListenerSets are let in (`listener_set`).

use std::net::IpAddr;

use crate::cluster::Cluster;
use crate::fields::Item;
use crate::findings::{Broken, Findings};
use crate::gateway_tls::GatewayTls;
use crate::listener::Listener;
use crate::object::Object;

/// Who says listeners, and what it says.
pub(crate) struct Owner<'o, 'n> {
    pub(crate) object: &'o Object<'n>,
    pub(crate) items: Vec<Item<'n>>,
}

/// All listeners of a Gateway and of its ListenerSets, in the order of their precedence; a fault for each that cannot be served.
pub(crate) fn all(
    cluster: &Cluster<'_>,
    owners: &[Owner<'_, '_>],
    ip: IpAddr,
    tls: &GatewayTls<'_, '_>,
    findings: &mut Findings,
) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for owner in owners {
        for (index, item) in owner.items.iter().enumerate() {
            let is_shut = cluster
                .mode
                .is_listener_shut(&owner.object.spot.object, index);
            let mut quiet = Findings::default();
            let findings = if is_shut { &mut quiet } else { &mut *findings };
            let mut listener =
                Listener::of(cluster, owner.object, (index, item), (ip, tls), findings);
            // One that lets in kinds of routes that are not served, too, is served to those that are.
            let is_of_kind = |(_, how): &(usize, Broken)| *how == Broken::RouteKind;
            let is_only_kinds = quiet.broken.iter().all(is_of_kind)
                && quiet.broken.len() == quiet.faults.len()
                && !quiet.faults.is_empty();
            listener.is_served = !is_shut || is_only_kinds && listener.takes_routes;
            listeners.push(listener);
        }
    }
    for conflict in conflicts(&listeners) {
        let Some(one) = listeners.get_mut(conflict.at) else {
            continue;
        };
        if cluster.mode.is_listener_shut(&one.owner, one.place) {
            one.is_served = false;
            continue;
        }
        findings.break_off(conflict.how, &one.spot, conflict.says, conflict.hint);
    }
    listeners
}

/// What is wrong with one of them.
struct Conflict {
    /// Its place among all.
    at: usize,
    how: Broken,
    says: String,
    hint: &'static str,
}

/// All that there are among these, which stand in the order of their objects.
fn conflicts(listeners: &[Listener]) -> Vec<Conflict> {
    let mut found: Vec<Conflict> = Vec::new();
    for (at, one) in listeners.iter().enumerate() {
        let lost = |of: usize| found.iter().any(|conflict| conflict.at == of);
        let mut of_it = Vec::new();
        for (of, other) in listeners.iter().enumerate() {
            let is_own = of != at && other.owner == one.owner;
            let is_earlier = of < at && other.owner != one.owner && other.is_http() && !lost(of);
            if other.port != one.port || !(is_own || is_earlier) {
                continue;
            }
            let Some((how, what, hint)) = between(one, other, is_earlier) else {
                continue;
            };
            let whose = match is_own {
                true => String::new(),
                false => format!(" of {}", other.owner),
            };
            of_it.push(Conflict {
                at,
                how,
                says: format!(
                    "is on the port of the listener {}{whose}, which has {what}",
                    other.name
                ),
                hint,
            });
        }
        found.extend(of_it);
    }
    found
}

/// Why one cannot stand beside another one.
fn between(
    one: &Listener,
    other: &Listener,
    is_earlier: bool,
) -> Option<(Broken, &'static str, &'static str)> {
    // What is not served anyway keeps no other of its object from being.
    let is_other_protocol = one.is_tls() != other.is_tls() || is_earlier && !one.is_http();
    if is_other_protocol {
        let hint = "give it a port of its own";
        Some((Broken::ProtocolConflict, "another protocol", hint))
    } else if other.clients.are_against(&one.clients) {
        // Clients are asked for certificates before they say which listener a call is of.
        let hint = "validate clients alike at both, or give it a port of its own";
        Some((Broken::ProtocolConflict, "another frontendValidation", hint))
    } else if other.host() == one.host() {
        let hint = "give it a host of its own";
        Some((Broken::HostnameConflict, "the same host", hint))
    } else {
        None
    }
}
