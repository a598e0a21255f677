//! `prove audit aborts`: clients leave their calls at random points, and every record must be right.
//!
//! The engine simulates real token streams and notes when it saw each of them cancelled; clients and engine share
//! one process and so one clock.
//! Invariant: half of the clients close their sending side and read what still comes: what they had received is then
//! known to the byte. The others close at once, as most programs do; what the gate had sent them then is not theirs
//! to know.
//! Not here: a client (`client`), holding the accounts against each other (`tally`).

mod client;
mod events;
mod over_h2;
mod tally;

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use engine::ground_truth::GroundTruth;
use engine::{EngineConfig, EngineHandle, spawn_thread};
use load::client::fetch;

use self::client::{Leavers, Manner};
use self::tally::Tally;
use super::crowd::watch;
use super::gate::Gate;
use super::verdict::Verdict;
use super::{AuditError, Common, rows};
use crate::host::stalls;
use crate::race::check;

const MODEL: &str = "audit";
const FIRST_TOKEN: Duration = Duration::from_millis(10);
const NEXT_TOKEN: Duration = Duration::from_millis(2);
/// An upstream knows within this that its client has left, where times are judged.
const CANCELLED_WITHIN: Duration = Duration::from_millis(100);
/// Tokens of an answer that nobody leaves: it would take 40 s, which no machine stands still, so that one which ran to its
/// end was not cancelled.
const TOKENS: u64 = 20_000;
/// What the limit's bucket holds at first.
const BUCKET: u64 = 900_000_000;
/// It fills as slowly as the gate takes it, so that what is missing of it at the end was spent.
const REFILL_A_YEAR: u64 = 91_000_000;
const REFILL_A_SECOND: u64 = 3;
/// How long the last exchanges may take to end.
const SETTLE: Duration = Duration::from_secs(90);
/// Without one client leaving for so long, the audit is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Leaves streams at random points, and holds the ledger against what clients and engine saw.
#[derive(Debug, Args)]
pub(super) struct Aborts {
    /// Streams to leave.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// The route drains instead of cancelling: the engine's usage must be in every row.
    #[arg(long)]
    drain: bool,
    /// The gate counts tokens itself: rows must have those of the text that their clients received.
    #[arg(long)]
    counted: bool,
    /// Speak HTTP/2 to the engine.
    #[arg(long)]
    http2: bool,
    /// The clients speak HTTP/2, too.
    #[arg(long)]
    http2_clients: bool,
    #[command(flatten)]
    common: Common,
}

/// Holds the audit; whether every record was right.
pub(super) fn aborts(options: &Aborts) -> Result<bool, AuditError> {
    let common = &options.common;
    let (program, home, seed) = (common.program()?, common.home()?, common.seed());
    let calls = usize::try_from(options.count).unwrap_or(usize::MAX);
    let ground_truth = GroundTruth::new(calls.saturating_mul(2).saturating_add(100_000));
    let engine = spawn_thread(EngineConfig {
        models: vec![MODEL.to_owned()],
        ttft: FIRST_TOKEN,
        inter_token: NEXT_TOKEN,
        ground_truth: Some(ground_truth.clone()),
        ..EngineConfig::default()
    })?;
    let protocol = if options.http2 { "http2" } else { "http1" };
    let abandon = if options.drain {
        "{ read_to_end: { tokens: 1M, seconds: 60 } }"
    } else {
        "cancel"
    };
    let tokenizers = if options.counted {
        format!("tokenizers: {{ {MODEL}: cl100k }}\n")
    } else {
        String::new()
    };
    let config = format!(
        "{tokenizers}backends: {{ engine: {{ url: \"http://{}/v1\", protocol: {protocol} }} }}\n\
         routes: [ {{ workload: audit, backend: engine, abandon: {abandon}, forward_headers: x-engine-tokens, \
         limits: [ {{ tokens: {REFILL_A_YEAR}, per: 366d, burst: {BUCKET} }} ] }} ]\nbounds: {{ reads_to_end: 100000 }}\n",
        engine.addr()
    );
    let mut gate = Gate::new(program, home.path(), false, &config)?;
    gate.start()?;
    let began = Instant::now();
    let manner = Manner {
        target: gate.data(),
        count: options.count,
        seed,
        http2: options.http2_clients,
        // A drain reads an answer to its end; where the engine is told, only what was read is made.
        tokens: if options.drain { 50 } else { TOKENS },
    };
    let stalls = stalls::Watch::start()?;
    let leavers = Leavers::start(manner, common.users)?;
    let is_done = |_| leavers.are_done();
    watch(PATIENCE, "clients left", || leavers.left(), is_done)?;
    let left = leavers.finish()?;
    let seconds = began.elapsed().as_secs_f64();
    let open = settled(&gate, options.counted)?;
    let running = until_idle(&engine);
    let remaining = remaining(&gate)?;
    gate.stop()?;
    let stalls = stalls.end();
    eprintln!("reading the ledger");
    let route = (options.drain, manner.tokens);
    let account = ground_truth.take();
    let mut tally = Tally::new(route, common.times, left, account, stalls);
    let rows = rows::each(&gate, |row| tally.row(&row))?;
    let chain = rows::verify(&gate)?;

    let mut verdict = Verdict::new("aborts", seed, common.times);
    verdict.tell(
        "the route",
        if options.drain { "drains" } else { "cancels" },
    );
    verdict.tell("upstream", protocol);
    let downstream = if options.http2_clients {
        "http2"
    } else {
        "http1"
    };
    verdict.tell("clients", downstream);
    verdict.tell("seconds", seconds.round());
    verdict.tell("rows", rows);
    tally.tell(&mut verdict, CANCELLED_WITHIN);
    for (what, count) in open {
        verdict.hold(&format!("{what} at the end"), count, count.abs() < 0.5);
    }
    verdict.hold(
        "requests running in the engine at the end",
        running,
        running == 0,
    );
    let spent = tally.spent();
    verdict.tell("tokens of all rows", spent);
    let missing = BUCKET.saturating_sub(remaining);
    let refilled = REFILL_A_SECOND * (1 + began.elapsed().as_secs());
    let is_settled = missing <= spent && missing + refilled >= spent;
    verdict.hold("tokens missing of the limit's bucket", missing, is_settled);
    verdict.hold("the chain of hashes", chain.1, chain.0);
    Ok(verdict.print(common.json))
}

/// Waits until no exchange is open; what the gate's gauges say then.
fn settled(gate: &Gate, counted: bool) -> Result<[(&'static str, f64); 3], AuditError> {
    let began = Instant::now();
    loop {
        let open = [
            ("open exchanges", gate.metric("tollgate_open_exchanges")?),
            ("open streams", gate.metric("tollgate_open_streams")?),
            ("open drains", gate.metric("tollgate_open_drains")?),
        ];
        // A limit is corrected once a call is counted.
        let waiting = if counted {
            gate.metric("tollgate_counting_bytes")?
        } else {
            0.0
        };
        let is_settled = waiting.abs() < 0.5 && open.iter().all(|(_, count)| count.abs() < 0.5);
        if is_settled || began.elapsed() > SETTLE {
            return Ok(open);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until no request runs in the engine, which learns a moment after the gate that a connection is closed; how many
/// run then.
fn until_idle(engine: &EngineHandle) -> u64 {
    let began = Instant::now();
    loop {
        let running = engine.stats().running;
        if running == 0 || began.elapsed() > SETTLE {
            return running;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// What is left of the limit, as a call that is larger than all of it is told.
fn remaining(gate: &Gate) -> Result<u64, AuditError> {
    let headers = [
        ("x-workload-app".to_owned(), "audit".to_owned()),
        ("content-type".to_owned(), "application/json".to_owned()),
    ];
    let body = format!(r#"{{"model":"{MODEL}","max_tokens":{}}}"#, BUCKET * 2);
    let request = check::post("/v1/chat/completions", &headers, body.into_bytes());
    let request = request.map_err(AuditError::Gate)?;
    let answer = fetch(gate.data(), &request, PATIENCE)
        .map_err(|error| AuditError::Gate(format!("what is left of the limit: {error}")))?;
    let mut headers = answer.lines.headers.iter();
    let told = headers.find(|(name, _)| name == "x-ratelimit-remaining-tokens");
    let left = told.and_then(|(_, left)| std::str::from_utf8(left).ok()?.parse().ok());
    left.ok_or_else(|| {
        let status = answer.status;
        AuditError::Gate(format!(
            "status {status} does not tell what is left of the limit"
        ))
    })
}
