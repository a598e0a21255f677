//! Objects that live in a cluster: those that are this gate's, lowered so that a faulty one fails alone, and what is said of each.
//!
//! Objects are lowered again and again, each time without what was found to be faulty, until nothing is.
//! Invariant: what is faulty closes, and never opens. A route goes nowhere where a rule of it is faulty, or what the rule names, or a policy for it.
//! An object of a cluster names neither a variable nor a file of the gate's machine.
//! Not here: watching (`kubernetes`), what a reader is shown of it (`status`), which objects are meant (`reach`).

mod close;
mod reach;
mod status;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use config::{Fault, Faults, Loaded, Node, Sources, Value};

use crate::cluster::Cluster;
use crate::findings::{Broken, Findings, Parent, Spot};
use crate::load::completed;
use crate::lower::{of_cluster, shut_document};
use crate::mode::{Mode, Parts};
use crate::object;
use crate::{Input, Lowered};
use reach::Entry;
pub use status::{Gate, refusal, status};
use verdict::Judged;
pub use verdict::{Condition, Report, Verdict};

/// Times that objects are lowered at most: each but the last leaves one more out.
const ROUNDS_MAX: usize = 64;
/// What faults are told against where no object is to blame.
const PLACE: &str = "kubernetes";
/// What is said of an object that is not taken, where it is named.
const FAULTY: &str = "is there, and faulty: its status says how";

/// An object's kind, namespace (`default` of what has none) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Its kind; no two kinds that are read have the same name.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Id {
    /// As faults name it.
    fn shown(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Which objects are meant, and what goes with them.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "it holds a file of ours whole"
)]
pub struct Choice<'a> {
    /// The name by which a `GatewayClass` says that its Gateways are ours.
    pub controller: &'a str,
    /// Namespace and name of the one Gateway that this gate is; the oldest of ours unless said.
    pub gateway: Option<(&'a str, &'a str)>,
    /// Objects may send calls to the machine that the gate runs on, and to its link.
    pub reaches_machine: bool,
    /// A file of ours that lies beside.
    pub own: Option<Input<'a>>,
    /// Secrets and the like that the gate cannot read, and why.
    pub unread: &'a BTreeMap<Id, String>,
    /// The address that the gate listens on, whatever its Gateway asks for.
    pub bind: Option<IpAddr>,
    /// Where clients reach the gate, where that is said.
    pub addresses: &'a [String],
    /// The zone that the gate is in: Services that say so have its calls answered there.
    pub zone: Option<&'a str>,
    /// Tries what objects come to, as far as that is possible without a gate: what is wrong begins with its place in the document.
    pub trial: Option<&'a Trial<'a>>,
    /// Where the gate listens already, if it runs: it closes, then, where its Gateway is faulty or gone.
    pub running: Option<&'a str>,
}

/// Makes of a configuration what a gate runs by, and throws it away.
pub type Trial<'t> = dyn Fn(Loaded) -> Result<(), String> + 't;

/// What the objects of a cluster come to.
#[derive(Debug)]
pub struct Live {
    /// What the gate is to run by, or why there is nothing.
    pub loaded: Result<Loaded, Faults>,
    /// What is said of the objects.
    pub report: Report,
}

/// A fault, and how a reference is broken where it is of one.
type Told = (Fault, Option<Broken>);

/// What was found of the objects so far.
#[derive(Default)]
struct Found {
    mode: Mode,
    /// The Gateway that this gate is.
    gateway: Option<Id>,
    /// What is wrong with each, by its place among them.
    faults: BTreeMap<usize, Vec<Told>>,
    is_gateway_faulty: bool,
}

/// Lowers the objects of a cluster, each a text of JSON.
#[must_use]
pub fn live(texts: &[(Id, &str)], choice: &Choice<'_>, sources: &dyn Sources) -> Live {
    let mut report = Report::default();
    let entries = Entry::all(texts, &mut report);
    let own = match own_node(choice) {
        Ok(own) => own,
        Err(faults) => {
            let loaded = Err(refused(choice, faults));
            return Live { loaded, report };
        }
    };
    let own = own.as_ref().map(|(spot, node)| (spot.clone(), node));
    let Some((gateway, kept)) = reach::of_gate(&entries, choice, &mut report) else {
        let says = format!(
            "there is no Gateway of a class whose controller is {}",
            choice.controller
        );
        let loaded = closed(choice, own, sources, vec![unplaced(says)]);
        return Live { loaded, report };
    };
    report.gateway = entries.get(gateway).map(|entry| entry.id.clone());
    report.print = print_of(&entries, &kept, choice);
    let mut found = Found::default();
    found.gateway.clone_from(&report.gateway);
    found.mode.is_live = true;
    found.mode.reaches_machine = choice.reaches_machine;
    found.mode.bind = choice.bind;
    found.mode.addresses = choice.addresses.to_vec();
    found.mode.zone = choice.zone.map(str::to_owned);
    found.mode.has_own_address = own.as_ref().is_some_and(|(_, node)| says_address(node));
    for (id, why) in choice.unread {
        let why = format!("the gate cannot read: {why}");
        found.mode.refused.insert(key(id), why);
    }
    let mut warnings = Vec::new();
    let mut parents = Vec::new();
    let mut loaded = Err(refused(choice, Vec::new()));
    for round in 0.. {
        if round == ROUNDS_MAX {
            // What the next round would find is not known, and may keep somebody out.
            let says = format!("more than {ROUNDS_MAX} times something else was found faulty");
            let all = found.all().chain([unplaced(says)]).collect();
            loaded = closed(choice, own.clone(), sources, all);
            break;
        }
        let round = Round::of(
            &entries,
            &kept,
            found.mode.clone(),
            own.clone(),
            choice,
            sources,
        );
        report.wanted.extend(round.wanted);
        warnings = round.warnings;
        parents = round.parents;
        loaded = round.loaded;
        let Some(faults) = round.faults else { break };
        let others = found.take(faults, &entries);
        let is_own = |fault: &Fault| fault.file.is_some() && fault.file == own_file(choice);
        let of_own = others.as_ref().filter(|others| !others.is_empty());
        if of_own.is_some_and(|others| others.iter().all(is_own)) {
            // What a file of ours says is no object's fault: what is in force stays.
            loaded = Err(refused(choice, others.unwrap_or_default()));
            break;
        }
        if found.is_gateway_faulty || others.is_some() {
            let mut all: Vec<Fault> = found.all().collect();
            all.extend(others.into_iter().flatten());
            loaded = closed(choice, own.clone(), sources, all);
            break;
        }
    }
    let of_all = Judged {
        entries: &entries,
        gateway,
        kept: &kept,
        found: &found,
        warnings: &warnings,
        parents: &parents,
        is_loaded: loaded.is_ok(),
    };
    report.judge(&of_all);
    if let Ok(loaded) = &mut loaded {
        loaded.warnings.splice(0..0, found.all());
        loaded.warnings.iter_mut().for_each(unfiled);
    }
    if let Err(faults) = &mut loaded {
        faults.faults.iter_mut().for_each(unfiled);
    }
    Live { loaded, report }
}

/// One lowering.
struct Round {
    loaded: Result<Loaded, Faults>,
    /// None where nothing is faulty.
    faults: Option<Vec<Told>>,
    warnings: Vec<Fault>,
    parents: Vec<Parent>,
    wanted: BTreeSet<Id>,
}

impl Round {
    fn of(
        entries: &[Entry],
        kept: &BTreeSet<usize>,
        mode: Mode,
        own: Option<(Spot, &Node)>,
        choice: &Choice<'_>,
        sources: &dyn Sources,
    ) -> Self {
        let mut findings = Findings::default();
        let mut objects = Vec::new();
        let read = kept.iter().filter_map(|at| entries.get(*at));
        for entry in read.filter(|entry| !mode.refused.contains_key(&key(&entry.id))) {
            objects.extend(object::objects(&entry.file, &entry.node, &mut findings));
        }
        let cluster = Cluster::new(objects, mode, &mut findings);
        let lowered = of_cluster(&cluster, own, &mut findings);
        let wanted = cluster
            .wanted()
            .into_iter()
            .map(|[kind, namespace, name]| Id {
                kind,
                namespace,
                name,
            });
        let mut round = Self {
            loaded: Err(refused(choice, Vec::new())),
            faults: None,
            warnings: findings.warnings,
            parents: findings.parents,
            wanted: wanted.collect(),
        };
        let Some(lowered) = lowered.filter(|_| findings.faults.is_empty()) else {
            let how = |at: usize| {
                let mut broken = findings.broken.iter();
                broken.find(|(of, _)| *of == at).map(|(_, how)| *how)
            };
            let faults = findings.faults.iter().enumerate();
            round.faults = Some(faults.map(|(at, fault)| (fault.clone(), how(at))).collect());
            return round;
        };
        let lowered = Lowered {
            warnings: round.warnings.clone(),
            ..lowered
        };
        round.loaded = load_beside(choice, &lowered, sources);
        match &round.loaded {
            Ok(loaded) => {
                round.warnings.clone_from(&loaded.warnings);
                let trial = choice
                    .trial
                    .map(|trial| load_beside(choice, &lowered, sources).map(trial));
                if let Some(Ok(Err(says))) = trial {
                    let fault = lowered.origins.told(of_trial(&says));
                    round.faults = Some(vec![(fault, None)]);
                }
            }
            Err(faults) => {
                let told = faults.faults.iter().map(|fault| (fault.clone(), None));
                round.faults = Some(told.collect());
            }
        }
        round
    }
}

impl Found {
    /// Takes what one lowering found; gives what no object is to blame for, where that is all that is new.
    fn take(&mut self, faults: Vec<Told>, entries: &[Entry]) -> Option<Vec<Fault>> {
        let mut by_object: BTreeMap<usize, Vec<Told>> = BTreeMap::new();
        let mut others = Vec::new();
        for (fault, broken) in faults {
            match place_of(&fault).filter(|at| *at < entries.len()) {
                Some(at) => by_object.entry(at).or_default().push((fault, broken)),
                None => others.push(fault),
            }
        }
        let state = |of: &Self| {
            (
                of.mode.all_shut,
                of.mode.shut.clone(),
                of.mode.refused.len(),
                of.mode.shut_listeners.clone(),
                (of.mode.is_shown_faulty, of.mode.lacks_address),
                of.is_gateway_faulty,
            )
        };
        let before = state(self);
        for (at, faults) in by_object {
            if let Some(entry) = entries.get(at) {
                self.close(entry, &faults, entries);
            }
            let known = self.faults.entry(at).or_default();
            for told in faults {
                if !known.contains(&told) {
                    known.push(told);
                }
            }
        }
        (before == state(self)).then_some(others)
    }

    fn all(&self) -> impl Iterator<Item = Fault> {
        self.faults
            .values()
            .flatten()
            .map(|(fault, _)| fault.clone())
    }
}

/// Tells what was read apart from other objects.
fn print_of(entries: &[Entry], kept: &BTreeSet<usize>, choice: &Choice<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (at, entry) in entries.iter().enumerate() {
        // Which of the Gateways is meant depends on all.
        let is_door = matches!(entry.id.kind.as_str(), "Gateway" | "GatewayClass");
        if is_door || kept.contains(&at) {
            (&entry.id, entry.print).hash(&mut hasher);
        }
    }
    choice.unread.hash(&mut hasher);
    choice.own.map(|own| own.text).hash(&mut hasher);
    choice.running.is_some().hash(&mut hasher);
    hasher.finish()
}

fn key(id: &Id) -> [String; 3] {
    [&id.kind, &id.namespace, &id.name].map(Clone::clone)
}

/// Which of the objects a fault is of: they are told apart as files are.
fn place_of(fault: &Fault) -> Option<usize> {
    fault
        .file
        .as_deref()?
        .to_str()?
        .strip_prefix(PLACE)?
        .strip_prefix('#')?
        .parse()
        .ok()
}

/// What objects are told apart by.
fn file_of(place: usize) -> Rc<Path> {
    Rc::from(Path::new(&format!("{PLACE}#{place}")))
}

/// Without the place among the objects, which says nothing to a reader.
fn unfiled(fault: &mut Fault) {
    if place_of(fault).is_some() {
        fault.file = None;
    }
    fault.hint = hint_of(fault);
}

/// What would be right, where there are no files.
fn hint_of(fault: &Fault) -> String {
    let hint = fault.hint.replace(" to these files", "");
    hint.replace(" in these files", "")
}

/// Which parts of a route faults are of; none where one is of more than a rule. A target of a rule for models has no share of its own.
fn parts_of(faults: &[Told], is_plain: bool) -> Option<Parts> {
    let mut parts = Parts::default();
    for (fault, _) in faults {
        let (_, rest) = fault.path.split_once(" spec.rules[")?;
        let (rule, rest) = rest.split_once(']')?;
        let rule = rule.parse().ok()?;
        let target = rest.strip_prefix(".backendRefs[");
        let target = target.and_then(|rest| rest.split_once(']')?.0.parse().ok());
        match target.filter(|_| is_plain) {
            Some(target) => drop(parts.targets.insert((rule, target))),
            None => drop(parts.rules.insert(rule)),
        }
    }
    Some(parts)
}

/// Which listener of a Gateway a fault is of.
fn listener_of(fault: &Fault) -> Option<usize> {
    let (_, rest) = fault.path.split_once(" spec.listeners[")?;
    rest.split_once(']')?.0.parse().ok()
}

/// Whether a fault of a Gateway is of the certificate that upstreams are shown.
fn is_of_shown(fault: &Fault) -> bool {
    fault.path.contains(" spec.tls.backend")
}

/// Whether a document of ours says where the gate listens.
fn says_address(node: &Node) -> bool {
    let listen = object::member(node, "listen");
    listen.is_some_and(|listen| object::member(listen, "data").is_some())
}

/// What a trial found: a place in the document, and what is wrong there.
fn of_trial(says: &str) -> Fault {
    let split = says.split_once(": ");
    // What is compiled says the line of the document, too.
    let split = split.map(|(path, rest)| (path.split(" (line ").next().unwrap_or(path), rest));
    match split {
        Some((path, rest)) if !path.contains(' ') => Fault {
            path: path.to_owned(),
            ..unplaced(rest.to_owned())
        },
        _ => unplaced(says.to_owned()),
    }
}

fn unplaced(says: String) -> Fault {
    Fault {
        file: None,
        path: String::new(),
        line: None,
        says,
        hint: String::new(),
    }
}

fn own_file(choice: &Choice<'_>) -> Option<PathBuf> {
    choice.own.map(|own| own.file.to_owned())
}

fn refused(choice: &Choice<'_>, faults: Vec<Fault>) -> Faults {
    Faults {
        file: PLACE.into(),
        faults,
        warnings: Vec::new(),
        watched: own_file(choice).into_iter().collect(),
        key_files: Vec::new(),
    }
}

/// The file of ours that lies beside.
fn own_node(choice: &Choice<'_>) -> Result<Option<(Spot, Node)>, Vec<Fault>> {
    let Some(own) = choice.own else {
        return Ok(None);
    };
    let of_file = |fault: Fault| Fault {
        file: own_file(choice),
        ..fault
    };
    let nodes = config::parse_all(own.text);
    let mut nodes = nodes.map_err(|faults| faults.into_iter().map(of_file).collect::<Vec<_>>())?;
    let fault = |says: &str| vec![of_file(unplaced(says.to_owned()))];
    if nodes.iter().any(object::looks_like_object) {
        return Err(fault(
            "holds objects of Kubernetes, which come from the API server here",
        ));
    }
    if nodes.len() > 1 {
        return Err(fault("holds more than one document"));
    }
    let Some(node) = nodes
        .pop()
        .filter(|node| matches!(node.value, Value::Map(_)))
    else {
        return Ok(None);
    };
    let spot = Spot {
        file: Rc::from(own.file),
        object: "".into(),
        path: String::new(),
        line: node.line,
    };
    Ok(Some((spot, node)))
}

fn load_beside(
    choice: &Choice<'_>,
    lowered: &Lowered,
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    let directory = choice.own.and_then(|own| own.file.parent());
    let watched = own_file(choice).into_iter().collect();
    completed(
        Path::new(PLACE),
        directory.unwrap_or(Path::new("")),
        lowered,
        watched,
        sources,
    )
}

/// A gate that runs and has no Gateway to be refuses every call; one that does not run yet waits.
fn closed(
    choice: &Choice<'_>,
    own: Option<(Spot, &Node)>,
    sources: &dyn Sources,
    faults: Vec<Fault>,
) -> Result<Loaded, Faults> {
    let Some(address) = choice.running else {
        return Err(refused(choice, faults));
    };
    let mut loaded = load_beside(choice, &shut_document(address, own), sources)?;
    loaded.warnings.splice(0..0, faults);
    Ok(loaded)
}

#[cfg(test)]
mod tests;
