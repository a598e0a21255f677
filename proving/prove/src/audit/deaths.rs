//! `prove audit deaths`: upstreams die with calls on connections that served others, and nothing may run twice that
//! was not counted twice.
//!
//! Invariant: what the upstream ran is known to it alone, by request id; the ledger's rows are held against that.
//! Not here: how it dies (`upstream`), who calls (`calls`).

mod over_h2;
mod upstream;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use clap::Args;

use self::upstream::Mortal;
use super::calls::Callers;
use super::crowd::watch;
use super::gate::Gate;
use super::rows::Row;
use super::verdict::{Found, Verdict};
use super::{AuditError, Common, rows};

/// What the upstream reports of each answer, prompt and completion together.
const TOKENS: u64 = 10;
/// Without one more death for so long, the audit is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets upstreams die with calls on kept connections, and holds the ledger against what they ran.
#[derive(Debug, Args)]
pub(super) struct Deaths {
    /// Deaths with a call on a kept connection.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Speak HTTP/2 to the upstream.
    #[arg(long)]
    http2: bool,
    #[command(flatten)]
    common: Common,
}

/// Holds the audit; whether nothing ran uncounted.
pub(super) fn deaths(options: &Deaths) -> Result<bool, AuditError> {
    let common = &options.common;
    let (program, home, seed) = (common.program()?, common.home()?, common.seed());
    let mortal = Mortal::start(seed, options.http2)?;
    let protocol = if options.http2 { "http2" } else { "http1" };
    let config = format!(
        "backends: {{ mortal: {{ url: \"http://{}/v1\", protocol: {protocol} }} }}\n\
         routes: [ {{ workload: audit, backend: mortal }} ]\n",
        mortal.address
    );
    let mut gate = Gate::new(program, home.path(), false, &config)?;
    gate.start()?;
    let began = Instant::now();
    let callers = Callers::start(gate.data(), "audit", common.users)?;
    let is_done = |deaths| deaths >= options.count;
    watch(PATIENCE, "deaths", || mortal.deaths(), is_done)?;
    let mut answers: BTreeMap<u16, u64> = BTreeMap::new();
    for call in callers.finish()? {
        *answers.entry(call.status).or_default() += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    let retries = gate.metric("tollgate_retries_total")?;
    gate.stop()?;
    let mut held = Held {
        runs: mortal.runs(),
        ..Held::default()
    };
    let rows = rows::each(&gate, |row| held.row(&row))?;
    let chain = rows::verify(&gate)?;

    let mut verdict = Verdict::new("deaths", seed, common.times);
    verdict.tell("upstream", protocol);
    verdict.tell("seconds", seconds.round());
    verdict.tell("calls", answers.values().sum::<u64>());
    for (status, count) in &answers {
        verdict.tell(&format!("answered {status}"), *count);
    }
    verdict.tell("rows", rows);
    verdict.tell("deaths with a call on a kept connection", mortal.deaths());
    verdict.tell("retries that the gate counted", retries);
    held.tell(&mut verdict);
    verdict.hold("the chain of hashes", chain.1, chain.0);
    Ok(verdict.print(common.json))
}

/// What the upstream ran, and what the ledger says of it.
#[derive(Default)]
struct Held {
    runs: HashMap<Box<str>, u64>,
    rows: HashMap<Box<str>, u32>,
    twice: u64,
    uncounted: Found,
    unsaid: Found,
    too_low: Found,
    doubled: Found,
}

impl Held {
    fn row(&mut self, row: &Row) {
        let seen = self.rows.entry(row.request_id.as_str().into()).or_default();
        *seen += 1;
        if *seen > 1 {
            self.doubled.add(|| row.request_id.clone());
            return;
        }
        let runs = self.runs.get(row.request_id.as_str());
        let runs = runs.copied().unwrap_or(0);
        self.twice += u64::from(runs > 1);
        if runs > row.attempts.unwrap_or(0) {
            self.uncounted.add(|| format!("{runs} runs, {row:?}"));
        }
        if runs > 1 + row.unconfirmed_attempts.unwrap_or(0) {
            self.unsaid.add(|| format!("{runs} runs, {row:?}"));
        }
        if row.tokens() < runs * TOKENS {
            self.too_low.add(|| format!("{runs} runs, {row:?}"));
        }
    }

    fn tell(&self, verdict: &mut Verdict) {
        let mut lost = Found::default();
        for id in self.runs.keys().filter(|id| !self.rows.contains_key(*id)) {
            lost.add(|| id.to_string());
        }
        verdict.tell("calls that ran twice, as counted retries", self.twice);
        verdict.none(
            "calls that ran more often than tries were counted",
            &self.uncounted,
        );
        verdict.none("second runs that their row does not tell of", &self.unsaid);
        verdict.none("rows below the upstream's own account", &self.too_low);
        verdict.none("calls that ran and have no row", &lost);
        verdict.none("rows doubled", &self.doubled);
    }
}
