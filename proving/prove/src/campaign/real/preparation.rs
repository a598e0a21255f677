//! What has to stand before anything is loaded: corpus, engine, suite, relay, gateway, targets.
//!
//! Invariant: everything is checked before the first request of the load; what cannot be had is told whole.
//! Not here: the load (`real`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use experiment::telemetry::Query;
use load::client::Protocol;

use super::corpus::corpus;
use super::pairing::{Pairing, Relay};
use super::{PAIRS, REQUESTS, SAMPLES};
use crate::campaign::check::has_place;
use crate::campaign::note::NoteKind;
use crate::campaign::output::Output;
use crate::campaign::rig::{Engine, Gateway};
use crate::campaign::scenario::{HttpVersion, Scenario, sha256};
use crate::campaign::{Options, RunError, hint, queries};
use crate::host::descriptors;
use crate::host::machine::Machine;
use crate::interrupt::Interrupt;
use crate::load::steered::{Said, Steered, Steering};
use crate::load::traffic::WORKLOAD_HEADER;
use crate::report::document::{Event, Evidence, Reproduce, Verified};
use crate::scrape::cfs::Cfs;
use crate::scrape::targets::{Target, check};
use crate::subject::{NotStarted, Subject};
use crate::verify::{self, Suite};

/// After a plan's end, for what is under way.
const DRAINED: Duration = Duration::from_secs(120);
/// How long a first look at targets may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a target may take to tell whether it is simulated.
const ASIDE: Duration = Duration::from_secs(2);
/// Over HTTP/2.
const USERS_OF_A_CONNECTION: u32 = 32;
/// Files that are larger are not hashed, bytes.
const HASHED: u64 = 64 << 20;

/// Everything that stands.
pub(super) struct Prepared {
    pub(super) scenario: Scenario,
    pub(super) steered: Steered,
    pub(super) targets: Vec<Target>,
    pub(super) cgroup: Option<Cfs>,
    warnings: Vec<String>,
    /// Whether one of the engines is known to be simulated.
    is_simulated: bool,
    corpus: PathBuf,
    base: String,
    rig: Rig,
}

/// What we started.
struct Rig {
    /// Dropped before the engine, which it asks.
    gateway: Option<Gateway>,
    relay: Option<Arc<Relay>>,
    engines: Vec<Engine>,
}

/// Why nothing can be loaded, and what the suite had come to by then.
pub(super) struct Unprepared {
    pub(super) error: Box<RunError>,
    pub(super) verified: Option<Verified>,
}

impl From<RunError> for Unprepared {
    fn from(error: RunError) -> Self {
        Self {
            error: Box::new(error),
            verified: None,
        }
    }
}

/// What is prepared, where, and who may end it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) options: &'a Options,
    pub(super) scenario: &'a Scenario,
    pub(super) output: &'a Output,
    pub(super) interrupt: &'a Interrupt,
}

/// Prepares, and runs the suite: what stands, and what the suite came to.
pub(super) fn prepare(asked: Asked<'_>) -> Result<(Prepared, Option<Verified>), Unprepared> {
    descriptors::raise();
    check_subject(asked)?;
    let corpus = corpus(asked)?;
    let verified = verify(asked)?;
    match stand(asked, corpus) {
        Ok(prepared) => Ok((prepared, verified)),
        Err(error) => Err(Unprepared {
            error: Box::new(error),
            verified,
        }),
    }
}

/// What is missing of the gateway is told before anything is built.
fn check_subject(asked: Asked<'_>) -> Result<(), RunError> {
    let options = asked.options;
    if let Some(target) = &options.target {
        return crate::load::steered::reachable(target, PATIENCE).map_err(RunError::Unreachable);
    }
    if let Some(gateway) = &asked.scenario.gateway {
        let subject = Subject::of(gateway).map_err(|error| RunError::Usage(error.to_string()))?;
        if options.install {
            subject.install().map_err(RunError::Usage)?;
        }
        let program = subject.program();
        program.map_err(|error| RunError::Usage(error.to_string()))?;
    }
    Ok(())
}

/// Starts what is to be loaded, and looks whether it can be loaded and scraped.
fn stand(asked: Asked<'_>, corpus: PathBuf) -> Result<Prepared, RunError> {
    let Asked {
        options, scenario, ..
    } = asked;
    stop_if(asked.interrupt)?;
    let rig = start_rig(asked, &corpus)?;
    stop_if(asked.interrupt)?;
    let base = match (&options.target, &rig.gateway) {
        (Some(url), _) => url.clone(),
        (None, Some(gateway)) => format!("http://127.0.0.1:{}/v1", gateway.started.places.port),
        (None, None) => return Err(RunError::Bug("there is no gateway")),
    };
    let steered = steered(scenario, &corpus, &base, rig.gateway.as_ref())?;
    let most = scenario.plan.max_users;
    let few = options
        .strict
        .and_then(|least| steered.corpus.too_few_for(most, least));
    if let Some(says) = few {
        return Err(RunError::Usage(says));
    }
    let targets = targets(options, scenario, &rig)?;
    let quota = rig.gateway.as_ref().and_then(Gateway::quota);
    let cgroup = quota.map(|(_, dir)| Cfs::at(dir)).transpose();
    let is_simulated =
        !rig.engines.is_empty() || targets.iter().any(|target| target.is_simulated(ASIDE));
    if let Some(banner) = Evidence::SimulatedEngine.banner().filter(|_| is_simulated) {
        hint(banner);
    }
    Ok(Prepared {
        scenario: scenario.clone(),
        steered,
        cgroup: cgroup.map_err(RunError::Rig)?,
        warnings: check_scrape(scenario, &targets)?,
        targets,
        is_simulated,
        corpus,
        base,
        rig,
    })
}

/// Starts engine, relay and gateway, as far as they are ours.
fn start_rig(asked: Asked<'_>, corpus: &Path) -> Result<Rig, RunError> {
    let Asked {
        options, scenario, ..
    } = asked;
    let dir = asked.output.path("rig");
    let is_started = options.target.is_none();
    let engines = (is_started && scenario.engine.url.is_none())
        .then(|| Engine::start_all(scenario, &dir.join("engine")))
        .transpose()
        .map_err(RunError::Unreachable)?
        .unwrap_or_default();
    let model = crate::load::steered::model_of(corpus)?;
    let relay = match engines.as_slice() {
        // Of several nobody could tell which one it stands before.
        [engine] if scenario.is_tapped => {
            let relay =
                Relay::start(engine.port, &model, spoken(scenario)).map_err(RunError::Rig)?;
            Some(Arc::new(relay))
        }
        _ => None,
    };
    let gateway = match &scenario.gateway {
        Some(subject) if is_started => {
            let relayed = relay.as_ref().map(|relay| relay.port());
            let ports: Vec<u16> = engines.iter().map(|engine| engine.port).collect();
            let upstream = relayed.or(ports.first().copied());
            let upstream = upstream.ok_or_else(|| {
                let says = "a gateway that is started needs an engine that is: with engine.url, name a running gateway with --target";
                RunError::Usage(says.into())
            })?;
            let upstreams = (upstream, upstreams_of(scenario)?);
            let cores = scenario.gateway_cores;
            let gateway = Gateway::start(subject, upstreams, &ports, &dir, cores);
            Some(gateway.map_err(|error| match error {
                NotStarted::Unusable(says) => RunError::Usage(says),
                NotStarted::Unreachable(says) => RunError::Unreachable(says),
            })?)
        }
        _ => None,
    };
    Ok(Rig {
        gateway,
        relay,
        engines,
    })
}

/// Whether every page and every metric that is asked for is there; what is doubtful of them.
fn check_scrape(scenario: &Scenario, targets: &[Target]) -> Result<Vec<String>, RunError> {
    let scraped = scenario
        .queries()
        .filter(|query| query.targets().all(|name| name != "client"));
    let scraped: Vec<Query> = scraped.cloned().collect();
    let checked = check(targets, &scraped, PATIENCE);
    if !checked.faults.is_empty() {
        // A query that cannot be answered is a mistake; a page that cannot be had is not.
        let is_mistake = checked.faults.iter().all(|fault| fault.query.is_some());
        let mut faults: Vec<String> = checked.faults.iter().map(ToString::to_string).collect();
        faults.dedup();
        let says = faults.join("\n");
        return Err(if is_mistake {
            RunError::Usage(format!(
                "{says}\nname targets in the scenario, or with --scrape NAME=URL"
            ))
        } else {
            RunError::Unreachable(says)
        });
    }
    let warnings = checked.warnings.iter().map(ToString::to_string);
    let warnings: Vec<String> = warnings.collect();
    for warning in &warnings {
        hint(&format!("warning: {warning}"));
    }
    Ok(warnings)
}

pub(super) fn stop_if(interrupt: &Interrupt) -> Result<(), RunError> {
    if interrupt.was_heard() {
        return Err(RunError::Interrupted);
    }
    Ok(())
}

/// Runs the suite, where there is one and its upstreams can be ours.
fn verify(asked: Asked<'_>) -> Result<Option<Verified>, Unprepared> {
    let Asked {
        options, scenario, ..
    } = asked;
    let Some(file) = scenario.suite.as_ref().filter(|_| !options.no_verify) else {
        return Ok(None);
    };
    let usage = |error: &dyn std::fmt::Display| RunError::Usage(error.to_string());
    let suite = Suite::read(file).map_err(|error| usage(&error))?;
    let settled = match (&options.target, &scenario.gateway) {
        // A gateway that runs has upstreams of its own: only its owner knows where it would find others.
        (Some(_), _) if options.upstreams.is_empty() && !suite.upstreams.is_empty() => {
            hint(
                "the functional suite is left out, and the verdict says so: name its upstreams with --upstream NAME=HOST:PORT",
            );
            return Ok(None);
        }
        (Some(target), _) => {
            hint(&format!("verifying {}", file.display()));
            // The suite's paths begin with the version that --target ends with.
            let base = target.trim_end_matches('/');
            let base = base.strip_suffix("/v1").unwrap_or(base);
            verify::of_target(&suite, base, &options.upstreams, &options.metrics)
        }
        (None, Some(gateway)) => {
            hint(&format!("verifying {}", file.display()));
            verify::of_gateway(&suite, gateway)
        }
        (None, None) => return Ok(None),
    };
    let unreachable = match settled.map_err(|error| usage(&error))? {
        Ok(verified) => return Ok(Some(verified)),
        Err(unreachable) => unreachable,
    };
    // It was perhaps not waited for to the end.
    let error = stop_if(asked.interrupt).err();
    let error = error.unwrap_or_else(|| RunError::Unreachable(unreachable.to_string()));
    Err(Unprepared {
        error: Box::new(error),
        verified: Some(unreachable.verified),
    })
}

/// The names under which a gateway's templates have the ports of upstreams.
pub(in crate::campaign) fn upstreams_of(scenario: &Scenario) -> Result<Vec<String>, RunError> {
    let Some(suite) = &scenario.suite else {
        return Ok(Vec::new());
    };
    let suite = Suite::read(suite).map_err(|error| RunError::Usage(error.to_string()))?;
    let upstreams = suite.upstreams.into_iter();
    Ok(upstreams.map(|upstream| upstream.name).collect())
}

fn steered(
    scenario: &Scenario,
    corpus: &Path,
    base: &str,
    gateway: Option<&Gateway>,
) -> Result<Steered, RunError> {
    let of_gateway = gateway.map(|gateway| gateway.started.client.headers.clone());
    let mut headers: Vec<(String, String)> = of_gateway.unwrap_or_default().into_iter().collect();
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case(WORKLOAD_HEADER));
    headers.extend(scenario.headers.clone());
    let profiles = scenario.profiles.iter().map(|profile| Said {
        name: profile.name.clone(),
        weight: profile.weight,
        think: profile.think.clone(),
        scope: profile.scope,
        headers: profile.headers.clone().into_iter().collect(),
    });
    let plan = &scenario.plan;
    let month = Duration::from_secs(31 * 86_400);
    Ok(Steered::new(&Steering {
        corpus: corpus.to_owned(),
        target: base.to_owned(),
        seed: scenario.seed,
        max_users: plan.max_users,
        once: false,
        profiles: profiles.collect(),
        headers,
        timeout: scenario.timeout,
        heeds_retry_after: scenario.heeds_retry_after,
        protocol: spoken(scenario),
        longest: plan.longest().saturating_add(DRAINED).min(month),
        base: scenario.dir.clone(),
    })?)
}

/// What users speak, on as many connections as the most of them need.
fn spoken(scenario: &Scenario) -> Protocol {
    match scenario.protocol {
        HttpVersion::Http1 => Protocol::Http1,
        HttpVersion::Http2 => Protocol::Http2 {
            connections: scenario.plan.max_users.div_ceil(USERS_OF_A_CONNECTION) as usize,
        },
    }
}

/// What is scraped: what the scenario names, in which `{admin_port}`, `{engine_port}` and `{dcgm_port}` are filled in.
fn targets(options: &Options, scenario: &Scenario, rig: &Rig) -> Result<Vec<Target>, RunError> {
    let (engines, gateway) = (&rig.engines, rig.gateway.as_ref());
    let mut urls: BTreeMap<String, String> = BTreeMap::new();
    if !engines.is_empty() {
        urls.insert(
            "engine".into(),
            "http://127.0.0.1:{engine_port}/metrics".into(),
        );
        urls.insert("gpu".into(), "http://127.0.0.1:{dcgm_port}/metrics".into());
    } else if let Some(url) = &scenario.engine.url {
        urls.insert(
            "engine".into(),
            format!("{}/metrics", url.trim_end_matches('/')),
        );
    }
    if gateway.is_some() {
        let url = "http://127.0.0.1:{admin_port}/stats/prometheus";
        urls.insert("gateway".into(), url.into());
    }
    urls.extend(scenario.targets.iter().cloned());
    urls.extend(options.scrape.iter().cloned());
    if engines.is_empty() && gateway.is_none() {
        urls.retain(|name, url| {
            let is_known = !has_place(url);
            if !is_known {
                let says = "is not scraped, as nothing is started that it would be of";
                hint(&format!(
                    "warning: target {name} {says}: name it with --scrape {name}=URL"
                ));
            }
            is_known
        });
    }
    let fill = |url: &str, engine: Option<&Engine>| {
        let mut url = url.to_owned();
        if let Some(engine) = engine {
            url = url.replace("{engine_port}", &engine.port.to_string());
            url = url.replace("{dcgm_port}", &engine.dcgm_port.to_string());
        }
        match gateway {
            Some(gateway) => gateway.started.places.fill(&url),
            None => url,
        }
    };
    let target = |(name, url): (String, String)| {
        let is_of_each = ["{engine_port}", "{dcgm_port}"]
            .iter()
            .any(|place| url.contains(place));
        let (first, others) = engines.split_first().unzip();
        let others = others.map_or(&[][..], |others| others);
        let target = Target::parse(&name, &fill(&url, first))?;
        let others = others.iter().filter(|_| is_of_each);
        others
            .map(|engine| Target::parse(&name, &fill(&url, Some(engine))))
            .try_fold(target, |target, other| Ok(target.and(other?)))
    };
    let targets = urls.into_iter().map(target);
    targets.collect::<Result<_, _>>().map_err(RunError::Usage)
}

impl Prepared {
    /// Whether what answers is known to be simulated.
    pub(super) const fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// All that telemetry is kept for.
    pub(super) fn queries(&self) -> Vec<Query> {
        let mut queries = queries::queries();
        queries.extend(self.scenario.queries().cloned());
        queries
    }

    /// What pairs the gateway's requests with the engine's. The relay is held by both, so that either may end first.
    pub(super) fn pairing(&self) -> Pairing {
        let log = self.rig.gateway.as_ref();
        let log = log.map(|gateway| gateway.started.places.dir.join("access.log"));
        Pairing::new(self.rig.relay.clone(), log, self.cgroup.as_ref())
    }

    /// What was noticed meanwhile.
    pub(super) fn notes(&self) -> Vec<Event> {
        let warnings = self.warnings.iter().cloned();
        warnings
            .map(|says| NoteKind::Warning.outside(says))
            .collect()
    }

    /// Why a part has ended, if one has.
    pub(super) fn ended(&mut self) -> Option<String> {
        let engine = self.rig.engines.iter_mut().find_map(Engine::ended);
        engine.or_else(|| {
            let gateway = self.rig.gateway.as_mut();
            gateway.and_then(|gateway| gateway.started.ended())
        })
    }

    /// What is under test, for a reader.
    pub(super) fn under_test(&self) -> BTreeMap<String, String> {
        let mut told = BTreeMap::new();
        if let Some(gateway) = &self.rig.gateway {
            let version = gateway.started.version.clone().unwrap_or_default();
            told.insert(
                "gateway".into(),
                format!("{} {version}", gateway.started.name),
            );
            if let Some((cores, _)) = gateway.quota() {
                told.insert("gateway quota".into(), format!("{cores} cores"));
            }
        } else {
            told.insert("gateway".into(), self.base.clone());
        }
        told.insert("engine".into(), engine_of(&self.scenario));
        told.insert("model".into(), self.steered.corpus.model.clone());
        told
    }

    /// What is needed to do it again.
    pub(super) fn reproduce(&self, options: &Options) -> Reproduce {
        let gateway = self.rig.gateway.as_ref();
        let version = gateway.and_then(|gateway| gateway.started.version.clone());
        let mut reproduce = reproduce(options, &self.scenario, Some(&self.corpus), version);
        let pairs = self.rig.relay.is_some().then(|| PAIRS.to_owned());
        reproduce.files.extend(pairs);
        reproduce
    }
}

/// Whether an engine was to be simulated, where it did not come to that.
pub(super) const fn would_simulate(options: &Options, scenario: &Scenario) -> bool {
    options.target.is_none() && scenario.engine.url.is_none()
}

/// What was to be under test, where it did not come to that.
pub(super) fn named(options: &Options, scenario: &Scenario) -> BTreeMap<String, String> {
    let gateway = match (&options.target, &scenario.gateway) {
        (Some(url), _) => crate::campaign::without_credentials(url),
        (None, Some(dir)) => dir.display().to_string(),
        (None, None) => String::new(),
    };
    BTreeMap::from([
        ("gateway".to_owned(), gateway),
        ("engine".to_owned(), engine_of(scenario)),
    ])
}

fn engine_of(scenario: &Scenario) -> String {
    match (&scenario.engine.url, &scenario.engine.preset) {
        (Some(url), _) => crate::campaign::without_credentials(url),
        (None, Some(preset)) => {
            let replicas = match scenario.engine.replicas {
                Some(many @ 2..) => format!("{many} of "),
                _ => String::new(),
            };
            format!("{replicas}simulated, preset {preset}, in real time")
        }
        (None, None) => String::new(),
    }
}

/// What is needed to do it again, as far as it is known.
pub(super) fn reproduce(
    options: &Options,
    scenario: &Scenario,
    corpus: Option<&Path>,
    version: Option<String>,
) -> Reproduce {
    let machine = Machine::read(descriptors::raise());
    let mut hashes = BTreeMap::new();
    hashes.insert("scenario.toml".to_owned(), scenario.hash());
    let manifest = corpus.map(|dir| dir.join(corpus::store::MANIFEST));
    let files = [manifest.as_ref(), scenario.suite.as_ref()];
    for file in files.into_iter().flatten() {
        let is_small = fs::metadata(file).is_ok_and(|about| about.len() <= HASHED);
        if let Some(bytes) = is_small.then(|| fs::read(file).ok()).flatten() {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            hashes.insert(name.into_owned(), sha256(&bytes));
        }
    }
    let mut files = Vec::new();
    // Without a corpus nothing was loaded.
    if corpus.is_some() {
        files.extend([REQUESTS, SAMPLES].map(str::to_owned));
    }
    Reproduce {
        command: crate::campaign::command(options),
        tool: format!("prove {}", env!("CARGO_PKG_VERSION")),
        seed: scenario.seed,
        hashes,
        versions: version
            .map(|version| ("gateway".to_owned(), version))
            .into_iter()
            .collect(),
        machine: crate::campaign::told(&machine),
        files,
        scenario: scenario.text.clone(),
    }
}
