//! `prove audit kills`: a gate under full load is killed at random moments and started again on its ledger.
//!
//! Invariant: every kill is a SIGKILL in the middle of calls; on a strict route nothing may be missing, on a grouped
//! one only the last calls of each connection, which were answered just before a kill.
//! Not here: losing power, which only a machine can do; files that are damaged (the ledger's own tests).

use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use engine::fixed::{FixedConfig, spawn_thread};
use engine::ground_truth::GroundTruth;
use experiment::random::Rng;

use super::account::{Account, Missing};
use super::calls::Callers;
use super::crowd::watch;
use super::gate::Gate;
use super::verdict::{Found, Verdict};
use super::{AuditError, Common, rows};
use crate::host::stalls::{self, Stalls};

#[cfg(test)]
mod tests;

/// Before a kill, a grouped route may have lost what was answered within this: a group's wait, and a slow disk's commit.
const LAST_MOMENTS: Duration = Duration::from_secs(1);
/// After a kill, the engine may still answer for so long what it had been sent.
const AFTERWARDS: Duration = Duration::from_millis(100);
/// A kill comes up to this long after its moment in the count.
const SPREAD_MS: u64 = 20;
/// Ready again after a kill.
const START_AGAIN: Duration = Duration::from_secs(5);
/// A gate that has been called for so long has written a group, however slow its disk is.
const FIRST_GROUP: Duration = Duration::from_secs(10);
/// How often it is asked whether it has.
const ASK: Duration = Duration::from_millis(20);
/// Without one answer for so long, the audit is given up.
const PATIENCE: Duration = Duration::from_secs(120);
const WORKLOAD: &str = "audit";

/// Kills a gate under load, and holds its ledger against the engine's account.
#[derive(Debug, Args)]
pub(super) struct Kills {
    /// Calls to be answered.
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Kills among them.
    #[arg(long, default_value_t = 100)]
    kills: u16,
    /// How the route is billed.
    #[arg(long, value_enum, default_value_t = Billing::Strict)]
    billing: Billing,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Billing {
    Strict,
    Grouped,
}

/// What the kills came to.
#[derive(Default)]
struct Killed {
    at: Vec<Instant>,
    slowest_start: Duration,
}

/// Holds the audit; whether nothing was lost or doubled.
pub(super) fn kills(options: &Kills) -> Result<bool, AuditError> {
    let common = &options.common;
    let (program, home, seed) = (common.program()?, common.home()?, common.seed());
    let calls = usize::try_from(options.requests).unwrap_or(usize::MAX);
    let ground_truth = GroundTruth::new(calls.saturating_mul(2).saturating_add(100_000));
    let engine = spawn_thread(FixedConfig {
        ground_truth: Some(ground_truth.clone()),
        ..FixedConfig::default()
    })?;
    let billing = match options.billing {
        Billing::Strict => "strict",
        Billing::Grouped => "grouped",
    };
    let config = format!(
        "backends: {{ engine: {{ url: \"http://{}/v1\" }} }}\n\
         routes: [ {{ workload: {WORKLOAD}, backend: engine, billing: {billing} }} ]\n",
        engine.addr()
    );
    let mut gate = Gate::new(program, home.path(), false, &config)?;
    gate.start()?;
    let began = Instant::now();
    let stalls = stalls::Watch::start()?;
    let callers = Callers::start(gate.data(), WORKLOAD, common.users)?;
    let killed = kill_along(options, seed, &mut gate, &callers)?;
    let answered = callers.answered();
    let heard = callers.finish()?;
    let seconds = began.elapsed().as_secs_f64();
    gate.stop()?;
    let stalls = stalls.end();
    eprintln!("reading the ledger");
    let mut account = Account::default();
    account.engine(ground_truth.take());
    account.heard(heard);
    let rows = rows::each(&gate, |row| account.row(&row))?;
    let chain = rows::verify(&gate)?;

    let mut verdict = Verdict::new("kills", seed, common.times);
    verdict.tell("billing", billing);
    verdict.hold(
        "kills",
        killed.at.len(),
        killed.at.len() == usize::from(options.kills),
    );
    let start_ms = u64::try_from(killed.slowest_start.as_millis()).unwrap_or(u64::MAX);
    let is_soon = killed.slowest_start < START_AGAIN;
    verdict.in_time("slowest start again, ms", start_ms, is_soon);
    verdict.tell("seconds", seconds.round());
    verdict.hold("answers", answered, answered >= options.requests);
    verdict.tell("rows", rows);
    account.tell(&mut verdict);
    let missing = account.missing(WORKLOAD);
    match options.billing {
        Billing::Strict => verdict.none("rows lost", &missing.lost),
        Billing::Grouped => last_moments(&missing, &killed.at, &stalls, &mut verdict),
    }
    verdict.stalls(&stalls);
    if options.billing == Billing::Strict {
        // A grouped row may still be on its way when its client has the answer.
        let unsettled = &missing.unsettled;
        verdict.tell(
            "answered whole just before a kill: row indeterminate",
            unsettled.count,
        );
    }
    verdict.none("answers that the engine never gave", &missing.invented);
    verdict.hold(
        "entries that the engine's account had no room for",
        ground_truth.missed(),
        ground_truth.missed() == 0,
    );
    verdict.hold("the chain of hashes", chain.1, chain.0);
    Ok(verdict.print(common.json))
}

/// Kills at random moments until all answers are there.
fn kill_along(
    options: &Kills,
    seed: u64,
    gate: &mut Gate,
    callers: &Callers,
) -> Result<Killed, AuditError> {
    let mut rng = Rng::new(seed);
    let mut moments: Vec<u64> = (0..options.kills)
        .map(|_| rng.below(options.requests.max(1)))
        .collect();
    moments.sort_unstable();
    let mut killed = Killed::default();
    let until = |answers| {
        let is_done = |now| now >= answers;
        watch(PATIENCE, "answers", || callers.answered(), is_done)
    };
    for (left, moment) in (0..moments.len()).rev().zip(moments) {
        until(moment)?;
        thread::sleep(Duration::from_millis(rng.below(SPREAD_MS)));
        if left == 0 && options.billing == Billing::Grouped {
            wait_for_a_group(gate)?;
        }
        killed.at.push(gate.kill()?);
        killed.slowest_start = killed.slowest_start.max(gate.start()?);
    }
    until(options.requests)?;
    Ok(killed)
}

/// Waits until the gate has written rows since it started: what is kept of them is judged, so that there have to be some.
fn wait_for_a_group(gate: &Gate) -> Result<(), AuditError> {
    let since = Instant::now();
    while since.elapsed() < FIRST_GROUP && gate.metric("tollgate_ledger_rows_total")? < 1.0 {
        thread::sleep(ASK);
    }
    Ok(())
}

/// Of a grouped route: what was lost, and how long before a kill at most. What the machine stood still is nobody's doing.
fn last_moments(missing: &Missing, kills: &[Instant], stalls: &Stalls, verdict: &mut Verdict) {
    let less_stalls = |from: Instant, to: Instant| {
        let time = to.saturating_duration_since(from);
        time.saturating_sub(stalls.between(from, to))
    };
    let mut early = Found::default();
    let mut longest = Duration::ZERO;
    for at in &missing.lost_at {
        // The engine may answer what a gate had sent it when that is dead already.
        let before = kills
            .iter()
            .filter(|kill| less_stalls(**kill, *at) <= AFTERWARDS)
            .map(|kill| less_stalls(*at, *kill))
            .min();
        match before {
            Some(before) if before <= LAST_MOMENTS => longest = longest.max(before),
            before => early.add(|| format!("answered {before:?} before the next kill")),
        }
    }
    verdict.tell("rows lost", missing.lost.count);
    // Whoever writes nothing until the end loses all of a run, and no row of it outlives another.
    let last = kills.iter().max();
    let kept = missing.kept_at.iter();
    let kept = kept
        .filter(|at| last.is_some_and(|last| at < &last))
        .count();
    verdict.hold(
        "rows kept of calls answered before the last kill",
        kept,
        kept > 0 || missing.lost.count == 0,
    );
    let ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    verdict.tell("of these, answered at most so long before a kill, ms", ms);
    verdict.none_in_time(
        "rows lost of calls answered earlier than a second before",
        &early,
    );
    verdict.none(
        "rows kept of calls after a lost one on their connection",
        &missing.outlived,
    );
}
