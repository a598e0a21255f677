//! `prove audit sessions`: clients of tools (MCP) over several gates with one secret, which are killed and started again at random.
//!
//! Half of the clients have sessions (2025-11-25), half have none (2026-07-28) and are asked to ask again with a sealed state. Each
//! counts its requests from one, so that ids of all of them collide, and sends each to the next gate, as behind one address that
//! spreads requests.
//! Invariant: an answer is held against what its own client sent: id, text and the server's session. A session or a state that is
//! refused was lost: the gates keep nothing, so that no kill may take one.
//! Not here: filters (`filters`), what a server with sessions says to clients that have none.

mod client;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use experiment::random::Rng;
use load::client::{Client, Protocol, Reach, Trust};

use super::crowd::{Crowd, watch};
use super::gate::Gate;
use super::verdict::{Found, Verdict};
use super::{AuditError, Common};
use crate::race::upstream::Upstream;
use client::{Shared, Told};

/// A call without an answer for so long has none.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Without one answer for so long, the audit is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a killed gate stays dead at most.
const DEAD_MS: u64 = 300;
const WORKLOAD: &str = "audit";
const SECRET: &str = "5f0c1f4e6b7a88990011223344556677aabbccddeeff00112233445566778899";

/// Kills gates of tools behind one address, and looks for answers to the wrong client and for sessions that were lost.
#[derive(Debug, Args)]
pub(super) struct Sessions {
    /// Calls to be answered.
    #[arg(long, default_value_t = 1_000_000)]
    calls: u64,
    /// Gates behind one address.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    gates: u16,
    /// Kills among the calls.
    #[arg(long, default_value_t = 100)]
    kills: u16,
    #[command(flatten)]
    common: Common,
}

/// Holds the audit; whether every answer was its client's own and nothing was lost.
pub(super) fn sessions(options: &Sessions) -> Result<bool, AuditError> {
    let common = &options.common;
    let (program, home, seed) = (common.program()?, common.home()?, common.seed());
    let upstream = Upstream::of_tools(home.path()).map_err(AuditError::Gate)?;
    let config = format!(
        "backends: {{ none: {{ url: \"http://{0}/v1\" }} }}\n\
         routes: [ {{ workload: models, backend: none }} ]\n\
         mcp:\n  secret: {{ inline: {SECRET} }}\n\
         \x20 servers: {{ one: {{ url: \"http://{0}/one/mcp\" }}, two: {{ url: \"http://{0}/two/mcp\" }} }}\n\
         \x20 routes: [ {{ workload: {WORKLOAD} }} ]\n",
        upstream.address()
    );
    let mut gates = Vec::new();
    for number in 0..options.gates {
        let own = home.path().join(format!("gate-{number}"));
        fs::create_dir(&own)?;
        let mut gate = Gate::new(program.clone(), &own, false, &config)?;
        gate.start()?;
        gates.push(gate);
    }
    let began = Instant::now();
    let shared = Arc::new(Shared::new(gates.iter().map(Gate::data).collect()));
    let theirs = Arc::clone(&shared);
    let crowd = Crowd::start(common.users, move || {
        let targets = theirs.gates.iter().map(|gate| (*gate).into()).collect();
        let client = Client::new(Reach {
            targets,
            protocol: Protocol::Http1,
            trust: Trust::System,
            timeout: TIMEOUT,
        });
        let client = std::rc::Rc::new(client.expect("without TLS no authority is read"));
        move |number| client::live(Arc::clone(&theirs), std::rc::Rc::clone(&client), number)
    })?;
    let killed = kill_along(options, seed, &mut gates, &shared)?;
    shared.stop();
    let told = crowd.join()?;
    let seconds = began.elapsed().as_secs_f64();
    for gate in &mut gates {
        gate.stop()?;
    }
    Ok(verdict(options, seed, seconds, killed, &told).print(common.json))
}

/// Kills one gate, now and then two, at random moments until all calls are answered.
fn kill_along(
    options: &Sessions,
    seed: u64,
    gates: &mut [Gate],
    shared: &Shared,
) -> Result<u16, AuditError> {
    let mut rng = Rng::new(seed);
    let mut draw = |below: usize| usize::try_from(rng.below(below.max(1) as u64)).unwrap_or(0);
    let calls = usize::try_from(options.calls).unwrap_or(usize::MAX);
    let mut moments: Vec<usize> = (0..options.kills).map(|_| draw(calls)).collect();
    moments.sort_unstable();
    let until = |answers: u64| {
        watch(
            PATIENCE,
            "calls",
            || shared.answered(),
            |now| now >= answers,
        )
    };
    let mut killed = 0;
    for moment in moments {
        until(moment as u64)?;
        let first = draw(gates.len());
        // With a second one dead the last is all there is.
        let second = (draw(4) == 0).then(|| (first + 1) % gates.len());
        let second = second.filter(|second| *second != first);
        for dead in [Some(first), second].into_iter().flatten() {
            gates[dead].kill()?;
        }
        std::thread::sleep(Duration::from_millis(draw(DEAD_MS as usize) as u64));
        for dead in [Some(first), second].into_iter().flatten() {
            gates[dead].start()?;
        }
        killed += 1;
    }
    until(options.calls)?;
    Ok(killed)
}

fn verdict(options: &Sessions, seed: u64, seconds: f64, killed: u16, told: &[Told]) -> Verdict {
    let mut sum = Told::default();
    told.iter().for_each(|one| sum.absorb(one));
    let mut verdict = Verdict::new("sessions", seed, options.common.times);
    verdict.tell("gates", options.gates);
    verdict.tell("clients", told.len());
    verdict.tell("seconds", seconds.round());
    verdict.hold("moments of kills", killed, killed == options.kills);
    let answered = sum.with_session + sum.without_session;
    verdict.hold("calls answered", answered, answered >= options.calls);
    verdict.hold("in sessions", sum.with_session, sum.with_session > 0);
    verdict.hold(
        "without sessions",
        sum.without_session,
        sum.without_session > 0,
    );
    verdict.tell("of these, with a state that was sealed before", sum.states);
    verdict.tell("calls that a kill cut off, sent again", sum.cut);
    let none = |verdict: &mut Verdict, what: &str, found: &Found| verdict.none(what, found);
    none(
        &mut verdict,
        "answers of another client or call",
        &sum.wrong,
    );
    none(
        &mut verdict,
        "calls that came to another session at the server",
        &sum.moved,
    );
    none(&mut verdict, "sessions lost", &sum.sessions_lost);
    none(&mut verdict, "states lost", &sum.states_lost);
    none(
        &mut verdict,
        "calls refused or without an answer",
        &sum.refused,
    );
    verdict
}
