//! Metrics that no worker counts: what one is made of, and those of the process and of spans.
//!
//! Not here: the page (`render`), those of budgets (`budget`), those that a host makes of its other parts.

use crate::traces::TraceStats;

/// A sample that is not counted here: the process, the limits, the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Extra {
    /// Metric name.
    pub name: String,
    /// One line saying what it is; the first of a name is used.
    pub help: String,
    /// Whether it only rises.
    pub kind: ExtraKind,
    /// Label names and values.
    pub labels: Vec<(String, String)>,
    /// The value, in the unit its name says.
    pub value: f64,
}

/// The type of an [`Extra`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtraKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
}

impl ExtraKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

impl Extra {
    /// One that rises and falls.
    #[must_use]
    pub fn gauge(name: &str, help: &str, value: f64) -> Self {
        Self::new(name, help, ExtraKind::Gauge, value)
    }

    /// One that only rises.
    #[must_use]
    pub fn counter(name: &str, help: &str, value: f64) -> Self {
        Self::new(name, help, ExtraKind::Counter, value)
    }

    fn new(name: &str, help: &str, kind: ExtraKind, value: f64) -> Self {
        Self {
            name: name.into(),
            help: help.into(),
            kind,
            labels: Vec::new(),
            value,
        }
    }

    /// Adds a label.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}

/// A count as a sample's value.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
pub fn number(n: u64) -> f64 {
    n as f64
}

/// What became of spans.
#[must_use]
pub fn of_traces(stats: TraceStats) -> [Extra; 4] {
    let lost = |why, n| {
        let help = "Spans that were not delivered: no room was left, or the collector took none.";
        Extra::counter("tollgate_trace_spans_lost_total", help, number(n)).with("reason", why)
    };
    let help = "Offers of a batch of spans that the collector did not take.";
    [
        Extra::counter(
            "tollgate_trace_spans_sent_total",
            "Spans that the collector took.",
            number(stats.sent),
        ),
        lost("no_room", stats.crowded_out),
        lost("collector", stats.undelivered),
        Extra::counter(
            "tollgate_trace_failures_total",
            help,
            number(stats.failures),
        ),
    ]
}

/// The usual process metrics, from `/proc`.
#[must_use]
pub fn process() -> Vec<Extra> {
    let mut extras = Vec::new();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|v| v.split_whitespace().next()?.parse::<f64>().ok());
    if let Some(kib) = resident {
        let help = "Resident memory, bytes.";
        extras.push(Extra::gauge(
            "process_resident_memory_bytes",
            help,
            kib * 1024.0,
        ));
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
            extras.push(Extra::counter(
                "process_cpu_seconds_total",
                help,
                (user + system) / 100.0,
            ));
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let help = "Open file descriptors.";
        extras.push(Extra::gauge(
            "process_open_fds",
            help,
            number(open.count() as u64),
        ));
    }
    extras
}
