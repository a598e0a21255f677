//! `scenario.toml` as a person writes it, and what is carried out.
//!
//! Invariant: every fault of a file is told at once, with the path of its member; what passes can be carried out as far
//! as a file can tell.
//! Not here: starting anything (`rig`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::arrivals::Spec;
use experiment::campaign::{Baseline, Gate, Plan, Soak, Then, Threshold};
use experiment::telemetry::Query;
use sha2::{Digest, Sha256};
use simulator::campaign::{Affinity, Balancer};

use super::RunError;
use super::members::{Faults, Members};
use crate::text::printable;

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
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
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

/// The engine.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineSpec {
    /// A preset's name, or a file beside the scenario.
    pub(super) preset: Option<String>,
    /// Traffic of the simulator, for virtual time.
    pub(super) workload: Option<String>,
    /// Arguments of `prove engine` besides.
    pub(super) args: Vec<String>,
    /// An engine that runs already; none is started.
    pub(super) url: Option<String>,
    pub(super) replicas: u32,
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
#[derive(Debug, Clone)]
pub(super) struct ProfileSpec {
    pub(super) name: String,
    pub(super) weight: Option<f64>,
    pub(super) think: Option<Spec>,
    pub(super) scope: Option<experiment::arrivals::Scope>,
    pub(super) headers: Vec<(String, String)>,
}

/// A service level of the soak.
#[derive(Debug, Clone)]
pub(super) struct Objective {
    pub(super) name: String,
    pub(super) query: Query,
    pub(super) below: f64,
}

/// A figure that somebody published.
#[derive(Debug, Clone)]
pub(super) struct PublishedSpec {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) value: f64,
    /// Where ours stands in the document, as a JSON pointer.
    pub(super) figure: String,
    /// Ours is multiplied by it.
    pub(super) scale: f64,
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
        let table = match text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => return (None, vec![error.to_string().trim_end().to_owned()]),
        };
        let faults = Faults::default();
        let file = Members::new(table, &faults);
        let scenario = scenario(&file, name, dir, text, &faults);
        file.end();
        (Some(scenario), faults.all())
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

fn scenario(file: &Members, name: &str, dir: PathBuf, text: String, faults: &Faults) -> Scenario {
    let title = file.text("title").unwrap_or_else(|| name.to_owned());
    let seed = file.count::<u64>("seed").unwrap_or(1);
    let (suite, gateway, gateway_cores) = gateway(file, &dir);
    let engine = engine(file);
    let corpus = corpus(file, &dir);
    let profiles = profiles(file);
    let targets = targets(file);
    let plan = plan(file, faults);
    if engine.preset.is_none() && engine.url.is_none() {
        file.fault(
            "engine",
            "needs a preset to simulate, or the url of one that runs",
        );
    }
    Scenario {
        name: name.to_owned(),
        dir,
        text,
        title: printable(&title),
        seed,
        suite,
        gateway,
        gateway_cores,
        engine,
        corpus,
        profiles,
        headers: headers(file),
        timeout: file.time("timeout").unwrap_or(Duration::from_secs(600)),
        targets,
        plan,
        objectives: objectives(file),
        published: published(file),
        error_share: share(file, "error_share").unwrap_or(0.01),
        is_tapped: file.flag("tap").unwrap_or(true),
    }
}

fn gateway(file: &Members, dir: &Path) -> (Option<PathBuf>, Option<PathBuf>, Option<f64>) {
    let suite = file.table("verify").and_then(|table| {
        let suite = table.needed("suite", table.text("suite"));
        table.end();
        suite.map(|suite| existing(file, "verify.suite", dir, &suite))
    });
    let Some(table) = file.table("gateway") else {
        return (suite, None, None);
    };
    let subject = table.needed("subject", table.text("subject"));
    let subject = subject.map(|subject| existing(file, "gateway.subject", dir, &subject));
    let cores = table.number("cores");
    if cores.is_some_and(|cores| !(0.01..=1024.0).contains(&cores)) {
        table.fault("cores", "has to be from 0.01 to 1024");
    }
    table.end();
    (suite, subject, cores)
}

/// A path that is there.
fn existing(file: &Members, member: &str, dir: &Path, path: &str) -> PathBuf {
    let path = dir.join(path);
    if !path.exists() {
        file.fault(member, format!("{} is not there", path.display()));
    }
    path
}

fn engine(file: &Members) -> EngineSpec {
    let Some(table) = file.needed("engine", file.table("engine")) else {
        return EngineSpec::default();
    };
    let spec = EngineSpec {
        preset: table.text("preset"),
        workload: table.text("workload"),
        args: table.texts("args"),
        url: table.text("url"),
        replicas: table.count("replicas").unwrap_or(1),
        balancer: table.text("balancer"),
    };
    if let Some(word) = spec.balancer.as_deref()
        && let Err(says) = balancer(word)
    {
        table.fault("balancer", says);
    }
    if !(1..=64).contains(&spec.replicas) {
        table.fault("replicas", "have to be from 1 to 64");
    }
    if spec.url.as_ref().is_some_and(|url| url.contains('@')) {
        table.fault(
            "url",
            "holds a user or a password, and the scenario stands in the report",
        );
    }
    if spec.url.is_some() && !spec.args.is_empty() {
        table.fault(
            "args",
            "are of an engine that is started; with a url none is",
        );
    }
    table.end();
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

fn corpus(file: &Members, dir: &Path) -> Option<CorpusSpec> {
    let table = file.table("corpus")?;
    let (path, config) = (table.text("path"), table.text("config"));
    let spec = match (path, config) {
        (Some(path), None) => Some(CorpusSpec::Built(dir.join(path))),
        (None, Some(config)) => {
            let config = existing(file, "corpus.config", dir, &config);
            Some(CorpusSpec::Config(config, table.texts("args")))
        }
        _ => {
            file.fault(
                "corpus",
                "has either the path of a corpus or the config to build one",
            );
            None
        }
    };
    table.end();
    spec
}

fn profiles(file: &Members) -> Vec<ProfileSpec> {
    let mut profiles: Vec<ProfileSpec> = Vec::new();
    for table in file.tables("profile") {
        let weight = table.number("weight");
        if weight.is_some_and(|weight| weight <= 0.0) {
            table.fault("weight", "has to be above 0");
        }
        let name = table.needed("name", table.text("name")).unwrap_or_default();
        if !name.is_empty() && profiles.iter().any(|known| known.name == name) {
            table.fault("name", "is that of another profile");
        }
        let scope = table.text("scope").and_then(|word| {
            let scope = word.parse::<experiment::arrivals::Scope>();
            scope
                .map_err(|_| table.fault("scope", "is one of user, profile and fleet"))
                .ok()
        });
        profiles.push(ProfileSpec {
            name,
            weight,
            think: table.parsed("think"),
            scope,
            headers: headers(&table),
        });
        table.end();
    }
    profiles
}

/// Headers of requests. The scenario stands in the report: a credential in it would, too.
fn headers(table: &Members) -> Vec<(String, String)> {
    let headers = table.pairs("headers");
    for (name, value) in &headers {
        if crate::text::is_secret(name) && !value.contains("${") {
            let says = "holds a credential, and the scenario stands in the report: write ${NAME}, a variable of the environment";
            table.fault(&format!("headers.{name}"), says);
        }
    }
    headers
}

fn targets(file: &Members) -> Vec<(String, String)> {
    let mut targets: Vec<(String, String)> = Vec::new();
    for table in file.tables("target") {
        let name = table.needed("name", table.text("name")).unwrap_or_default();
        let url = table.needed("url", table.text("url")).unwrap_or_default();
        if OWN_TARGETS.contains(&&*name) {
            table.fault("name", OWN_SAYS);
        }
        if targets.iter().any(|(known, _)| *known == name) {
            table.fault("name", "is that of another target");
        }
        targets.push((name, url));
        table.end();
    }
    targets
}

fn plan(file: &Members, faults: &Faults) -> Plan {
    let default = Plan::default();
    let mut plan = Plan {
        gates: gates(file, &default),
        ..default
    };
    if let Some(table) = file.table("baseline") {
        let was = plan.baseline;
        plan.baseline = Baseline {
            users: table.count("users").unwrap_or(was.users),
            warm_up: table.time("warm_up").unwrap_or(was.warm_up),
            min: table.time("min").unwrap_or(was.min),
            requests: table.count("requests").unwrap_or(was.requests),
            max: table.time("max").unwrap_or(was.max),
        };
        table.end();
    }
    if let Some(table) = file.table("ramp") {
        plan.step = table.count("step").unwrap_or(plan.step);
        plan.window = table.time("window").unwrap_or(plan.window);
        plan.max_users = table.count("max_users").unwrap_or(plan.max_users);
        plan.max_held = table.count("max_held").unwrap_or(plan.max_held);
        plan.retract = table.number("retract").unwrap_or(plan.retract);
        table.end();
    }
    if let Some(table) = file.table("soak") {
        plan.soak = Soak {
            settle: table.time("settle").unwrap_or(plan.soak.settle),
            length: table.time("length").unwrap_or(plan.soak.length),
        };
        table.end();
    }
    if let Some(table) = file.table("scrape") {
        plan.silence = table.time("silence").unwrap_or(plan.silence);
        plan.patience = table.time("patience").unwrap_or(plan.patience);
        table.end();
    }
    for fault in plan.check().err().unwrap_or_default() {
        faults.add(&fault.member, fault.says);
    }
    plan
}

/// The published ones, where the file names none.
fn gates(file: &Members, default: &Plan) -> Vec<Gate> {
    let tables = file.tables("gate");
    if tables.is_empty() {
        return default.gates.clone();
    }
    let mut gates = Vec::new();
    for table in tables {
        let name = table.needed("name", table.text("name"));
        let query = table.needed("query", table.parsed::<Query>("query"));
        let (above, times) = (table.number("above"), table.number("times_baseline"));
        let threshold = match (above, times) {
            (Some(limit), None) => Some(Threshold::Above(limit)),
            (None, Some(factor)) => Some(Threshold::TimesBaseline(factor)),
            _ => {
                table.fault("above", "has to be there, or times_baseline, and not both");
                None
            }
        };
        let then = table.needed("then", table.text("then")).and_then(|word| {
            let then = match &*word {
                "hold" => Some(Then::Hold),
                "retract" => Some(Then::Retract),
                "abort" => Some(Then::Abort),
                _ => None,
            };
            if then.is_none() {
                table.fault("then", "is one of hold, retract and abort");
            }
            then
        });
        let windows = table.count("windows").unwrap_or(1);
        let over = table.time("over").unwrap_or(Duration::from_secs(60));
        table.end();
        if let (Some(name), Some(query), Some(threshold), Some(then)) =
            (name, query, threshold, then)
        {
            gates.push(Gate {
                name,
                query,
                threshold,
                windows,
                over,
                then,
            });
        }
    }
    gates
}

fn objectives(file: &Members) -> Vec<Objective> {
    let tables = file.tables("objective").into_iter();
    let objectives = tables.filter_map(|table| {
        let name = table.needed("name", table.text("name"));
        let query = table.needed("query", table.parsed("query"));
        let below = table.needed("below", table.number("below"));
        table.end();
        Some(Objective {
            name: name?,
            query: query?,
            below: below?,
        })
    });
    objectives.collect()
}

fn published(file: &Members) -> Vec<PublishedSpec> {
    let tables = file.tables("published").into_iter();
    let published = tables.filter_map(|table| {
        let name = table.needed("name", table.text("name"));
        let value = table.needed("value", table.number("value"));
        let figure = table.needed("figure", table.text("figure"));
        if figure
            .as_ref()
            .is_some_and(|figure| !figure.starts_with('/'))
        {
            table.fault("figure", "is a JSON pointer, such as /soak/ttft_ms");
        }
        let (unit, note) = (table.text("unit"), table.text("note"));
        let scale = table.number("scale").unwrap_or(1.0);
        table.end();
        Some(PublishedSpec {
            name: name?,
            unit: unit.unwrap_or_default(),
            value: value?,
            figure: figure?,
            scale,
            note: note.unwrap_or_default(),
        })
    });
    published.collect()
}

fn share(file: &Members, name: &str) -> Option<f64> {
    let share = file.number(name)?;
    if !(0.0..=1.0).contains(&share) {
        file.fault(name, "is a share from 0 to 1");
    }
    Some(share)
}
