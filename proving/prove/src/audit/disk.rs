//! `prove audit disk`: the ledger's disk takes nothing for a while, under load.
//!
//! The disk is full for the gate alone: the kernel refuses that its files grow (`RLIMIT_FSIZE`), as it refuses on a
//! full one.
//! Invariant: while it is so, a strict route runs nothing and says why, and a grouped one runs on; afterwards both
//! serve without a restart, and nothing is lost beyond what the gate itself counts as lost, nothing doubled.
//! Not here: a disk that lies (the ledger's own tests).

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use engine::fixed::{FixedConfig, spawn_thread};
use engine::ground_truth::GroundTruth;

use super::account::Account;
use super::calls::Callers;
use super::gate::Gate;
use super::verdict::Verdict;
use super::{AuditError, Common, rows};

/// Less than any ledger has: nothing can be written.
const NOTHING_BYTES: u64 = 4096;
/// How long a strict route may take to serve again.
const RECOVERY: Duration = Duration::from_secs(15);
/// What does not come for so long does not come at all.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most answers that the account takes.
const ANSWERS_MAX: usize = 4_000_000;

/// Fills the ledger's disk for a while under load, and holds its rows against the engine's account.
#[derive(Debug, Args)]
pub(super) struct Disk {
    /// How long the disk is full, and how long it serves before and after.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=300))]
    seconds: u64,
    #[command(flatten)]
    common: Common,
}

/// How many calls ran in one phase.
#[derive(Debug, Clone, Copy)]
struct Ran {
    strict: u64,
    refused: u64,
    loose: u64,
}

/// Holds the audit; whether it went as the gate's documents say.
pub(super) fn disk(options: &Disk) -> Result<bool, AuditError> {
    let common = &options.common;
    let (program, home, seed) = (common.program()?, common.home()?, common.seed());
    let ground_truth = GroundTruth::new(ANSWERS_MAX);
    let engine = spawn_thread(FixedConfig {
        // Real engines are slower than disks; without a wait the gate's memory fills within the first second.
        latency: Duration::from_millis(20),
        ground_truth: Some(ground_truth.clone()),
        ..FixedConfig::default()
    })?;
    let config = format!(
        "backends: {{ engine: {{ url: \"http://{}/v1\" }} }}\n\
         routes: [ {{ workload: strict, backend: engine, billing: strict }}, {{ workload: loose, backend: engine }} ]\n",
        engine.addr()
    );
    let mut gate = Gate::new(program, home.path(), true, &config)?;
    gate.start()?;
    let users = common.users.div_ceil(2);
    let strict = Callers::start(gate.data(), "strict", users)?;
    let loose = Callers::start(gate.data(), "loose", users)?;
    let now = || Ran {
        strict: strict.answered(),
        refused: strict.unavailable(),
        loose: loose.answered(),
    };
    let phase = Duration::from_secs(options.seconds);
    thread::sleep(phase);
    until(|| now().strict > 0);
    let before = now();
    eprintln!("the disk is full");
    gate.limit_files(Some(NOTHING_BYTES))?;
    // Those of a strict route that were let in before end meanwhile.
    let let_in = strict.begun();
    until(|| strict.have_ended(let_in));
    let full_from = now();
    thread::sleep(phase);
    until(|| now().refused > full_from.refused && now().loose > full_from.loose);
    let full_to = now();
    let was_available = gate.metric("tollgate_ledger_available")?;
    eprintln!("the disk is back");
    gate.limit_files(None)?;
    let back = Instant::now();
    until(|| strict.answered() > full_to.strict);
    let recovered = back.elapsed();
    thread::sleep(phase);
    let after = now();
    let mut heard = strict.finish()?;
    heard.extend(loose.finish()?);
    // Settlements still wait in memory for the writer.
    let lost = gate.metric("tollgate_ledger_lost_total")?;
    gate.stop()?;

    let mut account = Account::default();
    account.engine(ground_truth.take());
    account.heard(heard);
    let rows = rows::each(&gate, |row| account.row(&row))?;
    let chain = rows::verify(&gate)?;
    let mut verdict = Verdict::new("disk", seed, common.times);
    verdict.hold("strict answers before", before.strict, before.strict > 0);
    let ran = full_to.strict - full_from.strict;
    verdict.hold("strict answers while the disk was full", ran, ran == 0);
    let refused = full_to.refused - full_from.refused;
    verdict.hold(
        "strict 503 ledger_unavailable meanwhile",
        refused,
        refused > 0,
    );
    let loose = full_to.loose - full_from.loose;
    verdict.hold("grouped answers meanwhile", loose, loose > 0);
    verdict.hold(
        "the gate says so: ledger available",
        was_available,
        was_available < 0.5,
    );
    let ms = u64::try_from(recovered.as_millis()).unwrap_or(u64::MAX);
    verdict.in_time("strict serves again after, ms", ms, recovered < RECOVERY);
    let again = after.strict - full_to.strict;
    verdict.hold("strict answers after", again, again > 0);
    verdict.tell("rows", rows);
    account.tell(&mut verdict);
    verdict.none("strict rows lost", &account.missing("strict").lost);
    verdict.none("strict calls refused and run", &account.refused_and_run());
    let missing = account.missing("loose").lost.count;
    verdict.tell("entries that the gate says it lost", lost);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let is_told = missing as f64 <= lost;
    verdict.hold("grouped rows lost", missing, is_told);
    verdict.hold("the chain of hashes", chain.1, chain.0);
    Ok(verdict.print(common.json))
}

/// Waits until it is so, or for too long.
fn until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
    }
}
