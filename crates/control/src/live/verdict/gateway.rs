//! What is said of a Gateway and of its ListenerSets, and of each of their listeners.
//!
//! Not here: routes, policies and pools (`super`).

use std::collections::{BTreeMap, BTreeSet};

use super::super::reach::Entry;
use super::super::{Found, Id, Told, is_of_shown, listener_of};
use super::{Condition, Judged, Listener, Verdict, said};
use crate::findings::Broken;
use crate::gateway::NOT_SERVED;
use crate::listener::key_of;
use crate::object::{GATEWAY_API, member, text};

/// What is said of a Gateway itself.
pub(super) fn of_gateway(
    faults: &[Told],
    found: &Found,
    is_loaded: bool,
    left_out: String,
) -> Vec<Condition> {
    let (of_shown, faults): (Vec<&Told>, Vec<&Told>) =
        faults.iter().partition(|(fault, _)| is_of_shown(fault));
    let (of_address, faults): (Vec<&Told>, Vec<&Told>) = faults
        .into_iter()
        .partition(|(_, how)| *how == Some(Broken::AddressNotUsable));
    let is_of_listener = |(fault, _): &&Told| listener_of(fault).is_some();
    let (of_listeners, others): (Vec<&Told>, Vec<&Told>) =
        faults.iter().copied().partition(is_of_listener);
    let none_served = others
        .iter()
        .all(|(fault, _)| fault.says.starts_with(NOT_SERVED));
    if found.is_gateway_faulty {
        let told = match none_served && !of_listeners.is_empty() {
            true => of_listeners,
            false => faults.clone(),
        };
        let message = said(told.iter().map(|(fault, _)| fault));
        let is_parameters = faults
            .iter()
            .any(|(fault, _)| fault.path.contains("parametersRef"));
        let is_type = |(_, how): &&Told| *how == Some(Broken::AddressType);
        let reason = match (is_parameters, none_served) {
            _ if faults.iter().any(is_type) => "UnsupportedAddress",
            (true, _) => "InvalidParameters",
            (false, true) => "ListenersNotValid",
            (false, false) => "Invalid",
        };
        return vec![
            Condition::new("Accepted", false, reason, message.clone()),
            Condition::new("Programmed", false, "Invalid", message.clone()),
        ];
    }
    let accepted = match of_listeners.is_empty() {
        true => Condition::new("Accepted", true, "Accepted", left_out),
        false => {
            let message = said(of_listeners.iter().map(|(fault, _)| fault));
            Condition::new("Accepted", true, "ListenersNotValid", message)
        }
    };
    let programmed = match is_loaded {
        true if !of_address.is_empty() => {
            let message = said(of_address.iter().map(|(fault, _)| fault));
            Condition::new("Programmed", false, "AddressNotUsable", message)
        }
        true => Condition::good("Programmed", "Programmed"),
        false => {
            let message = "what the objects come to together is refused: the gate's log says why";
            Condition::new("Programmed", false, "Invalid", message.to_owned())
        }
    };
    let resolved = match of_shown.as_slice() {
        [] => Condition::good("ResolvedRefs", "ResolvedRefs"),
        of_shown => {
            let is_permitted = !of_shown
                .iter()
                .any(|(_, how)| *how == Some(Broken::NotPermitted));
            let reason = match is_permitted {
                true => "InvalidClientCertificateRef",
                false => "RefNotPermitted",
            };
            let message = said(of_shown.iter().map(|(fault, _)| fault));
            Condition::new("ResolvedRefs", false, reason, message)
        }
    };
    vec![accepted, programmed, resolved]
}

/// Whether a Gateway lets in clients whose certificates are not good at some port.
pub(super) fn is_insecure(gateway: &Entry) -> bool {
    let frontend = member(&gateway.node, "spec")
        .and_then(|spec| member(spec, "tls"))
        .and_then(|tls| member(tls, "frontend"));
    let Some(frontend) = frontend else {
        return false;
    };
    let ports = match member(frontend, "perPort").map(|ports| &ports.value) {
        Some(config::Value::List(ports)) => ports.as_slice(),
        _ => &[],
    };
    let ports = ports.iter().filter_map(|port| member(port, "tls"));
    let mut all = member(frontend, "default").into_iter().chain(ports);
    all.any(|of| {
        let mode = member(of, "validation").and_then(|of| text(of, "mode"));
        mode == Some("AllowInsecureFallback")
    })
}

/// What is said of each listener.
pub(super) fn listeners_of(
    owner: &Entry,
    faults: &[Told],
    is_programmed: bool,
    attached: &BTreeMap<String, u32>,
) -> Vec<Listener> {
    let items = member(&owner.node, "spec").and_then(|spec| member(spec, "listeners"));
    let items = match items.map(|items| &items.value) {
        Some(config::Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    let listener = |(at, item): (usize, &config::Node)| {
        let name = text(item, "name").unwrap_or_default().to_owned();
        let own = faults
            .iter()
            .filter(|(fault, _)| listener_of(fault) == Some(at));
        let own: Vec<&Told> = own.collect();
        let Id {
            kind, namespace, ..
        } = &owner.id;
        let key = key_of(kind, namespace, &owner.id.name, &name);
        Listener {
            attached: attached.get(&key).copied().unwrap_or(0),
            takes_routes: takes_routes(item)
                && matches!(text(item, "protocol"), Some("HTTP" | "HTTPS")),
            conditions: of_listener(&own, is_programmed),
            name,
        }
    };
    items.iter().enumerate().map(listener).collect()
}

fn of_listener(faults: &[&Told], is_programmed: bool) -> Vec<Condition> {
    let has = |how: Broken| faults.iter().any(|(_, broken)| *broken == Some(how));
    let message = said(faults.iter().map(|(fault, _)| fault));
    let bad = |kind, reason| Condition::new(kind, false, reason, message.clone());
    let conflict = match (has(Broken::ProtocolConflict), has(Broken::HostnameConflict)) {
        (true, _) => Some("ProtocolConflict"),
        (false, true) => Some("HostnameConflict"),
        (false, false) => None,
    };
    let is_of_refs = |(fault, _): &&&Told| fault.path.contains(".tls.certificateRefs");
    let of_refs = faults.iter().find(is_of_refs);
    let of_clients = faults.iter().find_map(|(_, how)| match how {
        Some(Broken::ClientRoots) => Some("InvalidCACertificateRef"),
        Some(Broken::ClientRootsKind) => Some("InvalidCACertificateKind"),
        Some(Broken::ClientRootsNotPermitted) => Some("RefNotPermitted"),
        _ => None,
    });
    let accepted = match conflict {
        Some(reason) => bad("Accepted", reason),
        None if has(Broken::Protocol) => bad("Accepted", "UnsupportedProtocol"),
        None if of_clients.is_some() => bad("Accepted", "NoValidCACertificate"),
        None => Condition::good("Accepted", "Accepted"),
    };
    let resolved = match of_refs {
        Some((_, Some(Broken::NotPermitted))) => bad("ResolvedRefs", "RefNotPermitted"),
        Some(_) => bad("ResolvedRefs", "InvalidCertificateRef"),
        None if has(Broken::RouteKind) => bad("ResolvedRefs", "InvalidRouteKinds"),
        None if of_clients.is_some() => bad("ResolvedRefs", of_clients.unwrap_or_default()),
        None if faults.iter().any(|(fault, _)| fault.path.contains(".tls")) => {
            bad("ResolvedRefs", "InvalidCertificateRef")
        }
        None => Condition::good("ResolvedRefs", "ResolvedRefs"),
    };
    let is_only_kinds = faults
        .iter()
        .all(|(_, how)| *how == Some(Broken::RouteKind));
    let programmed = match is_programmed && is_only_kinds {
        true => Condition::good("Programmed", "Programmed"),
        false => bad("Programmed", conflict.unwrap_or("Invalid")),
    };
    let conflicted = match conflict {
        Some(reason) => Condition::new("Conflicted", true, reason, message.clone()),
        None => Condition::new("Conflicted", false, "NoConflicts", String::new()),
    };
    vec![accepted, programmed, resolved, conflicted]
}

/// Whether a listener lets in HTTPRoutes.
fn takes_routes(listener: &config::Node) -> bool {
    let kinds = member(listener, "allowedRoutes").and_then(|of| member(of, "kinds"));
    let Some(config::Value::List(kinds)) = kinds.map(|kinds| &kinds.value) else {
        return true;
    };
    let is_http = |kind: &config::Node| {
        text(kind, "kind") == Some("HTTPRoute")
            && text(kind, "group").is_none_or(|group| group == GATEWAY_API)
    };
    kinds.is_empty() || kinds.iter().any(is_http)
}

/// What is said of a ListenerSet, and of each of its listeners.
pub(super) fn judge_set(
    at: usize,
    set: &Entry,
    of: &Judged<'_>,
    is_programmed: bool,
    attached: &BTreeMap<String, u32>,
) -> Verdict {
    let faults = of.faults(at);
    let bad = |reason, message: String| {
        ["Accepted", "Programmed"].map(|kind| Condition::new(kind, false, reason, message.clone()))
    };
    let others: Vec<&Told> = faults
        .iter()
        .filter(|told| listener_of(&told.0).is_none())
        .collect();
    if !others.is_empty() {
        let is_let_in = !others
            .iter()
            .any(|(_, how)| *how == Some(Broken::NotAllowed));
        let reason = if is_let_in { "Invalid" } else { "NotAllowed" };
        let message = said(others.iter().map(|(fault, _)| fault));
        return Verdict::of(set, bad(reason, message).into());
    }
    let listeners = listeners_of(set, faults, is_programmed, attached);
    let bad_ones = faults
        .iter()
        .filter(|(_, how)| *how != Some(Broken::RouteKind));
    let bad_ones: BTreeSet<Option<usize>> = bad_ones.map(|(fault, _)| listener_of(fault)).collect();
    let is_any_good = bad_ones.len() < listeners.len();
    let message = said(faults.iter().map(|(fault, _)| fault));
    let conditions = match is_any_good {
        false => bad("ListenersNotValid", message).into(),
        true => {
            let reason = if faults.is_empty() {
                "Accepted"
            } else {
                "ListenersNotValid"
            };
            let message = if faults.is_empty() {
                of.left_out(at)
            } else {
                message
            };
            let programmed = match is_programmed {
                true => Condition::good("Programmed", "Programmed"),
                false => Condition::new(
                    "Programmed",
                    false,
                    "Invalid",
                    "its Gateway is not".to_owned(),
                ),
            };
            vec![
                Condition::new("Accepted", true, reason, message),
                programmed,
            ]
        }
    };
    Verdict {
        listeners,
        ..Verdict::of(set, conditions)
    }
}
