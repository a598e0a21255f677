//! The processes of a campaign: engine and gateway; each is ended when it is dropped.
//!
//! Invariant: what is handed out has answered.
//! Not here: a gateway's directory (`subject`), who is asked what (`real`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::scenario::Scenario;
use crate::host::ports;
use crate::host::process::{Group, Start};
use crate::host::quota::Cgroup;
use crate::host::ready::{get, last_lines, start_ready};
use crate::subject::{NotStarted, Started, Subject, Surroundings};

/// How long a part may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A simulated engine that we started.
pub(super) struct Engine {
    pub(super) port: u16,
    pub(super) dcgm_port: u16,
    group: Group,
    log: PathBuf,
}

/// A gateway that we started. It ends before the group of its quota.
pub(super) struct Gateway {
    pub(super) started: Started,
    quota: Option<(f64, Cgroup)>,
}

impl Engine {
    /// Starts as many as the scenario says, each in a directory of its own.
    pub(super) fn start_all(scenario: &Scenario, dir: &Path) -> Result<Vec<Self>, String> {
        match scenario.engine.replicas.unwrap_or(1) {
            1 => Ok(vec![Self::start(scenario, dir)?]),
            many => (1..=many)
                .map(|nth| Self::start(scenario, &dir.join(nth.to_string())))
                .collect(),
        }
    }

    /// Starts `prove engine` with the scenario's preset.
    fn start(scenario: &Scenario, dir: &Path) -> Result<Self, String> {
        let preset = scenario.engine.preset.as_deref().unwrap_or_default();
        let [port, dcgm_port] = ports::two_free().map_err(|error| error.to_string())?;
        fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let mut args: Vec<String> = vec![
            "engine".into(),
            "--listen".into(),
            ports::loopback(port).to_string(),
            "--preset".into(),
            preset_of(scenario, preset),
            "--dcgm".into(),
            ports::loopback(dcgm_port).to_string(),
        ];
        args.extend(scenario.engine.args.iter().cloned());
        let log = dir.join("engine.log");
        let group = start_ready(
            "the engine",
            Start::own(&args, dir, &log),
            (ports::loopback(port), &get("/health")),
            PATIENCE,
        )?;
        Ok(Self {
            port,
            dcgm_port,
            group,
            log,
        })
    }

    /// Why it has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.group.ended()?;
        Some(format!(
            "the engine ended ({status}){}",
            last_lines(&self.log)
        ))
    }
}

/// What the port of an engine is called in a gateway's templates.
pub(super) fn replica(nth: u32) -> String {
    format!("replica-{nth}")
}

/// A preset beside the scenario goes before one of that name.
pub(super) fn preset_of(scenario: &Scenario, preset: &str) -> String {
    let beside = scenario.beside(preset);
    match fs::canonicalize(beside) {
        Ok(file) if file.is_file() => file.display().to_string(),
        _ => preset.to_owned(),
    }
}

impl Gateway {
    /// Starts a gateway's directory in front of an upstream, which stands for all that these names stand for, and of replicas, by
    /// their numbers from 1.
    pub(super) fn start(
        subject: &Path,
        (upstream_port, named): (u16, Vec<String>),
        replicas: &[u16],
        dir: &Path,
        cores: Option<f64>,
    ) -> Result<Self, NotStarted> {
        let unusable = NotStarted::Unusable;
        let subject = Subject::of(subject).and_then(Subject::under_load);
        let subject = subject.map_err(|error| unusable(error.to_string()))?;
        let quota = cores.map(|cores| Ok((cores, Cgroup::make(None, cores)?)));
        let quota: Option<(f64, Cgroup)> = quota.transpose().map_err(unusable)?;
        let names = named.into_iter().map(|name| (name, upstream_port));
        let replicas = replicas.iter().zip(1..);
        let replicas = replicas.map(|(port, nth)| (replica(nth), *port));
        let started = Started::start(
            &subject,
            Surroundings {
                home: dir.join(&subject.name),
                upstream_port,
                further_ports: names.chain(replicas).collect(),
                cgroup: quota.as_ref().map(|(_, group)| group.dir()),
            },
        )?;
        Ok(Self { started, quota })
    }

    /// The cgroup of its quota.
    pub(super) fn quota(&self) -> Option<(f64, &Path)> {
        self.quota
            .as_ref()
            .map(|(cores, group)| (*cores, group.dir()))
    }
}
