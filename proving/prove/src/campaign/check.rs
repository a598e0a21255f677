//! What a scenario and a command line name, looked at before anything is built or started.
//!
//! Invariant: every fault is told at once, with the member or option that it is of; nothing is asked but names of hosts.
//! Not here: members of the file (`scenario`), whether targets answer (`scrape::targets`).

use std::collections::BTreeSet;
use std::path::Path;

use super::rig::preset_of;
use super::scenario::{CorpusSpec, OWN_TARGETS, Scenario, balancer};
use super::{Options, simulated};
use crate::load;
use crate::scrape::targets::Target;
use crate::subject::{Subject, SubjectError};
use crate::verify::Suite;

/// Ports that are only known once something is started.
const PLACES: [&str; 3] = ["{admin_port}", "{engine_port}", "{dcgm_port}"];

/// Whether a URL has a place that somebody has to fill in.
pub(super) fn has_place(url: &str) -> bool {
    PLACES.iter().any(|place| url.contains(place))
}

/// Everything that is wrong with what is named.
pub(super) fn faults(options: &Options, scenario: &Scenario) -> Vec<String> {
    let mut faults = Faults(Vec::new());
    if let Some(Err(says)) = options.what_if.balancer.as_deref().map(balancer) {
        faults.add("--balancer", says);
    }
    if options.is_virtual {
        simulated_parts(options, scenario, &mut faults);
    } else {
        started_parts(options, scenario, &mut faults);
        corpus(options, scenario, &mut faults);
        headers(scenario, &mut faults);
        targets(options, scenario, &mut faults);
    }
    faults.0
}

struct Faults(Vec<String>);

impl Faults {
    fn add(&mut self, of: &str, says: impl std::fmt::Display) {
        self.0.push(format!("{of}: {says}"));
    }

    fn of<T, E: std::fmt::Display>(&mut self, of: &str, result: Result<T, E>) {
        if let Err(error) = result {
            self.add(of, error);
        }
    }
}

fn simulated_parts(options: &Options, scenario: &Scenario, faults: &mut Faults) {
    let preset = simulated::preset(scenario, &options.what_if);
    faults.of("engine.preset", preset);
    let traffic = simulated::traffic(scenario, &options.what_if);
    faults.of("engine.workload", traffic);
}

fn started_parts(options: &Options, scenario: &Scenario, faults: &mut Faults) {
    if let Some(suite) = scenario.suite.as_ref().filter(|suite| suite.exists()) {
        faults.of("verify.suite", Suite::read(suite));
    }
    if options.target.is_some() {
        return;
    }
    if let (Some(preset), None) = (&scenario.engine.preset, &scenario.engine.url) {
        let preset = crate::files::preset(&preset_of(scenario, preset));
        faults.of("engine.preset", preset);
    }
    for gateway in &options.gateway {
        subject(options, "--gateway", gateway, faults);
    }
    match &scenario.gateway {
        _ if !options.gateway.is_empty() => {}
        Some(gateway) if gateway.exists() => {
            subject(options, "gateway.subject", gateway, faults);
        }
        Some(_) => {} // the file's own fault
        None => faults.add(
            "gateway",
            "the scenario names none to start: name one with --gateway, or a running one with --target",
        ),
    }
}

fn subject(options: &Options, of: &str, gateway: &Path, faults: &mut Faults) {
    match Subject::of(gateway) {
        Ok(subject) => {
            program(options, of, &subject, faults);
            faults.of(of, subject.under_load());
        }
        Err(error) => faults.add(of, error),
    }
}

/// Whether its program is there; what is installed first may be missing.
fn program(options: &Options, of: &str, subject: &Subject, faults: &mut Faults) {
    match subject.program() {
        Err(SubjectError::NotInstalled { .. }) if options.install => {}
        found => faults.of(of, found),
    }
}

fn corpus(options: &Options, scenario: &Scenario, faults: &mut Faults) {
    let (of, path) = match (&options.corpus, &scenario.corpus) {
        (Some(path), _) => ("--corpus", path),
        (None, Some(CorpusSpec::Built(path))) => ("corpus.path", path),
        (None, Some(CorpusSpec::Config(..))) => return,
        (None, None) => {
            return faults.add("corpus", "has to be there, or --corpus");
        }
    };
    if !path.exists() {
        faults.add(of, format!("{} is not there", path.display()));
    }
}

/// Variables of the environment that headers name.
fn headers(scenario: &Scenario, faults: &mut Faults) {
    let own = scenario.headers.iter();
    let own = own.map(|header| ("headers".to_owned(), header));
    let profiles = scenario.profiles.iter().enumerate();
    let profiles = profiles.flat_map(|(at, profile)| {
        let headers = profile.headers.iter();
        headers.map(move |header| (format!("profile[{at}].headers"), header))
    });
    for (of, (name, value)) in own.chain(profiles) {
        faults.of(
            &format!("{of}.{name}"),
            load::steered::check_header(name, value),
        );
    }
}

fn targets(options: &Options, scenario: &Scenario, faults: &mut Faults) {
    let is_started = options.target.is_none();
    let mut names: BTreeSet<&str> = OWN_TARGETS.into_iter().collect();
    if is_started {
        names.extend(["engine", "gpu", "gateway"]);
    } else if scenario.engine.url.is_some() {
        names.insert("engine");
    }
    for (name, url) in &options.scrape {
        names.insert(name);
        faults.of(&format!("--scrape {name}"), Target::parse(name, url));
    }
    for (at, (name, url)) in scenario.targets.iter().enumerate() {
        let is_replaced = options.scrape.iter().any(|(other, _)| other == name);
        // Without what would fill it in there is no such target.
        if is_replaced || name.is_empty() || url.is_empty() || has_place(url) && !is_started {
            continue;
        }
        names.insert(name);
        let url = PLACES
            .iter()
            .fold(url.clone(), |url, place| url.replace(place, "1"));
        faults.of(&format!("target[{at}].url"), Target::parse(name, &url));
    }
    let gates = scenario.plan.gates.iter().enumerate();
    let gates = gates.map(|(at, gate)| (format!("gate[{at}].query"), &gate.query));
    let objectives = scenario.objectives.iter().enumerate();
    let objectives = objectives.map(|(at, own)| (format!("objective[{at}].query"), &own.query));
    for (of, query) in gates.chain(objectives) {
        let wanted: BTreeSet<String> = query.targets().collect();
        for target in wanted.iter().filter(|name| !names.contains(&***name)) {
            let says = format!("no target is called {target}: name it with --scrape {target}=URL");
            faults.add(&of, says);
        }
    }
}
