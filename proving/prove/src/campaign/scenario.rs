//! `scenario.toml` as a person writes it, and what is carried out.
//!
//! Invariant: every fault of a file is told at once, with the path of its member; what passes can be carried out as far
//! as a file can tell.
//! Not here: starting anything (`rig`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::arrivals::Spec;
use experiment::campaign::{Baseline, Gate, Plan, Soak, Then, Threshold};
use experiment::telemetry::Query;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use simulator::campaign::{Affinity, Balancer};
use toml::Value;

use super::RunError;
use crate::text::printable;
use crate::toml_document::{Faults, Time, parsed};

/// Targets that nobody names.
pub(super) const OWN_TARGETS: [&str; 2] = ["client", "cgroup"];
/// What is said of somebody who does.
pub(super) const OWN_SAYS: &str = "client and cgroup are what we measure ourselves";

/// A scenario in its directory.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) dir: PathBuf,
    /// The file, as it is.
    pub(super) text: String,
    pub(super) title: String,
    pub(super) seed: u64,
    /// The suite that is run first.
    pub(super) suite: Option<PathBuf>,
    /// The directory of the gateway that is started.
    pub(super) gateway: Option<PathBuf>,
    /// Cores of a quota for it.
    pub(super) gateway_cores: Option<f64>,
    pub(super) engine: EngineSpec,
    pub(super) corpus: Option<CorpusSpec>,
    pub(super) profiles: Vec<ProfileSpec>,
    /// Headers of every request.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) timeout: Duration,
    /// Who is refused for no longer than this waits and sends the same again.
    pub(super) heeds_retry_after: Option<Duration>,
    pub(super) protocol: HttpVersion,
    /// What is scraped besides the targets that we start, by name and URL.
    pub(super) targets: Vec<(String, String)>,
    pub(super) plan: Plan,
    pub(super) objectives: Vec<Objective>,
    pub(super) published: Vec<PublishedSpec>,
    /// The share of requests that may fail in the soak.
    pub(super) error_share: f64,
    /// Whether a relay stands between gateway and engine, which stamps what passes.
    pub(super) is_tapped: bool,
}

/// What users speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HttpVersion {
    /// HTTP/1.1: each has a connection.
    #[default]
    Http1,
    /// HTTP/2: several share one.
    Http2,
}

/// The engine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EngineSpec {
    /// A preset's name, or a file beside the scenario.
    pub(super) preset: Option<String>,
    /// Traffic of the simulator, for virtual time.
    pub(super) workload: Option<String>,
    /// Arguments of `prove engine` besides.
    pub(super) args: Vec<String>,
    /// An engine that runs already; none is started.
    pub(super) url: Option<String>,
    pub(super) replicas: Option<u32>,
    pub(super) balancer: Option<String>,
}

/// Where requests come from.
#[derive(Debug, Clone)]
pub(super) enum CorpusSpec {
    /// A corpus that was built.
    Built(PathBuf),
    /// What to build, and arguments of `prove corpus build` besides.
    Config(PathBuf, Vec<String>),
}

/// What is said of a profile of the corpus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileSpec {
    pub(super) name: String,
    pub(super) weight: Option<f64>,
    pub(super) think: Option<Spec>,
    pub(super) scope: Option<experiment::arrivals::Scope>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

/// A service level of the soak.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Objective {
    pub(super) name: String,
    #[serde(deserialize_with = "parsed")]
    pub(super) query: Query,
    pub(super) below: f64,
}

/// A figure that somebody published.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedSpec {
    pub(super) name: String,
    #[serde(default)]
    pub(super) unit: String,
    pub(super) value: f64,
    /// Where ours stands in the document ([`super::published`]).
    pub(super) figure: String,
    /// Ours is multiplied by it.
    #[serde(default = "one")]
    pub(super) scale: f64,
    #[serde(default)]
    pub(super) note: String,
}

impl Scenario {
    /// Reads a scenario: a directory with `scenario.toml`, or the file itself. `check` finds faults beyond the file, of
    /// what it names.
    pub(super) fn read(
        path: &Path,
        check: impl FnOnce(&Self) -> Vec<String>,
    ) -> Result<Self, RunError> {
        let file = if path.is_dir() {
            path.join("scenario.toml")
        } else {
            path.to_owned()
        };
        let text = crate::files::read(&file).map_err(RunError::File)?;
        let dir = file.parent().map_or_else(PathBuf::new, Path::to_owned);
        let named = if path.is_dir() { path } else { &dir };
        let named = fs::canonicalize(named).unwrap_or_else(|_| named.to_owned());
        let name = named.file_name().unwrap_or_default().to_string_lossy();
        let (scenario, mut faults) = Self::parse(&name, dir, text);
        faults.extend(scenario.as_ref().map(check).unwrap_or_default());
        match scenario {
            Some(scenario) if faults.is_empty() => Ok(scenario),
            _ => Err(RunError::Scenario { file, faults }),
        }
    }

    /// Reads the text of a scenario; there is one with faults too, so that what it names can be looked at.
    pub(super) fn parse(name: &str, dir: PathBuf, text: String) -> (Option<Self>, Vec<String>) {
        let mut faults = Faults::default();
        let file: Option<File> = faults.document(&text);
        let scenario = file.map(|file| file.lower(name, dir, text, &mut faults));
        let faults = faults.0.iter().map(ToString::to_string);
        (scenario, faults.collect())
    }

    /// SHA-256 of the file.
    pub(super) fn hash(&self) -> String {
        sha256(self.text.as_bytes())
    }

    /// A path that the file names, from its directory.
    pub(super) fn beside(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    /// All that gates and objectives ask.
    pub(super) fn queries(&self) -> impl Iterator<Item = &Query> {
        let gates = self.plan.gates.iter().map(|gate| &gate.query);
        gates.chain(self.objectives.iter().map(|objective| &objective.query))
    }
}

/// A hash as hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file; lists are read table by table.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    title: Option<String>,
    seed: Option<u64>,
    timeout: Option<Time>,
    heed_retry_after: Option<Time>,
    protocol: HttpVersion,
    error_share: Option<f64>,
    tap: Option<bool>,
    headers: BTreeMap<String, String>,
    verify: Option<VerifyFile>,
    gateway: Option<GatewayFile>,
    engine: Option<EngineSpec>,
    corpus: Option<CorpusFile>,
    baseline: BaselineFile,
    ramp: RampFile,
    soak: SoakFile,
    scrape: ScrapeFile,
    profile: Vec<Value>,
    target: Vec<Value>,
    gate: Vec<Value>,
    objective: Vec<Value>,
    published: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyFile {
    suite: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GatewayFile {
    subject: Option<String>,
    cores: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CorpusFile {
    path: Option<String>,
    config: Option<String>,
    args: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BaselineFile {
    users: Option<u32>,
    warm_up: Option<Time>,
    min: Option<Time>,
    requests: Option<u64>,
    max: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RampFile {
    step: Option<u32>,
    window: Option<Time>,
    max_users: Option<u32>,
    max_held: Option<u32>,
    retract: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SoakFile {
    settle: Option<Time>,
    length: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScrapeFile {
    silence: Option<Time>,
    patience: Option<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFile {
    name: String,
    url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GateFile {
    name: String,
    #[serde(deserialize_with = "parsed")]
    query: Query,
    above: Option<f64>,
    times_baseline: Option<f64>,
    windows: Option<u32>,
    over: Option<Time>,
    #[serde(with = "ThenFile")]
    then: Then,
}

#[derive(Deserialize)]
#[serde(remote = "Then", rename_all = "lowercase")]
enum ThenFile {
    Hold,
    Retract,
    Abort,
}

impl File {
    fn lower(self, name: &str, dir: PathBuf, text: String, faults: &mut Faults) -> Scenario {
        let verify = self
            .verify
            .map(|table| faults.needed("verify", "suite", table.suite));
        let suite = verify.flatten();
        let suite = suite.map(|suite| existing(faults, "verify.suite", &dir, &suite));
        let cores = self.gateway.as_ref().and_then(|table| table.cores);
        if cores.is_some_and(|cores| !(0.01..=1024.0).contains(&cores)) {
            faults.add("gateway.cores", "has to be from 0.01 to 1024");
        }
        let gateway = self
            .gateway
            .map(|table| faults.needed("gateway", "subject", table.subject));
        let gateway = gateway.flatten();
        let gateway = gateway.map(|subject| existing(faults, "gateway.subject", &dir, &subject));
        let share = self.error_share.unwrap_or(0.01);
        check_headers("headers", &self.headers, faults);
        if !(0.0..=1.0).contains(&share) {
            faults.add("error_share", "is a share from 0 to 1");
        }
        Scenario {
            name: name.to_owned(),
            title: printable(self.title.as_deref().unwrap_or(name)),
            seed: self.seed.unwrap_or(1),
            suite,
            gateway,
            gateway_cores: cores,
            engine: engine(self.engine, faults),
            corpus: self.corpus.and_then(|table| corpus(table, &dir, faults)),
            profiles: profiles(self.profile, faults),
            headers: self.headers,
            timeout: self.timeout.map_or(Duration::from_secs(600), |time| time.0),
            heeds_retry_after: self.heed_retry_after.map(|time| time.0),
            protocol: self.protocol,
            targets: targets(self.target, faults),
            objectives: objectives(self.objective, faults),
            published: published(self.published, faults),
            plan: plan(
                self.gate,
                (&self.baseline, &self.ramp),
                (&self.soak, &self.scrape),
                faults,
            ),
            error_share: share,
            is_tapped: self.tap.unwrap_or(true),
            dir,
            text,
        }
    }
}

/// A path that is there.
fn existing(faults: &mut Faults, member: &str, dir: &Path, path: &str) -> PathBuf {
    let path = dir.join(path);
    if !path.exists() {
        faults.add(member, format!("{} is not there", path.display()));
    }
    path
}

fn engine(spec: Option<EngineSpec>, faults: &mut Faults) -> EngineSpec {
    let spec = faults.needed("", "engine", spec).unwrap_or_default();
    if let Some(Err(says)) = spec.balancer.as_deref().map(balancer) {
        faults.add("engine.balancer", says);
    }
    if spec
        .replicas
        .is_some_and(|replicas| !(1..=64).contains(&replicas))
    {
        faults.add("engine.replicas", "have to be from 1 to 64");
    }
    if spec.url.as_ref().is_some_and(|url| url.contains('@')) {
        faults.add(
            "engine.url",
            "holds a user or a password, and the scenario stands in the report",
        );
    }
    if spec.url.is_some() && !spec.args.is_empty() {
        faults.add(
            "engine.args",
            "are of an engine that is started; with a url none is",
        );
    }
    if spec.preset.is_none() && spec.url.is_none() {
        faults.add(
            "engine",
            "needs a preset to simulate, or the url of one that runs",
        );
    }
    spec
}

/// How a balancer chooses, by its word.
pub(super) fn balancer(word: &str) -> Result<Balancer, String> {
    match word {
        "least-loaded" => Ok(Balancer::LeastLoaded),
        "round-robin" => Ok(Balancer::RoundRobin),
        "prefix-aware" => Ok(Balancer::PrefixAware(Affinity::default())),
        other => Err(format!(
            "{other:?} is none of least-loaded, prefix-aware and round-robin"
        )),
    }
}

fn corpus(table: CorpusFile, dir: &Path, faults: &mut Faults) -> Option<CorpusSpec> {
    match (table.path, table.config) {
        (Some(path), None) => Some(CorpusSpec::Built(dir.join(path))),
        (None, Some(config)) => {
            let config = existing(faults, "corpus.config", dir, &config);
            Some(CorpusSpec::Config(config, table.args))
        }
        _ => {
            faults.add(
                "corpus",
                "has either the path of a corpus or the config to build one",
            );
            None
        }
    }
}

fn profiles(values: Vec<Value>, faults: &mut Faults) -> Vec<ProfileSpec> {
    let mut profiles: Vec<ProfileSpec> = Vec::new();
    for (path, profile) in faults.tables::<ProfileSpec>("profile", values) {
        if profile
            .weight
            .is_some_and(|weight| weight <= 0.0 || !weight.is_finite())
        {
            faults.add(format!("{path}.weight"), "has to be above 0");
        }
        if profiles.iter().any(|known| known.name == profile.name) {
            faults.add(format!("{path}.name"), "is that of another profile");
        }
        check_headers(&format!("{path}.headers"), &profile.headers, faults);
        profiles.push(profile);
    }
    profiles
}

/// The scenario stands in the report: a credential in it would, too.
fn check_headers(path: &str, headers: &BTreeMap<String, String>, faults: &mut Faults) {
    for (name, value) in headers {
        if crate::text::is_secret(name) && !value.contains("${") {
            let says = "holds a credential, and the scenario stands in the report: write ${NAME}, a variable of the environment";
            faults.add(format!("{path}.{name}"), says);
        }
    }
}

fn targets(values: Vec<Value>, faults: &mut Faults) -> Vec<(String, String)> {
    let mut targets: Vec<(String, String)> = Vec::new();
    for (path, TargetFile { name, url }) in faults.tables("target", values) {
        if OWN_TARGETS.contains(&&*name) {
            faults.add(format!("{path}.name"), OWN_SAYS);
        }
        if targets.iter().any(|(known, _)| *known == name) {
            faults.add(format!("{path}.name"), "is that of another target");
        }
        targets.push((name, url));
    }
    targets
}

fn plan(
    values: Vec<Value>,
    (baseline, ramp): (&BaselineFile, &RampFile),
    (soak, scrape): (&SoakFile, &ScrapeFile),
    faults: &mut Faults,
) -> Plan {
    let was = Plan::default();
    let time = |time: Option<Time>, was| time.map_or(was, |time| time.0);
    let plan = Plan {
        baseline: Baseline {
            users: baseline.users.unwrap_or(was.baseline.users),
            warm_up: time(baseline.warm_up, was.baseline.warm_up),
            min: time(baseline.min, was.baseline.min),
            requests: baseline.requests.unwrap_or(was.baseline.requests),
            max: time(baseline.max, was.baseline.max),
        },
        step: ramp.step.unwrap_or(was.step),
        window: time(ramp.window, was.window),
        max_users: ramp.max_users.unwrap_or(was.max_users),
        max_held: ramp.max_held.unwrap_or(was.max_held),
        retract: ramp.retract.unwrap_or(was.retract),
        soak: Soak {
            settle: time(soak.settle, was.soak.settle),
            length: time(soak.length, was.soak.length),
        },
        silence: time(scrape.silence, was.silence),
        patience: time(scrape.patience, was.patience),
        // The published ones, where the file names none.
        gates: if values.is_empty() {
            was.gates
        } else {
            let gates = faults.tables("gate", values).into_iter();
            let gates = gates.filter_map(|(path, gate)| lower_gate(&path, gate, faults));
            gates.collect()
        },
    };
    for fault in plan.check().err().unwrap_or_default() {
        faults.add(fault.member, fault.says);
    }
    plan
}

fn lower_gate(path: &str, gate: GateFile, faults: &mut Faults) -> Option<Gate> {
    let threshold = match (gate.above, gate.times_baseline) {
        (Some(limit), None) => Ok(Threshold::Above(limit)),
        (None, Some(factor)) => Ok(Threshold::TimesBaseline(factor)),
        _ => Err("has to be there, or times_baseline, and not both"),
    };
    let threshold = faults.of(&format!("{path}.above"), threshold);
    Some(Gate {
        name: gate.name,
        query: gate.query,
        threshold: threshold?,
        windows: gate.windows.unwrap_or(1),
        over: gate.over.map_or(Duration::from_secs(60), |time| time.0),
        then: gate.then,
    })
}

fn objectives(values: Vec<Value>, faults: &mut Faults) -> Vec<Objective> {
    let objectives = faults.tables("objective", values).into_iter();
    objectives.map(|(_, objective)| objective).collect()
}

fn published(values: Vec<Value>, faults: &mut Faults) -> Vec<PublishedSpec> {
    let mut all = Vec::new();
    for (path, published) in faults.tables::<PublishedSpec>("published", values) {
        if let Some(says) = super::published::fault(&published.figure) {
            faults.add(format!("{path}.figure"), says);
        }
        all.push(published);
    }
    all
}

const fn one() -> f64 {
    1.0
}
