//! The parts of one run: backend, identity service and gate, each a process of its own, some under a quota.
//!
//! Invariant: nothing is measured before the gate let in whom it must and refused whom it must; what was started is ended.
//! Not here: the load (`measure`).

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use load::client::{Request, Trust, fetch};
use load::source::{Fixed, Payload};
use serde::Serialize;

use super::measure::{self, Watched};
use super::result::Run;
use super::scenario::{Limit, Scenario, Variant};
use super::stages::Counted;
use crate::host::ports;
use crate::host::process::{Group, Start};
use crate::host::quota::{Cgroup, Throttling};
use crate::host::ready::{get, start_ready};
use crate::host::usage::Process;
use crate::issuer::{Issuer, Role};
use crate::race::check;
use crate::race::upstream::Upstream;
use crate::subject::{Client, Places};

/// How long the gate may take to be ready, with a twentieth of a core too.
const READY: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// What stays the same for all runs.
pub(super) struct Rig<'a> {
    pub(super) dir: &'a Path,
    pub(super) gate: &'a Path,
    pub(super) home: &'a Path,
    pub(super) cgroup: Option<&'a Path>,
    pub(super) scenario: &'a Scenario,
    pub(super) upstream: &'a Upstream,
}

/// A caller that was tried before anything was measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    pub(super) what: &'static str,
    pub(super) status: u16,
    /// What it had to be.
    pub(super) expected: u16,
}

impl fmt::Display for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            status,
            expected,
        } = self;
        write!(out, "{what}: status {status} in place of {expected}")
    }
}

/// The tokens of a run.
struct Tokens {
    good: Vec<String>,
    denied: String,
    /// Well formed, and good for nothing.
    bad: String,
}

/// The gate of a run, or what stands in its place.
struct Gate {
    groups: Vec<Group>,
    port: u16,
    /// Of the gate alone.
    admin_port: Option<u16>,
}

impl Gate {
    fn processes(&self) -> Vec<Process> {
        self.groups.iter().flat_map(Group::processes).collect()
    }
}

impl Rig<'_> {
    /// One variant under one limit; what went wrong is in the run.
    pub(super) fn run(&self, variant: &Variant, limit: &Limit) -> Run {
        let mut run = Run::new(variant, limit);
        if let Err(says) = self.fill(&mut run, variant, limit) {
            run.problem = Some(says);
        }
        run
    }

    fn fill(&self, run: &mut Run, variant: &Variant, limit: &Limit) -> Result<(), String> {
        let quota = |cores: Option<f64>| cores.map(|cores| Cgroup::make(self.cgroup, cores));
        let of_gate = quota(limit.gate).transpose()?;
        let of_service = quota(limit.service).transpose()?;
        let home = self
            .home
            .join(format!("{} {}", variant.name, limit.name).replace(' ', "-"));
        let said = |error: std::io::Error| format!("{}: {error}", home.display());
        fs::create_dir_all(&home).map_err(said)?;
        let mut issuer = Issuer::new()?;
        let tokens = tokens(&mut issuer, variant)?;
        issuer.start(&home, of_service.as_ref().map(Cgroup::dir))?;
        let gate = if variant.hops.is_empty() {
            self.start(variant, &home, &issuer, of_gate.as_ref())?
        } else {
            self.start_hops(variant, &home, &issuer, of_gate.as_ref())?
        };
        let target = ports::loopback(gate.port);
        let (checks, expects) = self.check(target, &tokens, variant)?;
        run.checks = checks;
        if let Some(wrong) = run.wrong() {
            return Err(wrong.to_string());
        }
        let render = |token: &String| request(Some(token));
        let requests: Result<Vec<Request>, String> = tokens.good.iter().map(render).collect();
        let requests = requests?;
        let body = requests.first().ok_or("bug: no tokens")?.body.clone();
        let heads = requests.into_iter().map(|request| request.head).collect();
        let fixed = Fixed::in_turn(heads, Payload::from(body), Arc::default());
        let asked = measure::Asked {
            target: target.into(),
            trust: Trust::System,
            requests: fixed.map_err(|error| error.to_string())?,
            expects: Some(expects),
        };
        let watched = [
            ("gate", gate.processes()),
            ("service", issuer.processes()),
            ("backend", self.upstream.processes()),
        ]
        .map(|(part, processes)| Watched { part, processes });
        let throttling = |group: &Option<Cgroup>| group.as_ref().map(Cgroup::throttling);
        let before = [throttling(&of_gate), throttling(&of_service)];
        let already = issuer.asked()?;
        let admin = gate.admin_port.map(ports::loopback);
        let stages = admin.map(Counted::read).transpose()?;
        let progress = |number| {
            let of = self.scenario.iterations;
            eprintln!("{}, {}: iteration {number}/{of}", variant.name, limit.name);
        };
        let (iterations, parts) = measure::run(self.scenario, &asked, &watched, progress)?;
        run.average = Some(measure::average(&iterations));
        (run.iterations, run.parts) = (iterations, parts);
        run.asked = Some(issuer.asked()?.since(&already));
        let requests = run.iterations.iter().map(|one| one.requests).sum();
        if let (Some(admin), Some(stages)) = (admin, stages) {
            run.stages = Counted::read(admin)?.since(&stages, requests);
        }
        let after = [throttling(&of_gate), throttling(&of_service)];
        [run.gate_throttled, run.service_throttled] = [0, 1].map(|at| {
            let spent = |before: Throttling| Some(after[at]?.since(&before).into());
            before[at].and_then(spent)
        });
        let answered: u64 = run
            .iterations
            .iter()
            .map(|iteration| iteration.answered)
            .sum();
        if answered == 0 {
            return Err("nothing was answered as it must be".into());
        }
        issuer.stop();
        Ok(())
    }

    /// Starts the gate with the variant's configuration.
    fn start(
        &self,
        variant: &Variant,
        home: &Path,
        issuer: &Issuer,
        cgroup: Option<&Cgroup>,
    ) -> Result<Gate, String> {
        let said = |error: std::io::Error| format!("the gate could not be started: {error}");
        let [port, admin_port] = ports::two_free().map_err(said)?;
        let places = Places {
            port,
            admin_port,
            upstream_port: self.upstream.port(),
            further_ports: BTreeMap::new(),
            issuer_port: issuer.port(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            dir: home.to_owned(),
        };
        let config = self.render(variant, home, &places)?;
        let args = ["run", "-c", &config.to_string_lossy()].map(ToOwned::to_owned);
        let log = home.join("gate.log");
        let start = Start {
            program: self.gate,
            cgroup: cgroup.map(Cgroup::dir),
            ..Start::own(&args, home, &log)
        };
        let asks = (ports::loopback(admin_port), &get("/readyz"));
        let group = start_ready("the gate", start, asks, READY)?;
        Ok(Gate {
            groups: vec![group],
            port,
            admin_port: Some(admin_port),
        })
    }

    /// Starts other programs in the gate's place, the last first: each is ready before the one in front of it is started.
    fn start_hops(
        &self,
        variant: &Variant,
        home: &Path,
        issuer: &Issuer,
        cgroup: Option<&Cgroup>,
    ) -> Result<Gate, String> {
        let mut next_port = self.upstream.port();
        let mut groups = Vec::new();
        for (nth, hop) in variant.hops.iter().enumerate().rev() {
            let program = hop.found()?;
            let name = format!("{} {}", hop.program, nth + 1);
            let port = ports::free().map_err(|error| format!("no port for {name}: {error}"))?;
            let fill = |arg: &String| {
                arg.replace("{port}", &port.to_string())
                    .replace("{next_port}", &next_port.to_string())
                    .replace("{issuer_port}", &issuer.port().to_string())
            };
            let args: Vec<String> = hop.args.iter().map(fill).collect();
            let log = home.join(format!("hop-{}.log", nth + 1));
            let start = Start {
                program: &program,
                args: &args,
                env: &BTreeMap::new(),
                dir: home,
                log: &log,
                cgroup: cgroup.map(Cgroup::dir),
            };
            let ready = Request::get(&hop.ready);
            let ready = ready.map_err(|error| format!("{}: {error}", hop.ready))?;
            groups.push(start_ready(
                &name,
                start,
                (ports::loopback(port), &ready),
                READY,
            )?);
            next_port = port;
        }
        Ok(Gate {
            groups,
            port: next_port,
            admin_port: None,
        })
    }

    /// Writes the configuration and what lies beside it, with placeholders filled in.
    fn render(&self, variant: &Variant, home: &Path, places: &Places) -> Result<PathBuf, String> {
        let said = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let copy = |from: &Path, to: &Path| {
            let text = fs::read_to_string(from).map_err(|error| said(from, error))?;
            crate::files::write_private(to, &places.fill(&text)).map_err(|error| said(to, error))
        };
        for entry in fs::read_dir(self.dir).map_err(|error| said(self.dir, error))? {
            let from = entry.map_err(|error| said(self.dir, error))?.path();
            if let Some(name) = from.file_name().filter(|_| from.extension().is_none()) {
                copy(&from, &home.join(name))?;
            }
        }
        let config = home.join("tollgate.yaml");
        copy(&self.dir.join(&variant.config), &config)?;
        Ok(config)
    }

    /// Who is let in and who is not; and the body of every good answer, which is the backend's own.
    fn check(
        &self,
        gate: SocketAddr,
        tokens: &Tokens,
        variant: &Variant,
    ) -> Result<(Vec<Check>, Bytes), String> {
        let ask = |address, token: Option<&String>| {
            let answer = fetch(address, &request(token)?, PATIENCE);
            answer.map_err(|error| format!("before the first iteration: {error}"))
        };
        let expected = ask(self.upstream.address(), None)?.body;
        // The gate fetches the issuer's keys after it is ready.
        let began = Instant::now();
        while ask(gate, tokens.good.first())?.status == 503 && began.elapsed() < PATIENCE {
            thread::sleep(POLL);
        }
        let mut checks = Vec::new();
        for (what, token, status) in [
            ("a good token", tokens.good.first(), 200),
            ("a good token without the right", Some(&tokens.denied), 403),
            ("a bad token", Some(&tokens.bad), variant.bad_token_status),
        ] {
            let answer = ask(gate, token)?;
            if answer.status == 200 && answer.body != expected {
                return Err(format!("{what}: the answer is not the backend's"));
            }
            checks.push(Check {
                what,
                status: answer.status,
                expected: status,
            });
        }
        Ok((checks, expected.into()))
    }
}

fn tokens(issuer: &mut Issuer, variant: &Variant) -> Result<Tokens, String> {
    let (kind, count) = (variant.token, variant.tokens);
    if count > 1 {
        eprintln!("{}: making {count} tokens", variant.name);
    }
    let good = issuer.tokens(kind, Role::Inference, count)?;
    let (denied, other) = (
        one(issuer.tokens(kind, Role::Visitors, 1)?)?,
        one(Issuer::new()?.tokens(kind, Role::Inference, 1)?)?,
    );
    // One with the signature of another; an opaque one that stands in no table.
    let bad = match (other.rsplit_once('.'), denied.rsplit_once('.')) {
        (Some((head, _)), Some((_, signature))) => format!("{head}.{signature}"),
        _ => other,
    };
    Ok(Tokens { good, denied, bad })
}

fn one(tokens: Vec<String>) -> Result<String, String> {
    let first = tokens.into_iter().next();
    first.ok_or_else(|| "bug: no token".to_owned())
}

fn request(token: Option<&String>) -> Result<Request, String> {
    let client = token.map(|token| {
        let bearer = ("authorization".to_owned(), format!("Bearer {token}"));
        Client {
            headers: BTreeMap::from([bearer]),
            ..Client::default()
        }
    });
    check::unary(client.as_ref(), &[])
}
