//! The status of an object as the API server holds it: what is said of it, written into what stands there.
//!
//! Lists of entries by parent (`parents`, `ancestors`) are one value to the API server: whoever writes one writes all of it.
//! Invariant: what others wrote stays as it is, and a status that says the same already is not written.
//! Not here: who writes (`kubernetes`), when.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::verdict::INSECURE;
use super::{Condition, Id, Verdict};
use crate::object::GATEWAY_API;

/// What of the Gateway API beyond its core is honoured; in the order of the alphabet, as it has to be.
const FEATURES: [&str; 36] = [
    "BackendTLSPolicy",
    "BackendTLSPolicySANValidation",
    "Gateway",
    "GatewayAddressEmpty",
    "GatewayBackendClientCertificate",
    "GatewayFrontendClientCertificateValidation",
    "GatewayHTTPListenerIsolation",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayPort8080",
    "GatewayStaticAddresses",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendRequestHeaderModification",
    "HTTPRouteBackendTimeout",
    "HTTPRouteCORS",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteSchemeRedirect",
    "ListenerSet",
    "ReferenceGrant",
];

/// How a kind's status is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Class,
    Gateway,
    Listeners,
    /// Entries for each Gateway under `parents`.
    Parents,
    /// Entries for each Gateway under `ancestors`.
    Ancestors,
    /// Entries for each Gateway under `parents`, of what no reference of its own attaches.
    Pool,
    Conditions,
    None,
}

pub(super) fn form(kind: &str) -> Form {
    match kind {
        "GatewayClass" => Form::Class,
        "Gateway" => Form::Gateway,
        "ListenerSet" => Form::Listeners,
        "HTTPRoute" => Form::Parents,
        "InferencePool" => Form::Pool,
        "BackendTLSPolicy" | "BackendTrafficPolicy" | "ClientTrafficPolicy" | "SecurityPolicy" => {
            Form::Ancestors
        }
        "AIGatewayRoute"
        | "MCPRoute"
        | "AIServiceBackend"
        | "BackendSecurityPolicy"
        | "Backend"
        | "QuotaPolicy"
        | "GatewayConfig" => Form::Conditions,
        _ => Form::None,
    }
}

/// Who says what stands in a status.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// The Gateway that it is.
    pub gateway: Option<Id>,
    /// The name of its controller.
    pub controller: String,
    /// Where clients reach it: addresses, or names.
    pub addresses: Vec<String>,
    /// ListenerSets of that Gateway.
    pub sets: BTreeSet<Id>,
    /// Those of others.
    pub other_sets: BTreeSet<Id>,
}

/// The status of an object as it should be; none where it is so. `object` is the whole object as it is, `now` the time as the API
/// writes it.
#[must_use]
pub fn status(verdict: &Verdict, object: &Value, gate: &Gate, now: &str) -> Option<Value> {
    let (gateway, controller) = (gate.gateway.as_ref(), gate.controller.as_str());
    let before = object.get("status").filter(|status| status.is_object());
    let before = before.cloned().unwrap_or_else(|| json!({}));
    let mut status = before.clone();
    let members = status.as_object_mut()?;
    let stamp = Stamp {
        generation: verdict.generation,
        now,
    };
    match form(&verdict.id.kind) {
        Form::None => return None,
        Form::Class => {
            stamp.conditions(members, &verdict.conditions);
            let features: Vec<Value> = FEATURES
                .iter()
                .map(|name| json!({ "name": name }))
                .collect();
            members.insert("supportedFeatures".to_owned(), features.into());
        }
        Form::Conditions => stamp.conditions(members, &verdict.conditions),
        Form::Gateway => {
            stamp.conditions(members, &verdict.conditions);
            let addresses = addresses_of(object, &gate.addresses);
            if !addresses.is_empty() {
                let address = |of: &String| {
                    let is_ip = of.parse::<std::net::IpAddr>().is_ok();
                    let kind = if is_ip { "IPAddress" } else { "Hostname" };
                    json!({ "type": kind, "value": of })
                };
                let all: Vec<Value> = addresses.iter().copied().map(address).collect();
                members.insert("addresses".to_owned(), all.into());
            }
            let is_insecure = verdict.conditions.iter().any(|of| of.kind == INSECURE);
            if let Some(there) = members.get_mut("conditions").and_then(Value::as_array_mut) {
                there.retain(|of| is_insecure || of["type"] != INSECURE);
            }
            // Earlier kinds of a Gateway do not have it.
            if verdict.sets > 0 || members.contains_key("attachedListenerSets") {
                members.insert("attachedListenerSets".to_owned(), verdict.sets.into());
            }
            let listeners = stamp.listeners(&before, verdict);
            members.insert("listeners".to_owned(), listeners.into());
        }
        Form::Listeners => {
            stamp.conditions(members, &verdict.conditions);
            let listeners = stamp.listeners(&before, verdict);
            members.insert("listeners".to_owned(), listeners.into());
        }
        Form::Parents => {
            gateway?;
            let entries = stamp.parents(object, &before, verdict, gate);
            put_entries(members, "parents", entries);
        }
        Form::Ancestors => {
            let names = ["ancestors", "ancestorRef"];
            let entries = stamp.ancestors(names, &before, verdict, gateway?, controller);
            put_entries(members, "ancestors", entries);
        }
        Form::Pool => {
            let names = ["parents", "parentRef"];
            let entries = stamp.ancestors(names, &before, verdict, gateway?, controller);
            put_entries(members, "parents", entries);
        }
    }
    (status != before).then_some(status)
}

/// Where clients reach a Gateway: of all addresses those that it asks for, where it asks for some of them.
fn addresses_of<'g>(gateway: &Value, all: &'g [String]) -> Vec<&'g String> {
    let asked = gateway["spec"]["addresses"].as_array();
    let asked: Vec<&Value> = asked.into_iter().flatten().collect();
    let is_asked = |of: &&String| asked.iter().any(|one| one["value"] == of.as_str());
    let some: Vec<&String> = all.iter().filter(is_asked).collect();
    match some.as_slice() {
        [] => all.iter().collect(),
        _ => some,
    }
}

/// Why an object is refused, where its status as it is does not say so: one word, and words for people.
#[must_use]
pub fn refusal(verdict: &Verdict, object: &Value, gate: &Gate) -> Option<(&'static str, String)> {
    let of_parents = verdict.parents.iter().flat_map(|(_, all)| all);
    let mut all = verdict.conditions.iter().chain(of_parents);
    let why = all.find(|of| !of.is_true)?;
    let status = &object["status"];
    let entries = ["parents", "ancestors"].into_iter();
    let entries = entries.flat_map(|name| status[name].as_array().into_iter().flatten());
    let own = entries.filter(|entry| entry["controllerName"] == gate.controller.as_str());
    let mut told = std::iter::once(status)
        .chain(own)
        .flat_map(|of| of["conditions"].as_array().into_iter().flatten());
    let is_told = told
        .any(|of| of["type"] == why.kind && of["status"] == "False" && of["reason"] == why.reason);
    (!is_told).then(|| (why.reason, why.message.clone()))
}

/// A list of entries; an object that nobody said anything of is given none.
fn put_entries(members: &mut Map<String, Value>, name: &str, entries: Vec<Value>) {
    if !entries.is_empty() || members.contains_key(name) {
        members.insert(name.to_owned(), entries.into());
    }
}

/// What every condition says beside itself.
struct Stamp<'n> {
    generation: i64,
    now: &'n str,
}

impl Stamp<'_> {
    /// Conditions, each in the place of the one of its type.
    fn conditions(&self, members: &mut Map<String, Value>, wanted: &[Condition]) {
        let there = members.entry("conditions").or_insert_with(|| json!([]));
        let Some(there) = there.as_array_mut() else {
            return;
        };
        for condition in wanted {
            let mut of_kind = there.iter_mut();
            match of_kind.find(|other| other["type"] == condition.kind) {
                Some(other) => *other = self.condition(condition, Some(other)),
                None => there.push(self.condition(condition, None)),
            }
        }
    }

    fn condition(&self, wanted: &Condition, before: Option<&Value>) -> Value {
        let status = if wanted.is_true { "True" } else { "False" };
        let is_same = |before: &&Value| before["status"] == status;
        let since = before
            .filter(is_same)
            .and_then(|before| before["lastTransitionTime"].as_str());
        json!({
            "type": wanted.kind,
            "status": status,
            "reason": wanted.reason,
            "message": wanted.message,
            "observedGeneration": self.generation,
            "lastTransitionTime": since.unwrap_or(self.now),
        })
    }

    fn listeners(&self, before: &Value, verdict: &Verdict) -> Vec<Value> {
        let entry = |of: &super::verdict::Listener| {
            let mut known = before["listeners"].as_array().into_iter().flatten();
            let known = known.find(|listener| listener["name"] == of.name.as_str());
            let kinds = match of.takes_routes {
                true => json!([{ "group": GATEWAY_API, "kind": "HTTPRoute" }]),
                false => json!([]),
            };
            let mut listener = json!({
                "name": of.name,
                "attachedRoutes": of.attached,
                "supportedKinds": kinds,
                "conditions": known.map_or_else(|| json!([]), |known| known["conditions"].clone()),
            });
            if let Some(members) = listener.as_object_mut() {
                self.conditions(members, &of.conditions);
            }
            listener
        };
        verdict.listeners.iter().map(entry).collect()
    }

    /// Entries of a route: those of others as they are, and one for each of its references to the Gateway or a ListenerSet of it.
    fn parents(
        &self,
        object: &Value,
        before: &Value,
        verdict: &Verdict,
        gate: &Gate,
    ) -> Vec<Value> {
        let (home, controller) = (verdict.id.namespace.as_str(), gate.controller.as_str());
        let is_gateway = |reference: &Value| {
            let mut gateway = gate.gateway.iter();
            gateway.any(|gateway| names(reference, home, gateway))
        };
        // An entry for a ListenerSet that is gone is taken back by whoever sees it.
        let is_ours = |entry: &Value| {
            let reference = &entry["parentRef"];
            let set = set_of(reference, home);
            let is_set = set.is_some_and(|set| !gate.other_sets.contains(&set));
            entry["controllerName"] == controller && (is_gateway(reference) || is_set)
        };
        let is_told = |reference: &Value| {
            let set = set_of(reference, home);
            is_gateway(reference) || set.is_some_and(|set| gate.sets.contains(&set))
        };
        let all = before["parents"].as_array().map_or(&[][..], Vec::as_slice);
        let mut entries: Vec<Value> = all
            .iter()
            .filter(|entry| !is_ours(entry))
            .cloned()
            .collect();
        if verdict.conditions.is_empty() {
            return entries;
        }
        let references = object["spec"]["parentRefs"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate();
        for (at, reference) in references.filter(|(_, of)| is_told(of)) {
            let mut known = all.iter().filter(|entry| is_ours(entry));
            let known = known.find(|entry| entry["parentRef"] == *reference);
            let mut own = verdict.parents.iter();
            let own = own.find(|(of, _)| *of == at).map(|(_, own)| own);
            let conditions = own.unwrap_or(&verdict.conditions);
            entries.push(self.entry(
                "parentRef",
                reference.clone(),
                known,
                conditions,
                controller,
            ));
        }
        in_order(entries, all)
    }

    /// Entries of a policy or a pool: those of others as they are, and one for the Gateway.
    fn ancestors(
        &self,
        [list, member]: [&str; 2],
        before: &Value,
        verdict: &Verdict,
        gateway: &Id,
        controller: &str,
    ) -> Vec<Value> {
        let home = verdict.id.namespace.as_str();
        let is_ours = |entry: &Value| {
            entry["controllerName"] == controller && names(&entry[member], home, gateway)
        };
        let all = before[list].as_array().map_or(&[][..], Vec::as_slice);
        let mut entries: Vec<Value> = all
            .iter()
            .filter(|entry| !is_ours(entry))
            .cloned()
            .collect();
        if verdict.conditions.is_empty() {
            return entries;
        }
        let known = all.iter().find(|entry| is_ours(entry));
        let reference = json!({
            "group": GATEWAY_API, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name,
        });
        let conditions = &verdict.conditions;
        entries.push(self.entry(member, reference, known, conditions, controller));
        in_order(entries, all)
    }

    fn entry(
        &self,
        name: &str,
        reference: Value,
        known: Option<&Value>,
        wanted: &[Condition],
        controller: &str,
    ) -> Value {
        let conditions = known.map_or_else(|| json!([]), |known| known["conditions"].clone());
        let mut entry = json!({
            name: reference,
            "controllerName": controller,
            "conditions": conditions,
        });
        if let Some(members) = entry.as_object_mut() {
            self.conditions(members, wanted);
        }
        entry
    }
}

/// Entries in the order in which those stood that were there: a list that only moves is not written.
fn in_order(mut entries: Vec<Value>, before: &[Value]) -> Vec<Value> {
    let whose = |entry: &Value| {
        let reference = entry.get("parentRef").or_else(|| entry.get("ancestorRef"));
        (entry["controllerName"].clone(), reference.cloned())
    };
    let place = |entry: &Value| {
        let known = before.iter().position(|other| whose(other) == whose(entry));
        known.unwrap_or(usize::MAX)
    };
    entries.sort_by_key(place);
    entries
}

/// The ListenerSet that a reference in an object of a namespace is to.
fn set_of(reference: &Value, home: &str) -> Option<Id> {
    let or = |name: &str, unless: &str| reference[name].as_str().unwrap_or(unless).to_owned();
    let is_set = or("kind", "Gateway") == "ListenerSet" && or("group", GATEWAY_API) == GATEWAY_API;
    is_set.then(|| Id {
        kind: "ListenerSet".to_owned(),
        namespace: or("namespace", home),
        name: or("name", ""),
    })
}

/// Whether a reference in an object of a namespace is to a Gateway.
fn names(reference: &Value, home: &str, gateway: &Id) -> bool {
    let or = |name: &str, unless: &str| reference[name].as_str().unwrap_or(unless).to_owned();
    or("kind", "Gateway") == "Gateway"
        && or("group", GATEWAY_API) == GATEWAY_API
        && or("namespace", home) == gateway.namespace
        && reference["name"] == gateway.name.as_str()
}
