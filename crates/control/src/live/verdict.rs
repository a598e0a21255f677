//! What is said of each object: whether it is accepted, what of it is broken, and what is attached.
//!
//! Not here: how a status is written (`status`).

use std::collections::BTreeSet;

use config::Fault;

use super::reach::Entry;
use super::{Found, Id, Told, key};
use crate::findings::Broken;
use crate::mode::Shut;

/// Longest message of a condition, bytes; the API takes 32768.
const MESSAGE_BYTES_MAX: usize = 4096;

/// What is said of objects.
#[derive(Debug, Default)]
pub struct Report {
    /// The Gateway that this gate is.
    pub gateway: Option<Id>,
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
    /// Routes that are attached, of a Gateway.
    pub attached: u32,
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
        let gateway = self.gateway.clone();
        let mut verdicts = self.verdicts.iter_mut();
        let Some(verdict) = verdicts.find(|verdict| Some(&verdict.id) == gateway.as_ref()) else {
            return;
        };
        let mut conditions = verdict.conditions.iter_mut();
        if let Some(programmed) = conditions.find(|of| of.kind == "Programmed") {
            *programmed = Condition::new("Programmed", false, "Invalid", cut(why.to_owned()));
        }
    }

    pub(super) fn cannot_read(&mut self, id: &Id, says: &str) {
        let message = format!("it {says}");
        self.verdicts.push(Verdict {
            id: id.clone(),
            generation: 0,
            conditions: vec![Condition::new("Accepted", false, "Invalid", message)],
            attached: 0,
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
        self.verdicts.push(Verdict {
            id: entry.id.clone(),
            generation: entry.generation,
            conditions,
            attached: 0,
        });
    }

    /// Says what was found of each object.
    pub(super) fn judge(
        &mut self,
        entries: &[Entry],
        gateway: usize,
        kept: &BTreeSet<usize>,
        found: &Found,
        warnings: &[Fault],
        is_loaded: bool,
    ) {
        let mut attached = 0;
        for (at, entry) in kept.iter().filter_map(|at| Some((*at, entries.get(*at)?))) {
            let faults = found.faults.get(&at).map_or(&[][..], Vec::as_slice);
            let left_out = warnings
                .iter()
                .filter(|fault| super::place_of(fault) == Some(at));
            let left_out = said(left_out);
            match entry.id.kind.as_str() {
                _ if at == gateway => {}
                "GatewayClass" | "Secret" | "ConfigMap" | "ReferenceGrant" | "Service" => {}
                "AIGatewayRoute" | "HTTPRoute" => {
                    let shut = found
                        .mode
                        .shut
                        .get(&key(&entry.id))
                        .unwrap_or(&Shut::Nothing);
                    let mut conditions = of_route(faults, shut, found, left_out);
                    let is_accepted = |of: &Condition| of.kind == "Accepted" && of.is_true;
                    attached += u32::from(conditions.iter().any(is_accepted));
                    if entry.id.kind == "AIGatewayRoute" {
                        conditions = in_one(conditions);
                    }
                    self.say(entry, conditions);
                }
                _ => {
                    let refused = found.mode.refused.get(&key(&entry.id));
                    self.say(entry, of_other(faults, refused, left_out));
                }
            }
        }
        // What was this gate's, and is attached to it no more, has its entry taken back.
        for (at, entry) in entries.iter().enumerate() {
            let is_left = !kept.contains(&at) && has_entries(&entry.id.kind);
            if is_left {
                self.say(entry, Vec::new());
            }
        }
        if let Some(entry) = entries.get(gateway) {
            let faults = found.faults.get(&gateway).map_or(&[][..], Vec::as_slice);
            let left_out = warnings
                .iter()
                .filter(|fault| super::place_of(fault) == Some(gateway));
            self.say(entry, of_gateway(faults, found, is_loaded, said(left_out)));
            if let Some(verdict) = self.verdicts.last_mut() {
                verdict.attached = attached;
            }
        }
    }
}

/// Whether objects of a kind have an entry in their status for each parent, beside those of others.
fn has_entries(kind: &str) -> bool {
    !matches!(kind, "Gateway" | "GatewayClass")
        && !matches!(
            super::status::form(kind),
            super::status::Form::Conditions | super::status::Form::None
        )
}

fn of_gateway(faults: &[Told], found: &Found, is_loaded: bool, left_out: String) -> Vec<Condition> {
    if found.is_gateway_faulty {
        let message = said(faults.iter().map(|(fault, _)| fault));
        let is_parameters = faults
            .iter()
            .any(|(fault, _)| fault.path.contains("parametersRef"));
        let reason = if is_parameters {
            "InvalidParameters"
        } else {
            "Invalid"
        };
        let mut conditions = vec![
            Condition::new("Accepted", false, reason, message.clone()),
            Condition::new("Programmed", false, "Invalid", message.clone()),
        ];
        let mut of_certificates = faults
            .iter()
            .filter(|(fault, _)| fault.path.contains(".tls."));
        if let Some((_, broken)) = of_certificates.next() {
            let reason = match broken {
                Some(Broken::NotPermitted) => "RefNotPermitted",
                _ => "InvalidCertificateRef",
            };
            conditions.push(Condition::new("ResolvedRefs", false, reason, message));
        }
        return conditions;
    }
    let accepted = Condition::new("Accepted", true, "Accepted", left_out);
    let programmed = match is_loaded {
        true => Condition::good("Programmed", "Programmed"),
        false => {
            let message = "what the objects come to together is refused: the gate's log says why";
            Condition::new("Programmed", false, "Invalid", message.to_owned())
        }
    };
    vec![accepted, programmed]
}

fn of_route(faults: &[Told], shut: &Shut, found: &Found, left_out: String) -> Vec<Condition> {
    let is_of_target = |(fault, _): &&Told| fault.path.contains(".backendRefs");
    let (targets, others): (Vec<&Told>, Vec<&Told>) = faults.iter().partition(is_of_target);
    let of = |told: &[&Told]| said(told.iter().map(|(fault, _)| fault));
    let accepted = match others.as_slice() {
        [] if shut.is_whole() && faults.is_empty() || found.mode.all_shut && faults.is_empty() => {
            let message =
                "its calls are refused: a policy for it is faulty, and its status says how";
            Condition::new("Accepted", true, "Accepted", message.to_owned())
        }
        [] => Condition::new("Accepted", true, "Accepted", left_out),
        others => {
            let is_of_parent = |(fault, _): &&Told| fault.path.contains(" spec.parentRefs");
            let reason = match others.iter().copied().find(is_of_parent) {
                Some((fault, _)) if fault.says.contains("another namespace") => {
                    "NotAllowedByListeners"
                }
                Some(_) => "NoMatchingParent",
                None => "UnsupportedValue",
            };
            Condition::new("Accepted", false, reason, of(others))
        }
    };
    let resolved = match targets.as_slice() {
        [] => Condition::good("ResolvedRefs", "ResolvedRefs"),
        targets => {
            let broken = targets.iter().find_map(|(_, broken)| *broken);
            let reason = match broken {
                Some(Broken::NotPermitted) => "RefNotPermitted",
                Some(Broken::Kind) => "InvalidKind",
                Some(Broken::Missing) => "BackendNotFound",
                None => "UnsupportedValue",
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
