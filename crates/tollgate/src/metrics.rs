//! Metrics of what the binary wires together: configuration, workers, quota, ledger, counting.
//!
//! Not here: what exchanges leave behind, budgets, spans, memory and CPU time (`telemetry`).

mod balancing;
mod batches;
mod calibration;
mod counting;
mod identity;
pub(crate) mod ledger;
mod mcp;

use std::sync::atomic::Ordering;

use ::counting::CountingPool;
use policy::levels::subjects::Usage;
use proxy::quota;
use telemetry::extras::{number, of_traces, process};
use telemetry::{Extra, Merged, MetricsSnapshot, budget};

use crate::budget::now_ms;
use crate::running::Running;

/// All workers' facts, with everything configured at least at 0.
pub(crate) async fn merged(running: &Running) -> Merged {
    let mut copies: Vec<MetricsSnapshot> = running
        .gate
        .scrape(|copy| copy.downcast_ref().cloned())
        .await;
    let counted = running.outlets.counting.as_ref().map(CountingPool::copy);
    copies.extend(counted.and_then(MetricsSnapshot::of));
    let mut merged = telemetry::merge(copies);
    merged.register(&running.current().revision.snapshot);
    merged
}

/// All of them, now.
pub(crate) fn of(running: &Running) -> Vec<Extra> {
    let version = running.current().revision.snapshot.version.clone();
    let flag = |yes: bool| f64::from(u8::from(yes));
    let [good, bad] = &running.reloads;
    let mut extras = vec![
        Extra::gauge(
            "tollgate_build_info",
            "Version of this program, always 1.",
            1.0,
        )
        .with("version", env!("CARGO_PKG_VERSION")),
        Extra::gauge(
            "tollgate_config_info",
            "Version of the configuration in use, always 1.",
            1.0,
        )
        .with("version", &version),
        Extra::gauge(
            "tollgate_config_last_reload_success",
            "Whether the last reload was taken (1) or refused (0).",
            flag(running.last_reload_good.load(Ordering::SeqCst)),
        ),
        reload("taken", number(good.load(Ordering::SeqCst))),
        reload("refused", number(bad.load(Ordering::SeqCst))),
        Extra::gauge(
            "tollgate_workers",
            "Worker threads.",
            number(running.workers as u64),
        ),
        Extra::gauge(
            "tollgate_cpus",
            "CPUs this process may run on.",
            number(running.quota.cpus as u64),
        ),
        Extra::gauge(
            "tollgate_uptime_seconds",
            "Time since start, seconds.",
            running.started.elapsed().as_secs_f64(),
        ),
    ];
    if let Some(log) = &running.outlets.log {
        extras.push(Extra::counter(
            "tollgate_access_log_dropped_total",
            "Access-log lines that could not be written.",
            number(log.dropped()),
        ));
    }
    if let Some(service) = &running.outlets.ledger {
        extras.extend(ledger::of(service));
    }
    extras.extend(budget::metrics(&running.current().revision, now_ms()));
    let revision = running.current().revision;
    extras.extend(subjects(revision.levels.usage(running.now(), now_ms())));
    if revision.snapshot.is_balanced {
        extras.extend(balancing::of(&revision.snapshot, running.now()));
    }
    extras.extend(mcp::of(&revision.snapshot));
    extras.extend(batches::of(&revision.snapshot, now_ms()));
    extras.extend(identity::of(
        &running.services,
        &running.current().key_files,
    ));
    if let Some(counting) = &running.outlets.counting {
        extras.extend(counting::of(counting));
    }
    if let Some(calibrator) = &running.outlets.calibrator {
        extras.extend(calibration::of(calibrator));
    }
    if let Some(traces) = &running.outlets.traces {
        extras.extend(of_traces(traces.stats()));
    }
    if let Some(quota) = running.quota.quota {
        let help = "CPUs' worth of time that the cgroup allows.";
        extras.push(Extra::gauge("tollgate_cpu_quota", help, quota));
    }
    if let Some((periods, micros)) = quota::throttled() {
        extras.push(Extra::counter(
            "tollgate_cpu_throttled_periods_total",
            "Periods in which the cgroup was throttled (nr_throttled).",
            number(periods),
        ));
        extras.push(Extra::counter(
            "tollgate_cpu_throttled_seconds_total",
            "Time for which the cgroup was throttled, seconds.",
            number(micros) / 1e6,
        ));
    }
    extras.extend(process());
    extras
}

/// Of the tables in which keys and users have limits and budgets of their own.
fn subjects(usage: Usage) -> [Extra; 4] {
    [
        Extra::gauge(
            "tollgate_limit_subjects",
            "Keys and users whose bucket of a limit of their own is not full, or whose rolling window holds something.",
            number(usage.buckets as u64),
        ),
        Extra::counter(
            "tollgate_limit_subjects_evicted_total",
            "Buckets of keys and users that were given up, and so filled, for others.",
            number(usage.evicted),
        ),
        Extra::gauge(
            "tollgate_budget_subjects",
            "Running periods of budgets in which keys and users have an amount of their own.",
            number(usage.accounts as u64),
        ),
        Extra::counter(
            "tollgate_budget_subjects_refused_total",
            "Calls refused because no more keys and users can be counted.",
            number(usage.turned_away),
        ),
    ]
}

fn reload(result: &str, value: f64) -> Extra {
    Extra::counter(
        "tollgate_config_reloads_total",
        "Reloads, by result.",
        value,
    )
    .with("result", result)
}
