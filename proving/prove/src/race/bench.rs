//! A subject on the bench: started, checked, measured, stopped.
//!
//! Invariant: once a subject has a fault it is asked nothing more, and its fault is kept for its
//! rows; while another is measured it stands still.
//! Not here: what a good answer is (`check`), the figures (`cell`), when one is ready (`ready`).

mod credentials;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use experiment::workload::Part;
use serde::Serialize;

use super::bodies::{Bodies, Requests};
use super::cell::{self, Cell, Parties, Sent};
use super::check::{self, Checked};
use super::counts::Meter;
use super::profile;
use super::scenario::{Scenario, Timing, Traffic};
use super::tools::{self, Talk};
use super::translated;
use super::upstream::Upstream;
use crate::host::process::{Group, Start};
use crate::host::quota::{Cgroup, Throttling};
use crate::host::ready::{await_ready, last_lines};
use crate::host::usage::{Process, resident};
use crate::host::{descriptors, ports};
use crate::issuer::Issuer;
use crate::subject::{Client, Launch, Places, Subject, SubjectError};
use credentials::Credentials;

#[cfg(test)]
mod tests;

const POLL: Duration = Duration::from_millis(20);
/// How long a port may stay with its last owner.
const PORT_PATIENCE: Duration = Duration::from_secs(5);

/// One subject.
pub(crate) struct Bench {
    subject: Subject,
    /// At least one; the client's requests go to them in turn.
    replicas: Vec<Replica>,
    version: Option<String>,
    /// So many processes send what it is asked.
    processes: usize,
    /// What the client sends it, filled in but for the token.
    client: Client,
    credentials: Credentials,
    /// The quota that each replica runs under.
    quota: Option<f64>,
    /// Where groups may be made.
    cgroups: Option<PathBuf>,
    fault: Option<Fault>,
    checked: Checked,
    /// Where the race is one of gateways of tools.
    talk: Option<Talk>,
    /// The file with its flame graph, or why there is none.
    flame: Option<Result<String, String>>,
}

/// One of a subject's replicas, with ports and a directory of its own.
struct Replica {
    places: Places,
    group: Option<Group>,
    /// Where it runs under a quota; dropped after the processes have ended.
    cgroup: Option<Cgroup>,
}

/// Why there are no figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) says: String,
    /// The manifest foretold it: no reason to distrust the race.
    pub(crate) known: bool,
}

struct Fault {
    says: String,
    /// A rival that is not installed is no failure unless it was asked for by name.
    missing: bool,
}

/// What the result file says of a subject.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) version: Option<String>,
    pub(crate) problem: Option<String>,
    /// Whether the problem makes the race one that is not to be trusted.
    pub(crate) failed: bool,
    /// What a reader of its figures has to know.
    pub(crate) notes: Vec<String>,
    /// The same without the meter, with which its CPU for a call is compared.
    pub(crate) unmetered: Option<String>,
    /// File beside the result with its flame graph, when one was asked for and taken.
    pub(crate) flame: Option<String>,
}

impl Bench {
    pub(crate) fn new(
        subject: Subject,
        home: &Path,
        upstream_port: u16,
        cgroups: Option<PathBuf>,
        issuer: &mut Issuer,
    ) -> Result<Self, String> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let issuer_port = issuer.port();
        let replica = |number: u16| Replica {
            places: Places {
                port: 0,
                admin_port: 0,
                upstream_port,
                further_ports: BTreeMap::new(),
                issuer_port,
                cores,
                dir: match number {
                    1 => home.join(&subject.name),
                    _ => home.join(format!("{}.{number}", subject.name)),
                },
            },
            group: None,
            cgroup: None,
        };
        let replicas = (1..=subject.manifest.replicas).map(replica).collect();
        let credentials = Credentials::new(&subject.manifest.client, issuer)?;
        Ok(Self {
            subject,
            replicas,
            version: None,
            processes: 1,
            client: Client::default(),
            credentials,
            quota: None,
            cgroups,
            fault: None,
            checked: Checked::default(),
            talk: None,
            flame: None,
        })
    }

    /// This as a gateway of tools, or of models.
    pub(crate) fn of_tools(mut self, is_so: bool) -> Self {
        self.talk = is_so.then(Talk::default);
        self
    }

    /// This, asked by a fleet of so many processes.
    pub(crate) const fn asked_by(mut self, processes: usize) -> Self {
        self.processes = processes;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.subject.name
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.subject.is_direct()
    }

    /// The subject that it is without its meter.
    pub(crate) fn unmetered(&self) -> Option<&str> {
        self.subject.manifest.unmetered.as_deref()
    }

    pub(crate) fn takes_part_in(&self, scenario: &Scenario) -> bool {
        let translates = |dialect| self.subject.manifest.translates.contains(&dialect);
        self.subject.takes_part_in(&scenario.name) && scenario.dialect.is_none_or(translates)
    }

    /// Fetches the subject where it is missing; a failure is kept.
    pub(crate) fn install(&mut self) {
        if let Err(says) = self.subject.install() {
            self.fault = Some(Fault {
                says: format!("not installed: {says}"),
                missing: true,
            });
        }
    }

    /// Starts the subject and checks that it answers as the upstream does; a fault is kept.
    pub(crate) fn start_and_check(&mut self, upstream: &Upstream) {
        if self.fault.is_some() {
            return;
        }
        let checked = self.start().and_then(|()| {
            if self.talk.is_some() {
                // Each version and form is tried before it is measured.
                return Ok(Checked::default());
            }
            let client = self.credentials.first(&self.client);
            let who = (&self.subject.manifest, &client);
            let of = |address| check::check(who, address, upstream.address());
            let all: Result<Vec<Checked>, String> =
                self.addresses(upstream).into_iter().map(of).collect();
            // They are one program with one configuration: what is to be said of one is to be said of all.
            Ok(all?.into_iter().next().unwrap_or_default())
        });
        match checked {
            Ok(checked) => {
                self.checked = checked;
                self.pause();
            }
            Err(says) => {
                self.fault.get_or_insert(Fault {
                    says,
                    missing: false,
                });
                self.stop();
            }
        }
    }

    fn start(&mut self) -> Result<(), String> {
        let program = match self.subject.program() {
            Ok(Some(program)) => program,
            Ok(None) => return Ok(()),
            Err(error) => {
                let missing = matches!(error, SubjectError::NotInstalled { .. });
                self.fault = Some(Fault {
                    says: error.to_string(),
                    missing,
                });
                return Err(error.to_string());
            }
        };
        if self.version.is_none() {
            self.version = self.subject.version_of(&program);
        }
        for at in 0..self.replicas.len() {
            self.start_replica(at, &program)?;
        }
        Ok(())
    }

    fn start_replica(&mut self, at: usize, program: &Path) -> Result<(), String> {
        let Some(replica) = self.replicas.get_mut(at) else {
            return Ok(());
        };
        let said = |error: std::io::Error| format!("could not be started: {error}");
        let places = &mut replica.places;
        if places.port == 0 {
            let [port, admin_port] = ports::two_free().map_err(said)?;
            (places.port, places.admin_port) = (port, admin_port);
        }
        let launch = self.subject.render(places).map_err(said)?;
        let client = self.credentials.prepare(program, &places.dir, &launch)?;
        if at == 0 {
            self.client = client;
        }
        await_port(places.port)?;
        replica.launch(program, &launch).map_err(said)?;
        let patience = Duration::from_secs(self.subject.manifest.ready_seconds);
        let first = self.credentials.first(&self.client);
        let request = match &mut self.talk {
            None => check::unary(Some(&first), &[])?,
            Some(talk) => {
                talk.forget();
                tools::knock(&first)?
            }
        };
        let (address, log) = (replica.address(), replica.log());
        match &mut replica.group {
            Some(group) => await_ready(group, address, &request, patience, &log),
            None => Ok(()),
        }
    }

    /// Where the client's requests go, in turn.
    fn addresses(&self, upstream: &Upstream) -> Vec<SocketAddr> {
        if self.is_direct() {
            return vec![upstream.address()];
        }
        self.replicas.iter().map(Replica::address).collect()
    }

    /// Why this subject cannot be measured in `scenario`.
    pub(crate) fn problem(&self, scenario: &Scenario, limit: u64) -> Option<Problem> {
        let of = |says: String, known| Some(Problem { says, known });
        if let Some(fault) = &self.fault {
            return of(fault.says.clone(), fault.missing);
        }
        if let Some(says) = self
            .checked
            .stream_fault
            .clone()
            .filter(|_| scenario.streams())
        {
            let known = self.subject.manifest.known_stream_fault.as_ref();
            let says = known.map_or_else(|| says.clone(), |why| format!("{says}: {why}"));
            return of(says, known.is_some());
        }
        if let Some(says) = self
            .checked
            .deaf
            .clone()
            .filter(|_| scenario.latency_ms > 0)
        {
            return of(says, false);
        }
        let each = if self.is_direct() {
            1
        } else {
            // A user keeps a connection to each replica.
            u64::from(self.subject.manifest.replicas) + 1
        };
        let shortage = descriptors::shortage(scenario.users, each, limit)?;
        of(shortage, false)
    }

    /// One measurement; a subject that dies in it has a fault from then on.
    pub(crate) fn measure(
        &mut self,
        traffic: &Traffic<'_>,
        upstream: &Upstream,
        seconds: f64,
        round: usize,
    ) -> Result<Cell, String> {
        let outcome = self.try_measure(traffic, upstream, seconds, round);
        self.pause();
        let died = self.replicas.iter_mut().find_map(Replica::ended);
        if let Some((status, log)) = died {
            let says = format!(
                "died in {} ({status}){}",
                traffic.scenario.name,
                last_lines(&log)
            );
            self.fault = Some(Fault {
                says: says.clone(),
                missing: false,
            });
            return Err(says);
        }
        outcome
    }

    fn try_measure(
        &mut self,
        traffic: &Traffic<'_>,
        upstream: &Upstream,
        seconds: f64,
        round: usize,
    ) -> Result<Cell, String> {
        let scenario = traffic.scenario;
        self.ensure(scenario)?;
        let timing = scenario.timing(seconds);
        // Before its sessions are begun.
        let at_rest = scenario.mcp.map(|_| resident(&self.processes(upstream)));
        let sent = self.sent(traffic, &timing, upstream, round as u64)?;
        let meter = self.meter()?;
        let own = || self.processes(upstream);
        let by_replica = || self.by_replica();
        let parties = Parties {
            meter: meter.as_ref(),
            subject: &own,
            replicas: &by_replica,
            upstream: &|| upstream.processes(),
            opened: &|| upstream.opened(),
            workers: self.subject.manifest.workers.as_deref(),
            throttling: &|| self.throttling(),
            direct: self.is_direct(),
            at_rest,
        };
        cell::measure(
            &self.addresses(upstream),
            sent,
            (scenario, timing),
            round,
            self.processes,
            &parties,
        )
    }

    fn sent(
        &mut self,
        traffic: &Traffic<'_>,
        timing: &Timing,
        upstream: &Upstream,
        round: u64,
    ) -> Result<Sent, String> {
        let scenario = traffic.scenario;
        let addresses = self.addresses(upstream);
        if let (Some(talk), Some(tools)) = (&mut self.talk, scenario.mcp) {
            let [address] = *addresses else {
                return Err(
                    "a session of tools is one replica's: name a subject without `replicas`".into(),
                );
            };
            let client = if self.subject.is_direct() {
                &self.subject.manifest.client
            } else {
                &self.client
            };
            let client = self.credentials.first(client);
            return talk.sent((&client, address), tools, (scenario.users, scenario.hold));
        }
        if let Some(dialect) = scenario.dialect {
            let client = self.credentials.first(&self.client);
            for &address in &addresses {
                translated::check((&client, dialect), address, upstream.address(), scenario)?;
            }
        }
        let asks = check::asks(traffic.scenario, timing);
        let render = |client: &Client| match scenario.dialect {
            None => check::request(Some(client), &asks, &traffic.opening),
            Some(dialect) => dialect.request(client, &asks, &traffic.opening),
        };
        let fixed = self.credentials.requests(&self.client, render)?;
        let pool = traffic.pool.clone();
        let requests = Requests::new(fixed, pool.map(|pool| Bodies::new(pool, round)));
        Ok(requests.into())
    }

    /// Where the subject says what became of its counts, if it counts.
    fn meter(&self) -> Result<Option<Meter>, String> {
        let counting = self.subject.manifest.counting.as_ref();
        let first = self.replicas.first();
        let meter = counting
            .zip(first)
            .map(|(counting, replica)| Meter::of(counting, &replica.places));
        meter.transpose()
    }

    /// Leaves a flame graph of the subject under `scenario` in `dir`; what came of it is kept.
    pub(crate) fn profile(
        &mut self,
        traffic: &Traffic<'_>,
        upstream: &Upstream,
        seconds: f64,
        dir: &Path,
    ) {
        let scenario = traffic.scenario;
        let name = format!("flame-{}.svg", self.subject.name);
        let taken = self.ensure(scenario).and_then(|()| {
            let timing = scenario.timing(seconds);
            // After all rounds, with bodies that none of them had.
            let sent = self.sent(traffic, &timing, upstream, u64::MAX)?;
            let plan = cell::plan(
                &self.addresses(upstream),
                sent,
                (scenario, timing),
                Part::WHOLE,
            );
            let title = format!("{}, {}", self.subject.name, scenario.name);
            let processes = || self.processes(upstream);
            let home = self
                .replicas
                .first()
                .map_or(dir, |replica| &replica.places.dir);
            profile::profile(&title, plan, &processes, home, &dir.join(&name))
        });
        self.pause();
        self.flame = Some(taken.map(|()| name));
    }

    /// The subject runs as `scenario` wants it: fresh where streams are held, and under its quota.
    fn ensure(&mut self, scenario: &Scenario) -> Result<(), String> {
        if self.is_direct() {
            return Ok(());
        }
        let runs = self.replicas.iter().all(|replica| replica.group.is_some());
        if runs && !scenario.hold && self.quota == scenario.cpu_quota {
            self.groups().for_each(Group::resume);
            return Ok(());
        }
        let quota = |cores| Cgroup::make(self.cgroups.as_deref(), cores);
        let mut made = Vec::new();
        for _ in &self.replicas {
            made.push(scenario.cpu_quota.map(quota).transpose()?);
        }
        self.stop();
        self.quota = scenario.cpu_quota;
        for (replica, cgroup) in self.replicas.iter_mut().zip(made) {
            replica.cgroup = cgroup;
        }
        self.start()
    }

    /// Until it is measured again.
    fn pause(&self) {
        self.groups().for_each(Group::pause);
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.replicas
            .iter()
            .filter_map(|replica| replica.group.as_ref())
    }

    /// The subject's processes; without a gateway, the upstream's.
    pub(crate) fn processes(&self, upstream: &Upstream) -> Vec<Process> {
        if self.groups().next().is_none() {
            return upstream.processes();
        }
        self.by_replica().into_iter().flatten().collect()
    }

    /// The processes of each replica.
    fn by_replica(&self) -> Vec<Vec<Process>> {
        self.groups().map(Group::processes).collect()
    }

    /// What quotas did to all replicas together, where they have one.
    fn throttling(&self) -> Option<Throttling> {
        let each = self
            .replicas
            .iter()
            .map(|replica| Some(replica.cgroup.as_ref()?.throttling()));
        each.sum()
    }

    /// Ends the subject's processes; any that escaped is a fault.
    pub(crate) fn stop(&mut self) {
        let mut leaked = Vec::new();
        for replica in &mut self.replicas {
            if let Some(mut group) = replica.group.take() {
                leaked.extend(group.stop());
            }
            replica.cgroup = None;
        }
        self.quota = None;
        if !leaked.is_empty() {
            let names: Vec<_> = leaked
                .iter()
                .map(|process| format!("{} ({})", process.name, process.pid))
                .collect();
            let says = format!("left processes behind, ended by pid: {}", names.join(", "));
            self.fault.get_or_insert(Fault {
                says,
                missing: false,
            });
        }
    }

    pub(crate) fn told(&self, explicit: bool) -> Told {
        Told {
            name: self.subject.name.clone(),
            summary: self.subject.manifest.summary.clone(),
            version: self.version.clone(),
            problem: self.fault.as_ref().map(|fault| fault.says.clone()),
            failed: self
                .fault
                .as_ref()
                .is_some_and(|fault| explicit || !fault.missing),
            notes: self.notes(),
            unmetered: self.subject.manifest.unmetered.clone(),
            flame: self.flame.clone().and_then(Result::ok),
        }
    }

    fn notes(&self) -> Vec<String> {
        let stream = self.checked.stream_fault.as_ref();
        let flame = self.flame.as_ref().and_then(|flame| flame.as_ref().err());
        [
            flame.map(|says| format!("no flame graph: {says}")),
            self.subject.warning(),
            self.checked.note.clone(),
            stream.map(|says| format!("streams are not measured: {says}")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Replica {
    fn launch(&mut self, program: &Path, launch: &Launch) -> std::io::Result<()> {
        let group = Group::start(Start {
            program,
            args: &launch.args,
            env: &launch.env,
            dir: &self.places.dir,
            log: &self.log(),
            cgroup: self.cgroup.as_ref().map(Cgroup::dir),
        })?;
        self.group = Some(group);
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.places.dir.join("output.log")
    }

    fn address(&self) -> SocketAddr {
        ports::loopback(self.places.port)
    }

    /// How it ended, where it has, and what it wrote.
    fn ended(&mut self) -> Option<(String, PathBuf)> {
        let status = self.group.as_mut()?.ended()?;
        Some((status, self.log()))
    }
}

/// A port whose last owner was us is free again after a moment.
fn await_port(port: u16) -> Result<(), String> {
    let began = Instant::now();
    while ports::taken(port) {
        if began.elapsed() > PORT_PATIENCE {
            return Err(format!("port {port} is already taken"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}
