//! Metrics of the process: configuration, workers, quota, ledger, traces, memory, CPU time.
//!
//! Not here: what exchanges leave behind (`telemetry`).

mod budget;
mod counting;
mod ledger;

use std::sync::atomic::Ordering;

use proxy::quota;
use telemetry::{Extra, ExtraKind, Traces};

use crate::running::Running;

/// All of them, now.
pub(crate) fn of(running: &Running) -> Vec<Extra> {
    let version = running.current().snapshot.version.clone();
    let flag = |yes: bool| f64::from(u8::from(yes));
    let [good, bad] = &running.reloads;
    let mut extras = vec![
        gauge(
            "tollgate_build_info",
            "Version of this program, always 1.",
            1.0,
        )
        .with("version", env!("CARGO_PKG_VERSION")),
        gauge(
            "tollgate_config_info",
            "Version of the configuration in use, always 1.",
            1.0,
        )
        .with("version", &version),
        gauge(
            "tollgate_config_last_reload_success",
            "Whether the last reload was taken (1) or refused (0).",
            flag(running.last_reload_good.load(Ordering::SeqCst)),
        ),
        reload("taken", number(good.load(Ordering::SeqCst))),
        reload("refused", number(bad.load(Ordering::SeqCst))),
        gauge(
            "tollgate_workers",
            "Worker threads.",
            number(running.workers as u64),
        ),
        gauge(
            "tollgate_cpus",
            "CPUs this process may run on.",
            number(running.quota.cpus as u64),
        ),
        gauge(
            "tollgate_uptime_seconds",
            "Time since start, seconds.",
            running.started.elapsed().as_secs_f64(),
        ),
    ];
    if let Some(log) = &running.outlets.log {
        extras.push(counter(
            "tollgate_access_log_dropped_total",
            "Access-log lines that could not be written.",
            number(log.dropped()),
        ));
    }
    if let Some(books) = &running.outlets.books {
        extras.extend(ledger::of(books));
    }
    extras.extend(budget::of(&running.current().snapshot));
    if let Some(counting) = &running.outlets.counting {
        extras.extend(counting::of(counting));
    }
    if let Some(traces) = &running.outlets.traces {
        extras.extend(traces_of(traces));
    }
    if let Some(quota) = running.quota.quota {
        let help = "CPUs' worth of time that the cgroup allows.";
        extras.push(gauge("tollgate_cpu_quota", help, quota));
    }
    if let Some((periods, micros)) = quota::throttled() {
        extras.push(counter(
            "tollgate_cpu_throttled_periods_total",
            "Periods in which the cgroup was throttled (nr_throttled).",
            number(periods),
        ));
        extras.push(counter(
            "tollgate_cpu_throttled_seconds_total",
            "Time for which the cgroup was throttled, seconds.",
            number(micros) / 1e6,
        ));
    }
    extras.extend(process());
    extras
}

/// The ledger's state in JSON, its head above all.
pub(crate) fn ledger_page(running: &Running) -> String {
    running
        .outlets
        .books
        .as_ref()
        .map_or_else(String::new, ledger::page)
}

/// What became of spans.
fn traces_of(traces: &Traces) -> [Extra; 4] {
    let stats = traces.stats();
    let lost = |why, n| {
        let help = "Spans that were not delivered: no room was left, or the collector took none.";
        counter("tollgate_trace_spans_lost_total", help, number(n)).with("reason", why)
    };
    let help = "Offers of a batch of spans that the collector did not take.";
    [
        counter(
            "tollgate_trace_spans_sent_total",
            "Spans that the collector took.",
            number(stats.sent),
        ),
        lost("no_room", stats.crowded_out),
        lost("collector", stats.undelivered),
        counter(
            "tollgate_trace_failures_total",
            help,
            number(stats.failures),
        ),
    ]
}

/// The usual process metrics, from `/proc`.
fn process() -> Vec<Extra> {
    let mut extras = Vec::new();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|v| v.split_whitespace().next()?.parse::<f64>().ok());
    if let Some(kib) = resident {
        let help = "Resident memory, bytes.";
        extras.push(gauge("process_resident_memory_bytes", help, kib * 1024.0));
    }
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit_once(") ")
        .map(|(_, rest)| rest.split(' ').collect::<Vec<_>>());
    if let Some(fields) = fields {
        let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok());
        if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
            // USER_HZ is 100 on every Linux of today.
            let help = "User and system CPU time, seconds.";
            extras.push(counter(
                "process_cpu_seconds_total",
                help,
                (user + system) / 100.0,
            ));
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let help = "Open file descriptors.";
        extras.push(gauge("process_open_fds", help, number(open.count() as u64)));
    }
    extras
}

fn reload(result: &str, value: f64) -> Extra {
    counter(
        "tollgate_config_reloads_total",
        "Reloads, by result.",
        value,
    )
    .with("result", result)
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
fn number(n: u64) -> f64 {
    n as f64
}

fn gauge(name: &str, help: &str, value: f64) -> Extra {
    extra(name, help, ExtraKind::Gauge, value)
}

fn counter(name: &str, help: &str, value: f64) -> Extra {
    extra(name, help, ExtraKind::Counter, value)
}

fn extra(name: &str, help: &str, kind: ExtraKind, value: f64) -> Extra {
    Extra {
        name: name.into(),
        help: help.into(),
        kind,
        labels: Vec::new(),
        value,
    }
}

/// Adds a label.
trait With {
    fn with(self, name: &str, value: &str) -> Self;
}

impl With for Extra {
    fn with(mut self, name: &str, value: &str) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}
