//! The process's own log, on standard error.
//!
//! Invariant: no prompt, credential or header value of a client is ever logged.
//! Not here: the access log (`telemetry`), what keeps the gate from its work (`conditions`).

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// Starts logging; `filter` or `info`.
pub(crate) fn start(filter: Option<&str>, format: LogFormat) {
    let filter = filter.map_or_else(|| Ok(EnvFilter::new("info")), EnvFilter::try_new);
    let (filter, fault) = match filter {
        Ok(filter) => (filter, None),
        Err(fault) => (EnvFilter::new("info"), Some(fault)),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(wants_colour()).init(),
        LogFormat::Json => log.json().flatten_event(true).with_ansi(false).init(),
    }
    if let Some(fault) = fault {
        tracing::warn!(%fault, "the log filter is not understood; logging at info");
    }
}

/// On a terminal, unless `NO_COLOR` says something (<https://no-color.org>).
fn wants_colour() -> bool {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !forbidden
}
