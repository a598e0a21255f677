//! Figures out of the readings of one measurement, by their names in the result file.
//!
//! Invariant: what was not measured has no figure; a count of nothing divides nothing.
//! Not here: reading (`cell`), medians (`result`).

#![expect(
    clippy::cast_precision_loss,
    reason = "counts, bytes and nanoseconds below 2^53"
)]

use std::collections::BTreeMap;
use std::thread;

use super::{Memory, Reading};
use crate::host::usage::{Usage, cpu_ns};
use crate::race::fleet::Generated;
use crate::race::scenario::Scenario;
use experiment::{Busy, Limit};
use load::observer::{Observations, Quantiles};

const MIB: f64 = 1024.0 * 1024.0;

/// Everything that one measurement left.
pub(super) struct Measured<'a> {
    pub(super) scenario: &'a Scenario,
    /// Of all profiles, of which there is one.
    pub(super) seen: &'a Observations,
    pub(super) generated: &'a Generated,
    pub(super) before: &'a Reading,
    pub(super) after: &'a Reading,
    pub(super) memory: &'a Memory,
    /// The subject is the upstream.
    pub(super) direct: bool,
}

type Figure = (&'static str, f64);

impl Measured<'_> {
    pub(super) fn figures(&self) -> BTreeMap<&'static str, f64> {
        let mut figures = BTreeMap::new();
        figures.extend(self.counts());
        figures.extend(self.cores());
        figures.extend(self.memory());
        figures.extend(self.system_share());
        figures.extend(self.throttling());
        figures.extend(self.rates());
        figures.extend(self.costs());
        figures.extend(self.least_share());
        figures.extend(self.processes());
        if !self.scenario.hold {
            figures.extend(quantiles(&LATENCY, self.seen.latency()));
        }
        if self.scenario.streams() {
            figures.extend(quantiles(&FIRST_BYTE, self.seen.first_byte()));
        }
        figures
    }

    /// By kind; what was due and never sent is one.
    pub(super) fn failures(&self) -> BTreeMap<String, u64> {
        let unsent = self.seen.unsent;
        let mut failures = BTreeMap::new();
        let kinds = self.seen.all_failures();
        let kinds = kinds.map(|(kind, count)| (kind.to_string(), count));
        for (kind, count) in kinds.chain((unsent > 0).then(|| ("unsent".to_owned(), unsent))) {
            *failures.entry(kind).or_default() += count;
        }
        failures
    }

    pub(super) fn limit(&self) -> Limit {
        let (busy, stolen) = self.after.cores.shares_since(&self.before.cores);
        let cores = machine_cores();
        Limit::of(Busy {
            client: self.cores_of(self.client_us()),
            upstream: self.cores_of(self.upstream_us()),
            machine: (busy + stolen) * cores,
            cores,
            subject: self.cores_of(self.subject_us()),
            quota: self
                .scenario
                .cpu_quota
                .filter(|_| !self.direct)
                .map(|cores| cores * self.before.replicas.len().max(1) as f64),
        })
    }

    /// CPU of the subject, and whether the scheduler's count was used.
    pub(super) fn subject_ns(&self) -> (u64, bool) {
        cpu_ns(&self.before.subject, &self.after.subject)
    }

    fn subject_us(&self) -> f64 {
        self.subject_ns().0 as f64 / 1e3
    }

    /// Of its workers alone, where it tells which threads those are.
    fn workers_us(&self) -> Option<f64> {
        let (before, after) = self.before.workers_ns.zip(self.after.workers_ns)?;
        Some(after.saturating_sub(before) as f64 / 1e3)
    }

    fn upstream_us(&self) -> f64 {
        cpu_ns(&self.before.upstream, &self.after.upstream).0 as f64 / 1e3
    }

    fn client_us(&self) -> f64 {
        self.generated.outcome.client_cpu.as_secs_f64() * 1e6
    }

    fn seconds(&self) -> f64 {
        self.generated.outcome.measured.as_secs_f64()
    }

    fn cores_of(&self, us: f64) -> f64 {
        us / 1e6 / self.seconds()
    }

    fn counts(&self) -> [Figure; 2] {
        [
            ("answered", self.seen.answered as f64),
            ("failed", (self.seen.failed() + self.seen.unsent) as f64),
        ]
    }

    fn cores(&self) -> [Figure; 5] {
        let (busy, stolen) = self.after.cores.shares_since(&self.before.cores);
        let subject = self.cores_of(self.subject_us());
        let (client, upstream) = (
            self.cores_of(self.client_us()),
            self.cores_of(self.upstream_us()),
        );
        let known = client + upstream + if self.direct { 0.0 } else { subject };
        [
            ("cores", subject),
            ("client.cores", client),
            ("upstream.cores", upstream),
            ("others.cores", (busy * machine_cores() - known).max(0.0)),
            ("steal_percent", stolen * 100.0),
        ]
    }

    fn memory(&self) -> Vec<Figure> {
        let memory = self.memory;
        let mib = |bytes: u64| bytes as f64 / MIB;
        let mut figures = vec![
            ("rss_mib.before", mib(memory.before)),
            ("rss_mib.peak", mib(memory.peak)),
            ("rss_mib.after", mib(memory.after)),
        ];
        figures.extend(memory.pss.map(|bytes| ("pss_mib", mib(bytes))));
        if self.scenario.hold && memory.open > 0 {
            let grown = memory.peak.saturating_sub(memory.before) as f64 / 1024.0;
            figures.push(("rss_kib_per_stream", grown / memory.open as f64));
            figures.push(("streams_open", memory.open as f64));
        }
        figures
    }

    /// By ticks, which alone are kept apart.
    fn system_share(&self) -> Option<Figure> {
        let spent = |of: fn(&Usage) -> u64| {
            of(&self.after.subject).saturating_sub(of(&self.before.subject)) as f64
        };
        let (all, system) = (
            spent(|usage| usage.ticks_ns),
            spent(|usage| usage.system_ns),
        );
        (all > 0.0).then(|| ("cpu_system_percent", system / all * 100.0))
    }

    /// The least that one of several replicas spent of the CPU of all, in per cent.
    fn least_share(&self) -> Option<Figure> {
        let pairs = self.before.replicas.iter().zip(&self.after.replicas);
        let each: Vec<u64> = pairs
            .map(|(before, after)| cpu_ns(before, after).0)
            .collect();
        let (least, all) = (*each.iter().min()?, each.iter().sum::<u64>());
        (all > 0).then(|| {
            (
                "replicas.least_cpu_percent",
                least as f64 / all as f64 * 100.0,
            )
        })
    }

    /// Of a fleet: how many sent, and of what was answered the least that one of them had, in per cent.
    fn processes(&self) -> Vec<Figure> {
        let each = &self.generated.answered;
        let (Some(least), all) = (each.iter().min(), each.iter().sum::<u64>()) else {
            return Vec::new();
        };
        let mut figures = vec![("client.processes", each.len() as f64)];
        if all > 0 {
            figures.push(("client.least_percent", *least as f64 / all as f64 * 100.0));
        }
        figures
    }

    fn throttling(&self) -> Vec<Figure> {
        let Some((before, after)) = self.before.throttling.zip(self.after.throttling) else {
            return Vec::new();
        };
        let spent = after.since(&before);
        vec![
            ("cgroup.periods", spent.periods as f64),
            ("cgroup.throttled", spent.throttled as f64),
            ("cgroup.throttled_ms", spent.throttled_us as f64 / 1e3),
        ]
    }

    fn rates(&self) -> Vec<Figure> {
        let rps = self.seen.completed as f64 / self.seconds();
        let mut figures = vec![(
            "body_mib_per_second",
            self.seen.body_bytes as f64 / MIB / self.seconds(),
        )];
        if self.scenario.streams() {
            figures.push((
                "events_per_second",
                self.seen.events as f64 / self.seconds(),
            ));
        }
        if !self.scenario.hold {
            figures.push(("rps", rps));
        }
        if self.scenario.closed() && self.scenario.latency_ms > 0 {
            let ideal = self.scenario.users_f64() / (self.scenario.latency_ms as f64 / 1e3);
            figures.push(("ideal_percent", rps / ideal * 100.0));
        }
        figures
    }

    /// For each event, and for each request where requests end.
    fn costs(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        let mut each = |name, total: f64, count: u64| {
            if count > 0 {
                figures.push((name, total / count as f64));
            }
        };
        let (events, completed) = (self.seen.events, self.seen.completed);
        if self.scenario.streams() {
            each("cpu_us_per_event", self.subject_us(), events);
            each("client.cpu_us_per_event", self.client_us(), events);
            each("upstream.cpu_us_per_event", self.upstream_us(), events);
            if let Some(us) = self.workers_us() {
                each("workers.cpu_us_per_event", us, events);
            }
        }
        if !self.scenario.hold {
            each("cpu_us_per_request", self.subject_us(), completed);
            each("client.cpu_us_per_request", self.client_us(), completed);
            each("upstream.cpu_us_per_request", self.upstream_us(), completed);
            if let Some(us) = self.workers_us() {
                each("workers.cpu_us_per_request", us, completed);
            }
            if let Some((before, after)) = self.before.opened.zip(self.after.opened) {
                let opened = after.saturating_sub(before) as f64;
                each("upstream.connections_per_request", opened, completed);
            }
            let (before, after) = (&self.before.subject, &self.after.subject);
            each(
                "context_switches_per_request.voluntary",
                after.voluntary.saturating_sub(before.voluntary) as f64,
                completed,
            );
            each(
                "context_switches_per_request.involuntary",
                after.involuntary.saturating_sub(before.involuntary) as f64,
                completed,
            );
        }
        figures
    }
}

fn machine_cores() -> f64 {
    thread::available_parallelism().map_or(1, usize::from) as f64
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

fn quantiles(names: &[&'static str; 5], seen: Option<Quantiles>) -> Vec<Figure> {
    let Some(q) = seen else {
        return Vec::new();
    };
    let values = [q.p50, q.p90, q.p99, q.p999, q.max].map(|value| value as f64);
    names.iter().copied().zip(values).collect()
}
