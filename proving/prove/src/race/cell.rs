//! One measurement: one subject, one scenario, one round.
//!
//! Client, subject and upstream are read at the same two moments, the begin and the end of the
//! measured interval; memory is read between them.
//! Invariant: figures are about the measured interval alone, except memory before and after.
//! Not here: statistics over rounds (`result`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use experiment::{Busy, Limit};
use load::{Observations, Plan, Quantiles, Request, Running, start};

use super::scenario::{Scenario, Timing};
use crate::host::machine::CoreTicks;
use crate::host::quota::Throttling;
use crate::host::usage::{Process, Usage, cpu_ns, proportional, resident, usage};

const SAMPLE: Duration = Duration::from_millis(200);
const SETTLE: Duration = Duration::from_millis(300);
const MIB: f64 = 1024.0 * 1024.0;

/// Who is read.
pub(crate) struct Parties<'a> {
    pub(crate) subject: &'a dyn Fn() -> Vec<Process>,
    pub(crate) upstream: &'a dyn Fn() -> Vec<Process>,
    /// What its quota did to the subject, when it has one.
    pub(crate) throttling: &'a dyn Fn() -> Option<Throttling>,
    /// The subject is the upstream.
    pub(crate) direct: bool,
}

/// What was measured; figures by their name in the result file.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) round: usize,
    pub(crate) figures: BTreeMap<&'static str, f64>,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) limit: Limit,
    /// CPU time from the scheduler's count, not from ticks.
    pub(crate) exact: bool,
}

struct Reading {
    subject: Usage,
    upstream: Usage,
    cores: CoreTicks,
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
    target: SocketAddr,
    request: Request,
    scenario: &Scenario,
    timing: Timing,
    round: usize,
    parties: &Parties<'_>,
) -> Result<Cell, String> {
    let plan = plan(target, request, scenario, timing);
    let mut memory = Memory {
        before: resident(&(parties.subject)()),
        peak: 0,
        open: 0,
        pss: None,
        after: 0,
    };
    let running = start(plan).map_err(|error| error.to_string())?;
    sleep_until(running.begin);
    let before = read(parties);
    watch(&running, &(parties.subject)(), &mut memory);
    let after = read(parties);
    memory.pss = proportional(&(parties.subject)());
    let seen = running.finish().map_err(|error| error.to_string())?;
    thread::sleep(SETTLE);
    memory.after = resident(&(parties.subject)());
    if seen.answered == 0 {
        let mut kinds: Vec<_> = seen
            .failures
            .iter()
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
    Ok(cell(
        scenario,
        round,
        &seen,
        (&before, &after),
        &memory,
        parties.direct,
    ))
}

/// What the client is to do in `scenario`.
pub(crate) const fn plan(
    target: SocketAddr,
    request: Request,
    scenario: &Scenario,
    timing: Timing,
) -> Plan {
    Plan {
        target,
        request,
        arrivals: scenario.arrivals(),
        ramp: timing.ramp,
        warm_up: timing.warm_up,
        measure: timing.measure,
        most: None,
        timeout: timing.timeout,
    }
}

fn read(parties: &Parties<'_>) -> Reading {
    let cores = CoreTicks::read();
    Reading {
        subject: usage(&(parties.subject)()),
        upstream: usage(&(parties.upstream)()),
        cores,
        throttling: (parties.throttling)(),
    }
}

fn watch(running: &Running, subject: &[Process], memory: &mut Memory) {
    loop {
        let rss = resident(subject);
        if rss > memory.peak {
            (memory.peak, memory.open) = (rss, running.open());
        }
        let left = running.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(SAMPLE));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds below 2^53"
)]
fn cell(
    scenario: &Scenario,
    round: usize,
    seen: &Observations,
    (before, after): (&Reading, &Reading),
    memory: &Memory,
    direct: bool,
) -> Cell {
    let (subject_ns, exact) = cpu_ns(&before.subject, &after.subject);
    let (upstream_ns, _) = cpu_ns(&before.upstream, &after.upstream);
    let seconds = seen.measured.as_secs_f64();
    let (subject_us, upstream_us) = (subject_ns as f64 / 1e3, upstream_ns as f64 / 1e3);
    let client_us = seen.client_cpu.as_secs_f64() * 1e6;
    let cores = |us: f64| us / 1e6 / seconds;
    let (busy, stolen) = after.cores.shares_since(&before.cores);
    let machine = thread::available_parallelism().map_or(1, usize::from) as f64;
    let known = cores(client_us + upstream_us) + if direct { 0.0 } else { cores(subject_us) };
    let mut figures = BTreeMap::from([
        ("answered", seen.answered as f64),
        ("failed", (seen.failed() + seen.unsent) as f64),
        (
            "body_mib_per_second",
            seen.body_bytes as f64 / MIB / seconds,
        ),
        ("cores", cores(subject_us)),
        ("client.cores", cores(client_us)),
        ("upstream.cores", cores(upstream_us)),
        ("rss_mib.before", memory.before as f64 / MIB),
        ("rss_mib.peak", memory.peak as f64 / MIB),
        ("rss_mib.after", memory.after as f64 / MIB),
        ("steal_percent", stolen * 100.0),
        ("others.cores", (busy * machine - known).max(0.0)),
    ]);
    let ticks = after
        .subject
        .ticks_ns
        .saturating_sub(before.subject.ticks_ns);
    let system = after
        .subject
        .system_ns
        .saturating_sub(before.subject.system_ns);
    if ticks > 0 {
        figures.insert("cpu_system_percent", system as f64 / ticks as f64 * 100.0);
    }
    figures.extend(memory.pss.map(|bytes| ("pss_mib", bytes as f64 / MIB)));
    if let (Some(before), Some(after)) = (before.throttling, after.throttling) {
        let spent = after.since(&before);
        figures.extend([
            ("cgroup.periods", spent.periods as f64),
            ("cgroup.throttled", spent.throttled as f64),
            ("cgroup.throttled_ms", spent.throttled_us as f64 / 1e3),
        ]);
    }
    let mut each = |name, total: f64, count: u64| {
        if count > 0 {
            figures.insert(name, total / count as f64);
        }
    };
    if scenario.streams() {
        each("cpu_us_per_event", subject_us, seen.events);
        each("client.cpu_us_per_event", client_us, seen.events);
        each("upstream.cpu_us_per_event", upstream_us, seen.events);
        each("events_per_second", seen.events as f64 / seconds, 1);
    }
    if scenario.hold {
        each(
            "rss_kib_per_stream",
            memory.peak.saturating_sub(memory.before) as f64 / 1024.0,
            memory.open,
        );
        each("streams_open", memory.open as f64, 1);
    } else {
        let switches = |name: fn(&Usage) -> u64| {
            name(&after.subject).saturating_sub(name(&before.subject)) as f64
        };
        each("cpu_us_per_request", subject_us, seen.answered);
        each("client.cpu_us_per_request", client_us, seen.answered);
        each("upstream.cpu_us_per_request", upstream_us, seen.answered);
        each(
            "context_switches_per_request.voluntary",
            switches(|usage| usage.voluntary),
            seen.answered,
        );
        each(
            "context_switches_per_request.involuntary",
            switches(|usage| usage.involuntary),
            seen.answered,
        );
        each("rps", seen.answered as f64 / seconds, 1);
        if scenario.closed() && scenario.latency_ms > 0 {
            let ideal = scenario.users_f64() / (scenario.latency_ms as f64 / 1e3);
            each(
                "ideal_percent",
                seen.answered as f64 / seconds / ideal * 100.0,
                1,
            );
        }
        figures.extend(quantiles(&LATENCY, seen.latency()));
    }
    if scenario.streams() {
        figures.extend(quantiles(&FIRST_BYTE, seen.first_byte()));
    }
    let busy = Busy {
        client: cores(client_us),
        upstream: cores(upstream_us),
        machine: (busy + stolen) * machine,
        cores: machine,
        subject: cores(subject_us),
        quota: scenario.cpu_quota.filter(|_| !direct),
    };
    let failures = seen
        .failures
        .iter()
        .map(|(kind, count)| (kind.to_string(), *count))
        .chain((seen.unsent > 0).then(|| ("unsent".to_owned(), seen.unsent)))
        .collect();
    Cell {
        round,
        figures,
        failures,
        limit: Limit::of(busy),
        exact,
    }
}

const LATENCY: [&str; 5] = [
    "latency_us.p50",
    "latency_us.p90",
    "latency_us.p99",
    "latency_us.p999",
    "latency_us.max",
];
const FIRST_BYTE: [&str; 5] = [
    "first_byte_us.p50",
    "first_byte_us.p90",
    "first_byte_us.p99",
    "first_byte_us.p999",
    "first_byte_us.max",
];

#[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
fn quantiles(
    names: &[&'static str; 5],
    seen: Option<Quantiles>,
) -> impl Iterator<Item = (&'static str, f64)> {
    let values = seen.map(|q| [q.p50, q.p90, q.p99, q.p999, q.max]);
    let pairs = values.map(|values| {
        names
            .iter()
            .copied()
            .zip(values.map(|value| value as f64))
            .collect::<Vec<_>>()
    });
    pairs.into_iter().flatten()
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}
