//! The process's own log, on standard error.
//!
//! Invariant: no prompt, credential or header value of a client is ever logged.
//! Not here: the access log (`telemetry`).

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging; `filter` or `info`.
pub(crate) fn start(filter: Option<&str>) {
    let filter = filter.map_or_else(|| Ok(EnvFilter::new("info")), EnvFilter::try_new);
    let (filter, fault) = match filter {
        Ok(filter) => (filter, None),
        Err(fault) => (EnvFilter::new("info"), Some(fault)),
    };
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .init();
    if let Some(fault) = fault {
        tracing::warn!(%fault, "the log filter is not understood; logging at info");
    }
}
