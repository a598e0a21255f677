//! One measurement: one subject, one scenario, one round.
//!
//! Client, subject and upstream are read at the same two moments, the begin and the end of the
//! measured interval; memory is read between them.
//! Invariant: figures are about the measured interval alone, except memory before and after.
//! Not here: what the readings amount to (`figures`), statistics over rounds (`result`).

mod figures;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use experiment::Limit;
use experiment::workload::Part;
use load::client::Target;
use load::observer::Answers;
use load::run::Plan;
use load::source::{Head, Source};

use super::bodies::Requests;
use super::counts::{Counts, Meter, Moments};
use super::fleet::Generator;
use super::scenario::{Scenario, Timing};
use crate::host::machine::CoreTicks;
use crate::host::quota::Throttling;
use crate::host::usage::{Process, Usage, proportional, resident, run_ns_of, usage};

use figures::Measured;

const SAMPLE: Duration = Duration::from_millis(200);
const SETTLE: Duration = Duration::from_millis(300);
/// The subject's page is read so long before the measured interval, so that rendering it is in no figure.
const AHEAD: Duration = Duration::from_millis(50);

/// Who is read.
pub(crate) struct Parties<'a> {
    pub(crate) subject: &'a dyn Fn() -> Vec<Process>,
    /// The same processes by the subject's replicas.
    pub(crate) replicas: &'a dyn Fn() -> Vec<Vec<Process>>,
    pub(crate) upstream: &'a dyn Fn() -> Vec<Process>,
    /// How the names of the subject's workers begin, where it tells.
    pub(crate) workers: Option<&'a str>,
    /// Connections that were made to the upstream so far, where it tells.
    pub(crate) opened: &'a dyn Fn() -> Option<u64>,
    /// What its quota did to the subject, when it has one.
    pub(crate) throttling: &'a dyn Fn() -> Option<Throttling>,
    /// Where it says what became of its counts, when it counts.
    pub(crate) meter: Option<&'a Meter>,
    /// The subject is the upstream.
    pub(crate) direct: bool,
    /// Resident bytes of the subject before anything was prepared for what is sent, where something was.
    pub(crate) at_rest: Option<u64>,
}

/// What was measured; figures by their name in the result file.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) round: usize,
    pub(crate) figures: BTreeMap<&'static str, f64>,
    pub(crate) failures: BTreeMap<String, u64>,
    /// Calls by what became of their count.
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) limit: Limit,
    /// CPU time from the scheduler's count, not from ticks.
    pub(crate) exact: bool,
}

/// What is sent, and what a good answer to it is.
pub(crate) struct Sent {
    /// Of requests that have none of their own.
    pub(crate) head: Head,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) answers: Answers,
    /// The same as `source` where processes beside this one can send it too.
    pub(crate) requests: Option<Arc<Requests>>,
}

impl From<Requests> for Sent {
    fn from(requests: Requests) -> Self {
        let requests = Arc::new(requests);
        Self {
            head: requests.head().clone(),
            source: Arc::clone(&requests) as Arc<dyn Source>,
            answers: Answers::Any,
            requests: Some(requests),
        }
    }
}

struct Reading {
    subject: Usage,
    /// Of each replica, where there are several.
    replicas: Vec<Usage>,
    upstream: Usage,
    /// Run time of the subject's workers.
    workers_ns: Option<u64>,
    cores: CoreTicks,
    opened: Option<u64>,
    throttling: Option<Throttling>,
}

struct Memory {
    before: u64,
    peak: u64,
    /// Streams open at the moment of the peak.
    open: u64,
    /// Proportional, at the end of the measured interval.
    pss: Option<u64>,
    after: u64,
}

/// Measures; the error says why there are no figures.
pub(crate) fn measure(
    targets: &[SocketAddr],
    sent: Sent,
    (scenario, timing): (&Scenario, Timing),
    round: usize,
    processes: usize,
    parties: &Parties<'_>,
) -> Result<Cell, String> {
    let quiet = parties.meter.map(Meter::quiet);
    let mut memory = Memory {
        before: parties
            .at_rest
            .unwrap_or_else(|| resident(&(parties.subject)())),
        peak: 0,
        open: 0,
        pss: None,
        after: 0,
    };
    let mut generator = Generator::start(targets, sent, (scenario, timing), processes)?;
    let starts = generator.begin();
    sleep_until(starts.checked_sub(AHEAD).unwrap_or(starts));
    let begin = parties.meter.map(Meter::read);
    sleep_until(starts);
    let before = read(parties);
    watch(&generator, &(parties.subject)(), &mut memory);
    let after = read(parties);
    let end = parties.meter.map(Meter::read);
    memory.pss = proportional(&(parties.subject)());
    let is_standing = scenario.hold && scenario.mcp.is_some();
    if is_standing {
        // A stream of a session has no end of its own.
        generator.stop();
    }
    let generated = generator.finish()?;
    let seen = generated.outcome.total();
    thread::sleep(SETTLE);
    memory.after = resident(&(parties.subject)());
    let counts = match (parties.meter, quiet, begin, end) {
        (Some(meter), Some(quiet), Some(begin), Some(end)) => Counts::of(&Moments {
            quiet: quiet?,
            begin: begin?,
            end: end?,
            settled: meter.settled()?,
        }),
        _ => Counts::default(),
    };
    let heard = if is_standing {
        seen.events
    } else {
        seen.answered
    };
    if heard == 0 {
        let mut kinds: Vec<_> = seen
            .all_failures()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        if kinds.is_empty() {
            kinds.push("every answer took longer than the measurement".into());
        }
        return Err(format!(
            "nothing was answered in {} ({})",
            scenario.name,
            kinds.join(", ")
        ));
    }
    let measured = Measured {
        scenario,
        seen: &seen,
        generated: &generated,
        before: &before,
        after: &after,
        memory: &memory,
        direct: parties.direct,
    };
    let mut figures = measured.figures();
    figures.extend(counts.figures);
    Ok(Cell {
        round,
        figures,
        counts: counts.calls,
        failures: measured.failures(),
        limit: measured.limit(),
        exact: measured.subject_ns().1,
    })
}

/// What the client is to do in `scenario`, or this part of it: the requests of each connection's user go to `targets` in turn.
pub(crate) fn plan(
    targets: &[SocketAddr],
    sent: Sent,
    (scenario, timing): (&Scenario, Timing),
    part: Part,
) -> Plan {
    let Timing {
        ramp,
        warm_up,
        measure,
        timeout,
    } = timing;
    let what = (sent.head, sent.source);
    let mut plan = Plan::plain(targets[0], what, scenario.shape(), ramp, measure, timeout);
    plan.reach.targets = targets.iter().copied().map(Target::from).collect();
    plan.warm_up = warm_up;
    let senders = usize::try_from(part.of).unwrap_or(1);
    plan.fleet = part;
    plan.reach.protocol = scenario.spoken(plan.threads * senders);
    for traffic in &mut plan.traffic {
        traffic.answers = sent.answers;
    }
    plan
}

fn read(parties: &Parties<'_>) -> Reading {
    let opened = (parties.opened)();
    let cores = CoreTicks::read();
    let subject = (parties.subject)();
    let replicas = (parties.replicas)();
    Reading {
        replicas: match &*replicas {
            [_, _, ..] => replicas.iter().map(|one| usage(one)).collect(),
            _ => Vec::new(),
        },
        workers_ns: parties.workers.map(|start| run_ns_of(&subject, start)),
        subject: usage(&subject),
        upstream: usage(&(parties.upstream)()),
        cores,
        opened,
        throttling: (parties.throttling)(),
    }
}

fn watch(generator: &Generator, subject: &[Process], memory: &mut Memory) {
    loop {
        let rss = resident(subject);
        if rss > memory.peak {
            (memory.peak, memory.open) = (rss, generator.open());
        }
        let left = generator.end().saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(SAMPLE));
    }
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}
