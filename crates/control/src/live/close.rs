//! What a faulty object closes: a route, what routes lead to, or all of them.
//!
//! Invariant: what is faulty closes what it was to open, and takes away nothing that keeps somebody out.
//! Not here: which faults there are, and how often objects are lowered (`live`).

use std::collections::BTreeSet;

use super::reach::Entry;
use super::{FAULTY, Found, Id, Told, is_of_shown, key, listener_of, parts_of};
use crate::findings::Broken;
use crate::mode::Shut;

impl Found {
    /// Closes what a faulty object was to open.
    pub(super) fn close(&mut self, entry: &Entry, faults: &[Told], entries: &[Entry]) {
        let id = key(&entry.id);
        match entry.id.kind.as_str() {
            "Gateway" => {
                let (of_shown, others): (Vec<Told>, Vec<Told>) = faults
                    .iter()
                    .cloned()
                    .partition(|(fault, _)| is_of_shown(fault));
                self.mode.is_shown_faulty |= !of_shown.is_empty();
                // It goes on where it is, which its status tells.
                let (of_address, others): (Vec<Told>, Vec<Told>) = others
                    .into_iter()
                    .partition(|(_, how)| *how == Some(Broken::AddressNotUsable));
                self.mode.lacks_address |= !of_address.is_empty();
                if !others.is_empty() && !self.close_listeners(entry, &others) {
                    self.is_gateway_faulty = true;
                }
            }
            "ListenerSet" => {
                if !self.close_listeners(entry, faults) {
                    self.mode.refused.insert(id, FAULTY.to_owned());
                }
            }
            "GatewayClass" => self.is_gateway_faulty = true,
            "AIGatewayRoute" | "HTTPRoute" | "MCPRoute" => {
                let is_plain = entry.id.kind == "HTTPRoute";
                let parts = parts_of(faults, is_plain);
                let shut = self.mode.shut.get(&id).unwrap_or(&Shut::Nothing);
                let now = shut.more(parts);
                self.mode.shut.insert(id, now);
            }
            kind => {
                self.mode.refused.insert(id, FAULTY.to_owned());
                // The older one of two that say the same is in force. Who calls is asked in one way, and what a second one says of that
                // is not: it may have kept somebody out.
                let is_conflict = faults.iter().all(|(_, how)| *how == Some(Broken::Conflict));
                if is_conflict && kind != "SecurityPolicy" {
                    return;
                }
                // Costs are of all routes.
                self.mode.all_shut |= kind == "GatewayConfig";
                for target in &entry.targets {
                    self.close_target(&entry.id, target);
                }
                for kind in &entry.selects {
                    self.close_selected(&entry.id, kind.as_deref(), entries);
                }
            }
        }
    }

    /// Closes the listeners that faults are of; whether that is all of them, and something new.
    fn close_listeners(&mut self, entry: &Entry, faults: &[Told]) -> bool {
        let of_listeners: Option<BTreeSet<usize>> =
            faults.iter().map(|told| listener_of(&told.0)).collect();
        let Some(places) = of_listeners else {
            return false;
        };
        let before = self.mode.shut_listeners.len();
        let owner = entry.id.shown();
        let more = places.into_iter().map(|place| (owner.clone(), place));
        // A listener that cannot be served keeps no other from being.
        self.mode.shut_listeners.extend(more);
        self.mode.shut_listeners.len() > before
    }

    /// Closes what a policy chooses by labels. Which objects have them, nobody says; they are of its own namespace.
    fn close_selected(&mut self, policy: &Id, kind: Option<&str>, entries: &[Entry]) {
        let near = entries.iter().map(|entry| &entry.id);
        let near = near.filter(|id| id.namespace == policy.namespace);
        for id in near {
            let is_route = matches!(
                id.kind.as_str(),
                "AIGatewayRoute" | "HTTPRoute" | "MCPRoute"
            );
            if is_route || kind.is_none_or(|kind| kind == id.kind) {
                self.close_target(policy, id);
            }
        }
    }

    fn close_target(&mut self, policy: &Id, target: &Id) {
        match target.kind.as_str() {
            // Another Gateway has no route of ours.
            "Gateway" => self.mode.all_shut |= self.gateway.as_ref() == Some(target),
            // What Envoy makes of an AIGatewayRoute is an HTTPRoute of its name: both words name either.
            "HTTPRoute" | "AIGatewayRoute" => {
                self.close_route("HTTPRoute", target);
                self.close_route("AIGatewayRoute", target);
            }
            "MCPRoute" => self.close_route("MCPRoute", target),
            // To take away what keeps somebody out would open: such a policy is for nothing, and its status says so.
            kind if !leads_calls(kind) => {}
            _ => {
                let Id {
                    namespace, name, ..
                } = policy;
                let why = format!("is closed: a policy for it, {namespace}/{name}, is faulty");
                self.mode.refused.entry(key(target)).or_insert(why);
            }
        }
    }

    /// Closes a route: it keeps its calls, and refuses them.
    fn close_route(&mut self, kind: &str, target: &Id) {
        let id = [kind, &target.namespace, &target.name].map(str::to_owned);
        let shut = self.mode.shut.entry(id).or_insert(Shut::Nothing);
        *shut = shut.clone().max(Shut::Whole);
    }
}

/// Whether objects of a kind are where calls go, or what is brought there: without them what names them is closed.
fn leads_calls(kind: &str) -> bool {
    matches!(
        kind,
        "AIServiceBackend"
            | "Backend"
            | "ConfigMap"
            | "InferencePool"
            | "ListenerSet"
            | "Secret"
            | "Service"
    )
}
