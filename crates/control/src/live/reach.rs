//! Which objects of a cluster are this gate's: its Gateway, what is attached to that, and what these name.
//!
//! Invariant: an object that nothing of ours leads to is neither read nor judged: it may be another controller's.
//! Not here: whether what is named may be named (`reference`).

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::rc::Rc;

use config::{Node, Value, parse_json};

use super::verdict::Report;
use super::{Choice, Id, file_of};
use crate::object::{member, text};

/// An object, and what of it leads to others.
pub(crate) struct Entry {
    pub(super) id: Id,
    pub(super) file: Rc<Path>,
    pub(super) node: Node,
    pub(super) generation: i64,
    /// Tells its text apart from others.
    pub(super) print: u64,
    created: String,
    /// What it names, with its kind where that is said.
    names: Vec<(Option<String>, String, String)>,
    /// What it is a policy for.
    pub(super) targets: Vec<Id>,
    /// It is for what has certain labels: of which kinds, where that is said.
    pub(super) selects: Vec<Option<String>>,
    /// The Gateways that it is attached to.
    pub(super) parents: Vec<(String, String)>,
    /// The ListenerSets that it is attached to.
    sets: Vec<(String, String)>,
}

impl Entry {
    pub(super) fn all(texts: &[(Id, &str)], report: &mut Report) -> Vec<Self> {
        let mut entries = Vec::new();
        for (id, text) in texts {
            match parse_json(text) {
                Ok(node) => {
                    let mut hasher = DefaultHasher::new();
                    text.hash(&mut hasher);
                    let entry = Self::of(id.clone(), node, entries.len());
                    entries.push(Self {
                        print: hasher.finish(),
                        ..entry
                    });
                }
                Err(fault) => report.cannot_read(id, &fault.says),
            }
        }
        entries
    }

    fn of(id: Id, node: Node, place: usize) -> Self {
        let metadata = member(&node, "metadata");
        let said = |name: &str| metadata.and_then(|of| text(of, name));
        let generation = said("generation").and_then(|n| n.parse().ok());
        let created = said("creationTimestamp").unwrap_or_default().to_owned();
        let annotations = metadata.and_then(|of| member(of, "annotations"));
        let config = annotations.and_then(|of| text(of, GATEWAY_CONFIG));
        let config = config.filter(|_| id.kind == "Gateway").map(|config| {
            let kind = Some("GatewayConfig".to_owned());
            (kind, id.namespace.clone(), config.to_owned())
        });
        let mut entry = Self {
            file: file_of(place),
            generation: generation.unwrap_or(0),
            print: 0,
            created,
            names: config.into_iter().collect(),
            targets: Vec::new(),
            selects: Vec::new(),
            parents: Vec::new(),
            sets: Vec::new(),
            id,
            node,
        };
        // Of a Secret or a `ConfigMap` nothing leads on.
        let spec = member(&entry.node, "spec").cloned();
        if let Some(spec) = spec {
            entry.walk(&spec);
        }
        entry
    }

    fn walk(&mut self, node: &Node) {
        match &node.value {
            Value::Scalar(_) => {}
            Value::List(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Map(entries) => {
                for entry in entries {
                    let key = entry.key.as_str();
                    if key.ends_with("Ref") || key.ends_with("Refs") {
                        self.note(key, &entry.node);
                    }
                    if key == "targetSelectors" {
                        self.note_selectors(&entry.node);
                    }
                    self.walk(&entry.node);
                }
            }
        }
    }

    /// Notes what stands where objects are named.
    fn note(&mut self, key: &str, node: &Node) {
        let one = std::slice::from_ref(node);
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            Value::Map(_) | Value::Scalar(_) => one,
        };
        for item in items {
            let Some(name) = text(item, "name") else {
                continue;
            };
            let namespace = text(item, "namespace")
                .unwrap_or(&self.id.namespace)
                .to_owned();
            let kind = text(item, "kind").map(str::to_owned);
            let name = name.to_owned();
            match key {
                "parentRefs" | "parentRef" => match kind.as_deref() {
                    None | Some("Gateway") => self.parents.push((namespace, name)),
                    Some("ListenerSet") => self.sets.push((namespace, name)),
                    Some(_) => {}
                },
                "targetRef" | "targetRefs" => self.targets.push(Id {
                    kind: kind.unwrap_or_else(|| "Gateway".to_owned()),
                    // A policy is for its own namespace.
                    namespace: self.id.namespace.clone(),
                    name,
                }),
                _ => self.names.push((kind, namespace, name)),
            }
        }
    }

    /// Notes what is chosen by labels.
    fn note_selectors(&mut self, node: &Node) {
        let kind = |item: &Node| text(item, "kind").map(str::to_owned);
        match &node.value {
            Value::List(items) => self.selects.extend(items.iter().map(kind)),
            Value::Map(_) | Value::Scalar(_) => self.selects.push(None),
        }
    }

    fn member_of_spec(&self, name: &str) -> Option<&str> {
        text(member(&self.node, "spec")?, name)
    }
}

const GATEWAY_CONFIG: &str = "aigateway.envoyproxy.io/gateway-config";

/// The Gateway that this gate is, and all that is its own, that one and its class included.
pub(super) fn of_gate(
    entries: &[Entry],
    choice: &Choice<'_>,
    report: &mut Report,
) -> Option<(usize, BTreeSet<usize>)> {
    let of_kind = |kind: &'static str| {
        entries
            .iter()
            .enumerate()
            .filter(move |(_, e)| e.id.kind == kind)
    };
    let is_ours = |entry: &Entry| entry.member_of_spec("controllerName") == Some(choice.controller);
    let classes: Vec<(usize, &Entry)> = of_kind("GatewayClass")
        .filter(|(_, e)| is_ours(e))
        .collect();
    for (_, class) in &classes {
        report.takes_class(class);
    }
    let class_of = |gateway: &Entry| {
        let named = gateway.member_of_spec("gatewayClassName");
        let mut classes = classes.iter();
        classes
            .find(|(_, class)| Some(class.id.name.as_str()) == named)
            .map(|(at, _)| *at)
    };
    let mut gateways: Vec<(usize, &Entry)> = of_kind("Gateway")
        .filter(|(_, e)| class_of(e).is_some())
        .filter(|(_, e)| {
            choice
                .gateway
                .is_none_or(|of| of == (&*e.id.namespace, &*e.id.name))
        })
        .collect();
    gateways.sort_by_key(|(_, e)| (&e.created, &e.id));
    let (gateway, others) = gateways.split_first()?;
    for (_, other) in others {
        report.is_second(other, &gateway.1.id);
    }
    let (gateway, entry) = *gateway;
    let mut kept: BTreeSet<usize> = [Some(gateway), class_of(entry)]
        .into_iter()
        .flatten()
        .collect();
    let mut reach = Reach {
        gateway: (entry.id.namespace.clone(), entry.id.name.clone()),
        ids: BTreeSet::new(),
        named: BTreeSet::new(),
        named_by_door: BTreeSet::new(),
    };
    kept.iter()
        .filter_map(|at| entries.get(*at))
        .for_each(|e| reach.take(e));
    reach.named_by_door.clone_from(&reach.named);
    for (_, set) in of_kind("ListenerSet") {
        let of = match set.parents.contains(&reach.gateway) {
            true => &mut report.sets,
            false => &mut report.other_sets,
        };
        of.insert(set.id.clone());
    }
    loop {
        let more: Vec<usize> = entries
            .iter()
            .enumerate()
            .filter(|(at, e)| !kept.contains(at) && reach.leads_to(e))
            .map(|(at, _)| at)
            .collect();
        if more.is_empty() {
            return Some((gateway, kept));
        }
        for at in more {
            entries.get(at).into_iter().for_each(|e| reach.take(e));
            kept.insert(at);
        }
    }
}

/// What is the gate's so far, and what that names.
struct Reach {
    gateway: (String, String),
    ids: BTreeSet<Id>,
    named: BTreeSet<Name>,
    /// By the Gateway and its class.
    named_by_door: BTreeSet<Name>,
}

/// Namespace, name, and kind where that is said.
type Name = (String, String, Option<String>);

impl Reach {
    fn take(&mut self, entry: &Entry) {
        self.ids.insert(entry.id.clone());
        let names = entry.names.iter();
        let names =
            names.map(|(kind, namespace, name)| (namespace.clone(), name.clone(), kind.clone()));
        self.named.extend(names);
    }

    fn leads_to(&self, entry: &Entry) -> bool {
        let Id {
            kind,
            namespace,
            name,
        } = &entry.id;
        match kind.as_str() {
            "Gateway" | "GatewayClass" => false,
            "ListenerSet" => entry.parents.contains(&self.gateway),
            "AIGatewayRoute" | "HTTPRoute" | "MCPRoute" => {
                let is_set = |(namespace, name): &(String, String)| {
                    self.ids.contains(&Id {
                        kind: "ListenerSet".to_owned(),
                        namespace: namespace.clone(),
                        name: name.clone(),
                    })
                };
                entry.parents.contains(&self.gateway) || entry.sets.iter().any(is_set)
            }
            // They are watched because something of ours names them, and what allows is not for itself.
            "Secret" | "ConfigMap" | "ReferenceGrant" | "Service" | "EndpointSlice" | "Pod"
            | "Namespace" => true,
            // They say what holds for all: what a route names may be called as they are, and is something else.
            "EnvoyProxy" | "GatewayConfig" => names(&self.named_by_door, kind, namespace, name),
            // Nothing names a policy, but may name what is called so.
            kind if !kind.ends_with("Policy") && names(&self.named, kind, namespace, name) => true,
            _ => {
                let is_near = || self.ids.iter().any(|id| id.namespace == *namespace);
                entry.targets.iter().any(|target| self.has(target))
                    || !entry.selects.is_empty() && is_near()
            }
        }
    }

    /// Whether what a policy is for is the gate's.
    fn has(&self, target: &Id) -> bool {
        let is_route = |kind: &str| matches!(kind, "HTTPRoute" | "AIGatewayRoute");
        let is_it = |id: &Id| {
            let is_kind = id.kind == target.kind || is_route(&id.kind) && is_route(&target.kind);
            is_kind && (&id.namespace, &id.name) == (&target.namespace, &target.name)
        };
        // Services are not read: a route names them.
        let is_service = target.kind == "Service";
        self.ids.iter().any(is_it)
            || is_service && names(&self.named, &target.kind, &target.namespace, &target.name)
    }
}

fn names(all: &BTreeSet<Name>, kind: &str, namespace: &str, name: &str) -> bool {
    let named = |kind: Option<&str>| {
        let kind = kind.map(str::to_owned);
        all.contains(&(namespace.to_owned(), name.to_owned(), kind))
    };
    named(Some(kind)) || named(None)
}
