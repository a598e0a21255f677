//! What is said of each object: whether it is accepted, what of it is broken, and what is attached.
//!
//! Not here: how a status is written (`status`), what is said of a Gateway (`gateway`).

mod gateway;

use std::collections::{BTreeMap, BTreeSet};

use config::Fault;

use self::gateway::{is_insecure, judge_set, listeners_of, of_gateway};
use super::reach::Entry;
use super::{Found, Id, Told, key};
use crate::findings::{Broken, Parent};
use crate::mode::Shut;

/// Longest message of a condition, bytes; the API takes 32768.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The condition that stands while clients are let in whose certificates are not good.
pub(super) const INSECURE: &str = "InsecureFrontendValidationMode";

/// What is said of objects.
#[derive(Debug, Default)]
pub struct Report {
    /// The Gateway that this gate is.
    pub gateway: Option<Id>,
    /// ListenerSets that name it.
    pub sets: BTreeSet<Id>,
    /// Those that name another Gateway: what is said of routes to them is not this gate's to take back.
    pub other_sets: BTreeSet<Id>,
    /// What is said of each object of ours.
    pub verdicts: Vec<Verdict>,
    /// Secrets and `ConfigMap`s that objects name, and may.
    pub wanted: BTreeSet<Id>,
    /// Of all that was read: while it is the same, so is what it comes to.
    pub print: u64,
}

/// What is said of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Which object it is.
    pub id: Id,
    /// The generation that was looked at.
    pub generation: i64,
    /// In the order of their kinds.
    pub conditions: Vec<Condition>,
    /// What is said in place of that to some of a route's parents, by their place in `parentRefs`.
    pub parents: Vec<(usize, Vec<Condition>)>,
    /// What is said of each listener of a Gateway or of a ListenerSet.
    pub listeners: Vec<Listener>,
    /// ListenerSets that are attached to a Gateway.
    pub sets: u32,
}

/// What is said of one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Routes that are attached to it.
    pub attached: u32,
    /// Whether it lets in routes of the kind that is served.
    pub takes_routes: bool,
    /// In the order of their kinds.
    pub conditions: Vec<Condition>,
}

impl Verdict {
    fn of(entry: &Entry, conditions: Vec<Condition>) -> Self {
        Self {
            id: entry.id.clone(),
            generation: entry.generation,
            conditions,
            parents: Vec::new(),
            listeners: Vec::new(),
            sets: 0,
        }
    }
}

/// What was found, to be told.
pub(super) struct Judged<'j> {
    pub(super) entries: &'j [Entry],
    pub(super) gateway: usize,
    pub(super) kept: &'j BTreeSet<usize>,
    pub(super) found: &'j Found,
    pub(super) warnings: &'j [Fault],
    pub(super) parents: &'j [Parent],
    pub(super) is_loaded: bool,
}

impl<'j> Judged<'j> {
    fn faults(&self, at: usize) -> &'j [Told] {
        self.found.faults.get(&at).map_or(&[][..], Vec::as_slice)
    }

    /// What is left out of an object, in words.
    fn left_out(&self, at: usize) -> String {
        let of_it = |fault: &&Fault| super::place_of(fault) == Some(at);
        said(self.warnings.iter().filter(of_it))
    }

    /// What became of a route at each of its parents that is the Gateway.
    fn parents_of(&self, route: &Entry) -> Vec<&'j Parent> {
        let label = route.id.shown();
        let all = self.parents.iter();
        all.filter(|parent| *parent.route == *label).collect()
    }
}

/// One thing that is said of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Such as `Accepted`.
    pub kind: &'static str,
    /// Whether it is so.
    pub is_true: bool,
    /// One word of the Gateway API's.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl Condition {
    fn new(kind: &'static str, is_true: bool, reason: &'static str, message: String) -> Self {
        Self {
            kind,
            is_true,
            reason,
            message,
        }
    }

    fn good(kind: &'static str, reason: &'static str) -> Self {
        Self::new(kind, true, reason, String::new())
    }
}

impl Report {
    /// Notes that the gate cannot run by what the objects come to.
    pub fn fails(&mut self, why: &str) {
        let Self {
            gateway, verdicts, ..
        } = self;
        let has_listeners =
            |of: &Verdict| Some(&of.id) == gateway.as_ref() || of.id.kind == "ListenerSet";
        for verdict in verdicts.iter_mut().filter(|verdict| has_listeners(verdict)) {
            let mut conditions = verdict.conditions.iter_mut();
            let programmed = conditions.find(|of| of.kind == "Programmed" && of.is_true);
            if let Some(programmed) = programmed {
                *programmed = Condition::new("Programmed", false, "Invalid", cut(why.to_owned()));
            }
        }
    }

    pub(super) fn cannot_read(&mut self, id: &Id, says: &str) {
        let message = format!("it {says}");
        self.verdicts.push(Verdict {
            id: id.clone(),
            generation: 0,
            conditions: vec![Condition::new("Accepted", false, "Invalid", message)],
            parents: Vec::new(),
            listeners: Vec::new(),
            sets: 0,
        });
    }

    pub(super) fn takes_class(&mut self, class: &Entry) {
        self.say(class, vec![Condition::good("Accepted", "Accepted")]);
    }

    /// Notes a Gateway of ours that is another one's task.
    pub(super) fn is_second(&mut self, other: &Entry, first: &Id) {
        let message = format!(
            "a gate is one Gateway, and this one is {}/{}; run a gate for each, each with its --gateway",
            first.namespace, first.name
        );
        let said = |kind| Condition::new(kind, false, "Invalid", message.clone());
        self.say(other, vec![said("Accepted"), said("Programmed")]);
    }

    fn say(&mut self, entry: &Entry, conditions: Vec<Condition>) {
        self.verdicts.push(Verdict::of(entry, conditions));
    }

    /// Says what was found of each object.
    pub(super) fn judge(&mut self, of: &Judged<'_>) {
        let mut attached: BTreeMap<String, u32> = BTreeMap::new();
        let kept = of.kept.iter();
        for (at, entry) in kept.filter_map(|at| Some((*at, of.entries.get(*at)?))) {
            match entry.id.kind.as_str() {
                _ if at == of.gateway => {}
                "GatewayClass" | "Secret" | "ConfigMap" | "ReferenceGrant" | "Service"
                | "EndpointSlice" | "Pod" | "Namespace" => {}
                "AIGatewayRoute" | "HTTPRoute" | "MCPRoute" => {
                    let verdict = self.judge_route(at, entry, of, &mut attached);
                    self.verdicts.push(verdict);
                }
                // Its listeners have calls where the Gateway's have, which is told last.
                "ListenerSet" => {}
                _ => {
                    let refused = of.found.mode.refused.get(&key(&entry.id));
                    let conditions = match entry.id.kind.as_str() {
                        "BackendTLSPolicy" => of_trust(of.faults(at), refused, of.left_out(at)),
                        "InferencePool" => of_pool(of.faults(at), refused, of.left_out(at)),
                        _ => of_other(of.faults(at), refused, of.left_out(at)),
                    };
                    self.say(entry, conditions);
                }
            }
        }
        // What was this gate's, and is attached to it no more, has its entry taken back.
        for (at, entry) in of.entries.iter().enumerate() {
            let is_left = !of.kept.contains(&at) && has_entries(&entry.id.kind);
            if is_left {
                self.say(entry, Vec::new());
            }
        }
        if let Some(entry) = of.entries.get(of.gateway) {
            let faults = of.faults(of.gateway);
            let left_out = of.left_out(of.gateway);
            let mut conditions = of_gateway(faults, of.found, of.is_loaded, left_out);
            if is_insecure(entry) {
                let says = "clients whose certificates are not good are let in: nobody is asked for one there";
                let reason = "ConfigurationChanged";
                conditions.push(Condition::new(INSECURE, true, reason, says.to_owned()));
            }
            // It is served where it is, too, if it is to be reached elsewhere.
            let is_programmed = conditions.iter().any(|of| {
                of.kind == "Programmed" && (of.is_true || of.reason == "AddressNotUsable")
            });
            let mut sets_attached = 0;
            for (at, set) in of
                .kept
                .iter()
                .filter_map(|at| Some((*at, of.entries.get(*at)?)))
            {
                if set.id.kind == "ListenerSet" {
                    let verdict = judge_set(at, set, of, is_programmed, &attached);
                    sets_attached += u32::from(verdict.conditions.iter().any(is_accepted));
                    self.verdicts.push(verdict);
                }
            }
            let mut verdict = Verdict::of(entry, conditions);
            verdict.listeners = listeners_of(entry, faults, is_programmed, &attached);
            verdict.sets = sets_attached;
            self.verdicts.push(verdict);
        }
    }

    fn judge_route(
        &self,
        at: usize,
        entry: &Entry,
        of: &Judged<'_>,
        attached: &mut BTreeMap<String, u32>,
    ) -> Verdict {
        let nothing = Shut::Nothing;
        let shut = of.found.mode.shut.get(&key(&entry.id)).unwrap_or(&nothing);
        let conditions = of_route(of.faults(at), shut, of.found, of.left_out(at));
        let is_accepted = conditions.iter().any(is_accepted);
        let parents = of.parents_of(entry);
        let mut names = BTreeSet::new();
        let mut verdict = Verdict::of(entry, conditions);
        for parent in &parents {
            match &parent.attached {
                Ok(listeners) => names.extend(listeners.iter().cloned()),
                Err(why) => {
                    let message = cut(format!("{}; {}", why.says, why.hint));
                    let not = Condition::new("Accepted", false, why.reason, message);
                    let rest = verdict.conditions.iter().filter(|of| of.kind != "Accepted");
                    let conditions = std::iter::once(not).chain(rest.cloned()).collect();
                    verdict.parents.push((parent.index, conditions));
                }
            }
        }
        if is_accepted {
            for name in names {
                *attached.entry(name).or_default() += 1;
            }
        }
        if matches!(entry.id.kind.as_str(), "AIGatewayRoute" | "MCPRoute") {
            let is_attached = parents.is_empty() || verdict.parents.len() < parents.len();
            let first = verdict
                .parents
                .first()
                .map(|(_, conditions)| conditions.clone());
            let all = first.filter(|_| !is_attached).unwrap_or(verdict.conditions);
            verdict.conditions = in_one(all);
        }
        verdict
    }
}

fn is_accepted(condition: &Condition) -> bool {
    condition.kind == "Accepted" && condition.is_true
}

/// Whether objects of a kind have an entry in their status for each parent, beside those of others.
fn has_entries(kind: &str) -> bool {
    !matches!(kind, "Gateway" | "GatewayClass" | "ListenerSet")
        && !matches!(
            super::status::form(kind),
            super::status::Form::Conditions | super::status::Form::None
        )
}

fn of_route(faults: &[Told], shut: &Shut, found: &Found, left_out: String) -> Vec<Condition> {
    let is_of_target = |(fault, _): &&Told| fault.path.contains(".backendRef");
    let (targets, others): (Vec<&Told>, Vec<&Told>) = faults.iter().partition(is_of_target);
    let of = |told: &[&Told]| said(told.iter().map(|(fault, _)| fault));
    let accepted = match others.as_slice() {
        [] if shut.is_whole() && faults.is_empty() || found.mode.all_shut && faults.is_empty() => {
            let message =
                "its calls are refused: a policy for it is faulty, and its status says how";
            Condition::new("Accepted", true, "Accepted", message.to_owned())
        }
        [] => Condition::new("Accepted", true, "Accepted", left_out),
        others => Condition::new("Accepted", false, "UnsupportedValue", of(others)),
    };
    let resolved = match targets.as_slice() {
        [] => Condition::good("ResolvedRefs", "ResolvedRefs"),
        targets => {
            let broken = targets.iter().find_map(|(_, broken)| *broken);
            let reason = match broken {
                Some(Broken::NotPermitted) => "RefNotPermitted",
                Some(Broken::Kind) => "InvalidKind",
                Some(Broken::Missing) => "BackendNotFound",
                Some(
                    Broken::Conflict
                    | Broken::RouteKind
                    | Broken::Protocol
                    | Broken::ProtocolConflict
                    | Broken::HostnameConflict
                    | Broken::NotAllowed
                    | Broken::AddressType
                    | Broken::AddressNotUsable
                    | Broken::ClientRoots
                    | Broken::ClientRootsKind
                    | Broken::ClientRootsNotPermitted,
                )
                | None => "UnsupportedValue",
            };
            Condition::new("ResolvedRefs", false, reason, of(targets))
        }
    };
    vec![accepted, resolved]
}

/// Whether a route is accepted and goes somewhere, where its kind has one condition for both.
fn in_one(conditions: Vec<Condition>) -> Vec<Condition> {
    let bad = conditions.iter().find(|of| !of.is_true);
    let one = bad.or_else(|| conditions.first()).cloned();
    let one = one.map(|of| Condition {
        kind: "Accepted",
        ..of
    });
    one.into_iter().collect()
}

fn of_other(faults: &[Told], refused: Option<&String>, left_out: String) -> Vec<Condition> {
    let condition = match (faults, refused) {
        ([], None) => Condition::new("Accepted", true, "Accepted", left_out),
        ([], Some(why)) => Condition::new("Accepted", false, "Invalid", format!("it {why}")),
        (faults, _) => {
            let message = said(faults.iter().map(|(fault, _)| fault));
            let is_missing = |(_, broken): &Told| *broken == Some(Broken::Missing);
            let is_target = |(fault, _): &Told| fault.path.contains(" spec.targetRef");
            let reason = match faults
                .iter()
                .any(|told| is_missing(told) && is_target(told))
            {
                true => "TargetNotFound",
                false => "Invalid",
            };
            Condition::new("Accepted", false, reason, message)
        }
    };
    vec![condition]
}

/// What is said of a pool. One whose picker is not there is accepted all the same, and gets no calls.
fn of_pool(faults: &[Told], refused: Option<&String>, left_out: String) -> Vec<Condition> {
    let is_of_picker = |(fault, broken): &&Told| {
        broken.is_some() && fault.path.contains(" spec.endpointPickerRef")
    };
    let (of_picker, others): (Vec<&Told>, Vec<&Told>) = faults.iter().partition(is_of_picker);
    let of = |told: &[&Told]| said(told.iter().map(|(fault, _)| fault));
    let accepted = match (others.as_slice(), refused) {
        ([], Some(why)) if of_picker.is_empty() => Condition::new(
            "Accepted",
            false,
            "NotSupportedByParent",
            format!("it {why}"),
        ),
        ([], _) => Condition::new("Accepted", true, "Accepted", left_out),
        (others, _) => Condition::new("Accepted", false, "NotSupportedByParent", of(others)),
    };
    let resolved = match of_picker.as_slice() {
        [] => Condition::good("ResolvedRefs", "ResolvedRefs"),
        broken => Condition::new("ResolvedRefs", false, "InvalidExtensionRef", of(broken)),
    };
    vec![accepted, resolved]
}

/// What is said of a policy for the certificates of upstreams.
fn of_trust(faults: &[Told], refused: Option<&String>, left_out: String) -> Vec<Condition> {
    let is_of_roots = |(fault, _): &&Told| fault.path.contains(".caCertificateRefs");
    let of_roots = faults.iter().find(is_of_roots);
    let is_conflict =
        !faults.is_empty() && faults.iter().all(|(_, how)| *how == Some(Broken::Conflict));
    let mut conditions = of_other(faults, refused, left_out);
    let message = conditions
        .first()
        .map_or_else(String::new, |of| of.message.clone());
    if let Some(accepted) = conditions.first_mut() {
        if of_roots.is_some() {
            accepted.reason = "NoValidCACertificate";
        } else if is_conflict {
            accepted.reason = "Conflicted";
        }
    }
    conditions.push(match of_roots {
        None => Condition::good("ResolvedRefs", "ResolvedRefs"),
        Some((_, how)) => {
            let reason = match how {
                Some(Broken::Kind) => "InvalidKind",
                _ => "InvalidCACertificateRef",
            };
            Condition::new("ResolvedRefs", false, reason, message)
        }
    });
    conditions
}

/// Faults of one object in words, without its name.
fn said<'f>(faults: impl Iterator<Item = &'f Fault>) -> String {
    let line = |fault: &Fault| {
        let place = fault
            .path
            .split_once(" spec")
            .map(|(_, rest)| format!("spec{rest}: "));
        let hint = super::hint_of(fault);
        let hint = match hint.as_str() {
            "" => String::new(),
            hint => format!("; {hint}"),
        };
        format!("{}{}{hint}", place.unwrap_or_default(), fault.says)
    };
    let mut lines: Vec<String> = faults.map(line).collect();
    lines.dedup();
    cut(lines.join(". "))
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX - 3));
        message.push('…');
    }
    message
}
